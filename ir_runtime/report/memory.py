"""Memory use of a run, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .items import Item, Items

__all__ = ["Memory", "memory_of", "output_bytes"]


class Memory(NamedTuple):
    """The bytes in use while each layer runs."""

    layers: list[int]
    """The indices of the layers in execution order."""
    used: list[int]


def output_bytes(item: Item, measured: Mapping[str, int]) -> int | None:
    """Return the total size of a layer's outputs, measured or inferred; ``None`` if unknown."""
    if not item.base and item.layer.name in measured:
        return measured[item.layer.name]
    if item.layer.type == "Result":
        return None
    values = [item.value(port) for port in range(len(item.layer.outputs))]
    known = [value for value in values if value is not None and value.shape.is_static]
    if len(known) < len(values) or not values:
        return None
    return sum(value.element.nbytes(value.count.min) for value in known)


def memory_of(listing: Items, measured: Mapping[str, int]) -> Memory | None:
    """Return the bytes in use while each layer outside of bodies runs; ``None`` if any size is unknown.

    A tensor is live from its producer to its last consumer. Views count like copies.
    """
    layers = [item for item in listing.items if not item.base and not item.is_constant]
    sizes = {item.index: output_bytes(item, measured) for item in layers if item.layer.type != "Result"}
    if not sizes or any(size is None for size in sizes.values()):
        return None
    place = {item.index: number for number, item in enumerate(layers)}
    last = {index: place[index] for index in sizes}
    for edge in listing.edges:
        source, target = _outside(listing, edge.source), _outside(listing, edge.target)
        if source in last and target in place:
            last[source] = max(last[source], place[target])
    changes = [0] * (len(layers) + 1)
    for index, size in sizes.items():
        changes[place[index]] += size or 0
        changes[last[index] + 1] -= size or 0
    used, current = [], 0
    for change in changes[:-1]:
        current += change
        used.append(current)
    return Memory([item.index for item in layers], used)


def _outside(listing: Items, index: int) -> int:
    """Return the outermost layer whose bodies contain a layer, or the layer itself."""
    base = listing.items[index].base
    return base[0].owner if base else index
