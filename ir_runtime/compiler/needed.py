"""Find the layers needed by the outputs of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from ..codes import Code
from ..errors import UnsupportedError
from ..ir.graph import Graph, Layer, Port

__all__ = ["needed", "sinks"]


def needed(graph: Graph, outputs: Sequence[Port]) -> list[Layer]:
    """Return the layers that ``outputs`` depend on, in order, with all Parameters and layers with side effects.

    Raises:
        UnsupportedError: if an operation is unknown, or a constant has no data.
    """
    ancestors = graph.ancestors([port.layer for port in outputs] + [layer.id for layer in sinks(graph)])
    layers = [layer for layer in graph if layer.id in ancestors or layer.type == "Parameter"]
    _check_operations(layers)
    return layers


def sinks(graph: Graph) -> list[Layer]:
    """Return the layers that run for their side effects."""
    return [layer for layer in graph if layer.op is not None and layer.op.has_side_effects]


def _check_operations(layers: Sequence[Layer]) -> None:
    unknown = [layer for layer in layers if layer.op is None]
    if not unknown:
        return
    constants = [layer for layer in unknown if layer.type in ("Constant", "Const")]
    if constants:
        raise UnsupportedError(
            "constants that the outputs depend on have no data",
            code=Code.WEIGHTS_MISSING,
            where=constants[0].where,
            hint="read the model with its .bin: the report of the model says what is wrong with it",
        )
    names = ", ".join(sorted({f"{layer.type} ({layer.version})" for layer in unknown}))
    raise UnsupportedError(
        f"these operations are unknown, or have attributes that are not allowed: {names}",
        code=Code.UNKNOWN_OPERATION,
        where=unknown[0].where,
        hint="declare an operation of your own with ir_runtime.ops.op; see examples/custom_op",
    )
