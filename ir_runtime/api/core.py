"""Compile models; OpenVINO's ``Core``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._version import __version__
from ..backends import prepare
from ..codes import Code
from ..errors import InputError
from ..limits import DEFAULT, Limits
from ..ops import registry
from ..reader.source import SourceLike
from ..reader.weights import WeightsLike
from .compiled import CompiledModel
from .config import check_config, check_device, describe_device
from .model import Model
from .nodes import Output
from .reading import read_fragment, read_fragments, read_model
from .validating import validate

__all__ = ["Core", "compile_model", "read_fragment", "read_fragments", "read_model", "validate"]


def compile_model(
    model: Model | SourceLike,
    device_name: str | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    weights: WeightsLike | None = None,
    backend: str | None = None,
    outputs: Iterable[str | tuple[str, int] | Output] | str | None = None,
    limits: Limits | None = None,
    strict: bool = False,
) -> CompiledModel:
    """Choose kernels for a model, and fold what is constant.

    Args:
        model: a model, or what `read_model` takes.
        device_name: for OpenVINO's signature: CPU, or AUTO, GPU and NPU, which mean the same here.
        config: OpenVINO's properties; those without a meaning here are accepted, with a warning.
        weights: as for `read_model`.
        backend: ``numpy``, ``numba`` or ``reference``; by default what ``IR_RUNTIME_BACKEND`` says, else numba
            for models of more than a megabyte where it is installed, else numpy.
        outputs: further tensors to return: tensor names, layer names, globs, (layer name, output).
        limits: bounds on what reading, compiling and running may ask for; by default those that the model
            was read with.
        strict: refuse inputs of another element type than the model's, instead of casting them.

    Raises:
        UnsupportedError: if an operation that is needed cannot run.
        InputError: if there is no such device, property, backend or output.
        LimitError: if running it takes more memory than the limits allow, whatever the data are.
    """
    check_device(device_name)
    read = model if isinstance(model, Model) else read_model(model, weights, limits=limits or DEFAULT)
    return CompiledModel(read, backend, outputs, config, limits=limits, strict=strict)


class Core:
    """Reads and compiles models. As OpenVINO's ``Core``.

    The first one imports what most models need, which functions such as `read_model` do when a model needs it.
    """

    def __init__(self, xml_config_file: str = "") -> None:
        self._config: dict[str, Any] = {}
        with suppress(InputError):  # of a backend that is not there; compiling says so
            prepare()

    @property
    def available_devices(self) -> list[str]:
        """The devices there are."""
        return ["CPU"]

    def get_available_devices(self) -> list[str]:
        """The devices there are."""
        return self.available_devices

    def read_model(
        self,
        model: SourceLike,
        weights: WeightsLike | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        strict: bool | None = None,
        limits: Limits = DEFAULT,
    ) -> Model:
        """As `ir_runtime.read_model`."""
        return read_model(model, weights, config, strict=strict, limits=limits)

    def compile_model(
        self,
        model: Model | SourceLike,
        device_name: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        weights: WeightsLike | None = None,
        backend: str | None = None,
        outputs: Iterable[str | tuple[str, int] | Output] | str | None = None,
        limits: Limits | None = None,
        strict: bool = False,
    ) -> CompiledModel:
        """As `ir_runtime.compile_model`, with the properties set before."""
        merged = {**self._config, **(config or {})}
        return compile_model(
            model,
            device_name,
            merged,
            weights=weights,
            backend=backend,
            outputs=outputs,
            limits=limits,
            strict=strict,
        )

    def query_model(
        self, model: Model, device_name: str, config: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        """Which layers a device can run, by name."""
        check_device(device_name)
        return {node.friendly_name: "CPU" for node in model.get_ops() if node.layer.op is not None}

    def get_property(self, device_name: str, property: str | None = None) -> Any:
        """The value of a property: ``get_property("CPU", "FULL_DEVICE_NAME")``."""
        name = property or device_name
        return self._config[name] if name in self._config else describe_device(name)

    def set_property(self, device_name: Any, properties: Any = None) -> None:
        """Set properties for what is compiled later: ``set_property("CPU", {...})``.

        Args:
            device_name: for OpenVINO's signature; may be left out.
            properties: a mapping of names to values, or one name with its value.

        Raises:
            InputError: if there is no such property.
        """
        given = device_name if properties is None else properties
        if isinstance(given, tuple) and len(given) == 2:
            given = dict([given])
        if not isinstance(given, Mapping):
            got = type(given).__name__
            message = f"properties must be a mapping of names to values, got {got}"
            raise InputError(message, code=Code.BAD_REQUEST)
        self._config |= check_config(given)

    def get_versions(self, device_name: str) -> dict[str, str]:
        """The version of this package."""
        return {device_name: f"ir_runtime {__version__}"}

    def add_extension(self, extension: Any) -> None:
        """Accept operations declared with `ir_runtime.ops.op`: they are registered already.

        Raises:
            InputError: for compiled extensions of OpenVINO, which cannot be used.
        """
        if isinstance(extension, str | Path) or extension not in list(registry):
            raise InputError(
                f"{extension!r} is not an operation declared with ir_runtime.ops.op", code=Code.BAD_REQUEST
            )

    def __repr__(self) -> str:
        return f"<Core: available plugins[{', '.join(self.available_devices)}]>"
