"""``--nan-check``: report layers that produce NaN or Inf from finite inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..executor.step import Step
from ..ir.tensor import Array
from .render import Record, plain, table

__all__ = ["NanCheck"]


@dataclass
class NanCheck:
    """An observer that counts NaN and Inf produced from finite inputs."""

    origins: list[Record] = field(default_factory=list)
    _is_finite: bool = True

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Check the inputs before the layer may overwrite them."""
        self._is_finite = not any(any(_count_non_finite(array)) for array in inputs)

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Count NaN and Inf in the outputs."""
        nan, inf = (
            (sum(counts) for counts in zip(*map(_count_non_finite, outputs), strict=True))
            if outputs
            else (0, 0)
        )
        if self._is_finite and (nan or inf):
            where = step.layer.where
            self.origins.append(
                {"layer": step.layer.name, "operation": where.operation, "nan": nan, "inf": inf}
            )

    def text(self) -> str:
        """Format the layers as a table, or return a line if there are none."""
        if not self.origins:
            return "NaN check: no layer makes NaN or Inf of finite inputs"
        rows = [[o["layer"], o["operation"], plain(o["nan"]), plain(o["inf"])] for o in self.origins]
        title = "NaN or Inf of finite inputs"
        header = ["layer", "operation", "nan", "inf"]
        return table(title, header, rows, right=header[2:], least=("operation",), rest="a pipe gets all")


def _count_non_finite(array: Array) -> tuple[int, int]:
    """Count the NaN and the infinite elements."""
    if array.dtype.kind not in "fV":
        return 0, 0
    real = array if array.dtype.kind == "f" else array.astype(np.float32)  # bf16 and others that NumPy lacks
    if np.isfinite(real).all():
        return 0, 0
    return int(np.isnan(real).sum()), int(np.isinf(real).sum())
