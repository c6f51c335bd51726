"""Quantized networks in integer arithmetic: products of 8-bit levels and weights, and all layers between them.

Each quantized subgraph from `find_subgraph` becomes one kernel, which quantizes its inputs, passes levels
from layer to layer, and dequantizes its result. Data with NaN, which has no level, is computed by the
operations themselves. Sums are exact; levels differ from the reference's only for numbers halfway between two
levels, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.convolution import Convolution
from ....ops.quantization import FakeQuantize
from ... import Fusion, Kernel, KernelTemplate, MatchContext, Refusal
from ...patterns.quantized_graph import LayerByLayer, Pooled, Product, Source, find_subgraph, with_deferred
from .._backend import backend
from ..codegen.levels import GROUP
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, replayed, threads
from ..threading.task import UNUSED
from ._int8_conversion import Dequantizing, Quantizing
from ._int8_graph import IntegerKernels, IntegerNode, IntegerSubgraph
from ._int8_layers import Bound, bind, prefetch_weights
from ._int8_maps import LevelMap

__all__: list[str] = []

# Images with up to this many channels are not padded to whole vectors.
MAX_PICTURE_CHANNELS = 4


@backend.pattern(FakeQuantize)
def quantized_network(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match convolutions of quantized data with integer weights, up to the FakeQuantize of the last result."""
    part = find_subgraph(context, layer, IntegerKernels())
    if part is None:
        return None
    layers = with_deferred(context, part.layers)
    reads = context.reads(layers, *(node.port for node in part.nodes if isinstance(node, Source)))
    places = [reads.index(node.port) for node in part.nodes if isinstance(node, Source)]
    return Fusion(layers, reads, QuantizedNetwork(part, LayerByLayer(context, layers, reads), tuple(places)))


@dataclass(frozen=True)
class QuantizedNetwork(KernelTemplate):
    """The kernel of a quantized subgraph, and its definition; ``places`` are the indices of its sources among the inputs."""

    part: IntegerSubgraph
    definition: Callable[..., Array]
    places: tuple[int, ...]
    _prepared: list[Kernel] = field(default_factory=list, compare=False)

    def prepare(self) -> Kernel:
        """Return the kernel, with packed weights."""
        if not self._prepared:
            run = _Network(self.part, self.definition, self.places)
            self._prepared.append(Kernel(run, replay=replayed()))
        return self._prepared[0]


class _Step(NamedTuple):
    """A step: its task, the indices of the maps that it reads and writes, and of those not read afterwards."""

    bound: Bound
    out: int
    data: int
    other: int
    done: tuple[int, ...]


class _Network:
    """Runs the nodes of a quantized subgraph in order; each map is released after its last reader."""

    def __init__(
        self, part: IntegerSubgraph, definition: Callable[..., Array], places: Sequence[int]
    ) -> None:
        self._definition = definition
        number = {id(node): index for index, node in enumerate(part.nodes)}
        by_vectors = {id(read) for node in part.nodes for read in _read_by_vectors(node)}
        self._maps = [_map(node, id(node) in by_vectors) for node in part.nodes]
        for node in part.nodes:
            for data, border in _borders(node):
                self._maps[number[id(data)]].widen(border)
        sources = [index for index, node in enumerate(part.nodes) if isinstance(node, Source)]
        self._sources = [
            (index, place, Quantizing(self._maps[index], part.nodes[index].quantizer))
            for index, place in zip(sources, places, strict=True)
        ]
        self._result = number[id(part.result)]
        self._dequantize = Dequantizing(self._maps[self._result], part.result.quantizer)
        self._steps = list(self._bound(part, number))
        prefetch_weights([step.bound for step in self._steps])

    def _bound(self, part: IntegerSubgraph, number: dict[int, int]) -> list[_Step]:
        last = {number[id(read)]: index for index, node in enumerate(part.nodes) for read in node.reads}
        steps = []
        for index, node in enumerate(part.nodes):
            if isinstance(node, Source):
                continue
            data, other = (number[id(read)] for read in (*node.reads, node.data)[:2])
            maps = self._maps[data], self._maps[index], self._maps[other]
            done = tuple(n for n in {data, other} if last[n] == index and n != self._result)
            steps.append(_Step(bind(node, *maps), index, data, other, done))
        return steps

    def __call__(self, *arrays: Array) -> Array:
        levels = [UNUSED] * len(self._maps)
        for index, place, quantize in self._sources:
            found = quantize(arrays[place])
            if found is None:
                return self._definition(*arrays)
            levels[index] = found
        count = threads()
        for (address, job, large, *_), out, data, other, done in self._steps:
            levels[out] = self._maps[out].empty()
            parallel_for(
                address, job, levels[out], levels[data], levels[other], UNUSED, count if large else 1
            )
            for index in done:
                levels[index] = UNUSED
        return self._dequantize(levels[self._result])


def _read_by_vectors(node: IntegerNode) -> tuple[IntegerNode, ...]:
    """Return the producers whose pixels a node reads in channel vectors; dense products read them word by word."""
    dense = isinstance(node, Product) and isinstance(node.op, Convolution)
    return node.reads[1:] if dense else node.reads


def _map(node: IntegerNode, by_vectors: bool) -> LevelMap:
    images, channels, height, width = node.shape
    few = isinstance(node, Source) and channels <= MAX_PICTURE_CHANNELS and not by_vectors
    stored = -(-channels // GROUP) * GROUP if few else -(-channels // LANES) * LANES
    return LevelMap(images, height, width, channels, stored, node.quantizer.zero)


def _borders(node: IntegerNode) -> list[tuple[IntegerNode, tuple[int, int, int, int]]]:
    """Return a node's data, and the border that its windows reach into."""
    if isinstance(node, Source):
        return []
    kernel = node.op.kernel if isinstance(node, Pooled) else node.weights.numbers.shape[-2:]
    lengths, out = node.data.shape[2:], node.shape[2:]
    borders = []
    for axis, (before, _) in enumerate(node.op.pads(lengths, kernel)):
        covered = (out[axis] - 1) * node.op.strides[axis] + node.op.extent(axis, kernel[axis])
        borders += [before, max(covered - before - lengths[axis], 0)]
    return [(node.data, (borders[0], borders[1], borders[2], borders[3]))]
