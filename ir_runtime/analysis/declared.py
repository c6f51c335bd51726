"""Compare the types that a file declares for ports with the inferred ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from ..codes import Code
from ..diagnostics import Cause, Diagnostic, Diagnostics, Location, Mark, Severity
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape, have_same_lengths
from ..ir.tensor import TensorType, Value

__all__ = ["Agreement", "agree"]

_UNREAD = "no layer computes with it, so the model runs as it is; correct the port"
_SAME = "the layers that read it give the same either way, so the model runs as it is; correct the port"

Explain: TypeAlias = Callable[[Port, int], tuple[Cause, ...]]
"""The causes of the length of an output's dim."""

IsSame: TypeAlias = Callable[[Layer, Sequence[Value | None], Sequence[Value | None]], bool]
"""Whether a layer gives the same outputs for two lists of inputs."""


class _Dispute(NamedTuple):
    """An output with a disputed leading axis of length 1, and the finding if a layer depends on it."""

    declared: Value
    inferred: Value
    found: Diagnostic


@dataclass(slots=True)
class Agreement:
    """Compares declared and inferred types, reports differences, and chooses the type to continue with."""

    graph: Graph
    report: Diagnostics
    explain: Explain | None = None
    strict: bool = False
    """Whether every contradiction is an error, even if no layer computes with the port."""
    disputed: set[Port] = field(default_factory=set)
    """Outputs whose declared type has been reported as wrong."""
    pending: dict[Port, _Dispute] = field(default_factory=dict)
    """Disputes over leading axes of length 1, which so far make no difference to the layers that read them."""

    def weigh(self, layer: Layer, received: Sequence[Value | None], is_same: IsSame) -> None:
        """Report the disputes over a layer's inputs, unless its outputs are the same either way."""
        sources = self.graph.sources(layer)
        disputes = {i: self.pending[s] for i, s in enumerate(sources) if s in self.pending}
        if not disputes or not _computes(layer):
            return
        declared, inferred = list(received), list(received)
        for index, dispute in disputes.items():
            declared[index], inferred[index] = dispute.declared, dispute.inferred
        if is_same(layer, declared, inferred):
            return
        for source in {sources[index] for index in disputes}:
            if source is not None:
                self.report.add(self.pending.pop(source).found)

    def end(self) -> None:
        """Warn of the disputes that made no difference."""
        for _, _, finding in self.pending.values():
            self.report.add(replace(finding, severity=Severity.WARNING, hint=_SAME))

    def inputs(
        self, layer: Layer, received: Sequence[Value | None], is_same: IsSame
    ) -> list[Value | None] | None:
        """Return the declared inputs where the received ones differ; ``None`` if none does."""
        if _are_declared(layer.inputs, received):
            return None
        sources = self.graph.sources(layer)
        pairs = enumerate(zip(layer.inputs, sources, received, strict=True))
        wrong: dict[int, Value] = {}
        unreported: dict[int, Value] = {}
        for index, (spec, source, value) in pairs:
            if spec.type is None or source is None or value is None or agree(spec.type, value.type):
                continue
            wrong[index] = Value(spec.type)
            if source not in self.disputed:
                unreported[index] = value
        if not wrong:
            return None
        declared = [wrong.get(i, value) for i, value in enumerate(received)]
        if unreported:
            is_harmless = (
                not self.strict
                and all(_differ_in_leading_ones(wrong[i].type, value.type) for i, value in unreported.items())
                and is_same(layer, declared, received)
            )
            for index, value in unreported.items():
                self._wrong_input(layer, index, value, is_harmless)
        return declared

    def _wrong_input(self, layer: Layer, index: int, value: Value, is_harmless: bool) -> None:
        spec, source = layer.inputs[index], self.graph.sources(layer)[index]
        assert spec.type is not None
        assert source is not None
        giver = self.graph[source.layer]
        number = giver.outputs[source.number].id if source.number < len(giver.outputs) else source.number
        is_read = self.strict or _computes(layer)
        hint = "correct the port or the edge" if is_read else _UNREAD
        self._add(
            Code.INPUT_PORT,
            f"input port {spec.id} declares {spec.type}, but output port {number} of {giver} "
            f"at line {giver.where.line} gives {value.type}",
            _place(layer, spec),
            _SAME if is_read and is_harmless else hint,
            Mark(port=spec.id, dim=_first(spec.type.shape, value.shape)),
            self._causes(source, value.shape, spec.type.shape),
            is_read and not is_harmless,
        )

    def _add(
        self,
        code: Code,
        message: str,
        place: Location,
        hint: str,
        mark: Mark,
        causes: tuple[Cause, ...],
        is_read: bool,
    ) -> None:
        """Report a contradiction: a warning if no layer computes with the tensor.

        OpenVINO infers types and shapes regardless of declarations.
        """
        severity = Severity.ERROR if is_read else Severity.WARNING
        self.report.add(Diagnostic(code, message, place, severity, hint, mark, causes=causes))

    def _is_read(self, port: Port) -> bool:
        """Return whether a layer computes with an output."""
        return self.strict or any(_computes(self.graph[reader.layer]) for reader in self.graph.readers(port))

    def parameter(self, layer: Layer, fed: TensorType, is_sound: Callable[[], bool]) -> bool:
        """Report a body Parameter whose attributes contradict its input; return whether they do.

        OpenVINO reads a body on its own first: ``is_sound`` tells whether it accepts the declared attributes.
        """
        if layer.op is None or agree(declared := layer.op.infer_types()[0], fed):
            return False
        self.disputed.add(Port(layer.id, 0))
        self.report.error(
            Code.INPUT_PORT if is_sound() else Code.CONTRADICTION,
            f"its attributes declare {declared}, but the body is given {fed}",
            layer.where,
            "correct the attributes, or the input of the layer that the body belongs to",
            mark=Mark("element_type" if not _same_element(declared, fed) else "shape"),
        )
        return True

    def is_declared(self, layer: Layer, values: Sequence[Value]) -> bool:
        """Return whether all outputs are exactly as declared, the common case."""
        return len(values) == len(layer.outputs) and _are_declared(layer.outputs, values)

    def outputs(self, layer: Layer, values: Sequence[Value], quiet: bool = False) -> list[Value]:
        """Return the values to continue with; ``quiet`` if the layer has been reported already."""
        outputs = []
        for index, value in enumerate(values):
            outputs.append(self._output(layer, index, value, quiet))
            # One report per layer is enough.
            quiet = quiet or (Port(layer.id, index) in self.disputed and outputs[-1] is not value)
        return outputs

    def _output(self, layer: Layer, index: int, value: Value, quiet: bool) -> Value:
        if index >= len(layer.outputs) or (declared := layer.outputs[index].type) is None:
            return value
        if agree(declared, value.type):
            is_open = value.element is ElementType.dynamic
            return replace(value, type=TensorType(declared.element, value.shape)) if is_open else value
        port = Port(layer.id, index)
        self.disputed.add(port)
        chosen = self._majority(port, declared, value)
        if not quiet:
            self._wrong_output(layer, layer.outputs[index], port, declared, value, chosen)
        return chosen

    def _majority(self, port: Port, declared: TensorType, value: Value) -> Value:
        """Return the declared or the inferred type, whichever more consumers of the port declare."""
        readers = self.graph.readers(port)
        expected = [self.graph[r.layer].inputs[r.number].type for r in readers]
        declarations = [type for type in expected if type is not None]
        for_file = sum(agree(declared, type) for type in declarations)
        for_value = sum(agree(value.type, type) for type in declarations)
        return Value(declared) if for_file > for_value else value

    def _wrong_output(
        self, layer: Layer, spec: PortSpec, port: Port, declared: TensorType, value: Value, chosen: Value
    ) -> None:
        place, is_read = _place(layer, spec), self._is_read(port)
        hint = _advice(value, chosen) if is_read else _UNREAD
        if not _same_element(declared, value.type):
            message = f"output port {spec.id} declares {declared.element.label}, but the operation gives {value.element.label}"
            self._add(
                Code.DECLARED_TYPE,
                message,
                place,
                hint,
                Mark("precision", spec.id, output=True),
                (),
                is_read,
            )
        if not value.shape.compatible(declared.shape):
            finding = Diagnostic(
                Code.DECLARED_SHAPE,
                f"output port {spec.id} declares dims {declared.shape}, but the operation gives {value.shape}",
                place,
                Severity.ERROR if is_read else Severity.WARNING,
                hint,
                Mark(port=spec.id, output=True, dim=_first(declared.shape, value.shape)),
                causes=self._causes_of_output(layer, port, value, declared.shape),
            )
            if is_read and not self.strict and _differ_in_leading_ones(declared, value.type):
                self.pending[port] = _Dispute(Value(declared), value, finding)
            else:
                self.report.add(finding)

    def _causes_of_output(
        self, layer: Layer, port: Port, value: Value, declared: PartialShape
    ) -> tuple[Cause, ...]:
        if layer.type in ("Parameter", "Constant") or layer.op is None:
            return ()
        return self._causes(port, value.shape, declared)

    def _causes(self, port: Port, shape: PartialShape, other: PartialShape) -> tuple[Cause, ...]:
        dim = _first(shape, other)
        return () if self.explain is None or dim is None else self.explain(port, dim)


def _computes(layer: Layer) -> bool:
    """Return whether a layer of the file computes with its inputs."""
    return layer.type != "Result" and not layer.is_implied


def _are_declared(ports: Sequence[PortSpec], values: Sequence[Value | None]) -> bool:
    """Return whether each value has exactly the static type that its port declares."""
    for port, value in zip(ports, values, strict=True):
        if value is None or (type := port.type) is None or type.element is not value.type.element:
            return False
        if not have_same_lengths(type.shape, value.type.shape):
            return False
    return True


def agree(declared: TensorType, inferred: TensorType) -> bool:
    """Return whether some tensor fits both types."""
    return _same_element(declared, inferred) and declared.shape.compatible(inferred.shape)


def _same_element(one: TensorType, other: TensorType) -> bool:
    return one.element is other.element or ElementType.dynamic in (one.element, other.element)


def _differ_in_leading_ones(one: TensorType, other: TensorType) -> bool:
    """Return whether two static types differ only in leading axes of length 1.

    They hold the same numbers, and one broadcasts to the other. Old releases of OpenVINO gave the product of
    a vector and a matrix such an axis, and wrote it into their files.
    """
    if not (one.shape.is_static and other.shape.is_static and _same_element(one, other)):
        return False
    short, long = sorted((one.shape.static, other.shape.static), key=len)
    return long == (1,) * (len(long) - len(short)) + short


def _first(one: PartialShape, other: PartialShape) -> int | None:
    """Return the first dim in which two shapes of the same rank are incompatible."""
    if one.rank is None or one.rank != other.rank:
        return None
    pairs = enumerate(zip(one, other, strict=True))
    return next((i for i, (a, b) in pairs if not a.compatible(b)), None)


def _advice(value: Value, chosen: Value) -> str:
    if chosen is value:
        return "correct the port, or the attribute or input that decides it"
    return "the layers that read it expect what the port declares: correct the attribute or input that decides it"


def _place(layer: Layer, port: PortSpec) -> Location:
    return replace(layer.where, line=port.line or layer.where.line)
