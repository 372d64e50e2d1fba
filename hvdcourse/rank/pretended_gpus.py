"""GPUs that are not there: lets a check see, on a machine without any, which one a rank chooses."""

import os
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

COUNT = 8
VARIABLE = "CUDA_VISIBLE_DEVICES"
# As TensorFlow says it on a machine with GPUs.
TOO_LATE = (
    "Visible devices cannot be modified after being initialized: choose the GPU before anything "
    "else of TensorFlow"
)


class PretendedGPUs:
    """Answers for TensorFlow's list of GPUs, and remembers which of them were made visible.

    No computation is placed on them; a machine that has GPUs is asked for its own.
    """

    def __init__(self) -> None:
        self.devices: list[Any] = []
        self.chosen: list[Any] | None = None
        self.hidden = os.environ.get(VARIABLE)
        self.shown: list[Any] | None = None

    def pretend(self) -> None:
        """Let TensorFlow list COUNT GPUs from now on."""
        self.devices = [
            tf.config.PhysicalDevice(f"/physical_device:GPU:{number}", "GPU")
            for number in range(COUNT)
        ]
        listed, visible = tf.config.list_physical_devices, tf.config.get_visible_devices
        make_visible = tf.config.set_visible_devices

        def list_devices(device_type: str | None = None) -> list[Any]:
            pretended = self.listed() if device_type in (None, "GPU") else []
            return [*listed(device_type), *pretended]

        def get_visible(device_type: str | None = None) -> list[Any]:
            chosen = self.listed() if self.chosen is None else self.chosen
            return [*visible(device_type), *(chosen if device_type in (None, "GPU") else [])]

        def set_visible(devices: Any, device_type: str | None = None) -> None:
            # As TensorFlow does. A single device is a tuple, of its name and its type.
            devices = devices if isinstance(devices, list) else [devices]
            if device_type in (None, "GPU"):
                chosen = [device for device in devices if device in self.devices]
                if chosen != get_visible("GPU") and context.context()._context_handle is not None:
                    raise RuntimeError(TOO_LATE)
                self.chosen = chosen
            others = [device for device in devices if device not in self.devices]
            if device_type != "GPU":
                make_visible(others, device_type)

        for module in (tf.config, tf.config.experimental):
            module.list_physical_devices = list_devices
            module.get_visible_devices = get_visible
            module.set_visible_devices = set_visible
        # Settings of a GPU's memory have nothing to act on.
        tf.config.experimental.set_memory_growth = lambda device, enable: None
        tf.config.set_logical_device_configuration = lambda device, logical_devices: None

    def listed(self) -> list[Any]:
        """Return the GPUs that CUDA shows: those of its variable, as it is at the first call."""
        if self.shown is None:
            chosen = os.environ.get(VARIABLE)
            numbers = [int(n) for n in (chosen or "").split(",") if n.strip().isdigit()]
            # Where the check itself has hidden the machine's GPUs, the variable says nothing.
            self.shown = (
                self.devices if chosen == self.hidden else [self.devices[n] for n in numbers]
            )
        return self.shown

    def visible(self) -> list[int]:
        """Return the numbers of the GPUs that this process can use."""
        devices = tf.config.get_visible_devices("GPU")
        return [int(device.name.rpartition(":")[2]) for device in devices]
