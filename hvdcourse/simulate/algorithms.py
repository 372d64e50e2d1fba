"""How long an allreduce takes: closed forms for a tensor of S bytes on n ranks.

Every function takes the size in bytes and a cluster, and returns seconds. On a cluster with one
rank a host (``links.flat``) it is the textbook's formula; otherwise it runs within the hosts first
and then between them. The time of adding up is not counted: on links that are worth a course it
hides behind the sending. Formulas: Thakur, Rabenseifner, Gropp 2005, doi:10.1177/1094342005051521,
unless another source is named.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hvdcourse.errors import BadInput
from hvdcourse.simulate.links import Cluster, Link, flat


def doublings(ranks: int) -> int:
    """Return how many times 1 must be doubled to reach so many ranks."""
    return (ranks - 1).bit_length()


def ring(size: float, cluster: Cluster) -> float:
    """Return 2 (n - 1) (α + S / (n β)): the least bytes per link, and many small steps.

    Bytes: Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002. With h hosts, a part of the
    tensor crosses 2 (h - 1) links between hosts on its way, and the slowest link sets the pace:
    the model of NCCL's src/graph/tuning.cc.
    """
    ranks, hosts = cluster.ranks, cluster.hosts
    crossing = 2 * (hosts - 1)
    latency = crossing * cluster.between.latency
    if cluster.ranks_per_host > 1:
        latency += (2 * (ranks - 1) - crossing) * cluster.inside.latency
    return latency + 2 * (ranks - 1) / ranks * size / slowest(cluster)


def slowest(cluster: Cluster) -> float:
    """Return the bandwidth of the slowest link that a ring through all ranks uses."""
    inside = cluster.inside.bandwidth if cluster.ranks_per_host > 1 else math.inf
    return min(inside, cluster.between.bandwidth if cluster.hosts > 1 else math.inf)


def parameter_server(size: float, cluster: Cluster) -> float:
    """Return 2 (α + (n - 1) S / β): all tensors pass through the link of rank 0, twice."""
    near, far = cluster.ranks_per_host - 1, cluster.ranks - cluster.ranks_per_host
    from_near = cluster.inside.seconds(near * size) if near else 0.0
    from_far = cluster.between.seconds(far * size) if far else 0.0
    return 2 * max(from_near, from_far)


def recursive_doubling(size: float, cluster: Cluster) -> float:
    """Return log2(n) (α + S / β): in each step everyone swaps all of the tensor with a partner.

    Ranks beyond a power of two cost two steps more.
    """

    def within(ranks: int, link: Link, sharing: int) -> float:
        whole = 2 ** (ranks.bit_length() - 1)
        steps = doublings(whole) + (2 if whole < ranks else 0)
        return steps * link.seconds(size * sharing)

    inside = within(cluster.ranks_per_host, cluster.inside, 1)
    return inside + within(cluster.hosts, cluster.between, cluster.ranks_per_host)


def tree(size: float, cluster: Cluster) -> float:
    """Return 2 log2(n) (α + S / β): to the root in a binomial tree, and the same way back."""
    inside = doublings(cluster.ranks_per_host) * cluster.inside.seconds(size)
    return 2 * (inside + doublings(cluster.hosts) * cluster.between.seconds(size))


def double_tree(size: float, cluster: Cluster) -> float:
    """Return 2 log2(n) α + 2 S / β: two trees, each for half of the tensor, in many small pieces.

    Pieces follow one another, so only the first pays for the depth. Few steps, nearly the ring's
    bytes: Sanders, Speck, Träff 2009, doi:10.1016/j.parco.2009.09.001; NCCL since version 2.4.
    """
    inside = doublings(cluster.ranks_per_host) * cluster.inside.latency
    between = doublings(cluster.hosts) * cluster.between.latency
    return 2 * (inside + between + size / slowest(cluster))


def ring_or_tree(size: float, cluster: Cluster) -> float:
    """Return the shorter time of ``ring`` and ``double_tree``: NCCL chooses so for each tensor."""
    return min(ring(size, cluster), double_tree(size, cluster))


def two_stage(size: float, cluster: Cluster) -> float:
    """Return the seconds of three rings: within the hosts, between them, and within again.

    A host's r ranks first share out the sum, S / r each. Then r rings between the hosts run at the
    same time, on links that they share. Horovod's `HOROVOD_HIERARCHICAL_ALLREDUCE`; Jia et al.,
    arXiv:1807.11205.
    """
    local, hosts = cluster.ranks_per_host, cluster.hosts
    inside = 2 * (local - 1) * cluster.inside.seconds(size / local)
    return inside + 2 * (hosts - 1) * cluster.between.seconds(size / hosts)


Algorithm = Callable[[float, Cluster], float]
_FORMS = (ring, parameter_server, recursive_doubling, tree, double_tree, ring_or_tree, two_stage)
ALGORITHMS: dict[str, Algorithm] = {form.__name__: form for form in _FORMS}


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm of this name. Raises BadInput where there is none."""
    if name not in ALGORITHMS:
        raise BadInput(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {name!r}")
    return ALGORITHMS[name]


@dataclass(frozen=True)
class Fit:
    """A link, and the seconds that every allreduce pays once: Horovod's cycle and negotiation."""

    link: Link
    constant: float

    def seconds(self, size: float, ranks: int) -> float:
        """Return the predicted seconds of an allreduce in a ring."""
        return self.constant + ring(size, flat(ranks, self.link))


def fit_link(sizes: Sequence[float], seconds: Sequence[float], ranks: int | Sequence[int]) -> Fit:
    """Return the link and constant that explain measured rings with the least relative error.

    Where every measurement pays as many latencies, as on one number of ranks, they cannot be told
    from the constant: it then holds both, and the latency is 0.

    Args:
        sizes: bytes of each allreduce.
        seconds: how long each took.
        ranks: on how many ranks, one rank a host; one number for all, or one for each.

    Raises:
        BadInput: there are too few measurements, or they are no times of messages.
    """
    from scipy.optimize import nnls

    count = np.broadcast_to(np.asarray(ranks), np.shape(sizes))
    measured = np.asarray(seconds, float)
    if measured.shape != np.shape(sizes) or len(set(sizes)) < 2 or not (measured > 0).all():
        raise BadInput("a fit needs the seconds, all above 0, of at least two sizes, one for each")
    # The time is linear in latency and in 1 / bandwidth: here are their factors.
    latency = np.array([ring(0, flat(int(n), Link(1, 1))) for n in count])
    latency *= np.ptp(latency) > 0
    transfer = [ring(s, flat(int(n), Link(0, 1))) for s, n in zip(sizes, count, strict=True)]
    factors = np.stack([np.ones_like(measured), latency, transfer], axis=1)
    scaled = factors / measured[:, None]
    scale = scaled.max(axis=0) + 1e-300
    constant, alpha, per_byte = nnls(scaled / scale, np.ones_like(measured))[0] / scale
    if per_byte == 0:
        raise BadInput("larger messages did not take longer: measure larger ones, or more of them")
    return Fit(Link(float(alpha), float(1 / per_byte)), float(constant))
