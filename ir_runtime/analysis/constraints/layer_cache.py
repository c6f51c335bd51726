"""Infer layers with memoization: equal operations with equal inputs are inferred once."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

from ..._util.deadline import check
from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics
from ...errors import IRError
from ...ir.element import ElementType
from ...ir.graph import Body, Layer
from ...ir.shape import PartialShape
from ...ir.tensor import TensorType, Value
from ..infer import infer
from .dynamic_layers import Step

__all__ = ["LayerCache", "SuspiciousValuesError"]

PORTS = 8
"""Inferring a layer with more ports counts once more for each of them."""

UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class SuspiciousValuesError(IRError):
    """A layer has suspicious constants, such as an index out of range, though it may run."""

    values: tuple[Value, ...] = ()
    """The inferred outputs."""


class LayerCache:
    """Inferred outputs, by operation and the identity of interned inputs (hash consing).

    Networks repeat their layers, and queries repeat each other.

    Args:
        warned: layers whose suspicious values are ignored, by id.
    """

    def __init__(self, warned: Collection[int]) -> None:
        self._warned = warned
        self._interned: dict[Hashable, Value] = {}
        self._inferred: dict[tuple[int, ...], tuple[Value, ...] | IRError] = {}
        self.evaluations = 0
        """How many layers were inferred, those in bodies included."""

    def __len__(self) -> int:
        return len(self._inferred)

    def clear(self) -> None:
        """Drop all entries."""
        self._inferred.clear()
        self._interned.clear()

    def intern(self, value: Value) -> Value:
        """Return one object for equal values, so that lookup by identity finds them."""
        data = value.data
        if data is None:
            key: Hashable = (value.element, value.shape)
        elif data.dtype == object:
            return self._interned.setdefault(id(value), value)  # intervals and strings are not compared
        else:
            key = (value.element, data.shape, data.tobytes())
        return self._interned.setdefault(key, value)

    def infer(self, step: Step, inputs: Sequence[Value | None]) -> tuple[Value, ...] | IRError:
        """Return the outputs of a layer, or why it refuses interned inputs."""
        key = (step.op, *map(id, inputs))
        if (outputs := self._inferred.get(key)) is None:
            outputs = self._inferred[key] = self._infer(step.layer, inputs)
        return outputs

    def _infer(self, layer: Layer, inputs: Sequence[Value | None]) -> tuple[Value, ...] | IRError:
        outputs = self._infer_uncached(layer, inputs)
        if isinstance(outputs, SuspiciousValuesError):
            outputs.values = tuple(map(self.intern, outputs.values))
        return outputs if isinstance(outputs, IRError) else tuple(map(self.intern, outputs))

    def _infer_uncached(self, layer: Layer, inputs: Sequence[Value | None]) -> tuple[Value, ...] | IRError:
        declared = tuple(Value(port.type or UNKNOWN) for port in layer.outputs)
        if layer.op is None or None in inputs:
            return declared
        check(layer.where)
        operands = [v for v in inputs if v is not None]
        run_body = _BodyInference()
        self.evaluations += 1 + max(len(inputs) + len(layer.outputs) - PORTS, 0)
        try:
            context = {"visit": run_body} if layer.bodies() else {}
            outputs = layer.op.infer_values(*operands, **context)
            for message in layer.op.audit(*operands):
                if layer.id not in self._warned:
                    suspicious = SuspiciousValuesError(message, code=Code.SUSPICIOUS_VALUES)
                    suspicious.values = outputs
                    return suspicious
        except IRError as reason:
            check(layer.where)  # an expired deadline says nothing about the layer
            return reason
        except MemoryError:  # says nothing about the model
            raise
        except Exception as reason:  # raised by evaluation on constants, as in `infer`
            message = f"its inputs cannot be computed with: {type(reason).__name__}: {reason}"
            return IRError(message, code=Code.CONTRADICTION)
        finally:
            self.evaluations += run_body.evaluations
        for first in run_body.errors():
            return IRError(first.message, code=first.code, where=first.where, hint=first.hint)
        return outputs + declared[len(outputs) :]  # the number of outputs may be unknown


class _BodyInference:
    """Infers the bodies of a layer, and keeps the last report of each: loops are visited repeatedly."""

    def __init__(self) -> None:
        self._reports: dict[str, Diagnostics] = {}
        self.evaluations = 0

    def __call__(self, body: Body, feeds: Mapping[int, Value]) -> dict[int, Value]:
        report = self._reports[body.name] = Diagnostics()
        inner = infer(body.graph, report, feeds, False)
        self.evaluations += inner.evaluations
        return {result: inner[port] for result, port in body.results.items()}

    def errors(self) -> Iterator[Diagnostic]:
        return itertools.chain.from_iterable(report.errors for report in self._reports.values())
