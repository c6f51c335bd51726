"""Compile a graph to a plan: the passes in order, then the steps of the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .._util.nearest import did_you_mean
from .._util.scoped import nested
from ..analysis.infer import Inferred
from ..backends import Backend, Precision
from ..backends.core import precision as precisions
from ..codes import Code
from ..errors import InputError
from ..executor.plan import ExecutionPlan
from ..ir.graph import Graph, Port
from ..limits import Limits, current, within
from .build_plan import PlanBuilder
from .choose_kernel import hide_mixed_inputs, pack, select
from .fold import fold
from .fuse import fuse
from .kv_cache import append_to_caches
from .match import match
from .precision import compute_f16_in_f32, store_bf16
from .program import Options, Program, needed
from .quantized_weights import keep_quantized
from .shape_arithmetic import find_shape_arithmetic

__all__ = ["PASSES", "After", "Pass", "compile_plan", "check_pass"]

After: TypeAlias = Callable[[str, Program], None]
"""Called after each pass with its name, and the program that it leaves."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass: it transforms a program, and preserves the results of the model.

    Args:
        name: its name for ``--print-after``.
        run: transforms a program; its docstring has the contract.
    """

    name: str
    run: Callable[[Program, Options], None]

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.run.__doc__ or "").partition("\n")[0]


PASSES = (
    Pass("widen", compute_f16_in_f32),
    Pass("mixed-inputs", hide_mixed_inputs),
    Pass("quantized-weights", keep_quantized),
    Pass("fold", fold),
    Pass("kv-cache", append_to_caches),
    Pass("shape-arithmetic", find_shape_arithmetic),
    Pass("match", match),
    Pass("select", select),
    Pass("fuse", fuse),
    Pass("store-bf16", store_bf16),
    Pass("pack", pack),
)
"""The passes of a compilation, in order."""


def compile_plan(
    graph: Graph,
    types: Inferred,
    outputs: Sequence[Port],
    backends: Sequence[Backend] = (),
    fold: bool = True,
    limits: Limits | None = None,
    after: After | None = None,
    precision: Precision | None = None,
) -> ExecutionPlan:
    """Return the plan that computes ``outputs``.

    Args:
        graph: the layers.
        types: the `Value` of every output, from the `infer` pass.
        outputs: the ports to compute.
        backends: asked in turn for a kernel for each layer.
        fold: fold constants and fuse layers; otherwise, every layer stays observable.
        limits: the limits of a run; by default, those of the context.
        after: called after each pass.
        precision: the precision of kernels; by default, that of the context.

    Raises:
        LimitError: if any run needs more memory than allowed; it names the layer.
        UnsupportedError: if a needed operation is not implemented.
    """
    layers = needed(graph, outputs)
    precision = precision or precisions.current()
    program = Program(graph, dict(types), layers, outputs, fold, types)
    options = Options(backends, precision, compile_graph=_compile)
    compiling = nested([backend.compiling for backend in backends])
    with within(limits or current()), precisions.within(precision), compiling:
        return _compile(program, options, after)


def _compile(program: Program, options: Options, after: After | None = None) -> ExecutionPlan:
    """Run all passes, then number the slots."""
    for step in PASSES:
        step.run(program, options)
        if after is not None:
            after(step.name, program)
    return PlanBuilder(program, options).plan()


def check_pass(name: str, names: Iterable[str]) -> str:
    """Return the name of a pass; raise if there is none.

    Raises:
        InputError: if there is none.
    """
    if name in (passes := list(names)):
        return name
    raise InputError(
        f"unknown pass {name!r}",
        code=Code.BAD_REQUEST,
        hint=f"{did_you_mean(name, passes, after=' ')}the passes are {', '.join(passes)}",
    )
