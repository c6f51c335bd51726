"""Find the layers where Inf or NaN originates in a run, and tensors close to overflow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any

import numpy as np

from .._util.escaping import quoted
from .._util.markup import Shown
from .._util.records import Record
from ..codes import Code
from ..errors import InputError
from ..executor.guard import check_room
from ..ir.blocks import blocks
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import entry_for
from .precision import COPIES, LIMITS, emulate_rounding
from .progress import STOPS, attach_partial
from .reference import Reference, chain_changes
from .resuming import Resumable
from .tensors import computed_layers

__all__ = ["NanTrace", "Origin", "Peak", "trace_nan"]

SHOWN = 3
"""The most harmless layers, and layers at either end of a path, in the text."""


@dataclass(frozen=True)
class Origin:
    """A layer that produces Inf from finite inputs, or NaN from inputs without NaN.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 100], np.float32)]
    >>> (origin,) = debug.trace_nan(model, inputs).origins
    >>> origin.kind, origin.index, origin.count
    ('Inf', (1,), 1)
    >>> origin.record()["layer"]
    'y'

    Args:
        layer: the name of the layer.
        operation: the operation of the layer.
        kind: ``Inf`` or ``NaN``.
        index: the index of the first such element.
        count: the number of such elements.
        largest: the magnitude of the first such element in f64 if finite; else ``None``.
        inputs: the smallest and the largest element of each input.
        path: the layers from the consumer of the Inf or NaN to the model output that it reaches; empty if it reaches none.
    """

    layer: str
    operation: str
    kind: str
    index: tuple[int, ...]
    count: int
    largest: float | None
    inputs: tuple[tuple[float, float], ...]
    path: tuple[str, ...] = ()

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "layer": self.layer, "operation": self.operation, "kind": self.kind, "index": list(self.index),
            "count": self.count, "largest": self.largest, "inputs": [list(pair) for pair in self.inputs],
            "path": list(self.path),
        }  # fmt: skip


@dataclass(frozen=True)
class Peak:
    """The largest magnitude of a layer's results, absolute and as a fraction of the largest number of the type.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> [(peak.layer, peak.part < 1e-4) for peak in debug.trace_nan(model, inputs, "f16").peaks]
    [('y', True)]
    >>> debug.trace_nan(model, inputs, "f16").peaks[0].record()["layer"]
    'y'
    """

    layer: str
    operation: str
    largest: float
    part: float

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {"layer": self.layer, "operation": self.operation, "largest": self.largest, "part": self.part}


@dataclass(frozen=True)
class NanTrace(Shown):
    """The result of `trace_nan`.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 100], np.float32)]
    >>> [origin.layer for origin in debug.trace_nan(model, inputs).origins]
    ['y']
    >>> trace = debug.trace_nan(model, inputs)
    >>> trace.first.layer, trace.limit > 3e38, trace.summary
    ('y', True, "Inf 'y' (Exp-1) [1]: 2.7e+43 in f64, the limit is 3.403e+38; 1 element; inputs finite, 0 to 1e+02")
    >>> sorted(trace.record())[:3]
    ['harmless', 'limit', 'origins']

    Args:
        precision: the type of computation.
        origins: the layers that produce Inf from finite inputs, or NaN from inputs without NaN, that reach an output of the
            model, in execution order.
        peaks: the other layers closest to the limit of the type, closest first.
        partial: whether the run was interrupted: only some layers were examined, and paths to outputs are unknown.
        harmless: layers whose Inf or NaN reaches no output, such as masks before SoftMax.
    """

    precision: str
    origins: tuple[Origin, ...]
    peaks: tuple[Peak, ...]
    partial: bool = False
    harmless: tuple[Origin, ...] = ()

    @property
    def first(self) -> Origin | None:
        """The first layer that produces Inf or NaN; ``None`` if there is none."""
        return self.origins[0] if self.origins else None

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": 1, "partial": self.partial, "precision": self.precision, "limit": LIMITS[self.precision],
            "origins": [origin.record() for origin in self.origins],
            "harmless": [origin.record() for origin in self.harmless], "peaks": [peak.record() for peak in self.peaks],
        }  # fmt: skip

    @property
    def limit(self) -> float:
        """The largest finite number of the precision."""
        return LIMITS[self.precision]

    @property
    def summary(self) -> str:
        """Describe the layers that produce Inf or NaN, if any."""
        lines = [_line(origin, f"{self.limit:.4g}") for origin in self.origins]
        none = f"no Inf and no NaN in {self.precision}"
        lines = lines or [f"{none} reaches an output" if self.harmless else none]
        if self.harmless:
            names = ", ".join(quoted(origin.layer) for origin in self.harmless[:SHOWN])
            more = f" and {len(self.harmless) - SHOWN} more" if len(self.harmless) > SHOWN else ""
            lines.append(f"harmless, as it reaches no output: {names}{more}")
        if self.partial:
            lines.insert(0, "PARTIAL: the run was interrupted; the other layers were not looked at")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [
            f"{peak.largest:.2g} {quoted(peak.layer)} ({peak.operation}): {1 / peak.part:.2g} times below the limit {self.limit:.4g}"
            for peak in self.peaks
            if peak.part
        ]
        return "\n".join([self.summary, *lines])


def trace_nan(model: Model, inputs: object, precision: str = "f32", peaks: int = 5) -> NanTrace:
    """Find the layers that produce Inf from finite inputs, or NaN from inputs without NaN, and trace the path to an output.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 100], np.float32)]
    >>> print(debug.trace_nan(model, inputs))
    Inf 'y' (Exp-1) [1]: 2.7e+43 in f64, the limit is 3.403e+38; 1 element; inputs finite, 0 to 1e+02

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        precision: the type to compute in: ``f32``, or ``f16`` and ``bf16``, which are emulated.
        peaks: the number of layers to list that are closest to the limit of the type.

    Raises:
        InputError: if an input is not as expected, or the precision is unknown.
        Interrupted: on Ctrl-C, with the results so far.
    """
    if precision not in LIMITS:
        expected = f"expected {', '.join(LIMITS)}"
        raise InputError(f"unknown precision {precision!r}", code=Code.NO_SUCH_NAME, hint=expected)
    reference = Reference(model)
    feeds, trace = reference.feeds(inputs), _Seen(precision)
    reference.check_memory(feeds)
    run = Resumable(model, reference, feeds, entry_for(f"trace-nan {precision}", model, feeds, "reference"))
    rest, feeds = run.start((), {})
    trace.restore(run.notes)
    computing = {layer.id for layer in computed_layers(reference.graph)}

    def look(layer: Layer, inputs_of_layer: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.id in computing:
            trace.look(layer, inputs_of_layer, outputs)
        elif layer.type in ("Constant", "Parameter"):
            trace.note(layer, outputs)
        return run.note(layer, inputs_of_layer, outputs)

    outputs = [port._port for port in reference.outputs]
    try:
        rest.run(feeds, chain_changes(emulate_rounding(precision), look), copies=COPIES[precision])
    except STOPS as reason:

        def partial() -> NanTrace:
            run.save({}, trace.notes())
            return trace.found(peaks, _Paths(reference.graph, outputs, trace.bad), partial=True)

        raise attach_partial(reason, partial) from None
    return trace.found(peaks, _Paths(reference.graph, outputs, trace.bad))


@dataclass
class _Paths:
    """The shortest paths from layers to model outputs through tensors with Inf or NaN."""

    graph: Graph
    outputs: Sequence[Port]
    bad: Collection[Port]

    def __post_init__(self) -> None:
        self._next: dict[int, Port | None] = {}
        waiting = [port for port in self.outputs if port in self.bad]
        self._next = {port.layer: None for port in waiting}
        while waiting:
            port = waiting.pop(0)
            for source in self.graph.reads(self.graph[port.layer]):
                if source in self.bad and source.layer not in self._next:
                    self._next[source.layer] = port
                    waiting.append(source)

    def reaches(self, layer: int) -> bool:
        """Return whether Inf or NaN produced by a layer reaches a model output."""
        return layer in self._next

    def follows(self, layer: int, others: Collection[int]) -> bool:
        """Return whether Inf or NaN that a layer reads originates in one of the other layers."""
        waiting, seen = [layer], {layer}
        while waiting:
            for source in self.graph.reads(self.graph[waiting.pop()]):
                if source in self.bad and source.layer not in seen:
                    if source.layer in others:
                        return True
                    seen.add(source.layer)
                    waiting.append(source.layer)
        return False

    def of(self, layer: int) -> tuple[str, ...]:
        """Return the names of the layers on the path from a layer, exclusive, to a model output."""
        names = []
        while (port := self._next[layer]) is not None:
            layer = port.layer
            names.append(self.graph[layer].name)
        return tuple(names)


@dataclass
class _Seen:
    """The state of a trace: origins and peaks by layer id."""

    precision: str
    origins: dict[int, Origin] = field(default_factory=dict)
    peaks: dict[int, Peak] = field(default_factory=dict)
    bad: set[Port] = field(default_factory=set)
    """Tensors with Inf or NaN."""

    def note(self, layer: Layer, outputs: Sequence[Array]) -> None:
        """Record outputs with Inf or NaN."""
        self.bad.update(
            port for port, array in zip(layer.output_ports, outputs, strict=False) if not _is_finite(array)
        )

    def look(self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> None:
        """Record a layer as an origin if it produces Inf or NaN, or else record its peak."""
        self.note(layer, outputs)
        numbers = [array for array in outputs if array.dtype.kind == "f" and array.size]
        if not numbers:
            return
        bad = next(
            (array for array in sorted(numbers, key=_has_nan, reverse=True) if not _is_finite(array)), None
        )
        if bad is not None and _originates(inputs, numbers):
            self.origins[layer.id] = _origin(layer, layer.operation, inputs, bad)
        elif bad is None:
            largest = max(float(np.abs(block).max()) for array in numbers for (block,) in blocks(array))
            self.peaks[layer.id] = Peak(
                layer.name, layer.operation, largest, largest / LIMITS[self.precision]
            )

    def found(self, peaks: int, paths: _Paths, partial: bool = False) -> NanTrace:
        """Return the trace: origins that reach an output, harmless ones, and the peaks closest to the limit."""
        nearest = tuple(sorted(self.peaks.values(), key=lambda peak: -peak.part)[:peaks])
        first = {id: each for id, each in self.origins.items() if not paths.follows(id, self.origins)}
        if partial:
            return NanTrace(self.precision, tuple(first.values()), nearest, partial)
        origins = [replace(each, path=paths.of(id)) for id, each in first.items() if paths.reaches(id)]
        harmless = [each for id, each in self.origins.items() if not paths.reaches(id)]
        return NanTrace(self.precision, tuple(origins), nearest, harmless=tuple(harmless))

    def notes(self) -> Record:
        """Return the state as a record."""
        return {
            "origins": {str(id): origin.record() for id, origin in self.origins.items()},
            "peaks": {str(id): peak.record() for id, peak in self.peaks.items()},
            "bad": sorted(self.bad),
        }

    def restore(self, notes: Mapping[str, Mapping[str, Any]] | None) -> None:
        """Restore the state from a record."""
        for id, entry in (notes or {}).get("origins", {}).items():
            inputs = tuple((low, high) for low, high in entry["inputs"])
            fields = {**entry, "index": tuple(entry["index"]), "inputs": inputs, "path": tuple(entry["path"])}
            self.origins[int(id)] = Origin(**fields)
        for id, entry in (notes or {}).get("peaks", {}).items():
            self.peaks[int(id)] = Peak(**entry)
        self.bad.update(starmap(Port, (notes or {}).get("bad", [])))


def _is_finite(array: Array) -> bool:
    return array.dtype.kind != "f" or all(np.isfinite(block).all() for (block,) in blocks(array))


def _originates(inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
    """Return whether a layer produces Inf or NaN from inputs without them."""
    if all(_is_finite(array) for array in inputs):
        return True
    return any(map(_has_nan, outputs)) and not any(map(_has_nan, inputs))


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and any(np.isnan(block).any() for (block,) in blocks(array))


def _origin(layer: Layer, operation: str, inputs: Sequence[Array], bad: Array) -> Origin:
    first, count, start = None, 0, 0
    is_nan = not all(_is_finite(array) for array in inputs)  # Inf may be propagated from inputs
    for (block,) in blocks(bad):
        places = np.flatnonzero(np.isnan(block) if is_nan else ~np.isfinite(block))
        if first is None and places.size:
            first = start + int(places[0])
        count, start = count + places.size, start + block.size
    assert first is not None
    index = tuple(int(position) for position in np.unravel_index(first, bad.shape))
    numbers = [array for array in inputs if array.dtype.kind == "f" and array.size]
    return Origin(
        layer=layer.name,
        operation=operation,
        kind="NaN" if np.isnan(bad[index]) else "Inf",
        index=index,
        count=count,
        largest=_evaluate_in_f64(layer, inputs, bad, index),
        inputs=tuple((float(array.min()), float(array.max())) for array in numbers),
    )


def _evaluate_in_f64(
    layer: Layer, inputs: Sequence[Array], bad: Array, index: tuple[int, ...]
) -> float | None:
    """Return the magnitude of an element when computed in f64; ``None`` if not finite."""
    if layer.op is None or layer.op.needs("visit") or layer.op.needs("variables"):
        return None
    copies = (
        8 * sum(array.size for array in (*inputs, bad)) + bad.nbytes
    )  # the rounded outputs are still in memory, too
    check_room(copies, [bad], layer.where)
    wide = [array.astype(np.float64) if array.dtype.kind == "f" else array for array in inputs]
    exact = evaluate_layer(layer, wide)[0]
    fits = exact.dtype.kind == "f" and exact.ndim == len(index) and np.isfinite(exact[index])
    return float(np.abs(exact[index])) if fits else None


def _line(origin: Origin, limit: str) -> str:
    place = f"{origin.kind} {origin.layer!r} ({origin.operation}) {list(origin.index)}"
    inputs = "; ".join(f"{low:.2g} to {high:.2g}" for low, high in origin.inputs)
    exact = "" if origin.largest is None else f": {origin.largest:.2g} in f64, the limit is {limit}"
    count = f"{origin.count} element{'' if origin.count == 1 else 's'}"
    finite = all(np.isfinite(pair).all() for pair in origin.inputs)
    line = f"{place}{exact}; {count}; inputs {'finite' if finite else 'with Inf'}, {inputs}"
    return f"{line}\n  reaches an output through {_format_path(origin.path)}" if origin.path else line


def _format_path(path: Sequence[str]) -> str:
    """Format the layers of a path, eliding the middle of a long one."""
    if len(path) > 2 * SHOWN:
        names = [*map(quoted, path[:SHOWN]), f"{len(path) - 2 * SHOWN} more", *map(quoted, path[-SHOWN:])]
    else:
        names = [*map(quoted, path)]
    return ", ".join(names)
