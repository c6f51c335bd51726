"""Conversions between layouts: transposition, and insertion and removal of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ...codes import Code
from ...errors import InputError
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ..layout import Layout

__all__ = ["axis_of", "permutation", "permute_layout", "squeeze_layout", "unsqueeze_layout"]

_UNNAMED = "?"


def axis_of(layout: Layout, name: str, shape: PartialShape) -> int:
    """Return the non-negative index of a named dimension such as ``"height"``, ``"width"`` or ``"channels"``.

    Raises:
        InputError: if the layout does not name the dimension, or the rank is not known.
    """
    if not layout.has_name(name):
        raise refusal(
            f"layout {layout} has no {name} dimension", f"a layout must name its {name}, as NCHW does"
        )
    if shape.rank is None:
        raise refusal(
            f"the index of the {name} follows from the rank, which is not known",
            "fix the rank with set_shape",
        )
    index = layout.get_index_by_name(name)
    index += len(shape) if index < 0 else 0
    if not 0 <= index < len(shape):
        raise refusal(f"layout {layout} has its {name} at {index}, but the shape is {shape}")
    return index


def permute_layout(layout: Layout, order: Sequence[int]) -> Layout:
    """Return the layout of a tensor after a Transpose.

    Raises:
        InputError: if the order is not a permutation of all dimensions, or if the layout has an ellipsis.
    """
    if sorted(order) != list(range(len(order))):
        raise refusal(f"{list(order)} is not an order of {len(order)} dimensions")
    if layout.empty:
        return layout
    if layout.is_dynamic:
        raise refusal(f"layout {layout} cannot be permuted by index: its number of dimensions is not known")
    if not layout.fits(len(order)):
        raise refusal(f"{list(order)} is not an order of the dimensions of layout {layout}")
    names = layout.names(0)
    return Layout.of(tuple(names[i] for i in order))


def permutation(source: Layout, shape: PartialShape, target: Layout) -> list[int] | None:
    """Return the permutation for the Transpose of a tensor to another layout, or None if none is needed.

    Raises:
        InputError: if the layouts do not have the same dimensions, or do not fit the shape.
    """
    if source.empty or target.empty or source == target:
        return None
    rank = shape.rank
    if rank is None and (source.is_dynamic or target.is_dynamic):
        raise refusal(f"layout {source} cannot be converted to {target}: the rank of the tensor is not known")
    order = _order(source.names(rank or 0), target.names(rank or 0), source, target)
    if rank not in (None, len(order)):
        raise refusal(f"layout {source} does not fit a tensor of shape {shape}")
    return None if order == sorted(order) else order


def _order(
    names: tuple[str, ...], target_names: tuple[str, ...], source: Layout, target: Layout
) -> list[int]:
    if len(names) != len(target_names):
        raise refusal(
            f"layout {source} cannot be converted to {target}, which has another number of dimensions"
        )
    # Only the less specific layout can be searched for.
    if target_names.count(_UNNAMED) > names.count(_UNNAMED):
        inverse = _order(target_names, names, target, source)
        return [inverse.index(i) for i in range(len(inverse))]
    for name in names:
        if name != _UNNAMED and name not in target_names:
            raise refusal(f"layout {source} cannot be converted to {target}, which has no dimension {name!r}")
    unnamed = iter([i for i, name in enumerate(names) if name == _UNNAMED])
    return [
        names.index(name) if name != _UNNAMED and name in names else next(unnamed) for name in target_names
    ]


def squeeze_layout(source: Layout, shape: PartialShape, target: Layout) -> tuple[PartialShape, Layout]:
    """Return shape and layout without the dimensions that are not in ``target``.

    Raises:
        InputError: if either layout does not name all dimensions, or does not fit the shape.
    """
    if source.is_dynamic or target.is_dynamic or source.least_rank <= target.least_rank:
        return shape, source
    names, target_names = source.names(0), target.names(0)
    for layout in (source, target):
        if _UNNAMED in layout:
            raise refusal(f"layout {source} cannot be converted to {target}: all dimensions must have names")
    if not source.fits(shape.rank):
        raise refusal(f"layout {source} does not fit a tensor of shape {shape}")
    if missing := [name for name in target_names if name not in names]:
        raise refusal(f"layout {source} cannot be converted to {target}: it has no dimension {missing[0]!r}")
    indices = [i for i, name in enumerate(names) if name in target_names]
    remaining = shape if shape.rank is None else PartialShape([shape[i] for i in indices])
    return remaining, Layout.of(tuple(names[i] for i in indices))


def unsqueeze_layout(source: Layout, shape: PartialShape, target: Layout) -> tuple[PartialShape, Layout, int]:
    """Prepend dimensions of length 1 for the names in ``target`` that ``source`` lacks.

    Returns:
        The shape, the layout, and the number of added dimensions.
    """
    if source.is_dynamic or target.is_dynamic or source.least_rank >= target.least_rank:
        return shape, source, 0
    names = source.names(0)
    added = tuple(name for name in target.names(0) if name not in names)
    added = added[: target.least_rank - len(names)]
    dims = shape if shape.rank is None else PartialShape([*[Dimension(1)] * len(added), *shape])
    return dims, Layout.of((*added, *names)), len(added)


def refusal(reason: str, hint: str = "") -> InputError:
    """Return the error for a step that does not fit its tensor."""
    return InputError(reason, code=Code.BAD_REQUEST, hint=hint)
