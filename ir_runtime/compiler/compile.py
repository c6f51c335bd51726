"""Compilation of a graph to a plan: run the passes in order, then build the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .._util.nearest import did_you_mean
from .._util.scoped import enter_all
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
from .program import Options, Program, needed_layers
from .quantized_weights import keep_quantized
from .shape_arithmetic import find_shape_arithmetic

__all__ = ["PASSES", "After", "Pass", "compile_plan", "check_pass"]

After: TypeAlias = Callable[[str, Program], None]
"""Called after each pass, with its name and the program."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A transformation of a program that preserves the results of the model.

    Args:
        name: the name, as ``--print-after`` takes it.
        run: transforms a program in place; its docstring states the conditions before and after.
    """

    name: str
    run: Callable[[Program, Options], None]

    @property
    def summary(self) -> str:
        """The first line of the docstring of ``run``."""
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
    """Compile a graph to a plan that computes ``outputs``.

    Args:
        graph: the layers.
        types: the `Value` of every output, as `infer` returns them.
        outputs: the ports to compute.
        backends: the backends to ask for the kernel of each layer, in order of preference.
        fold: whether to fold constants and fuse layers; otherwise, every layer stays observable.
        limits: the limits of a run; by default, the limits of the context.
        after: called after each pass.
        precision: the precision of kernels; by default, the precision of the context.

    Raises:
        LimitError: if any run needs more memory than allowed; it names the layer.
        UnsupportedError: if a needed operation is not implemented.
    """
    layers = needed_layers(graph, outputs)
    precision = precision or precisions.current()
    program = Program(graph, dict(types), layers, outputs, fold, types)
    options = Options(backends, precision, compile_graph=_compile)
    compiling = enter_all([backend.compiling for backend in backends])
    with within(limits or current()), precisions.within(precision), compiling:
        return _compile(program, options, after)


def _compile(program: Program, options: Options, after: After | None = None) -> ExecutionPlan:
    """Run all passes on a program, then build its plan."""
    for step in PASSES:
        step.run(program, options)
        if after is not None:
            after(step.name, program)
    return PlanBuilder(program, options).plan()


def check_pass(name: str, names: Iterable[str]) -> str:
    """Return ``name`` if it is one of the pass names.

    Raises:
        InputError: if it is not; the error lists the names.
    """
    if name in (passes := list(names)):
        return name
    raise InputError(
        f"unknown pass {name!r}",
        code=Code.BAD_REQUEST,
        hint=f"{did_you_mean(name, passes, after=' ')}the passes are {', '.join(passes)}",
    )
