"""The subject of a comparison: a model, its inputs, the observations of a side, and its numerics.

Numerics say where an execution rounds, and to which type. Runtimes report their precisions, but not reliably: OpenVINO
reports the type of compressed weights for a product, and f32 for recurrent layers that compute in bf16. So the reported
numerics are tried first; if they do not explain a result, other numerics are tried (`_other_numerics`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from ..backends.common.dynamic_quantization import ActivationGroups, round_activations
from ..ir.element import ElementType as E
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer, Port
from ..ir.quantized_cache import pack_rows, unpack_rows
from ..ir.tensor import Array
from .decisions import decides, is_elementwise
from .observation import Observation
from .precision import LIMITS, Prepare, emulate_rounding, rounding_to
from .reference import Arrays, Change, Reference, round_as_declared
from .spilling import Kept
from .spilling import tensors as stored
from .tensors import computed_layers, end_of_node
from .terms import PRODUCTS, RECURRENT, SAMPLERS

__all__ = ["Case", "Numerics", "emulate_nodes"]

NARROW = ("bf16", "f16")
_ATTENTION = "ScaledDotProductAttention"
_INTEGERS = (E.u8, E.i8, E.u4, E.i4)
_STEPS = ("Convert", "Multiply", "Subtract", "Reshape", "Transpose")


@dataclass(frozen=True)
class Numerics:
    """Where a runtime rounds, and to which types.

    Args:
        precision: the type to which inputs of products, and results between execution nodes, are rounded: ``f32``, ``bf16`` or
            ``f16``. An execution node is a layer as a runtime executes it, with those fused into it.
        wide: the ids of layers that compute in f32 regardless.
        held: the ids of layers with f32 outputs, which consumers may round.
        groups: the number of activations per scale by product id, for products with activations quantized to 8 bits.
        cached: the ids of attention layers with 8-bit keys and values.
        declared: whether tensors declared as f16 are rounded to it.
        bounded: whether values beyond the range of the type become infinite.
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
        """A description of the rounding, for reports."""
        quantized = [
            *(["activations in 8 bits"] if self.groups else []),
            *(["keys and values in 8 bits"] if self.cached else []),
        ]
        return " with ".join([self.precision, *([" and ".join(quantized)] if quantized else [])])

    @property
    def limit(self) -> float:
        """The largest finite number of the precision."""
        return LIMITS[self.precision]

    def emulate(self) -> Change | None:
        """Return a `Change` that rounds the results of all layers; ``None`` if there is no rounding beyond f32."""
        return emulate_rounding(self.precision, bounded=self.bounded, prepare=self.prepare)

    def limit_of(self, tensor: Array) -> float:
        """Return the largest finite number that a tensor can hold, which may be stored in f16."""
        return min(self.limit, LIMITS["f16"]) if tensor.dtype == np.float16 else self.limit

    @property
    def prepare(self) -> Prepare | None:
        """Return the function that quantizes layer inputs; ``None`` if no inputs are quantized."""
        return self._prepare_inputs if self.groups or self.cached else None

    def _prepare_inputs(self, layer: Layer, inputs: Sequence[Array]) -> Sequence[Array]:
        if layer.id in self.groups:
            turned = vars(layer.op)["transpose_a"] and inputs[0].ndim > 1
            return [_quantize_activations(inputs[0], self.groups[layer.id], bool(turned)), *inputs[1:]]
        if layer.id in self.cached:
            return [inputs[0], *map(_quantize_rows, inputs[1:3]), *inputs[3:]]
        return inputs


def _quantize_activations(x: Array, size: int, turned: bool) -> Array:
    """Quantize and dequantize activations to 8 bits, with a scale per group.

    Args:
        x: the activations.
        size: the number of elements per group, limited to the length of the quantized axis.
        turned: whether groups lie along the last axis but one instead of the last.
    """
    rows = np.swapaxes(x, -1, -2) if turned else x
    length = rows.shape[-1]
    if not rows.size:
        return x
    groups = ActivationGroups(1, length, min(size, length))
    quantized = round_activations(np.ascontiguousarray(rows, np.float32), groups).astype(x.dtype)
    return np.swapaxes(quantized, -1, -2) if turned else quantized


def _quantize_rows(x: Array) -> Array:
    """Quantize and dequantize rows of keys or values to 8 bits."""
    return unpack_rows(pack_rows(np.ascontiguousarray(x, np.float32))).astype(x.dtype)


def _numerics_of(seen: Observation, graph: Graph) -> Numerics:
    """Return the numerics that a side reports.

    Args:
        seen: the observations of the side.
        graph: the graph of the model.
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
    """Return the number of activations per scale of each MatMul with compressed weights, by layer id.

    Args:
        graph: the graph of the model.
        size: the largest number of activations per scale.
    """
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
    """Return the number of integer weights per scale, or 0 if weights are not grouped; ``None`` if they are not integers."""
    layer = graph[port.layer]
    while layer.type in _STEPS:
        layer = graph[graph.reads(layer)[0].layer]
    if layer.type != "Constant" or layer.op is None or vars(layer.op)["element_type"] not in _INTEGERS:
        return None
    shape = vars(layer.op)["shape"].static
    return int(shape[-1]) if len(shape) == 3 else 0


def _find_cached_attentions(graph: Graph) -> tuple[int, ...]:
    """Return the ids of attention layers that read a variable."""
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


def _other_numerics(base: Numerics, seen: Observation, has_f16: bool) -> list[Numerics]:
    """Return other numerics that a side may have, most exact first.

    Args:
        base: the reported numerics.
        seen: the observations of the side.
        has_f16: whether the model declares tensors as f16 or bf16.
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


def emulate_nodes(numerics: Numerics, graph: Graph, boundaries: Collection[Port]) -> Change | None:
    """Return a `Change` that rounds like the execution nodes of a runtime; ``None`` if nothing is rounded beyond f32.

    An execution node is a layer as a runtime executes it, with the layers fused into it.

    Args:
        numerics: the numerics of the runtime.
        graph: the graph of the model.
        boundaries: the tensors between execution nodes.
    """
    if numerics.precision == "f32":  # sums are not rounded, so nodes are irrelevant
        return numerics.emulate()
    changing = {layer.id for layer in (*computed_layers(graph), *graph.of_type("Parameter"))}
    rounded = rounding_to(numerics.precision, numerics.bounded)
    wide, held = frozenset(numerics.wide), frozenset(numerics.held)
    return _Nodes(
        graph, rounded, boundaries, wide, held, changing, numerics.precision == "f16", numerics.prepare
    )


@dataclass
class _Nodes:
    """A `Change` that rounds the results of each layer like the execution nodes of a runtime in bf16 or f16.

    A node that starts with a product reads its constants in the lower precision: weights, including a subsequent scale
    factor, and biases. Attention rounds its normalised probabilities. Nodes after the last products, and the sums that
    lead there, run in f32; other consumers of these sums read rounded values. In f16, the whole model is converted, so
    f32 layers such as recurrent sequences read rounded constants and model inputs.
    """

    graph: Graph
    rounded: Callable[[Array], Array]
    boundaries: Collection[Port]
    """The tensors between nodes."""
    wide: Collection[int]
    """The ids of layers that compute in f32."""
    held: Collection[int]
    """The ids of layers with f32 outputs."""
    changing: Collection[int]
    """The ids of layers that are not constant."""
    converted: bool
    """Whether the whole model is converted, so that f32 layers read rounded constants and model inputs."""
    prepare: Prepare | None = None
    """The preparation of layer inputs."""
    factors: dict[int, Array] = field(default_factory=dict)
    """The constant factor of a node, by the id of its product."""
    rounds: Mapping[int, Collection[int]] = field(init=False)
    """The indices of rounded inputs, by layer id."""

    def __post_init__(self) -> None:
        products = [layer for layer in self.graph if layer.type in PRODUCTS and layer.id not in self.wide]
        rounds = {layer.id: {*range(len(self.graph.reads(layer)))} for layer in products}
        for layer in self.graph:
            if layer.id not in self.wide and layer.type != "Result":
                rounded_inputs = {
                    i for i, port in enumerate(self.graph.reads(layer)) if port.layer in self.held
                }
                rounds.setdefault(layer.id, set()).update(rounded_inputs)
        for layer in self.graph.of_type(*RECURRENT, *SAMPLERS):
            if layer.id not in self.wide:
                rounds[layer.id] = {*range(len(self.graph.reads(layer)))}
        for product in products:
            for layer in self._fused_layers(product):
                rounds[layer.id] |= {
                    i for i, port in enumerate(self.graph.reads(layer)) if port.layer not in self.changing
                }
        if self.converted:
            rounds |= self._inputs_of_wide()
        for product in products:
            if (scaled := self._find_scale(product)) is not None:
                layer, self.factors[product.id] = scaled
                rounds[layer.id].clear()
        self.rounds = {id: inputs for id, inputs in rounds.items() if inputs}

    def _inputs_of_wide(self) -> dict[int, set[int]]:
        """Return, by layer id, the inputs of f32 layers that are constants or model inputs, and so have lower precision."""
        graph = self.graph
        sources = {layer.id for layer in graph if layer.id not in self.changing or layer.type == "Parameter"}
        return {
            id: {i for i, port in enumerate(graph.reads(graph[id])) if port.layer in sources}
            for id in self.wide
        }

    def _fused_layers(self, product: Layer) -> Iterator[Layer]:
        """Yield the layers fused into the node of a product."""
        end, port = end_of_node(self.graph, product, self.changing), product.output_ports[0]
        while port != end:
            layer = self.graph[self.graph.readers(port)[0].layer]
            yield layer
            port = layer.output_ports[0]

    def _find_scale(self, product: Layer) -> tuple[Layer, Array] | None:
        """Return the layer that scales a product by a constant factor, and the factor; ``None`` if there is none."""
        following = next(self._fused_layers(product), None)
        sources = self.graph.reads(product)
        if following is None or following.type != "Multiply" or sources[1].layer in self.changing:
            return None
        read = next(port for port in self.graph.reads(following) if port.layer not in self.changing)
        factor = self.graph[read.layer]
        if factor.type != "Constant" or factor.op is None:
            return None
        number = np.asarray(factor.op.evaluate())
        return (following, number.reshape(())) if number.size == 1 else None

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        if layer.op is None or layer.op.needs("variables") or layer.op.needs("visit"):
            return outputs
        prepared = inputs if self.prepare is None else self.prepare(layer, inputs)
        operands = [
            self.rounded(array) if index in self.rounds.get(layer.id, ()) else array
            for index, array in enumerate(prepared)
        ]
        if layer.id in self.factors:
            factor = self.factors[layer.id]
            operands[1] = np.asarray(self.rounded(inputs[1] * factor) / factor)
        if layer.type == _ATTENTION and layer.id not in self.wide:
            outputs = self._attention(layer, operands)
        elif any(a is not b for a, b in zip(operands, inputs, strict=True)):
            outputs = evaluate_layer(layer, operands)
        if layer.id in self.wide or layer.id in self.held:
            return outputs
        return tuple(
            self.rounded(array) if Port(layer.id, index) in self.boundaries else array
            for index, array in enumerate(outputs)
        )

    def _attention(self, layer: Layer, inputs: Sequence[Array]) -> Arrays:
        """Compute attention with rounded probabilities; with an identity matrix as values, attention returns the probabilities."""
        query, key, value = map(self.rounded, inputs[:3])
        unit = np.broadcast_to(np.eye(key.shape[-2], dtype=value.dtype), (*key.shape[:-1], key.shape[-2]))
        (probabilities,) = evaluate_layer(layer, [query, key, unit, *inputs[3:]])
        return (np.asarray(np.matmul(self.rounded(probabilities), value)),)


def _kept_outputs(seen: Observation) -> Kept:
    """Return the outputs of a side as `Kept`, which spills those beyond the memory budget to files."""
    return seen.outputs if isinstance(seen.outputs, Kept) else Kept(iter(seen.outputs))


class Case:
    """The subject of a comparison: a model, its inputs, and the observations of a side.

    Args:
        plain: the reference in the model's own types.
        wide: the reference in f64.
        feeds: an array for each input.
        seen: the observations; the caller must drop its own references to the tensors, as they may exceed memory.
        types: ``real``, or ``declared`` to round tensors that the model declares as f16 or bf16.
    """

    def __init__(
        self, plain: Reference, wide: Reference, feeds: list[Array], seen: Observation, types: str
    ) -> None:
        self.plain, self.wide = plain, wide
        """The reference in the types of the model, and in f64."""
        self.feeds = feeds
        self.layers = computed_layers(plain.graph)
        """The non-constant layers."""
        self.computed = {layer.id for layer in self.layers}
        """The ids of the non-constant layers."""
        self.deciding = {layer.id: layer for layer in self.layers if decides(plain.graph, plain.types, layer)}
        """The deciding layers, by id."""
        self.rounding: Change | None = round_as_declared(plain.types) if types == "declared" else None
        """The rounding applied to f64 results, if types are ``declared``."""
        self._shapes = plain.with_shapes(feeds).types
        self.tensors = self._kept(seen)
        """The observed tensors of the side, including outputs that are decisions."""
        self.seen = replace(seen, tensors={}, outputs=_kept_outputs(seen))
        """The remaining observations."""
        numerics = _numerics_of(seen, plain.graph)
        self.numerics = replace(numerics, declared=True) if types == "declared" else numerics
        """The assumed numerics of the side."""

    def computing(self, numerics: Numerics) -> Case:
        """Return a copy of the case with other numerics of the side."""
        other = copy(self)
        other.numerics = numerics
        return other

    @property
    def reference(self) -> Reference:
        """The reference in the types in which the side computes, before the rounding of `numerics`."""
        if not self.numerics.bounded and self.numerics.precision == "f32":
            return self.wide
        return self.plain if self.numerics.declared else self.plain.in_f32

    def others(self) -> list[Numerics]:
        """Return other numerics that the side may have, most exact first."""
        has_f16 = self.rounding is None and self.plain.in_f32 is not self.plain
        return _other_numerics(self.numerics, self.seen, has_f16)

    def _kept(self, seen: Observation) -> MutableMapping[Port, Array]:
        tensors, waiting = stored(), dict(seen.tensors)
        while waiting:  # tensors spilled to files leave memory one by one
            port, array = waiting.popitem()
            tensors[port] = array
        for index in self.given(seen):
            output, array = self.plain.outputs[index], seen.outputs[index]
            layer = self.deciding.get(output._port.layer)
            if layer is not None and is_elementwise(layer):  # rounding may explain its decisions
                tensors.setdefault(output._port, array)
        return tensors

    @staticmethod
    def given(seen: Observation) -> list[int]:
        """Return the indices of the outputs that the side provides."""
        return [index for index in range(len(seen.outputs)) if index not in seen.absent]

    def observed(self, layer: Layer, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """Replace the outputs of a layer by the side's observed tensors, reshaping flat ones.

        Tensors whose shapes contradict inference are not used.
        """
        replaced = list(outputs)
        for index, port in enumerate(layer.output_ports[: len(outputs)]):
            if port in self.tensors:
                self.shape(port, outputs[index].shape)
                seen = self.tensors[port]
                if seen.shape == outputs[index].shape or self._shapes[port].shape.contains(seen.shape):
                    replaced[index] = seen.astype(outputs[index].dtype, copy=False)
        return tuple(replaced)

    def shape(self, port: Port, shape: tuple[int, ...]) -> None:
        """Reshape an observed tensor that is flat to the given shape."""
        seen = self.tensors[port]
        if seen.ndim == 1 and seen.ndim != len(shape) and seen.size == prod(shape):
            self.tensors[port] = seen.reshape(shape)
