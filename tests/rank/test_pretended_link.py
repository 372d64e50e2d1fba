"""A pretended link adds up over real ranks, and its seconds are those of the formula."""

import numpy as np
import pytest

from hvdcourse.errors import BadInput
from hvdcourse.launch.run import run_quickly
from hvdcourse.rank.pretended_link import PretendedLink
from hvdcourse.rank.variables import OBSERVE_VARIABLE

ON_THREE_RANKS = """
import numpy as np
from mpi4py import MPI

from hvdcourse import record
from hvdcourse.rank.pretended_link import PretendedLink

link = PretendedLink(latency=0.25, bandwidth=8.0)
for kind in (np.float16, np.float32, np.float64):
    buffer = np.array([1.5, 2.0**-24, 1000.0]).astype(kind) * kind(link.rank + 1)
    link.allreduce(buffer)
    record("sum", buffer)
link.end_step()

buffers = [np.full(3, link.rank, np.float32) for _ in range(3)]
link.compute(1.0)
first = link.start(buffers[0])
link.compute(1.0)
second, third = link.start(buffers[1]), link.start(buffers[2])
record("started", buffers[0])
first.wait()
first.wait()
record("waited", buffers[0])
record("now", link.now)
second.wait()
done = link.end_step()
record("forgotten", buffers[2])
record("step", [done.seconds, done.computed, done.exposed, done.bytes, done.forgotten])
record("sent", [[message.bytes, message.started, message.finished] for message in done.sent])
record("new step", [link.now, link.end_step().seconds])

for send, *more in (
    (MPI.IN_PLACE, np.ones(5)), ([np.ones(7), 3, MPI.DOUBLE], np.ones(3)),
    (np.ones(2, np.float16).view(np.uint16), np.ones(2, np.uint16)),
):
    MPI.COMM_WORLD.Allreduce(send, *more)
MPI.COMM_WORLD.allreduce(np.ones(4))
MPI.COMM_WORLD.Iallreduce(sendbuf=np.ones(6), recvbuf=np.ones(6)).Wait()
MPI.COMM_WORLD.Bcast(np.ones(9))
"""


@pytest.mark.ranks
def test_real_ranks_get_sums_and_the_seconds_of_the_formula(tmp_path):
    script = tmp_path / "on_three_ranks.py"
    script.write_text(ON_THREE_RANKS)
    result = run_quickly(script, 3, backend="mpi", environment={OBSERVE_VARIABLE: "mpi4py"})
    for rank in result.ranks:
        values = {entry["report"]: entry["value"] for entry in rank.evidence if "report" in entry}
        sums = [entry["value"] for entry in rank.evidence if entry.get("report") == "sum"]
        assert sums == [[9.0, 6 * 2.0**-24, 6000.0]] * 3
        # A message takes 4 turns of 0.25 s, and of 4 bytes at 8 bytes a second.
        assert values["sent"] == [[12, 1, 4], [12, 2, 7], [12, 2, 10]]
        assert (values["started"], values["waited"]) == ([rank.rank] * 3, [3.0] * 3)
        assert values["now"] == 4
        # The third message was not waited for: its buffer is as it was.
        assert values["forgotten"] == [rank.rank] * 3
        assert values["step"] == [7, 2, 5, 36, 1]
        assert values["new step"] == [0, 0]
        seen = [entry["bytes"] for entry in rank.evidence if "collective" in entry]
        assert seen == [6, 12, 24, 12, 12, 12, 40, 24, 4, 32, 48, 0]


@pytest.mark.parametrize(
    ("latency", "bandwidth", "said"),
    [
        (-1, 1, "latency must be a number of seconds from 0; got -1"),
        (np.nan, 1, "latency must be"),
        (0, 0, "bandwidth must be bytes per second above 0; got 0"),
        (0, np.nan, "bandwidth must be"),
    ],
)
def test_a_link_that_cannot_be_is_refused(latency, bandwidth, said):
    with pytest.raises(BadInput, match=said):
        PretendedLink(latency, bandwidth)


@pytest.mark.ranks  # mpi4py starts MPI
@pytest.mark.parametrize(
    ("buffer", "said"),
    [
        ([1.0], "got list"),
        (np.arange(3), "got int64"),
        (np.ones((4, 4), np.float32)[:, 1], "the buffer has gaps in memory"),
    ],
)
def test_a_buffer_that_cannot_travel_is_refused(buffer, said):
    with pytest.raises(BadInput, match=said):
        PretendedLink(0, 1).start(buffer)


@pytest.mark.ranks
def test_a_single_rank_sends_nothing():
    link, buffer = PretendedLink(1, 1), np.ones(3, np.float32)
    link.compute(2)
    link.allreduce(buffer)
    done = link.end_step()
    assert buffer.tolist() == [1, 1, 1]
    assert (done.seconds, done.exposed, done.sent, done.forgotten) == (2, 0, (), 0)
