"""Error context for failures in kernels: the layer, its inputs, and the message of inference about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from ..codes import Code
from ..errors import ExecutionError, IRError, LimitError
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.operation import Operation
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value

__all__ = ["Expected", "Failing", "RefusedInputError", "describe_step", "is_placed", "with_context"]

_Place: TypeAlias = tuple[int, int]
"""The source of a layer's input: the index of an input of the step, and 0; or the negative offset of an earlier layer, and
the number of its output."""


class RefusedInputError(Exception):
    """Inference refuses the inputs of a layer in a step."""

    def __init__(self, layer: Layer, reason: IRError) -> None:
        super().__init__(reason.message)
        self.layer: Layer = layer
        self.reason: IRError = reason


@dataclass(frozen=True, slots=True)
class Expected:
    """The layers of a step, and the sources of their inputs."""

    layers: tuple[Layer, ...]
    places: tuple[tuple[_Place, ...], ...]
    """For each layer, the sources of its inputs."""
    elements: tuple[ElementType, ...]
    """The element types of the step's inputs."""

    def types(self, arrays: Sequence[Array]) -> tuple[TensorType, ...]:
        """Infer the types of the outputs.

        Raises:
            RefusedInputError: if a layer refuses its inputs.
        """
        return self.results(
            [_value(array, element) for array, element in zip(arrays, self.elements, strict=True)]
        )[-1]

    def results(self, operands: Sequence[Value]) -> list[tuple[TensorType, ...]]:
        """Infer the types of the outputs of every layer.

        Raises:
            RefusedInputError: if a layer refuses its inputs.
        """
        results: list[tuple[TensorType, ...]] = []
        for layer, places in zip(self.layers, self.places, strict=True):
            assert layer.op is not None
            inputs = [Value(results[at][number]) if at < 0 else operands[at] for at, number in places]
            try:
                results.append(self._infer_widened(layer.op, inputs, places))
            except IRError as reason:
                raise RefusedInputError(layer, reason) from None
        return results

    def _infer_widened(
        self, op: Operation, inputs: Sequence[Value], places: Sequence[_Place]
    ) -> tuple[TensorType, ...]:
        """Infer the output types of an operation; if it refuses f64, infer with f32 instead, and return f64 for f32.

        Reading refuses a model with f64 inputs here, so the graph must have been widened (`widen`).
        """
        try:
            return op.infer_types(*inputs)
        except IRError as reason:
            widened = [
                value.element is ElementType.f64 and (at < 0 or self.elements[at] is not ElementType.dynamic)
                for value, (at, _) in zip(inputs, places, strict=True)
            ]
            if reason.code != Code.ELEMENT_TYPE or not any(widened):
                raise
        f32 = [
            _retype(value, ElementType.f32) if wide else value
            for value, wide in zip(inputs, widened, strict=True)
        ]
        types = op.infer_types(*f32)
        return tuple(
            TensorType(ElementType.f64, t.shape) if t.element is ElementType.f32 else t for t in types
        )

    def refusal(self, arrays: Sequence[Array]) -> RefusedInputError | None:
        """Return the error with which inference refuses these inputs, else ``None``."""
        try:
            self.types(arrays)
        except RefusedInputError as refusal:
            return refusal
        except Exception:  # inference itself failed
            return None
        return None


def describe_step(
    graph: Graph, layers: tuple[Layer, ...], reads: Sequence[Port], elements: Sequence[ElementType]
) -> Expected:
    """Describe a step for inference.

    Args:
        graph: the graph of its layers.
        layers: its layers, which may also read outputs of earlier ones.
        reads: the ports of its inputs.
        elements: the element type of each input.
    """
    places: list[tuple[_Place, ...]] = []
    places_of_inputs = {port: place for place, port in reversed(list(enumerate(reads)))}
    before: dict[int, int] = {}

    def place(source: Port, index: int) -> _Place:
        if source.layer in before:
            return before[source.layer] - index, source.number
        return places_of_inputs[source], 0

    for index, layer in enumerate(layers):
        sources = [source for source in graph.sources(layer) if source is not None]
        places.append(tuple(place(source, index) for source in sources))
        before[layer.id] = index
    return Expected(layers, tuple(places), tuple(elements))


def _retype(value: Value, element: ElementType) -> Value:
    return replace(value, type=TensorType(element, value.shape))


def _value(array: Array, element: ElementType) -> Value:
    if element is ElementType.dynamic:
        return Value.constant(array)
    return Value(TensorType(element, PartialShape(array.shape)), array)


class Failing(Protocol):
    """A step that failed."""

    @property
    def layer(self) -> Layer:
        """The first layer that it computes."""

    @property
    def also(self) -> tuple[Layer, ...]:
        """The other layers fused into it."""

    @property
    def expected(self) -> Expected | None:
        """The inference of the step, if available."""


def is_placed(reason: Exception) -> bool:
    """Return whether an error already names a layer."""
    return isinstance(reason, ExecutionError | LimitError) and reason.where is not None


def with_context(step: Failing, arrays: Sequence[Array], reason: Exception) -> IRError:
    """Return an error that names the layer, or the fused layers, that failed.

    For an error from NumPy, inference's message about the same inputs is preferred, as it is clearer.
    """
    where = step.layer.where
    if isinstance(reason, LimitError):
        return LimitError(reason.message, limit=reason.limit, where=where, hint=reason.hint)
    together = f", together with {', '.join(map(str, step.also))}" if step.also else ""
    if isinstance(reason, MemoryError):
        message = f"not enough memory for the outputs of the layer{together}"
        detail = f": {reason}" if str(reason) else ""
        return ExecutionError(message + detail, code=Code.LAYER_FAILED, where=where)
    if isinstance(reason, IRError):
        message = f"failed on the data it was given{together}: {reason.message}"
        return ExecutionError(
            message,
            code=Code.LAYER_FAILED,
            where=where,
            hint=reason.hint,
            clause=_cite(step.layer, reason.clause),
        )
    inference = step.expected
    refusal = (
        reason if isinstance(reason, RefusedInputError) else inference.refusal(arrays) if inference else None
    )
    if refusal is not None:
        message = f"failed on the data it was given: {refusal.reason.message}"
        return ExecutionError(
            message,
            code=Code.LAYER_FAILED,
            where=refusal.layer.where,
            hint=refusal.reason.hint,
            clause=_cite(refusal.layer, refusal.reason.clause),
        )
    message = f"failed on the data it was given{together}: {_text(reason)}{_shapes(arrays, inference)}"
    hint = "the code of the operation does not handle such inputs"
    return ExecutionError(message, code=Code.LAYER_FAILED, where=where, hint=hint)


def _cite(layer: Layer, clause: str) -> str:
    return clause if layer.op is None else layer.op.cite(clause)


def _text(reason: Exception) -> str:
    return f"{type(reason).__name__}: {reason}"


def _shapes(arrays: Sequence[Array], inference: Expected | None) -> str:
    if inference is None:
        return ""
    texts = (f"{e.label}{list(a.shape)}" for e, a in zip(inference.elements, arrays, strict=False))
    return f"; its inputs were {', '.join(texts)}" if arrays else ""
