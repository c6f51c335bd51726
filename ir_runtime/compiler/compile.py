"""From a graph to a plan: the passes of a compilation, in order, then the steps of the plan."""

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
from .bf16 import store_bf16
from .build_plan import PlanBuilder
from .f16 import compute_f16_in_f32
from .fold import fold
from .fuse import fuse
from .kv_cache import append_to_caches
from .match import match
from .mixed_inputs import hide_mixed_inputs
from .needed import needed
from .pack import pack
from .program import Options, Program
from .quantized_weights import keep_quantized
from .select import select
from .shape_arithmetic import find_shape_arithmetic

__all__ = ["PASSES", "After", "Pass", "compile_plan", "named"]

After: TypeAlias = Callable[[str, Program], None]
"""Called after each pass with its name, and the program that it leaves."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A step of compiling: it changes a program, and leaves the results of the model alone.

    Args:
        name: what ``--print-after`` calls it.
        run: changes a program; its docstring says what holds before and after.
    """

    name: str
    run: Callable[[Program, Options], None]

    @property
    def summary(self) -> str:
        """The first line of what documents it."""
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
        outputs: what to compute.
        backends: asked in turn for a kernel for each layer.
        fold: compute what follows from constants now, and let kernels fuse layers; without it every
            layer stays observable.
        limits: bounds on what a run may need; by default those that hold here.
        after: called after each pass.
        precision: what kernels may round; by default what holds here.

    Raises:
        LimitError: if a run needs more memory than they allow, whatever its data are; it names the layer.
        UnsupportedError: if an operation that is needed has no implementation here.
    """
    layers = needed(graph, outputs)
    precision = precision or precisions.current()
    program = Program(graph, dict(types), layers, outputs, fold, types)
    options = Options(backends, precision, compile_graph=_compile)
    compiling = nested([backend.compiling for backend in backends])
    with within(limits or current()), precisions.within(precision), compiling:
        return _compile(program, options, after)


def _compile(program: Program, options: Options, after: After | None = None) -> ExecutionPlan:
    """Run all passes, then number the slots; callers get the outputs of a model, layers those of a body."""
    for each in PASSES:
        each.run(program, options)
        if after is not None:
            after(each.name, program)
    return PlanBuilder(program, options).plan()


def named(name: str, names: Iterable[str]) -> str:
    """Return a name if there is a pass of that name.

    Raises:
        InputError: if there is none.
    """
    if name in (known := list(names)):
        return name
    raise InputError(
        f"unknown pass {name!r}",
        code=Code.BAD_REQUEST,
        hint=f"{did_you_mean(name, known, after=' ')}the passes are {', '.join(known)}",
    )
