"""The mistake that explains an error beyond rounding."""

from __future__ import annotations

from dataclasses import dataclass

from .._util.escaping import quoted
from .._util.records import Record

__all__ = ["Likeness"]


@dataclass(frozen=True)
class Likeness:
    """A mistake that explains a side's results.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2, 2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([[0, 1], [2, 3]], np.float32)]
    >>> found = debug.compare(model, inputs, {"y": np.exp(inputs[0]).T}).likeness
    >>> found.kind, found.layer, found.what, found.excess < 8
    ('permuted', 'y', 'axes 0 and 1 swapped', True)
    >>> sorted(found.record())
    ['R', 'kind', 'layer', 'operation', 'what']

    Args:
        kind: its kind: ``all zero``, ``permuted``, ``bias``, ``factor``, ``activation``, ``epsilon``, ``gates``, ``shift``, ``clipped``,
            ``resize``, ``another input``, ``reversed``, ``channels``, ``constant``, ``attribute``, ``operation`` or ``left out``.
        layer: the name of the layer in which it would have been made.
        operation: its operation.
        what: what would have been done.
        excess: how many times the rest of the error exceeds what rounding explains (R).
    """

    kind: str
    layer: str
    operation: str
    what: str
    excess: float

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "kind": self.kind, "layer": self.layer, "operation": self.operation, "what": self.what, "R": self.excess,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"looks like: {self.what}, in {quoted(self.layer)} ({self.operation}) (R {self.excess:.2g} after that)"
