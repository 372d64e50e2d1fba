"""The measurements of lesson 5 on a shaped link: no message is faster than the link lets it be."""

import numpy as np

from hvdcourse.cluster.measure import SIZES, WAYS, measure_links


def test_links_are_measured(nothing_changed):
    links = measure_links("1gbit")
    by_size = dict(links["allreduce"])
    assert tuple(by_size) == SIZES
    assert set(links["gradients"]) == set(WAYS)
    # 64 MB at 1 Gbit/s: never faster than the link, however slow the machine is.
    assert np.median(by_size[64_000_000]) > 0.9 * 64e6 / 125e6
    # 60 gradients of 64 KB are 3.84 MB, and half of them in 16 bits.
    assert np.median(links["gradients"]["fused"]) > 0.8 * 3.84e6 / 125e6
    # The server's link carries everything twice, a ring's three quarters of it.
    assert links["messages"]["parameter_server"] > 0.9 * 6 * 3.36e6 / 125e6
