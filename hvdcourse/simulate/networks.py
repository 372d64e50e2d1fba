"""Published networks: what each layer weighs and computes, and the speed that others measured.

The layers follow the papers; a convolution's batch normalization (two values a channel) travels
with it. ``tests/simulate`` compares the sums with Keras' own networks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hvdcourse.errors import BadInput
from hvdcourse.simulate.step import Layer

BYTES_PER_PARAMETER = 4
# A backward pass computes two products, for the input and for the weights, where the forward pass
# computes one (arXiv:2001.08361, section 2.1).
BACKWARD_PER_FORWARD = 2


@dataclass(frozen=True)
class Weights:
    """A layer's trainable parameters, and its multiplications for one image."""

    name: str
    parameters: int
    products: int


@dataclass(frozen=True)
class Network:
    """A network, and the images per second that one Pascal GPU trained on, at a batch size.

    ``per_second`` and ``batch`` are from the table at ``source``, with 32-bit numbers.
    """

    name: str
    weights: tuple[Weights, ...]
    per_second: float
    batch: int
    source: str

    @property
    def parameters(self) -> int:
        """The number of trainable parameters."""
        return sum(weights.parameters for weights in self.weights)

    def passes(self, batch: float) -> tuple[float, list[Layer]]:
        """Return the seconds of the forward pass, and the layers with those of the backward pass.

        The measured time of a step is divided among the layers by their multiplications, and grows
        with the batch.
        """
        seconds = batch / self.per_second
        backward = seconds * BACKWARD_PER_FORWARD / (1 + BACKWARD_PER_FORWARD)
        products = sum(weights.products for weights in self.weights)
        layers = [
            Layer(w.name, w.parameters * BYTES_PER_PARAMETER, backward * w.products / products)
            for w in self.weights
        ]
        return seconds - backward, layers


def convolution(name: str, kernel: int, inputs: int, outputs: int, side: int) -> Weights:
    """Return a convolution with batch normalization; ``kernel`` is height times width."""
    products = kernel * inputs * outputs
    return Weights(name, products + 2 * outputs, products * side**2)


def dense(name: str, inputs: int, outputs: int) -> Weights:
    """Return a dense layer with a bias."""
    return Weights(name, (inputs + 1) * outputs, inputs * outputs)


def resnet(blocks: tuple[int, ...]) -> Iterator[Weights]:
    """Yield the layers of a ResNet of bottlenecks (arXiv:1512.03385, table 1)."""
    yield convolution("conv1", 49, 3, 64, 112)
    inputs = 64
    for stage, count in enumerate(blocks):
        width, side = 64 * 2**stage, 56 // 2**stage
        for block in range(count):
            name = f"conv{stage + 2}_{block + 1}"
            yield convolution(f"{name}_a", 1, inputs, width, side)
            yield convolution(f"{name}_b", 9, width, width, side)
            yield convolution(f"{name}_c", 1, width, 4 * width, side)
            if block == 0:
                yield convolution(f"{name}_shortcut", 1, inputs, 4 * width, side)
            inputs = 4 * width
    yield dense("fc", inputs, 1000)


def vgg16() -> Iterator[Weights]:
    """Yield the layers of VGG-16 (arXiv:1409.1556, configuration D), with biases."""
    inputs = 3
    for stage, (count, width) in enumerate([(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)]):
        for number in range(count):
            products = 9 * inputs * width
            side = 224 // 2**stage
            yield Weights(f"conv{stage + 1}_{number + 1}", products + width, products * side**2)
            inputs = width
    yield dense("fc6", 7 * 7 * 512, 4096)
    yield dense("fc7", 4096, 4096)
    yield dense("fc8", 4096, 1000)


# Inception V3's blocks, as in Keras' applications: the side of the output, the channels that come
# in, and branches of convolutions, each as the kernel's height times width, and its channels. Two
# that Keras has side by side on the same channels stand one after another: they weigh the same.
INCEPTION = (
    (35, 192, "1:64 | 1:48 25:64 | 1:64 9:96 9:96 | 1:32"),
    (35, 256, "1:64 | 1:48 25:64 | 1:64 9:96 9:96 | 1:64"),
    (35, 288, "1:64 | 1:48 25:64 | 1:64 9:96 9:96 | 1:64"),
    (17, 288, "9:384"),
    (35, 288, "1:64 9:96"),
    (17, 96, "9:96"),
    *(
        (17, 768, f"1:192 | 1:{c} 7:{c} 7:192 | 1:{c} 7:{c} 7:{c} 7:{c} 7:192 | 1:192")
        for c in (128, 160, 160, 192)
    ),
    (17, 768, "1:192 | 1:192 7:192 7:192"),
    (8, 192, "9:320 | 9:192"),
    (8, 1280, "1:320 | 1:384 3:384 3:384 | 1:448 9:384 3:384 3:384 | 1:192"),
    (8, 2048, "1:320 | 1:384 3:384 3:384 | 1:448 9:384 3:384 3:384 | 1:192"),
)
STEM = ((149, 3, "9:32"), (147, 32, "9:32 9:64"), (73, 64, "1:80"), (71, 80, "9:192"))


def inception_v3() -> Iterator[Weights]:
    """Yield the layers of Inception V3 (arXiv:1512.00567)."""
    for block, (side, channels, branches) in enumerate(STEM + INCEPTION):
        for branch, chain in enumerate(branches.split(" | ")):
            inputs = channels
            for number, part in enumerate(chain.split()):
                kernel, outputs = map(int, part.split(":"))
                yield convolution(f"{block}_{branch}_{number}", kernel, inputs, outputs, side)
                inputs = outputs
    yield dense("fc", 2048, 1000)


# "Baseline single-GPU (batch size=64)", one Pascal GPU, in Horovod's own README until October 2017:
# the baseline of its charts.
HOROVOD_README = "Horovod's README at commit f7eb2177 (2017-10-17)"
TENSORFLOW = "tensorflow.org/performance/benchmarks (May 2017), NVIDIA P100, synthetic data"
NETWORKS = {
    network.name: network
    for network in (
        Network("resnet50", tuple(resnet((3, 4, 6, 3))), 219.0, 64, TENSORFLOW),
        Network("resnet101", tuple(resnet((3, 4, 23, 3))), 119.4, 64, HOROVOD_README),
        Network("inception_v3", tuple(inception_v3()), 134.4, 64, HOROVOD_README),
        Network("vgg16", tuple(vgg16()), 130.9, 64, HOROVOD_README),
    )
}


def find_network(name: str) -> Network:
    """Return the network of this name. Raises BadInput where there is none."""
    if name not in NETWORKS:
        raise BadInput(f"model must be one of {', '.join(NETWORKS)}; got {name!r}")
    return NETWORKS[name]
