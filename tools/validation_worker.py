"""One rank of the simulator's validation: measures allreduces and pretended training steps.

Started by ``validate_simulator.py``; rank 0 writes one JSON line for each measurement.
"""

import json
import os
import sys
import time
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

# Layers of the pretended networks: how many, bytes of each gradient, seconds of its backward pass.
NETWORKS = {"60 x 64 KiB": (60, 64 * 2**10, 1e-3), "12 x 1 MiB": (12, 2**20, 10e-3)}


WARM_UP = 3


def timed(action, repeats):
    """Return the seconds of each repeat; the first ones, which set things up, are left out."""
    seconds = []
    for _ in range(WARM_UP + repeats):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return seconds[WARM_UP:]


def allreduce(size):
    """Return a function that sums a tensor of so many bytes over all ranks."""
    tensor = tf.zeros(size // 4)
    return lambda: hvd.allreduce(tensor, op=hvd.Sum, name=f"bytes_{size}").numpy()


def step(network, communicate):
    """Return a function that sleeps for each layer in turn, and sums its gradient meanwhile."""
    layers, size, backward = NETWORKS[network]
    gradient = tf.zeros(size // 4)

    def computed(number):
        time.sleep(backward)
        return np.int32(number)

    @tf.function
    def run():
        number, sums = tf.constant(0), []
        for layer in range(layers):
            number = tf.numpy_function(computed, [number], tf.int32)
            with tf.control_dependencies([number]):
                ready = tf.identity(gradient)
            if communicate:
                ready = hvd.allreduce(
                    ready, op=hvd.Sum, name=f"{network}_{layer}".replace(" ", "_")
                )
            sums.append(ready[0])
        return tf.add_n([*sums, tf.cast(number, tf.float32)])

    return lambda: run().numpy()


def main():
    sizes, repeats, output = json.loads(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    hvd.init()
    rows = []
    timed(allreduce(4), 5 * repeats)
    for size in sizes:
        # A few long ones tell as much as many short ones.
        count = repeats if size < 16 * 2**20 else max(3, repeats // 3)
        rows.append({"kind": "allreduce", "bytes": size, "seconds": timed(allreduce(size), count)})
    for network, (layers, size, _) in NETWORKS.items():
        compute = timed(step(network, communicate=False), repeats)
        seconds = timed(step(network, communicate=True), repeats)
        shape = {"layers": layers, "bytes": size, "compute": float(np.median(compute))}
        rows.append({"kind": "step", **shape, "seconds": seconds})
    if hvd.rank() == 0:
        fused = os.environ.get("HOROVOD_FUSION_THRESHOLD") != "0"
        lines = (json.dumps({"ranks": hvd.size(), "fused": fused, **row}) for row in rows)
        with output.open("a") as file:
            file.writelines(line + "\n" for line in lines)


if __name__ == "__main__":
    main()
