"""`Core` and `compile_model`, which read and compile models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from .._util.absent import ExplainsAbsent
from .._util.wrong_arguments import ArgumentTypeError, checked
from .._version import API_VERSION
from ..backends import prepare
from ..codes import Code
from ..errors import InputError, UnsupportedError
from ..io.reader.source import SourceLike, WeightsLike
from ..limits import DEFAULT, Limits
from .compiled import CompiledModel
from .config import as_mapping, check_config, describe, import_properties, read_config_file
from .custom_op import extend
from .devices import CPU, Device, Streams
from .model import Model
from .node import Output
from .reading import read_fragment, read_fragments, read_model
from .validating import validate

__all__ = [
    "Core",
    "Version",
    "compile_model",
    "read_fragment",
    "read_fragments",
    "read_model",
    "validate",
]


# Versions of plugins, as `Core.get_versions` returns them.


@dataclass(frozen=True)
class Version:
    """The runtime version of a device. As OpenVINO's ``Version``.

    >>> import ir_runtime as ov
    >>> version = ov.Core().get_versions("CPU")["CPU"]
    >>> version.description
    'ir_runtime CPU'
    >>> (version.major, version.minor) >= (2026, 4), version.patch, version.build_number == ov.get_version()
    (True, 1, True)
    """

    description: str
    build_number: str = API_VERSION

    @property
    def major(self) -> int:
        """The major version number."""
        return self._numbers()[0]

    @property
    def minor(self) -> int:
        """The minor version number."""
        return self._numbers()[1]

    @property
    def patch(self) -> int:
        """The patch number."""
        return self._numbers()[2]

    def _numbers(self) -> tuple[int, ...]:
        parts = self.build_number.partition("-")[0].split(".")[:3]
        return tuple(int(part) if part.isdecimal() else 0 for part in [*parts, "0", "0"])

    def __repr__(self) -> str:
        return f"<Version: {self.build_number} {self.description}>"


def compile_model(
    model: Model | SourceLike,
    device_name: str | None = None,
    config: Mapping[str, object] | None = None,
    *,
    weights: WeightsLike | None = None,
    backend: str | None = None,
    outputs: Iterable[str | tuple[str, int] | Output] | str | None = None,
    limits: Limits | None = None,
    strict: bool = False,
) -> CompiledModel:
    """Compile a model: fold constants, fuse layers, and choose kernels.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x]), backend="numpy")
    >>> compiled(np.zeros(2, np.float32))[0]
    array([1., 1.], dtype=float32)
    >>> compiled.backend
    'numpy'

    Args:
        model: a model, or an argument of `read_model`.
        device_name: CPU, or one of AUTO, HETERO:CPU, MULTI:CPU and BATCH:CPU, which run on it. The default is
            AUTO.
        config: OpenVINO's properties. Hints without a meaning here are accepted and ignored.
        weights: as for `read_model`.
        backend: ``numpy``, ``native`` or ``reference``. The default is ``IR_RUNTIME_BACKEND`` if set, otherwise
            native if it has kernels for the CPU, otherwise numpy.
        outputs: additional tensors to return: tensor names, layer names, globs, or (layer name, output
            index).
        limits: resource limits of reading, compiling and running. The default is those with which the model
            was read.
        strict: refuse inputs of another element type instead of casting them.

    Raises:
        UnsupportedError: if an operation is not supported.
        InputError: if a property, the backend or an output is unknown, or the device is unavailable.
        LimitError: if every run would exceed the memory limit.
    """
    device = Device.of(device_name, config)
    net = model if isinstance(model, Model) else read_model(model, weights, limits=limits or DEFAULT)
    return CompiledModel(net, backend, outputs, config, device=device.name, limits=limits, strict=strict)


class Core(ExplainsAbsent):
    """Reads and compiles models. As OpenVINO's ``Core``.

    The first instance imports the common modules in advance; functions such as `read_model` import them on demand.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> core = ov.Core()
    >>> compiled = core.compile_model(ov.Model([opset1.exp(x, name="y")], [x]), "CPU")
    >>> compiled(np.zeros(2, np.float32))[0]
    array([1., 1.], dtype=float32)
    >>> core.available_devices
    ['CPU']
    >>> core.get_available_devices(), core.get_versions("CPU")["CPU"].description
    (['CPU'], 'ir_runtime CPU')
    >>> core.set_property("CPU", {"INFERENCE_NUM_THREADS": 2})
    >>> core.get_property("CPU", "INFERENCE_NUM_THREADS")
    2
    >>> core.unload_plugin("CPU")
    >>> core.query_model(ov.Model([opset1.exp(x, name="y")], [x]), "CPU")["y"]
    'CPU'
    >>> core.import_model(compiled.export_model()).input().shape
    <Shape: [2]>
    >>> core.add_extension(type("OpOfThisExample", (ov.Op,), {}))
    >>> text = b'<net name="empty" version="11"><layers/><edges/></net>'
    >>> core.read_model(text).friendly_name
    'empty'

    Methods that need compiled plugins or devices with their own memory raise an error:

    >>> core.register_plugin("mine.so", "GPU")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    UnsupportedError: plugin 'mine.so' cannot be loaded

    Args:
        xml_config_file: an OpenVINO configuration file, of which the properties of the CPU are set.

    Raises:
        ParseError: if that file cannot be read.
        InputError: if it has an unknown property.
    """

    def __init__(self, xml_config_file: str | os.PathLike[str] = "") -> None:
        self._config: dict[str, dict[str, object]] = {}
        import_properties()
        if xml_config_file:
            self.set_property(CPU, read_config_file(xml_config_file, CPU))
        with suppress(InputError):  # a missing backend is reported by compile_model
            prepare()

    @property
    def available_devices(self) -> list[str]:
        """The available devices."""
        return ["CPU"]

    def get_available_devices(self) -> list[str]:
        """Return the available devices."""
        return self.available_devices

    def read_model(
        self,
        model: SourceLike,
        weights: WeightsLike | None = None,
        config: Mapping[str, object] | None = None,
        *,
        strict: bool | None = None,
        limits: Limits = DEFAULT,
    ) -> Model:
        """Read a model from a path, bytes or an open file; see `ir_runtime.read_model` for the arguments."""
        return read_model(model, weights, config, strict=strict, limits=limits)

    def compile_model(
        self,
        model: Model | SourceLike,
        device_name: str | None = None,
        config: Mapping[str, object] | None = None,
        *,
        weights: WeightsLike | None = None,
        backend: str | None = None,
        outputs: Iterable[str | tuple[str, int] | Output] | str | None = None,
        limits: Limits | None = None,
        strict: bool = False,
    ) -> CompiledModel:
        """Compile a model with the properties set so far; see `ir_runtime.compile_model` for the arguments."""
        device = Device.of(device_name, config)
        return compile_model(
            model,
            device.full_name,
            {**self._set_for(*device.all, CPU), **as_mapping(config)},
            weights=weights,
            backend=backend,
            outputs=outputs,
            limits=limits,
            strict=strict,
        )

    def import_model(
        self,
        model_stream: object,
        device_name: str | None = None,
        config: Mapping[str, object] | None = None,
        *,
        backend: str | None = None,
        limits: Limits = DEFAULT,
    ) -> CompiledModel:
        """Compile a model exported with `CompiledModel.export_model`.

        Args:
            model_stream: the bytes, an open file, or a tensor of bytes.
            device_name: as for `compile_model`.
            config: as for `compile_model`.
            backend: as for `compile_model`.
            limits: the resource limits for reading and running the model.

        Raises:
            ParseError: if it is not an exported model of this package.
        """
        from .blob import read_blob

        Device.of(device_name, config)
        model, computes_f16 = read_blob(model_stream, limits)
        if computes_f16:
            config = {"INFERENCE_PRECISION_HINT": "f16", **(config or {})}
        return self.compile_model(model, device_name, config, backend=backend)

    def query_model(
        self, model: Model, device_name: str, config: Mapping[str, object] | None = None
    ) -> dict[str, str]:
        """Return the device of each layer that ``device_name`` runs, by layer name. ``config`` is only validated.

        Raises:
            InputError: if the device or a property is unknown.
        """
        checked(model, Model)
        Device.of(device_name, config)
        check_config(config)
        return dict.fromkeys(sorted(n.friendly_name for n in model.get_ops() if n.layer.op is not None), CPU)

    def get_property(self, device_name: str, property: str | None = None) -> Any:
        """Return the value of a property of a device: ``get_property("CPU", "FULL_DEVICE_NAME")``.

        Args:
            device_name: the device, which may be omitted.
            property: the name of the property.

        Raises:
            InputError: if the property or the device is unknown.
        """
        device, name = (CPU, device_name) if property is None else (device_name, property)
        checked(name, str)
        requested = Device.parse_query(device)
        if requested.others:
            hint = f"ask {requested.name} or each of its devices"
            raise InputError(f"device {device!r} has no properties", code=Code.BAD_REQUEST, hint=hint)
        return self._property_value(requested.name, name)

    def _property_value(self, device: str, name: str) -> object:
        from .devices import names_of

        config = self._set_for(device)
        if name == "SUPPORTED_PROPERTIES":
            return names_of(device)
        if name == "NUM_STREAMS":
            return Streams.of(config).count
        if name == "FULL_DEVICE_NAME" and device != CPU:
            return device
        return describe(name, config)

    def set_property(self, device_name: object, properties: object = None) -> None:
        """Set properties for later compilations: ``set_property("CPU", {...})``.

        Args:
            device_name: the device; all devices if omitted.
            properties: a mapping of names to values, or one name with its value.

        Raises:
            InputError: if the property or the device is unknown.
        """
        device, settings = ("", device_name) if properties is None else (device_name, properties)
        if isinstance(settings, tuple) and len(settings) == 2:
            settings = dict([settings])
        if not isinstance(settings, Mapping):
            message = f"properties must be a mapping of names to values, got {type(settings).__name__}"
            raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
        name = Device.parse(device).name if device else ""
        self._config[name] = self._config.get(name, {}) | check_config(settings)

    def _set_for(self, *devices: str) -> dict[str, object]:
        """Return the properties set for all devices and for these, of which earlier ones take precedence."""
        properties = dict(self._config.get("", {}))
        for device in reversed(devices):
            properties |= self._config.get(device, {})
        return properties

    def get_versions(self, device_name: str) -> dict[str, Version]:
        """Return the runtime version of a device and of its sub-devices, such as CPU in ``HETERO:CPU``."""
        return {name: Version(f"ir_runtime {name}") for name in Device.parse_query(device_name).all}

    def unload_plugin(self, device_name: str) -> None:
        """Drop the properties set for a device. Compiled models are not affected.

        Raises:
            InputError: if the device is not available.
        """
        self._config.pop(Device.parse_query(device_name).name, None)

    def add_extension(self, extension: object) -> None:
        """Register custom operations, that is, subclasses of `Op`. Those declared with `ir_runtime.ops.op` are registered already.

        Args:
            extension: a class, an `Extension`, or a list of them.

        Raises:
            InputError: for compiled extensions of OpenVINO, which cannot be used.
        """
        for item in extension if isinstance(extension, list | tuple) else [extension]:
            extend(item)

    def create_context(self, device_name: str, properties: Mapping[str, object]) -> NoReturn:
        """Raise an error, as no device here has a context. The arguments ``device_name`` and ``properties`` are ignored.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"device {checked(device_name, str)!r} cannot share its memory: there is none but the CPU's",
            code=Code.BAD_REQUEST,
            hint="tensors are NumPy arrays, and ir_runtime.Tensor shares their memory",
        )

    def get_default_context(self, device_name: str) -> NoReturn:
        """Raise an error, like `create_context`."""
        self.create_context(device_name, {})

    def register_plugin(self, plugin_name: str, device_name: str, config: object = None) -> None:
        """Raise an error, as OpenVINO's compiled plugins cannot be loaded here.

        Args:
            plugin_name: the plugin, for the message.
            device_name: ignored.
            config: ignored.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"plugin {plugin_name!r} cannot be loaded: a plugin is compiled code for OpenVINO",
            code=Code.BAD_REQUEST,
            hint="kernels for ir_runtime are written in Python: ir-runtime guide adding-a-kernel",
        )

    def register_plugins(self, xml_config_file: str) -> None:
        """Raise an error, like `register_plugin`."""
        self.register_plugin(xml_config_file, "")

    def __repr__(self) -> str:
        return f"<Core: available plugins[{', '.join(self.available_devices)}]>"
