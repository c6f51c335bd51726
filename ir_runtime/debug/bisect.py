"""Find the first layer that a runtime computes wrongly, by running only parts of the model."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from .._util.arrays import DType
from .._util.escaping import quoted
from .._util.markup import Shown
from .._util.records import Json, Record
from .._util.text import bytes_text
from ..ir.graph import Port
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import Entry, entry_for, load_or_compute
from .compare import judge
from .extract import cut, step_of
from .observation import SideLike
from .progress import STOPS, attach_partial, report_progress, stage
from .reference import Reference
from .results import Comparison, restore_report
from .sides import parts_side
from .spilling import tensors, within_budget
from .tensors import computed_layers

__all__ = ["Bisection", "bisect", "search", "Cuts"]


@dataclass(frozen=True)
class Bisection(Shown):
    """The result of `bisect`: the first layer, or layers, with an error beyond rounding.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> class Device:
    ...     def observe(self, model, reference, feeds, ports):
    ...         found = ov.compile_model(model)(list(feeds))
    ...         return debug.Observation("device", [found[0] * np.float32(1.5)])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(opset1.abs(x, name="positive"), name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> found = debug.bisect(model, inputs, Device())
    >>> found.of, found.runs > 0
    (2, True)
    >>> len(found.layer) > 0, sorted(found.record())[:3]
    (True, ['kept', 'layer', 'layers'])

    Args:
        layers: the names of the wrong layers: one, or several that are wrong only together. If rounding explains all
            differences it is empty, and the result is false.
        operation: the operation of the last layer.
        report: the comparison of these layers alone, on inputs computed in f64; without layers, of the whole model.
        runs: the number of compared models.
        of: the number of layers of the model, without constants.
        kept: the peak size of the tensors kept between runs, in bytes.
        partial: whether the search was interrupted.
    """

    layers: tuple[str, ...]
    operation: str
    report: Comparison
    runs: int
    of: int
    kept: int
    partial: bool = False

    def __bool__(self) -> bool:
        return bool(self.layers)

    @property
    def layer(self) -> str:
        """The name of the last wrong layer; empty if there is none."""
        return self.layers[-1] if self.layers else ""

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": 1, "verdict": self.report.verdict, "partial": self.partial, "layer": self.layer or None,
            "operation": self.operation or None, "layers": list(self.layers), "of": self.of,
            "runs": self.runs, "kept": self.kept, "report": self.report.record(),
        }  # fmt: skip

    def __str__(self) -> str:
        if not self:
            return f"{self.report.summary}: nothing to find\n{self.report.details}"
        first = f"first wrong: {quoted(self.layer)} ({self.operation})"
        span = f"the {len(self.layers)} layers from {quoted(self.layers[0])} to {quoted(self.layer)}"
        if self.partial:
            first = f"PARTIAL: the search was interrupted; wrong is one of {span}"
        elif len(self.layers) > 1:
            first = f"wrong together, but not in parts: {span}"
        lines = [
            self.report.summary,
            first,
            self.report.details,
            f"{self.runs} comparisons of parts of {self.of} layers, {bytes_text(self.kept)} kept between them",
        ]
        return "\n".join(lines)


def bisect(
    model: Model, inputs: object, side: SideLike, states: Mapping[str, object] | None = None
) -> Bisection:
    """Find the first layer in which an execution differs from the f64 reference by more than rounding.

    Bisects the layers in topological order. Only the output tensors of each half are compared, so no tensor inside needs
    to be observed; only the f64 tensors that cross the cut are kept, so memory stays small.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> class Device:
    ...     def observe(self, model, reference, feeds, ports):
    ...         found = ov.compile_model(model)(list(feeds))
    ...         return debug.Observation("device", [found[0] * np.float32(1.5)])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(opset1.abs(x, name="positive"), name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.bisect(model, inputs, Device()).layers
    ('positive',)

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        side: the judged execution: ``"openvino"``, ``"openvino:bf16"``, a backend, the path of another IR, or a `Side`, such as a `Command`.
        states: values of variables before the run, by id; by default their initial values. The values of variables before
            and after the run become inputs and outputs of the parts.

    Returns:
        the first wrong layer, or several that are wrong only together; false if rounding explains all differences.

    Raises:
        InputError: if the side cannot run parts of the model.
        Interrupted: on Ctrl-C, with the results so far.
        TimedOut: when the time is up, likewise.
    """
    model, feeds = step_of(model, Reference(model).feeds(inputs), states)
    parts = parts_side(side, Reference(model))
    entry = entry_for("bisect", model, feeds, side)
    with within_budget(model.limits):
        return search(model, feeds, parts, entry)


def search(model: Model, feeds: list[Array], side: SideLike, entry: Entry | None = None) -> Bisection:
    """Like `bisect`, for a `Side` that can run parts of a model.

    Args:
        model: the model, without variables.
        feeds: an array for each input.
        side: the judged side; it must be able to run parts of the model.
        entry: the cache entry of finished runs, or ``None``.
    """
    reference = Reference(model)
    return _Search(Cuts(model, reference, feeds), reference, side, entry).run()


@dataclass
class _Search:
    cuts: Cuts
    reference: Reference
    side: SideLike
    entry: Entry | None
    values: MutableMapping[Port, Array] = field(default_factory=tensors)
    """The f64 tensors that cross the last cut without an error before it."""
    runs: int = 0
    kept: int = 0

    def run(self) -> Bisection:
        """Bisect the layers until one remains, or several that are wrong only together."""
        low, high, start = 0, len(self.cuts.layers), 0
        worst_report, _ = self._compare(low, high)
        if worst_report.verdict != "unexplained":
            report_progress(1)
            return self._result(0, 0, worst_report)
        try:
            while high - low > 1:
                middle = (low + high) // 2
                report, truth = self._compare(low, middle)
                if report.verdict == "unexplained":
                    high, start, worst_report = middle, low, report
                else:
                    self._keep(low, middle, truth)
                    low = middle
            if low != start:  # the remaining layers were only run together with earlier ones
                report, _ = self._compare(low, high)
                low, worst_report = (
                    (low, report) if report.verdict == "unexplained" else (start, worst_report)
                )
        except STOPS as reason:
            place = start, high, worst_report
            raise attach_partial(reason, lambda: self._result(*place, partial=True)) from None
        report_progress(1)
        return self._result(low, high, worst_report)

    def _result(self, low: int, high: int, report: Comparison, partial: bool = False) -> Bisection:
        layers = self.cuts.layers[low:high]
        names = tuple(layer.name for layer in layers)
        of = len(self.cuts.layers)
        operation = layers[-1].operation if layers else ""
        return Bisection(names, operation, report, self.runs, of, self.kept, partial)

    def _compare(self, low: int, high: int) -> tuple[Comparison, Sequence[Array]]:
        """Compare the outputs of the layers between two cuts; also return these outputs in f64."""
        most = len(self.cuts.layers).bit_length() + 2

        def compute() -> tuple[Json, Sequence[Array]]:
            part, is_last = self.cuts.part(low, high, self.values), high - low == 1
            report, truth = judge(*part, self.side, inside=False, names_mistakes=is_last)
            return asdict(report), truth

        with stage(min(self.runs, most - 1) / most, min(self.runs + 1, most) / most):
            self.runs += 1
            record, truth = load_or_compute(self.entry, f"{low}-{high}", compute)
        return restore_report(record), truth

    def _keep(self, low: int, middle: int, truth: Sequence[Array]) -> None:
        """Update the kept tensors to those that cross the cut ``middle``.

        Args:
            low: the cut before the layers that were run.
            middle: the cut after them.
            truth: their outputs in f64, which are kept in the types of the model.
        """
        computed = dict(zip(self.cuts.ends(low, middle), truth, strict=True))
        types = self.reference.types
        crossing = self.cuts.crossing(middle)
        for port in [port for port in self.values if port not in crossing]:
            del self.values[port]
        for port in crossing:
            if port not in self.values:
                self.values[port] = _narrow(computed[port], types[port].element.dtype)
        self.kept = max(self.kept, sum(array.nbytes for array in self.values.values()))


def _narrow(array: Array, dtype: DType) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(dtype)


class Cuts:
    """The non-constant layers of a model in topological order; cut ``n`` lies before layer ``n``.

    Args:
        model: the model.
        reference: the reference of the model.
        feeds: an array for each input.
    """

    def __init__(self, model: Model, reference: Reference, feeds: Sequence[Array]) -> None:
        self._model, self._graph = model, reference.graph
        self.layers = computed_layers(self._graph)
        self._place = {layer.id: index for index, layer in enumerate(self.layers)}
        self._outputs = {port._port for port in reference.outputs}
        parameters = self._graph.of_type("Parameter")
        self._feeds = {layer.name: feed for layer, feed in zip(parameters, feeds, strict=True)}

    def crossing(self, place: int) -> list[Port]:
        """Return the tensors that cross a cut: computed before and read after it."""
        return [
            port for port in self._computed_ports(0, place) if self._is_read(port, place, len(self.layers))
        ]

    def ends(self, low: int, high: int) -> list[Port]:
        """Return the tensors computed between two cuts that are read after the second, or are model outputs."""
        computed = self._computed_ports(low, high)
        return [p for p in computed if p in self._outputs or self._is_read(p, high, len(self.layers))]

    def part(self, low: int, high: int, values: Mapping[Port, Array]) -> tuple[Model, list[Array]]:
        """Return the layers between two cuts as a model, and an array for each of its inputs.

        Args:
            low: the cut before the first of these layers.
            high: the cut after the last one.
            values: the tensors that cross the first cut.
        """
        starts = [port for port in values if self._is_read(port, low, high)]
        part = cut(self._model, starts, self.ends(low, high))
        rest = [self._feeds[node.friendly_name] for node in part.parameters[len(starts) :]]
        return part, [*(values[port] for port in starts), *rest]

    def _computed_ports(self, low: int, high: int) -> list[Port]:
        return [port for layer in self.layers[low:high] for port in layer.output_ports]

    def _is_read(self, port: Port, low: int, high: int) -> bool:
        return any(low <= self._place.get(reader.layer, -1) < high for reader in self._graph.readers(port))
