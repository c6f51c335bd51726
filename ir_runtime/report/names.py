"""Assign a scope to each layer, from its name or else from its neighbours."""

from __future__ import annotations

import re
from itertools import islice

from ..ir.graph import IO_TYPES
from .items import Item, Items, Part, Path, parts_of

__all__ = ["DEEPEST", "module_of", "place", "scope_of"]

DEEPEST = 32
"""Scopes in scopes that names make: what a name has inside the deepest one is drawn in that. Networks have up to about 12;
the work of drawing is in proportion to the layers and their depth."""

# Names that converters generate, such as SliceAssign_135817.
_GENERATED = re.compile(r"[A-Z]\w*_\d+$")
# The prefix of the name of a layer in a body: its owner and the body.
_BODY = re.compile(r"^.*/(?:then_body|else_body|body)/")
_PASSES = 20


def scope_of(name: str) -> tuple[str, ...] | None:
    """Parse the module scopes out of a layer name; ``None`` if it has none.

    >>> scope_of("__module.layer1.0.bn1/aten::batch_norm/Add"), scope_of("block1/conv/Conv2D")
    (('layer1', '0', 'bn1'), ('block1', 'conv'))
    >>> scope_of("Multiply_13212") is scope_of("aten::cat/Concat") is None
    True
    """
    if name.startswith("__module."):
        return tuple(name.removeprefix("__module.").partition("/")[0].split(".", DEEPEST)[:DEEPEST])
    scopes = (part for part in _inside(name).split("/")[:-1] if part and "::" not in part)
    parts = tuple(islice(scopes, DEEPEST))
    return parts if parts and not _GENERATED.match(parts[0]) else None


def _inside(name: str) -> str:
    """Strip the prefix that names the body from a layer name."""
    return _BODY.sub("", name)


def module_of(item: Item) -> tuple[str, ...] | None:
    """Return the module path of a layer, from its name or the names of layers fused into it; ``None`` if unknown."""
    if (own := scope_of(item.layer.name)) is not None:
        return own
    fused = next((str(text) for key, text in item.layer.rt_info.items() if "fused_names" in str(key)), "")
    return next((inner for name in fused.split(",") if (inner := scope_of(name)) is not None), None)


def place(listing: Items) -> None:
    """Set the path of each layer; without a scope in its name, a layer gets the scope of its neighbours."""
    for item in listing.items:
        if item.layer.type in IO_TYPES:
            item.path = item.base
        elif (scope := module_of(item)) is not None:
            item.path = (*item.base, *map(Part, scope))
    _follow(listing)
    for item in listing.items:
        path = item.base if item.path is None else item.path
        item.path = (*path, *parts_of(item)) if item.bodies else path
    _move(listing)


def _follow(listing: Items) -> None:
    waiting = [item for item in listing.items if item.path is None and not item.is_constant]
    for _ in range(_PASSES):
        near = [(item, path) for item in waiting if (path := _near(listing, item)) is not None]
        for item, path in near:
            item.path = path
        waiting = [item for item in waiting if item.path is None]
        if not near:
            return


def _near(listing: Items, item: Item) -> Path | None:
    """Return the scope common to the nearest neighbours of a layer; ``None`` if they have no scopes yet."""
    items, depth = listing.items, len(item.base)
    readers = [items[i] for i in listing.below[item.index]]
    if len(readers) == 1 and _has_weights(listing, item) and _tells(readers[0], depth):
        return _parent(
            readers[0], depth
        )  # a convolution goes to its normalization or bias, not between two blocks
    sides = (listing.above[item.index], listing.below[item.index])
    near = [next((items[i].path for i in side if _tells(items[i], depth)), None) for side in sides]
    told = [path for path in near if path is not None and path[:depth] == item.base]
    if len(told) == 2:
        return _common(*told)
    return told[0][: max(depth, len(told[0]) - 1)] if told else None


def _common(one: Path, other: Path) -> Path:
    """Return the common prefix of two paths."""
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return one[:same]


def _tells(item: Item, depth: int) -> bool:
    return item.path is not None and len(item.path) > depth and not item.is_constant


def _parent(item: Item, depth: int) -> Path:
    path = item.path or ()
    return path[: max(depth, len(path) - 1)]


def _has_weights(listing: Items, item: Item) -> bool:
    return any(listing.items[i].is_constant for i in listing.above[item.index])


def _move(listing: Items) -> None:
    """Prepend the scopes around a layer with bodies to the paths of the layers in its bodies."""
    for item in listing.items:
        if item.base and item.path is not None:
            owner = listing.items[item.base[0].owner]
            outside = (owner.path or ())[: -len(parts_of(owner))]
            item.path = (*outside, *item.path)
