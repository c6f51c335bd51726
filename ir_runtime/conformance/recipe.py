"""Recipes of generated cases: descriptions of layers, attributes and inputs from which a model is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from .._util.escaping import markup_text
from .._util.markup import element as xml_element
from ..errors import IRError
from ..ir.element import ElementType
from ..ir.tensor import Array, TensorType, Value
from ..openvino.reading import read_model
from ..ops import Op, registry
from .bounds import bound_of, graph_bound, tolerances
from .case import SEVERAL, Case, to_bytes
from .judge import judge
from .truth import Unstable, truth_of

__all__ = ["Feed", "Recipe", "Step", "Unfit", "operation_class"]


class Unfit(Exception):  # noqa: N818 - an answer
    """A recipe gives no case: its model is invalid, or its outputs are not unique."""


@dataclass(frozen=True)
class Feed:
    """An input or constant of the model.

    Args:
        array: the elements.
        element: the element type.
        constant: whether it is a constant instead of an input.
    """

    array: Array
    element: ElementType
    constant: bool = False


@dataclass(frozen=True)
class Step:
    """A layer.

    Args:
        operation: the operation with its version.
        attributes: the attributes, as in the ``.xml``.
        sources: the indices of the tensors that it reads, among the feeds followed by the first outputs of all steps.
    """

    operation: str
    attributes: Mapping[str, str]
    sources: Sequence[int]


@dataclass(frozen=True)
class Recipe:
    """A description of a model and its inputs.

    Args:
        feeds: the inputs and constants.
        steps: the layers, in topological order.
    """

    feeds: Sequence[Feed]
    steps: Sequence[Step]

    @property
    def operation(self) -> str:
        """The operation with its version, or `SEVERAL`."""
        return self.steps[0].operation if len(self.steps) == 1 else SEVERAL

    def case(self, identity: str) -> Case:
        """Write the model, compute the correct outputs, and return the case.

        Raises:
            Unfit: if the model is invalid or fails, or rounding decides its outputs.
        """
        pruned = self._prune()
        try:
            with np.errstate(all="ignore"):
                xml, weights = _write(pruned)
                model = read_model(xml, weights)
                feeds = [feed for feed in pruned.feeds if not feed.constant]
                is_graph = self.operation == SEVERAL
                truth = truth_of(model, [feed.array for feed in feeds], bound=bound_of if is_graph else None)
        except (IRError, Unstable, ValueError, TypeError, ArithmeticError) as reason:
            raise Unfit(str(reason)) from None
        bound = graph_bound(truth) if is_graph else bound_of(self.operation, truth.precision)
        case = Case(
            identity, self.operation, "value", xml, weights, [feed.array for feed in feeds], truth.outputs,
            [feed.element for feed in feeds], truth.types, tolerances(truth, bound), truth.source,
            "generated", alternatives=[] if truth.infinite is None else [truth.infinite],
        )  # fmt: skip
        if is_graph and truth.precision and judge(case, truth.declared).message:
            # Such as the sign of a value that only f64 can tell from 0.
            raise Unfit("rounding decides an output")
        return case

    def _prune(self) -> Recipe:
        """Return the recipe without unused feeds."""
        used = sorted({source for step in self.steps for source in step.sources if source < len(self.feeds)})
        places = {old: new for new, old in enumerate(used)}
        shift = len(self.feeds) - len(used)

        def renumber(source: int) -> int:
            return places[source] if source in places else source - shift

        steps = [replace(step, sources=[renumber(source) for source in step.sources]) for step in self.steps]
        return Recipe([self.feeds[index] for index in used], steps)

    def simpler(self) -> Iterator[Recipe]:
        """Yield simpler recipes, the most drastic simplifications first; they may be unfit."""
        yield from self._drop_steps()
        lengths = sorted(
            {length for feed in self.feeds for length in feed.array.shape if length > 1}, reverse=True
        )
        for length in lengths:
            for shorter in (1, length // 2, length - 1):
                if 0 < shorter < length:
                    yield replace(self, feeds=[_truncate(feed, length, shorter) for feed in self.feeds])
        for index, feed in enumerate(self.feeds):
            for array in _plainer(feed):
                feeds = list(self.feeds)
                feeds[index] = replace(feed, array=array)
                yield replace(self, feeds=feeds)

    def _drop_steps(self) -> Iterator[Recipe]:
        """Yield recipes without the last layer, or with a layer bypassed."""
        if len(self.steps) == 1:
            return
        yield replace(self, steps=self.steps[:-1])
        count = len(self.feeds)
        for gone, step in enumerate(self.steps):
            source = step.sources[0]

            def renumber(read: int, gone: int = gone, source: int = source) -> int:
                place = source if read == count + gone else read
                return place - (place > count + gone)

            rest = [other for index, other in enumerate(self.steps) if index != gone]
            yield replace(
                self,
                steps=[replace(other, sources=[renumber(read) for read in other.sources]) for other in rest],
            )


def _truncate(feed: Feed, length: int, shorter: int) -> Feed:
    """Truncate all axes of length ``length`` to ``shorter``."""
    cut = tuple(slice(shorter if n == length else n) for n in feed.array.shape)
    return replace(feed, array=np.array(feed.array[cut]))


def _plainer(feed: Feed) -> Iterator[Array]:
    """Yield copies of the array with simpler elements: ones, integers, two decimals."""
    if not feed.element.real or not feed.array.size:
        return
    with np.errstate(all="ignore"):
        wide = feed.array.astype(np.float64)
        for array in (
            np.ones_like(wide),
            np.where(np.isfinite(wide), np.round(wide), wide),
            np.round(wide, 2),
        ):
            plain = array.astype(feed.array.dtype)
            if not np.array_equal(plain, feed.array, equal_nan=True):
                yield plain


@cache
def operation_class(operation: str) -> type[Op]:
    """Return the class of an operation, such as ``Add-1``."""
    name, _, since = operation.rpartition("-")
    return next(cls for cls in registry.versions(name) if cls.since == int(since))


def _write(recipe: Recipe) -> tuple[bytes, bytes]:
    """Return the ``.xml`` and the ``.bin`` of a recipe; outputs of layers without consumers become outputs of the model."""
    writer = _Writer()
    tensors = [writer.feed(feed) for feed in recipe.feeds]
    read = {source for step in recipe.steps for source in step.sources}
    for step in recipe.steps:
        outputs = writer.step(step, [tensors[source] for source in step.sources])
        if len(tensors) in read:
            outputs, first = outputs[1:], outputs[:1]
        else:
            first = outputs[:1]
        tensors += first
        for output in outputs:
            writer.result(output)
    return writer.xml(), writer.weights


@dataclass(frozen=True)
class _End:
    """An output of a layer: the ids of layer and port, and its `Value`."""

    layer: int
    port: int
    value: Value


class _Writer:
    def __init__(self) -> None:
        self.weights = b""
        self._layers: list[str] = []
        self._edges: list[str] = []

    def feed(self, feed: Feed) -> _End:
        shape = ",".join(map(str, feed.array.shape))
        if not feed.constant:
            value = Value.unknown(feed.element, Value.constant(feed.array, feed.element).shape)
            data = {"element_type": feed.element.label, "shape": shape}
            return self._layer("Parameter", 1, data, [], [value.type], [value])[0]
        value, raw = Value.constant(feed.array, feed.element), to_bytes(feed.array, feed.element) or b"\0"
        place = {"offset": str(len(self.weights)), "size": str(len(raw))}
        self.weights += raw
        data = {"element_type": feed.element.label, "shape": shape, **place}
        return self._layer("Const", 1, data, [], [value.type], [value])[0]

    def step(self, step: Step, sources: Sequence[_End]) -> list[_End]:
        cls = operation_class(step.operation)
        types = cls.parse(step.attributes).infer_types(*(source.value for source in sources))
        values = [Value.unknown(type.element, type.shape) for type in types]
        return self._layer(cls.name, cls.since, step.attributes, sources, types, values)

    def result(self, source: _End) -> None:
        self._layer("Result", 1, {}, [source], [], [])

    def _layer(
        self, kind: str, since: int, data: Mapping[str, str], sources: Sequence[_End], types: Sequence[TensorType],
        values: Sequence[Value],
    ) -> list[_End]:  # fmt: skip
        number = len(self._layers)
        ports = [_port(index, source.value.type) for index, source in enumerate(sources)]
        outputs = [_port(len(sources) + index, type) for index, type in enumerate(types)]
        attributes = "".join(f' {name}="{markup_text(text)}"' for name, text in data.items())
        parts = [f"<data{attributes}/>"] if data else []
        parts += [xml_element("input", *ports)] if ports else []
        parts += [xml_element("output", *outputs)] if outputs else []
        name, version = f"{kind.lower()}{number}", f"opset{since}"
        self._layers.append(xml_element("layer", *parts, id=number, name=name, type=kind, version=version))
        for index, source in enumerate(sources):
            ends = {
                "from_layer": source.layer,
                "from_port": source.port,
                "to_layer": number,
                "to_port": index,
            }
            self._edges.append(xml_element("edge", **ends))  # type: ignore[arg-type]
        return [_End(number, len(sources) + index, value) for index, value in enumerate(values)]

    def xml(self) -> bytes:
        graph = xml_element("layers", *self._layers) + xml_element("edges", *self._edges)
        return (
            f'<?xml version="1.0"?>\n{xml_element("net", graph, name="generated", version="11")}\n'.encode()
        )


def _port(number: int, type: TensorType) -> str:
    dims = [xml_element("dim", text=str(d.get_max_length() if d.is_static else -1)) for d in type.shape]
    return xml_element("port", *dims, id=number, precision=_precision(type.element))


def _precision(element: ElementType) -> str:
    if element.label in ("f16", "f32", "f64"):
        return element.label.replace("f", "FP")
    return "BOOL" if element is ElementType.boolean else element.label.upper()
