"""Names for the dynamic dims of inputs: batch, height, seq."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from ...ir.graph import Graph, Layer
from ...ir.shape import PartialShape
from .constraint import Dim

__all__ = ["label", "names", "role"]

# The meanings of layout letters, which a file writes as "[N,C,H,W]" or "NCHW".
_LETTERS = {"N": "batch", "C": "channels", "H": "height", "W": "width", "D": "depth", "T": "seq", "S": "seq"}

# Parts of the names of inputs that cache earlier tokens.
_CACHES = ("past", "cache")

# Maximum number of channels of an image, to tell [N,H,W,C] from [N,C,H,W].
_CHANNELS = 4

# Highest rank whose dims have names; dims of higher ranks are numbered.
_MOST_NAMED = 5


def label(layer: Layer) -> str:
    """Return the name of an input's tensor, or of its layer if the tensor has none or only a number."""
    names = layer.outputs[0].names if layer.outputs else ()
    return next((name for name in names if not name.isdecimal()), layer.name)


def role(layer: Layer, shape: PartialShape, axis: int) -> str:
    """Return the likely meaning of a dim of an input.

    Args:
        layer: the Parameter.
        shape: its shape, of known rank.
        axis: the axis of the dim.
    """
    letters = _layout(layer)
    if letters is not None and len(letters) == len(shape):
        return _LETTERS.get(letters[axis], f"dim{axis}")
    if axis == 0:
        return "batch" if len(shape) > 1 else "length"
    if len(shape) > _MOST_NAMED:
        return f"dim{axis}"
    return _roles(layer, shape)[axis]


def names(graph: Graph, roles: Mapping[Dim, str], groups: Iterable[Sequence[Dim]]) -> dict[Dim, str]:
    """Return the name of each dim: dims of a group share one, and no two groups do.

    The largest group of a role gets the role as its name; other names include the input.
    """
    names_by_dim: dict[Dim, str] = {}
    used: set[str] = set()
    numbers: defaultdict[str, Iterator[int]] = defaultdict(partial(itertools.count, 2))
    for group in sorted(groups, key=lambda g: (-len({dim.layer for dim in g}), g[0])):
        first = group[0]
        preferred = _commonest([roles[dim] for dim in group])
        candidates = [preferred, f"{label(graph[first.layer])}_{preferred}", f"{preferred}_{first.axis}"]
        numbered = (f"{preferred}_{n}" for n in numbers[preferred])
        name = next(name for name in itertools.chain(candidates, numbered) if name not in used)
        used.add(name)
        names_by_dim |= dict.fromkeys(group, name)
    return names_by_dim


def _commonest(words: Sequence[str]) -> str:
    return Counter(words).most_common(1)[0][0]


def _roles(layer: Layer, shape: PartialShape) -> Sequence[str]:
    rank, element = len(shape), shape[-1]
    if rank == 4 and _is_cache(layer):
        return ["batch", "heads", "past", "size"]
    if rank == 4 and element.is_static and element.min <= _CHANNELS and shape[1].is_dynamic:
        return ["batch", "height", "width", "channels"]
    if rank == 4 and element.is_static and shape[1].is_static and shape[1].min > _CHANNELS:
        return ["batch", "heads", "seq", "size"]
    if rank == 4:
        return ["batch", "channels", "height", "width"]
    if rank == _MOST_NAMED:
        return ["batch", "channels", "depth", "height", "width"]
    return ["batch", "past" if rank == 3 and _is_cache(layer) else "seq", "size"][:rank]


def _is_cache(layer: Layer) -> bool:
    called = f"{label(layer)} {layer.name}".lower()
    return any(word in called for word in _CACHES)


def _layout(layer: Layer) -> str | None:
    """Return the letters of the layout that a Parameter declares in its attributes or rt_info, if any."""
    spec = layer.outputs[0] if layer.outputs else None
    for info in (layer.attributes, layer.rt_info, spec.rt_info if spec is not None else {}):
        declared = info.get("layout")
        text = declared.get("layout", declared.get("value")) if isinstance(declared, Mapping) else declared
        if isinstance(text, str) and "..." not in text:
            return "".join(c for c in text.upper() if c.isalpha() or c == "?")
    return None
