"""The result of reducing a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .._util.escaping import shown
from .._util.markup import record_html
from .._util.records import Record
from ..ir.graph import Graph
from ..ir.tensor import Array
from ..openvino.model import Model
from .report import Comparison
from .tensors import computed_layers

__all__ = ["Reduced", "real_constants"]


def real_constants(graph: Graph) -> tuple[str, ...]:
    """Return the names of the constants that hold real numbers."""
    return tuple(
        layer.name
        for layer in graph.of_type("Constant")
        if layer.op is not None and np.asarray(layer.op.evaluate()).dtype.kind == "f"
    )


@dataclass
class Reduced:
    """The smallest part of a model that reproduces a difference, as a report.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> class Device:
    ...     def observe(self, model, reference, feeds, ports):
    ...         found = ov.compile_model(model)(list(feeds))
    ...         return debug.Observation("device", [found[0] * np.float32(1.5)])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(opset1.abs(x, name="positive"), name="y")], [x])
    >>> found = debug.reduce(model, [np.array([0, 1], np.float32)], Device())
    >>> found.layers, found.original
    (('positive',), 2)
    >>> found.record()["layers"]
    ['positive']

    Args:
        model: the part.
        inputs: an array for each of its inputs.
        side: what it was compared with.
        report: how the side differs on it.
        layers: the names of its layers, without constants; none, so that the result is false, if rounding explains how the
            side differs: then the model is the whole one.
        original: how many layers the model had, counted likewise.
        kept_weights: the names of constants that are as they were, as the difference would vanish without them.
        kept_inputs: whether the inputs are as they were, likewise.
        notes: what else was tried.
        tests: how many models were compared.
        folder: where it was saved.
        partial: whether it was interrupted, so that a smaller part may be possible.
    """

    model: Model
    inputs: list[Array]
    side: str
    report: Comparison
    layers: tuple[str, ...]
    original: int
    kept_weights: tuple[str, ...] = ()
    kept_inputs: bool = True
    notes: list[str] = field(default_factory=list)
    tests: int = 0
    folder: Path | None = None
    partial: bool = False

    def __bool__(self) -> bool:
        return bool(self.layers)

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": 1, "verdict": self.report.verdict, "partial": self.partial, "side": self.side, "layers": list(self.layers), "original": self.original,
            "kept_weights": list(self.kept_weights), "kept_inputs": self.kept_inputs, "notes": self.notes, "tests": self.tests,
            "folder": None if self.folder is None else str(self.folder), "report": self.report.record(),
        }  # fmt: skip

    def _repr_html_(self) -> str:
        return record_html(str(self), self.report.record())

    @property
    def _contents(self) -> str:
        """Describe which weights and inputs are random, and which are original."""
        constants = {name for name in real_constants(self.model._graph) if name not in self.kept_weights}
        drawn = [*(["weights"] if constants else []), *([] if self.kept_inputs else ["inputs"])]
        kept = [*self.kept_weights, *(["the inputs"] if self.kept_inputs else [])]
        said = f"{' and '.join(drawn)} are random numbers of the same mean and deviation" if drawn else ""
        return "; ".join(
            filter(None, [said, f"kept as they are: {', '.join(map(shown, kept))}" if kept else ""])
        )

    def __str__(self) -> str:
        if not self:
            return f"{self.report.summary}: nothing to reduce\n{self.report.details}"
        operations = [layer.operation for layer in computed_layers(self.model._graph)]
        lines = [
            self.report.summary,
            f"{self.original} layers reduced to {len(self.layers)}: {', '.join(operations)}",
            f"{self.tests} comparisons; {self._contents}",
            *self.notes,
            self.report.details,
        ]
        if self.partial:
            lines.insert(
                1, "PARTIAL: it was interrupted; fewer layers, and fewer weights as they are, may be possible"
            )
        return "\n".join(lines if self.folder is None else [*lines, f"saved to {self.folder}"])
