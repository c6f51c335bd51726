"""The pass ``widen``: compute f16 in f32."""

from __future__ import annotations

from .needed import needed
from .program import Options, Program
from .widen import has_f16, widen_f16

__all__ = ["compute_f16_in_f32"]


def compute_f16_in_f32(program: Program, options: Options) -> None:
    """Compute the model's f16 in f32, unless f16 is requested or the backend is the reference.

    Before: no pass has changed the program; a body was widened with the layer around it.
    After: where anything was widened, ``graph``, ``types``, ``values``, ``layers`` and ``outputs`` are those of the wider
    model, and ``widened`` says what each stands for.
    """
    literal = not options.backends or options.precision.f16 == "f16"
    if literal or options.is_body or not has_f16(program.graph, program.types):
        return
    widened = widen_f16(program.graph, program.types, program.outputs, program.fold)
    program.graph, program.types, program.values = widened.graph, widened.types, dict(widened.types)
    program.outputs, program.widened = widened.outputs, widened
    program.layers = needed(widened.graph, widened.outputs)
