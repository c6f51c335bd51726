"""The numerics of an execution: where it rounds, and to which type.

A runtime reports its precisions, but the labels are unreliable: OpenVINO reports the type of compressed
weights for a product, and f32 for recurrent layers that compute in bf16. So reported labels come first, and
if they do not explain a result, other numerics are tried (`other_numerics`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..backends.common.dynamic_quantization import ActivationGroups, round_activations
from ..ir.element import ElementType as E
from ..ir.graph import Graph, Layer, Port
from ..ir.quantized_cache import pack_rows, unpack_rows
from ..ir.tensor import Array
from .observation import Observation
from .precision import LIMITS, Prepare
from .tensors import computed_layers

__all__ = ["Numerics", "numerics_of", "other_numerics"]

NARROW = ("bf16", "f16")
_ATTENTION = "ScaledDotProductAttention"
_INTEGERS = (E.u8, E.i8, E.u4, E.i4)
_STEPS = ("Convert", "Multiply", "Subtract", "Reshape", "Transpose")


@dataclass(frozen=True)
class Numerics:
    """A way of computing.

    Args:
        precision: the type that products and boundaries of nodes round to: ``f32``, ``bf16`` or ``f16``.
        wide: the ids of layers that compute in f32 nevertheless.
        held: the ids of layers with f32 outputs, which consumers may round.
        groups: by product id, the number of activations per scale, if they are quantized to 8 bits.
        cached: the ids of attentions with 8-bit keys and values.
        declared: whether tensors declared as f16 are rounded to it.
        bounded: whether numbers beyond the type become infinite.
    """

    precision: str = "f32"
    wide: Collection[int] = ()
    held: Collection[int] = ()
    groups: Mapping[int, int] = field(default_factory=dict)
    cached: Collection[int] = ()
    declared: bool = False
    bounded: bool = True

    @property
    def label(self) -> str:
        """The rounding in words."""
        quantized = [
            *(["activations in 8 bits"] if self.groups else []),
            *(["keys and values in 8 bits"] if self.cached else []),
        ]
        return " with ".join([self.precision, *([" and ".join(quantized)] if quantized else [])])

    @property
    def limit(self) -> float:
        """The largest number."""
        return LIMITS[self.precision]

    @property
    def prepare(self) -> Prepare | None:
        """The preparation of layer inputs, if any."""
        return self._prepare_inputs if self.groups or self.cached else None

    def _prepare_inputs(self, layer: Layer, inputs: Sequence[Array]) -> Sequence[Array]:
        if layer.id in self.groups:
            turned = vars(layer.op)["transpose_a"] and inputs[0].ndim > 1
            return [_quantize_activations(inputs[0], self.groups[layer.id], bool(turned)), *inputs[1:]]
        if layer.id in self.cached:
            return [inputs[0], *map(_quantize_rows, inputs[1:3]), *inputs[3:]]
        return inputs


def _quantize_activations(x: Array, size: int, turned: bool) -> Array:
    """Round activations to 8-bit groups."""
    rows = np.swapaxes(x, -1, -2) if turned else x
    length = rows.shape[-1]
    if not rows.size:
        return x
    groups = ActivationGroups(1, length, min(size, length))
    quantized = round_activations(np.ascontiguousarray(rows, np.float32), groups).astype(x.dtype)
    return np.swapaxes(quantized, -1, -2) if turned else quantized


def _quantize_rows(x: Array) -> Array:
    """Round keys or values to 8 bits."""
    return unpack_rows(pack_rows(np.ascontiguousarray(x, np.float32))).astype(x.dtype)


def numerics_of(seen: Observation, graph: Graph) -> Numerics:
    """Return the numerics of a side as far as reported.

    Args:
        seen: its observations.
        graph: the layers.
    """
    precision = next((name for name in NARROW if name in seen.ran), "f32")
    size = _number(seen.settings.get("DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"))
    keys = {seen.settings.get(name, "") for name in ("KV_CACHE_PRECISION", "KEY_CACHE_PRECISION")}
    return Numerics(
        precision=precision,
        wide=seen.wide,
        held=seen.held,
        groups=_group_sizes(graph, size) if size else {},
        cached=_find_cached_attentions(graph) if keys & {"u8", "i8", "u4"} else (),
        declared=seen.f16_in_f32 is False,
        bounded=precision == "f32",
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _group_sizes(graph: Graph, size: int) -> dict[int, int]:
    """Return the group sizes of products with compressed weights, by id."""
    changing = {layer.id for layer in (*computed_layers(graph), *graph.of_type("Parameter"))}
    sizes = {}
    for layer in graph.of_type("MatMul"):
        activations, weights = graph.reads(layer)
        if activations.layer not in changing or weights.layer in changing:
            continue
        group = _weights_group(graph, weights)
        if group is not None:
            sizes[layer.id] = min(size, group or size)
    return sizes


def _weights_group(graph: Graph, port: Port) -> int | None:
    """Return the number of integer weights per scale, 0 for a whole column; ``None`` for other weights."""
    layer = graph[port.layer]
    while layer.type in _STEPS:
        layer = graph[graph.reads(layer)[0].layer]
    if layer.type != "Constant" or layer.op is None or vars(layer.op)["element_type"] not in _INTEGERS:
        return None
    shape = vars(layer.op)["shape"].static
    return int(shape[-1]) if len(shape) == 3 else 0


def _find_cached_attentions(graph: Graph) -> tuple[int, ...]:
    """Return the ids of attentions that read a variable."""
    variables = {layer.id for layer in graph.of_type("ReadValue")}
    following = set(variables)
    for layer in graph:
        if layer.type != _ATTENTION and any(port.layer in following for port in graph.reads(layer)):
            following.add(layer.id)
    return tuple(
        layer.id
        for layer in graph.of_type(_ATTENTION)
        if any(port.layer in following for port in graph.reads(layer)[1:3])
    )


def other_numerics(base: Numerics, seen: Observation, has_f16: bool) -> list[Numerics]:
    """Return other possible numerics of a side, the most exact first.

    Args:
        base: the reported numerics.
        seen: its observations.
        has_f16: whether the model declares numbers as f16 or bf16.
    """
    requested = next(
        (name for name in (seen.asked, seen.settings.get("INFERENCE_PRECISION_HINT", "")) if name in NARROW),
        "",
    )
    alternatives = []
    if has_f16 and not base.declared:  # also for a side in f32, which may have folded weights as declared
        alternatives.append(replace(base, declared=True))
    if base.precision == "f32" and requested:
        alternatives += [
            replace(base, precision=name, bounded=False) for name in dict.fromkeys((requested, "bf16"))
        ]
    elif base.wide or base.held:
        alternatives.append(replace(base, wide=(), held=()))
    return alternatives
