"""The costs of the layers of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..._util.escaping import one_line
from ..._util.markup import Shown
from ..._util.quantities import prefixed
from ...ir.formula import Count, Formula, total
from ...ir.graph import Layer
from ..shapes import OpenLength

__all__ = ["Cost", "LayerCount", "OperationCount", "RunLength", "WeightCount", "number_or_text"]


# Characters of a formula that are shown.
_LONGEST = 60


def number_or_text(count: Count | None) -> int | str | None:
    """Return a count for JSON: a number, the text of a formula, or ``None`` if it is not known."""
    return count.text() if isinstance(count, Formula) else count


def _exact(count: Count | None) -> str:
    """Format a count: all of its digits, or the beginning of its formula."""
    return (
        "?" if count is None else f"{count:,}" if isinstance(count, int) else one_line(count.text(), _LONGEST)
    )


@dataclass(frozen=True, slots=True, repr=False)
class LayerCount:
    """The arithmetic, parameters and memory traffic of one layer, for one run of the graph that it is in.

    Counts are numbers, or formulas of dynamic lengths; ``None`` if the rank of a tensor is unknown.
    """

    layer: Layer
    within: str
    """The body that it is in, as ``loop/body``; empty for layers of the model itself."""
    flops: Count | None
    """Arithmetic operations, each multiply-accumulate being two; with those of its bodies."""
    macs: Count | None
    """Multiply-accumulates."""
    parameters: int
    """Numbers in the weights that it is the first to read."""
    weight_bytes: int
    """Their size in the file."""
    read: Count | None
    """Bytes of its inputs, weights included."""
    written: Count | None
    """Bytes of its outputs."""
    runs: Count | None = 1
    """How often the body that it is in runs in one run of the model at most; ``None`` if that is not known.

    The ninth field: the others are counted for one pass of the body.
    """
    is_declared: bool = False
    """Whether it uses declared shapes, because inferring them needs the missing weights."""

    def __repr__(self) -> str:
        return (
            f"<LayerCount: {self.name!r} ({self.operation}), {_exact(self.flops)} FLOPs, "
            f"{self.parameters:,} parameters>"
        )

    @property
    def name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def operation(self) -> str:
        """The operation and its version, such as ``MatMul-1``."""
        return self.layer.where.operation or self.layer.type

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "layer": self.name,
            "operation": self.operation,
            "line": self.layer.where.line,
            "within": self.within or None,
            "flops": number_or_text(self.flops),
            "macs": number_or_text(self.macs),
            "parameters": self.parameters,
            "weight_bytes": self.weight_bytes,
            "bytes_read": number_or_text(self.read),
            "bytes_written": number_or_text(self.written),
            "is_declared": self.is_declared,
        }


@dataclass(frozen=True, slots=True)
class OperationCount:
    """The sums over the layers of one operation."""

    operation: str
    layers: int
    flops: Count
    macs: Count
    parameters: int

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "operation": self.operation,
            "layers": self.layers,
            "flops": number_or_text(self.flops),
            "macs": number_or_text(self.macs),
            "parameters": self.parameters,
        }


@dataclass(frozen=True, slots=True)
class WeightCount:
    """The weights of one element type."""

    type: str
    tensors: int
    numbers: int
    bytes: int

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {"type": self.type, "tensors": self.tensors, "numbers": self.numbers, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class RunLength:
    """A number known only at run time, such as a loop's trip count, and its symbol in formulas."""

    name: str
    """``n1``, ``trips1`` and so on."""
    layer: str
    axis: int | None
    """Of the length; ``None`` for ``trips`` (the iterations of a loop), ``parts`` (those that an input is cut into) and ``frame`` (its length)."""

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class Cost(Shown):
    """The cost of one run of a model.

    Layers that are computed once, when the model is compiled, are not counted: constants, and layers that
    depend on constants and static shapes alone.

    >>> import ir_runtime as ov
    >>> cost = ov.cost("examples/digits/digits.xml", [1, 1, 8, 8])
    >>> cost
    <Cost: 2,478,490 FLOPs, 1,231,136 MACs, 46,106 parameters, activations of 24,832 bytes>
    >>> print(cost)
    2,478,490 FLOPs, 1,231,136 MACs, 46,106 parameters, activations of 24,832 bytes
      2.46 MFLOPs  99.3 %  Convolution-1, 3 layers
       5.9 kFLOPs   0.2 %  Add-1, 4 layers
      5.89 kFLOPs   0.2 %  ReLU-1, 3 layers
      3.07 kFLOPs   0.1 %  MaxPool-14, 1 layer
       1.6 kFLOPs   0.1 %  MatMul-1, 1 layer
      1.36 kFLOPs   0.1 %  ReduceMean-1, 1 layer
    >>> cost.costliest[0]
    <LayerCount: 'Multiply_3001' (Convolution-1), 1,327,104 FLOPs, 10,368 parameters>
    """

    layers: tuple[LayerCount, ...]
    """In topological order; those in bodies follow the layer that has the bodies."""
    weights: tuple[WeightCount, ...]
    """By element type, the largest first."""
    lengths: tuple[OpenLength, ...]
    """The dynamic lengths of inputs, which formulas refer to."""
    run_lengths: tuple[RunLength, ...]
    """The other symbols in formulas, as ``n1`` and ``trips1``, with the first layers that have them."""
    peak: int | None
    """The peak memory of inputs and results in bytes, layer by layer; ``None`` with dynamic lengths."""

    def __repr__(self) -> str:
        return f"<Cost: {self._totals()}>"

    def __str__(self) -> str:
        rows = [
            [_short(row.flops), _share(row.flops, self.flops), f"{row.operation}, {_layers(row.layers)}"]
            for row in self.operations
            if row.flops
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:2] if rows else []
        lines = (
            "  ".join(
                ["", *(cell.rjust(width) for cell, width in zip(row, widths, strict=False) if width), row[-1]]
            )
            for row in rows
        )
        return "\n".join([self._totals(), *lines])

    def _totals(self) -> str:
        peak = "" if self.peak is None else f", activations of {self.peak:,} bytes"
        return f"{_exact(self.flops)} FLOPs, {_exact(self.macs)} MACs, {self.parameters:,} parameters{peak}"

    @property
    def outermost(self) -> tuple[LayerCount, ...]:
        """The layers of the model itself, including the cost of their bodies."""
        return tuple(layer for layer in self.layers if not layer.within)

    @property
    def flops(self) -> Count:
        """Arithmetic operations of a run; a multiply-accumulate counts as two."""
        return total(layer.flops or 0 for layer in self.outermost)

    @property
    def macs(self) -> Count:
        """Multiply-accumulates of a run."""
        return total(layer.macs or 0 for layer in self.outermost)

    @property
    def parameters(self) -> int:
        """The number of weights."""
        return sum(weights.numbers for weights in self.weights)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of layers that cannot be counted because the rank of a tensor is unknown."""
        return tuple(layer.name for layer in self.outermost if layer.flops is None)

    @property
    def operations(self) -> tuple[OperationCount, ...]:
        """The sums for each operation, the most FLOPs first."""
        sums = [_sum_layers(name, layers) for name, layers in _group_by_operation(self.outermost).items()]
        return tuple(sorted(sums, key=lambda row: (-_magnitude(row.flops), row.operation)))

    @property
    def costliest(self) -> tuple[LayerCount, ...]:
        """The layers of the model itself that compute something, the most FLOPs first."""
        computing = (layer for layer in self.outermost if layer.flops)
        return tuple(sorted(computing, key=lambda layer: -_magnitude(layer.flops or 0)))

    def layer(self, name: str) -> LayerCount | None:
        """Return the counts of the layer with this name, or ``None``."""
        return next((layer for layer in self.layers if layer.name == name), None)

    def at(self, **lengths: int) -> int:
        """Return the FLOPs for some lengths: ``cost.at(batch=1, seq=128)``."""
        return self.flops if isinstance(self.flops, int) else self.flops.at(lengths)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the lengths that the counts of layers depend on."""
        counts = (
            count
            for layer in self.layers
            for count in (layer.flops, layer.macs, layer.read, layer.written, layer.runs)
        )
        return frozenset[str]().union(*(count.symbols for count in counts if isinstance(count, Formula)))

    def given(self, lengths: Mapping[str, int]) -> Cost:
        """Return the cost with numbers for some lengths, by their names in formulas."""

        def number(count: Count | None) -> Count | None:
            return count.given(lengths) if isinstance(count, Formula) else count

        layers = (
            replace(
                layer,
                flops=number(layer.flops),
                macs=number(layer.macs),
                read=number(layer.read),
                written=number(layer.written),
                runs=number(layer.runs),
            )
            for layer in self.layers
        )
        return replace(
            self,
            layers=tuple(layers),
            lengths=tuple(length for length in self.lengths if length.name not in lengths),
            run_lengths=tuple(length for length in self.run_lengths if length.name not in lengths),
        )

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "flops": number_or_text(self.flops),
            "macs": number_or_text(self.macs),
            "parameters": self.parameters,
            "activation_peak_bytes": self.peak,
            "open_lengths": [length.record() for length in self.lengths],
            "run_lengths": [length.record() for length in self.run_lengths],
            "weights": [weights.record() for weights in self.weights],
            "operations": [operation.record() for operation in self.operations],
            "layers": [layer.record() for layer in self.layers],
            "not_counted": list(self.unknown),
        }


def _short(count: Count) -> str:
    return prefixed(count, "FLOPs") if isinstance(count, int) else f"{one_line(count.text(), _LONGEST)} FLOPs"


def _share(part: Count, whole: Count) -> str:
    """Return a percentage, if both are numbers."""
    return f"{100 * part / whole:.1f} %" if isinstance(part, int) and isinstance(whole, int) and whole else ""


def _layers(count: int) -> str:
    return f"{count} layer{'' if count == 1 else 's'}"


def _group_by_operation(layers: Iterable[LayerCount]) -> Mapping[str, list[LayerCount]]:
    groups: dict[str, list[LayerCount]] = {}
    for layer in layers:
        groups.setdefault(layer.operation, []).append(layer)
    return groups


def _sum_layers(operation: str, layers: list[LayerCount]) -> OperationCount:
    return OperationCount(
        operation,
        len(layers),
        total(layer.flops or 0 for layer in layers),
        total(layer.macs or 0 for layer in layers),
        sum(layer.parameters for layer in layers),
    )


def _magnitude(count: Count) -> int:
    """Return a sort key: a number, or the value of a formula where every length is 1000."""
    return count if isinstance(count, int) else count.at(dict.fromkeys(count.symbols, 1000))
