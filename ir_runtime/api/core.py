"""The ways in: read, validate, compile."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backends import prepare
from ..codes import Code
from ..diagnostics import Diagnostics
from ..errors import InputError, IRError, ValidationError
from ..frontend.load import load
from ..frontend.source import SourceLike, open_source
from ..frontend.weights import WeightsLike
from ..limits import DEFAULT, Limits, within
from ..ops import registry
from .compiled import CompiledModel
from .config import check_config, check_device, describe_device
from .model import Model, ShapeLike
from .ports import Output

# What only pages or `validate` need is imported there: reading and running start a tenth sooner.
if TYPE_CHECKING:
    from ..frontend.fragment import Page, Values

__all__ = ["Core", "compile_model", "read_fragment", "read_fragments", "read_model", "validate"]


def read_model(
    model: SourceLike,
    weights: WeightsLike | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    strict: bool = True,
    limits: Limits = DEFAULT,
    values: Values | None = None,
    example: int | None = None,
) -> Model:
    """Read an OpenVINO IR.

    Args:
        model: path of the ``.xml``, its bytes, or an open file. A page of the specification will
            do, too.
        weights: path of the ``.bin``, its bytes, or an open file; by default the ``.bin`` beside the
            ``.xml``. It is mapped, not read.
        config: for OpenVINO's signature.
        strict: raise if the model is not valid. Otherwise ``model.report`` has what is wrong.
        limits: bounds on what the file, and running it, may ask for.
        values: for a page: contents for input ports, as for `read_fragment`.
        example: for a page: which of several examples, from 1.

    Raises:
        ParseError: if it cannot be read as an IR.
        ValidationError: if the model contradicts itself or the specification.
        UnsupportedError: if it has operations that are not known.
        LimitError: if it asks for more than ``limits`` allow.
    """
    check_config(config)
    report = Diagnostics()
    with within(limits), _no_collection():
        documents = load(model, weights, report, limits, values=values, example=example)
        if len(documents) != 1:
            raise InputError(
                f"{documents[0].file} has {len(documents)} examples",
                hint=f"choose one with example=1 … {len(documents)} (--example), or call read_fragments",
            )
        read = Model(documents[0], report)
    return read.raise_if_invalid() if strict else read


@contextmanager
def _no_collection() -> Iterator[None]:
    """What is read stays: to look for garbage in it again and again takes a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def read_fragment(
    text: str,
    *,
    values: Values | None = None,
    version: str | int | None = None,
    name: str = "<fragment>",
    example: int | None = None,
    strict: bool = True,
    limits: Limits = DEFAULT,
) -> Model:
    """Make a model of bare ``<layer>`` elements, as the specification prints them.

    Input ports that nothing feeds become Parameters, those with a value Constants; outputs become
    Results. A comment such as ``<!-- value is [2, 3] that means … -->`` gives a port its value.

    Args:
        text: the layers, or a whole page with one example.
        values: contents for input ports, by port id, (layer id, port id) or name:
            ``values={1: [2, 3]}``.
        version: ``"ReduceL2-4"``, ``"opset4"`` or ``4``, where neither tag nor page says.
        name: the file, for messages.
        example: which of several examples, from 1.
        strict: raise if the fragment is not valid. Otherwise ``model.report`` has what is wrong.
        limits: bounds on what the page may ask for.

    Raises:
        ParseError: if there is no layer in it, or it is not well-formed.
        InputError: if there are several examples and none is chosen, or a value fits no port.
        ValidationError: if it contradicts itself or the specification.
    """
    from ..frontend.fragment import Page

    with within(limits):
        page = Page(text, values=values, version=version, name=name, limits=limits)
        if example is None and len(page) > 1:
            hint = f"choose one with example=1 … {len(page)}, or call read_fragments"
            raise InputError(f"the page has {len(page)} examples", hint=hint)
        return _example(page, 1 if example is None else example, strict)


def read_fragments(
    text: str,
    *,
    version: str | int | None = None,
    name: str = "<fragment>",
    strict: bool = True,
    limits: Limits = DEFAULT,
) -> list[Model]:
    """Make a model of each example on a page of the specification; see `read_fragment`."""
    from ..frontend.fragment import Page

    with within(limits):
        page = Page(text, version=version, name=name, limits=limits)
        return [_example(page, number, strict) for number in range(1, len(page) + 1)]


def _example(page: Page, number: int, strict: bool) -> Model:
    report = Diagnostics()
    model = Model(page.read(number, report), report)
    return model.raise_if_invalid() if strict else model


def validate(
    model: SourceLike | Model,
    weights: WeightsLike | None = None,
    *,
    shapes: ShapeLike | Mapping[Any, ShapeLike] | None = None,
    limits: Limits = DEFAULT,
) -> Diagnostics:
    """Find what is wrong with a model, without running it.

    Args:
        model: a path, bytes, an open file, or a model. A page of the specification counts as all of
            its examples.
        weights: as for `read_model`.
        shapes: other shapes for the inputs, as `Model.reshape` takes them.
        limits: bounds on what the file may ask for.

    Returns:
        A report: iterate over its findings, in the order of the file, each with ``code``, ``severity``,
        ``message``, ``layer``, ``line``, ``excerpt``, ``causes`` and ``hint``; ``report.ok`` says
        whether there is no error.
    """
    with within(limits):
        return _validated(model, weights, shapes, limits)


def _validated(
    model: SourceLike | Model,
    weights: WeightsLike | None,
    shapes: ShapeLike | Mapping[Any, ShapeLike] | None,
    limits: Limits,
) -> Diagnostics:
    from ..frontend.excerpt import Excerpts

    report = Diagnostics()
    if isinstance(model, Model):
        report.found += model.report
        _examine(model, report, shapes)
        report.arrange()
        return report
    excerpt = None
    try:
        source = open_source(model, limits)
        excerpt = Excerpts(source.data).of
        for document in load(source, weights, report, limits):
            _examine(Model(document, report), report, shapes)
    except InputError:
        raise
    except IRError as problem:
        report.found += getattr(problem, "diagnostics", ()) or (problem.diagnostic,)
    report.arrange(excerpt)
    return report


def _examine(model: Model, report: Diagnostics, shapes: ShapeLike | Mapping[Any, ShapeLike] | None) -> None:
    """Add what is wrong, or odd, that reading and inference did not say."""
    from ..passes.audit import audit
    from ..passes.constants import check_bytes
    from ..passes.constraints import check_lengths
    from ..passes.variables import check_variables

    graph, weights = model._graph, model._document.weights
    audit(graph, model._values, report)
    check_variables(graph, report)
    if weights.data is not None:
        check_bytes(graph, len(weights), weights.name, report)
    if report.ok:
        check_lengths(graph, model._values, {port._port.layer: port._type for port in model.inputs}, report)
    if shapes is not None and report.ok:
        try:
            model.clone().reshape(shapes)
        except ValidationError as problem:
            report.found += problem.diagnostics


def compile_model(
    model: Model | SourceLike,
    device_name: str | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    weights: WeightsLike | None = None,
    backend: str | None = None,
    outputs: Iterable[str | tuple[str, int] | Output] | str | None = None,
    limits: Limits | None = None,
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

    Raises:
        UnsupportedError: if an operation that is needed cannot run.
        InputError: if there is no such device, property, backend or output.
        LimitError: if running it takes more memory than the limits allow, whatever the data are.
    """
    check_device(device_name)
    read = model if isinstance(model, Model) else read_model(model, weights, limits=limits or DEFAULT)
    return CompiledModel(read, backend, outputs, config, limits=limits)


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
        limits: Limits = DEFAULT,
    ) -> Model:
        """As `ir_runtime.read_model`."""
        return read_model(model, weights, config, limits=limits)

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
    ) -> CompiledModel:
        """As `ir_runtime.compile_model`, with the properties set before."""
        merged = {**self._config, **(config or {})}
        return compile_model(
            model, device_name, merged, weights=weights, backend=backend, outputs=outputs, limits=limits
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
            raise InputError("properties are a mapping of names to values", code=Code.BAD_REQUEST)
        self._config |= check_config(given)

    def get_versions(self, device_name: str) -> dict[str, str]:
        """The version of this package."""
        from .. import __version__

        return {device_name: f"ir_runtime {__version__}"}

    def add_extension(self, extension: Any) -> None:
        """Accept operations declared with `ir_runtime.ops.op`: they are registered already.

        Raises:
            InputError: for compiled extensions of OpenVINO, which cannot be used.
        """
        if isinstance(extension, str | Path) or extension not in list(registry):
            raise InputError(
                f"{extension!r} is no operation declared with ir_runtime.ops.op", code=Code.BAD_REQUEST
            )

    def __repr__(self) -> str:
        return f"<Core: available plugins[{', '.join(self.available_devices)}]>"
