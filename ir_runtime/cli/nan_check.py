"""``--nan-check``: which layers make NaN or Inf of finite inputs."""

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
    """An observer that counts NaN and Inf in what layers compute of finite inputs."""

    origins: list[Record] = field(default_factory=list)
    _is_finite: bool = True

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Look at the inputs before the layer may overwrite them."""
        self._is_finite = not any(any(_counted(array)) for array in inputs)

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Count what is not finite in the outputs."""
        nan, inf = (
            (sum(counts) for counts in zip(*map(_counted, outputs), strict=True)) if outputs else (0, 0)
        )
        if self._is_finite and (nan or inf):
            where = step.layer.where
            self.origins.append(
                {"layer": step.layer.name, "operation": where.operation, "nan": nan, "inf": inf}
            )

    def text(self) -> str:
        """Return the layers as a table, or a line if none has NaN."""
        if not self.origins:
            return "NaN check: no layer makes NaN or Inf of finite inputs"
        rows = [[o["layer"], o["operation"], plain(o["nan"]), plain(o["inf"])] for o in self.origins]
        title = "NaN or Inf of finite inputs"
        return table(
            title, ["layer", "operation", "nan", "inf"], rows, right=("nan", "inf"), rest="a pipe gets all"
        )


def _counted(array: Array) -> tuple[int, int]:
    """Return how many elements are NaN, and how many are infinite."""
    if array.dtype.kind not in "fV":
        return 0, 0
    real = array if array.dtype.kind == "f" else array.astype(np.float32)  # bf16 and others that NumPy lacks
    if np.isfinite(real).all():
        return 0, 0
    return int(np.isnan(real).sum()), int(np.isinf(real).sum())
