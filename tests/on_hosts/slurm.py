"""A Slurm of its own, on the hosts of a cluster: munged, slurmctld and slurmd, started by hand."""

import os
import subprocess
import time
from pathlib import Path

from watching import wait_for

from hvdcourse.cluster.cluster import Host, execute
from hvdcourse.cluster.execute import host_command
from hvdcourse.cluster.host import MARK_VARIABLE

# accounting and control groups need services that a test has not; the rest is Slurm's default.
CONFIGURATION = """\
ClusterName=hvdcourse
SlurmctldHost={first.name}({first.address})
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
FINAL_STATES = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")


class Slurm:
    """Daemons on all hosts; they end with the hosts."""

    def __init__(self, hosts: list[Host], folder: Path):
        self.hosts, self.folder = hosts, folder
        self.configuration = folder / "slurm.conf"
        self.daemons: list[subprocess.Popen] = []

    def start(self) -> None:
        """Start everything, and wait until all nodes take jobs."""
        nodes = "\n".join(
            f"NodeName={host.name} NodeAddr={host.address} CPUs={host.slots} State=UNKNOWN"
            for host in self.hosts
        )
        text = CONFIGURATION.format(first=self.hosts[0], folder=self.folder, nodes=nodes)
        self.configuration.write_text(text)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (self.folder / "state").mkdir()
        for host in self.hosts:
            for kind in ("spool", "tmp"):
                (self.folder / f"{kind}-{host.name}").mkdir()
            munged = f"mkdir -m 755 /run/munge; exec munged --foreground --force --key-file={key} "
            munged += "--log-file=/run/munge/log --seed-file=/run/munge/seed"
            self.daemon(host, ["sh", "-c", munged])
        for host in self.hosts:
            assert wait_for(lambda host=host: self.ask(["munge", "-n"], host).ok)
        self.daemon(self.hosts[0], ["slurmctld", "-D", "-c"])
        for host in self.hosts:
            self.daemon(host, ["slurmd", "-D", "-N", host.name])
        idle = ["sinfo", "--noheader", "--states=idle", "--format=%D"]
        ready = str(len(self.hosts))
        assert wait_for(lambda: self.ask(idle).output.strip() == ready, 30), self.logs()

    def daemon(self, host: Host, command: list[str]) -> None:
        """Start a daemon on a host."""
        with (self.folder / f"{command[0]}-{host.name}.out").open("w") as log:
            self.daemons.append(
                subprocess.Popen(
                    host_command(host, command),
                    env={**os.environ, "SLURM_CONF": str(self.configuration)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def ask(self, command: list[str], host: Host | None = None, **environment: str):
        """Run one of Slurm's commands on a host, the first if none is named."""
        return execute(
            host or self.hosts[0],
            command,
            timeout=20,
            environment={"SLURM_CONF": str(self.configuration), **environment},
            quiet=True,
            must_succeed=False,
        )

    def batch(self, *command: str, seconds: float = 150, **environment: str) -> tuple[str, str]:
        """Submit a job, wait for its end, and return its final state and its output."""
        output = self.folder / "job.out"
        output.unlink(missing_ok=True)
        # A job must not end with the command that submits it.
        words = [
            "env",
            f"--unset={MARK_VARIABLE}",
            "sbatch",
            "--parsable",
            f"--output={output}",
            *command,
        ]
        submitted = self.ask(words, **environment)
        assert submitted.ok, submitted.output
        number = submitted.output.strip()
        deadline = time.monotonic() + seconds
        while (state := self.state(number)) not in FINAL_STATES:
            if time.monotonic() > deadline:
                self.ask(["scancel", number])
                raise AssertionError(f"job {number} is still {state}\n{self.logs()}")
            time.sleep(0.5)
        return state, output.read_text()

    def state(self, number: str) -> str:
        """Return a job's state, such as RUNNING."""
        shown = self.ask(["scontrol", "show", "job", number]).output
        return shown.partition("JobState=")[2].partition(" ")[0]

    def logs(self) -> str:
        """Return what the daemons have said."""
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(f"--- {one.name}\n{one.read_text()[-3000:]}" for one in files)

    def stop(self) -> None:
        """End the daemons that were started here."""
        for process in reversed(self.daemons):
            process.kill()
            process.wait()
