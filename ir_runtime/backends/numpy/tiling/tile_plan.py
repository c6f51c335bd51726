"""Plan tiles: split a feature map into tiles of rows that stay in the L2 cache throughout a chain of layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....ir.tensor import Array
from ....ops.window import Pads
from ...common.window_fit import window_fit
from ..math.gemm import EPILOGUE_COST, block_count, split_range
from ..threading.parallel import thread_count
from .tiled_layer import TiledLayer

__all__ = ["Tile", "TilePlan", "ping_pong", "plan_tiles"]

# The most recomputation of overlapping rows, as a share of the cost of the whole chain.
MAX_RECOMPUTE = 0.2
# With more recomputation than this, tiles are channels instead of rows, where that is possible: multiples of this many
# channels, the width of a panel of packed filters.
MAX_ROW_RECOMPUTE, CHANNEL_GROUP = 0.05, 32


class Tile(NamedTuple):
    """Rows of the data and of the result of each layer."""

    rows: tuple[slice, ...]
    pads: tuple[Pads, ...]
    """The padding of the input of each layer."""
    channels: slice | None = None
    """The channels that every layer computes; ``None`` for all."""

    def channels_of(self, layer: TiledLayer) -> slice:
        """Return the channels that a layer computes."""
        return slice(0, layer.channels) if self.channels is None else self.channels


@dataclass(frozen=True)
class TilePlan:
    """The tiles for data of one shape."""

    maps: tuple[tuple[int, int], ...]
    """Height and width of the data, and of the result of each layer."""
    tiles: tuple[Tile, ...]
    """Empty if it is faster to run the layers one by one."""
    cost: int
    """Multiplications (or work that takes as long) of one image."""
    buffer_sizes: tuple[int, int, int]
    """The most elements that a tile needs at once: in the two ping-pong buffers, and of scratch memory."""
    bound: dict[tuple[int, int], tuple[Array, list[Any]]] = field(default_factory=dict)
    """By the id of the scratch memory and the index of the tile: that memory, and the steps bound to it."""


def plan_tiles(chain: Sequence[TiledLayer], height: int, width: int, threads: int) -> TilePlan:
    """Plan the tiles for data of a height and width."""
    maps, pads = [(height, width)], list[Pads]()
    for layer in chain:
        if layer.op is None:
            pads.append(((0, 0), (0, 0)))
            maps.append(maps[-1])
        else:
            fit = window_fit(layer.op, layer.kernel)(maps[-1])
            pads.append(fit.pads)
            maps.append((fit.out[0], fit.out[1]))
    row_costs = [
        w * (layer.cost + EPILOGUE_COST * layer.channels)
        for layer, (_, w) in zip(chain, maps[1:], strict=True)
    ]
    cost = sum(row_cost * h for row_cost, (h, _) in zip(row_costs, maps[1:], strict=True))
    intermediate = sum(
        h * w * layer.channels for layer, (h, w) in zip(chain[:-1] or chain, maps[1:], strict=False)
    )
    count = block_count(intermediate, min(thread_count(cost), threads))
    heights = [h for h, _ in maps]
    tiles = tuple(_tile(chain, rows, heights, pads) for rows in split_range(heights[-1], count))
    tiled_cost = sum(
        row_cost * (rows.stop - rows.start)
        for tile in tiles
        for row_cost, rows in zip(row_costs, tile.rows[1:], strict=True)
    )
    if tiled_cost > (1 + MAX_ROW_RECOMPUTE) * cost and _splits_channels(chain):
        whole = _tile(chain, slice(0, heights[-1]), heights, pads)
        channels = split_range(chain[-1].channels, count, CHANNEL_GROUP)
        tiles = tuple(whole._replace(channels=some) for some in channels)
    elif len(chain) > 1 and tiled_cost > (1 + MAX_RECOMPUTE) * cost:
        tiles = ()
    return TilePlan(tuple(maps), tiles, cost, _buffer_sizes(chain, maps, tiles))


def _splits_channels(chain: Sequence[TiledLayer]) -> bool:
    """Return whether each channel needs no others, but of the data: only the first layer may mix channels."""
    if any(layer.op is None or layer.pad is None for layer in chain[1:]) or chain[0].op is None:
        return False
    return not any(post_op.full_tensor for layer in chain for post_op in layer.post_ops)


def ping_pong(chain: Sequence[TiledLayer]) -> Iterator[tuple[int, int]]:
    """For each layer, yield which of two buffers holds its input, and which its result."""
    output = 1
    for layer in chain:
        source = output if layer.pad is None else 1 - output
        output = 1 - source
        yield source, output


def _buffer_sizes(
    chain: Sequence[TiledLayer], maps: Sequence[tuple[int, int]], tiles: Sequence[Tile]
) -> tuple[int, int, int]:
    """Return the most elements that any tile needs in either buffer and of scratch memory."""
    sizes = [_tile_sizes(chain, maps, tile) for tile in tiles]
    first, second, scratch = (max((size[buffer] for size in sizes), default=0) for buffer in range(3))
    return first, second, scratch


def _tile_sizes(
    chain: Sequence[TiledLayer], maps: Sequence[tuple[int, int]], tile: Tile
) -> tuple[int, int, int]:
    sizes, scratch = [0, 0], 0
    for index, (layer, (source, output)) in enumerate(zip(chain, ping_pong(chain), strict=True)):
        in_rows, out_rows = (rows.stop - rows.start for rows in tile.rows[index : index + 2])
        channels = tile.channels_of(layer)
        count = channels.stop - channels.start
        out_size = out_rows * maps[index + 1][1] * count
        in_size = layer.padded_size((in_rows, maps[index][1], count), tile.pads[index])
        sizes[source], sizes[output] = max(sizes[source], in_size), max(sizes[output], out_size)
        scratch = max(scratch, out_size if layer.needs_scratch else 0)
    return sizes[0], sizes[1], scratch


def _tile(chain: Sequence[TiledLayer], rows: slice, heights: Sequence[int], pads: Sequence[Pads]) -> Tile:
    """Find the rows that each layer computes for some rows of the last result, from the last layer to the first."""
    found, tile_pads = [rows], list[Pads]()
    for layer, height, (top, sides) in zip(chain[::-1], heights[-2::-1], pads[::-1], strict=True):
        stride, dilation = (1, 1) if layer.op is None else (layer.op.strides[0], layer.op.dilations[0])
        extent = (layer.kernel[0] - 1) * dilation + 1
        first = found[0].start * stride - top[0]
        needed = (found[0].stop - found[0].start - 1) * stride + extent
        start = min(max(first, 0), height)
        stop = min(max(first + needed, start), height)
        above = min(max(-first, 0), needed)
        found.insert(0, slice(start, stop))
        tile_pads.insert(0, ((above, needed - above - (stop - start)), sides))
    return Tile(tuple(found), tuple(tile_pads))
