"""GPUs that are not there: lets a check see, on a machine without any, which one a rank chooses."""

import os
from typing import Any

import tensorflow as tf

COUNT = 8


class PretendedGPUs:
    """Answers for TensorFlow's list of GPUs, and remembers which of them were made visible.

    No computation is placed on them; a machine that has GPUs is asked for its own.
    """

    def __init__(self) -> None:
        self.devices: list[Any] = []
        self.chosen: list[Any] | None = None

    def pretend(self) -> None:
        """Let TensorFlow list COUNT GPUs from now on."""
        self.devices = [
            tf.config.PhysicalDevice(f"/physical_device:GPU:{number}", "GPU")
            for number in range(COUNT)
        ]
        listed, visible = tf.config.list_physical_devices, tf.config.get_visible_devices
        make_visible = tf.config.set_visible_devices

        def list_devices(device_type: str | None = None) -> list[Any]:
            pretended = self.devices if device_type in (None, "GPU") else []
            return [*listed(device_type), *pretended]

        def get_visible(device_type: str | None = None) -> list[Any]:
            chosen = self.devices if self.chosen is None else self.chosen
            return [*visible(device_type), *(chosen if device_type in (None, "GPU") else [])]

        def set_visible(devices: Any, device_type: str | None = None) -> None:
            # As TensorFlow does. A single device is a tuple, of its name and its type.
            devices = devices if isinstance(devices, list) else [devices]
            if device_type in (None, "GPU"):
                self.chosen = [device for device in devices if device in self.devices]
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

    def visible(self) -> list[int]:
        """Return the numbers of the GPUs that this process can use."""
        if self.chosen is None and self.devices and "CUDA_VISIBLE_DEVICES" in os.environ:
            listed = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
            return [int(number) for number in listed if number.strip().isdigit()]
        devices = tf.config.get_visible_devices("GPU")
        return [int(device.name.rpartition(":")[2]) for device in devices]
