"""The methods of `Core` that are refused, as they need plugins of OpenVINO, or devices with their own memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from .._util.absent import ExplainsAbsent
from .._util.wrong_arguments import checked
from ..codes import Code
from ..errors import UnsupportedError

__all__ = ["WithoutPlugins"]


class WithoutPlugins(ExplainsAbsent):
    """The methods of a core that are for plugins."""

    def create_context(self, device_name: str, properties: Mapping[str, object]) -> NoReturn:
        """Refuse a context of a device's memory, as no device here has its own memory. The properties are ignored.

        >>> import ir_runtime
        >>> ir_runtime.Core().create_context("GPU", {})  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        UnsupportedError: device 'GPU' cannot share its memory: there is none but the CPU's

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"device {checked(device_name, str)!r} cannot share its memory: there is none but the CPU's",
            code=Code.BAD_REQUEST,
            hint="tensors are NumPy arrays, and ir_runtime.Tensor shares their memory",
        )

    def get_default_context(self, device_name: str) -> NoReturn:
        """Refuse a context of the memory of ``device_name``, as `create_context`.

        >>> import ir_runtime
        >>> ir_runtime.Core().get_default_context("GPU")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        UnsupportedError: device 'GPU' cannot share its memory: there is none but the CPU's
        """
        self.create_context(device_name, {})

    def register_plugin(self, plugin_name: str, device_name: str, config: object = None) -> None:
        """Refuse the plugin ``plugin_name``: it is compiled code for OpenVINO. The other arguments are ignored.

        >>> import ir_runtime
        >>> ir_runtime.Core().register_plugin("mine.so", "GPU")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        UnsupportedError: plugin 'mine.so' cannot be loaded

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"plugin {plugin_name!r} cannot be loaded: a plugin is compiled code for OpenVINO",
            code=Code.BAD_REQUEST,
            hint="kernels for ir_runtime are written in Python: ir-runtime guide adding-a-kernel",
        )

    def register_plugins(self, xml_config_file: str) -> None:
        """Refuse OpenVINO's compiled plugins, as `register_plugin`.

        >>> import ir_runtime
        >>> ir_runtime.Core().register_plugins("plugins.xml")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        UnsupportedError: plugin 'plugins.xml' cannot be loaded
        """
        self.register_plugin(xml_config_file, "")
