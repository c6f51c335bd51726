"""Checks of inputs that hold axes, lengths or indices, and shape inference for broadcasting and reduction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import mul
from typing import Literal, TypeAlias

from ..errors import InferenceError
from ..ir.dimension import Dimension, Interval
from ..ir.shape import PartialShape, have_same_lengths
from ..ir.tensor import Array, Value

__all__ = [
    "NAMES",
    "Rule",
    "align",
    "axes_of",
    "broadcast_dims",
    "broadcast_onto",
    "broadcast_shapes",
    "check_at_most",
    "check_below",
    "check_list",
    "check_one_number",
    "check_scalar",
    "check_vector",
    "common_count",
    "count_of",
    "fit_axes",
    "length_of",
    "lengths_of",
    "listed",
    "multiples",
    "normalize_axes",
    "normalize_axis",
    "of_rank",
    "product",
    "reduced_shape",
]


def check_scalar(value: Value, name: str) -> None:
    """Require a 0-D tensor."""
    if value.shape.rank not in (None, 0):
        raise InferenceError(
            f"{name} must be a scalar, not of shape {value.shape}", clause=f"{name} is a scalar"
        )


def check_vector(value: Value, name: str) -> None:
    """Require a 1-D tensor."""
    if value.shape.rank not in (None, 1):
        raise InferenceError(f"{name} must be 1-D, not of shape {value.shape}", clause=f"{name} is 1-D")


def check_one_number(value: Value, name: str) -> None:
    """Require a tensor of one element, of rank 0 or 1."""
    if value.shape.rank not in (None, 0, 1) or not value.count.contains(1):
        raise InferenceError(
            f"{name} must be one number, not of shape {value.shape}",
            clause=f"{name} is one number, a scalar or 1-D",
        )


def of_rank(value: Value, name: str, layout: str, of_any: str = "") -> PartialShape:
    """Return the shape of an input, after checking that it has the rank of a ``layout`` such as ``[N, C]``.

    Args:
        value: the input.
        name: the name of the input in the message.
        layout: the required layout.
        of_any: the name of the input in the clause, if it differs, as for one of several inputs.
    """
    rank = layout.count(",") + 1
    if value.shape.rank is None:
        return PartialShape.dynamic(rank)
    if value.shape.rank != rank:
        raise InferenceError(
            f"{name} must have rank {rank}, {layout}, found {value.shape}",
            clause=f"{of_any or name} has rank {rank}, {layout}",
        )
    return value.shape


# Far above any reasonable number of axes or lengths; results for more would not fit into memory.
_MOST = 1 << 16


def listed(numbers: Iterable[int | Interval]) -> str:
    """Format integers and intervals as a list, for messages.

    >>> listed([1, Dimension(2, 8), Interval(-3, 3), Interval(None, -1), Interval()])
    '[1,2..8,-3..3,..-1,?]'
    """
    return f"[{','.join(map(_show, numbers))}]"


def _show(number: int | Interval) -> str:
    low, high = (number.min, number.max) if isinstance(number, Interval) else (number, number)
    if low is not None and low == high:
        return str(low)
    if isinstance(number, Dimension) or (low is None and high is None):
        return str(number) if isinstance(number, Dimension) else "?"
    return f"{'' if low is None else low}..{'' if high is None else high}"


def count_of(value: Value, name: str = "an input") -> int | None:
    """Return the number of elements of a list of axes, lengths or parts, or ``None`` if unknown."""
    if value.count.min > _MOST:
        raise InferenceError(
            f"{name} of shape {value.shape} holds {value.count} numbers; at most {_MOST} are allowed where "
            f"each is an axis, a length or a part",
            clause=f"{name} holds at most {_MOST} numbers",
        )
    return value.count.__index__() if value.count.is_static else None


def common_count(**inputs: Value | None) -> int | None:
    """Return the common length of 1-D inputs, or ``None`` if unknown; raise if they differ."""
    present = {name: value for name, value in inputs.items() if value is not None}
    for name, value in present.items():
        check_vector(value, name)
    counts = {name: count for name, value in present.items() if (count := count_of(value, name)) is not None}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name} has length {count}" for name, count in counts.items())
        *others, last = counts
        raise InferenceError(
            f"{', '.join(others)} and {last} must be equally long; {text}",
            clause=f"{', '.join(others)} and {last} are equally long",
        )
    return next(iter(counts.values()), None)


def length_of(value: Value, name: str, least: int = 0) -> Dimension:
    """Return the length that an input of one element holds; raise if it is less than ``least``."""
    check_one_number(value, name)
    (number,) = value.numbers() or (Interval(),)
    highest = number.max if isinstance(number, Interval) else number
    if highest is not None and highest < least:
        raise InferenceError(
            f"{name} is {_show(number)}; at least {least} is expected", clause=f"{name} is at least {least}"
        )
    length = Dimension.of(number)
    return length if length.min >= least else Dimension.between(least, length.max, length.symbol)


def lengths_of(value: Value, name: str) -> tuple[Dimension, ...] | None:
    """Return the lengths that a 1-D input holds, as dimensions; ``None`` if their number is unknown."""
    check_vector(value, name)
    numbers = value.numbers()
    if numbers is None:
        count = count_of(value, name)
        return None if count is None else (Dimension(),) * count
    for index, number in enumerate(numbers):
        if isinstance(number, int) and number < 0:
            raise InferenceError(
                f"element {index} of {name} is {number}; a length is at least 0",
                clause=f"each length in {name} is at least 0",
            )
    return tuple(map(Dimension.of, numbers))


def multiples(length: Dimension, of: int) -> Dimension | None:
    """Restrict a dimension to the multiples of ``of``; return ``None`` if it contains none.

    >>> multiples(Dimension(3, 9), 2), multiples(Dimension(1), 4)
    (<Dimension: 4..8>, None)
    """
    low = -(-length.min // of) * of
    high = None if length.max is None else length.max // of * of
    return None if high is not None and high < low else Dimension.between(low, high, length.symbol)


def product(lengths: Iterable[Interval]) -> Dimension:
    """Return the product of the lengths of a shape, its number of elements."""
    return Dimension.of(reduce(mul, lengths, Dimension(1)))


def normalize_axis(axis: int, rank: int, name: str = "axis", of: str = "", least: int = 0) -> int:
    """Return a nonnegative axis; raise if it is out of range.

    Args:
        axis: the axis; a negative one counts from the end.
        rank: the rank of the tensor.
        name: the name of the axis in messages.
        of: the name of the tensor in messages, if it is not obvious.
        least: 1 if OpenVINO accepts axes 0 and -1 for a scalar, which the operation then leaves unchanged.
    """
    count = max(rank, least)
    if not -count <= axis < count:
        allowed = f"{-count} to {count - 1} are allowed" if count else "a scalar has no axes"
        raise InferenceError(
            f"{name} {axis} is out of range for {f'{of} of ' if of else ''}rank {rank}: {allowed}",
            clause=f"{name} is in [-r, r-1], where r is the rank{f' of {of}' if of else ''}",
        )
    return axis % count


def normalize_axes(
    axes: Iterable[int], rank: int, name: str = "axis", of: str = "", least: int = 0
) -> tuple[int, ...]:
    """Return nonnegative axes; raise if one is out of range or repeated. See `normalize_axis`."""
    listed = tuple(axes)
    normalized = tuple(normalize_axis(axis, rank, name, of, least) for axis in listed)
    twice = next((axis for axis in normalized if normalized.count(axis) > 1), None)
    if twice is not None:
        raise InferenceError(
            f"axes {list(listed)} name axis {twice} twice, where each may be named once",
            clause="no axis is named twice",
        )
    return normalized


def axes_of(axes: Array) -> tuple[int, ...]:
    """Return the axes held by a scalar or 1-D array as a tuple of integers."""
    return tuple(axes.ravel().tolist())


def check_list(value: Value, name: str) -> None:
    """Require a scalar or a 1-D tensor."""
    if value.shape.rank is not None and value.shape.rank > 1:
        raise InferenceError(
            f"{name} must be a scalar or 1-D, not of shape {value.shape}", clause=f"{name} is a scalar or 1-D"
        )


def reduced_shape(shape: PartialShape, axes: Value, keep_dims: bool, least: int = 0) -> PartialShape:
    """Return the shape after a reduction over ``axes``, which may be unknown; for ``least`` see `normalize_axis`."""
    check_list(axes, "axes")
    values = axes.ints()
    if shape.rank is None:
        return PartialShape.dynamic()
    if values is not None:
        reduced = set(normalize_axes(values, shape.rank, least=least))
        if shape.rank and keep_dims:
            return shape.replace(dict.fromkeys(reduced, 1))
        return PartialShape([d for i, d in enumerate(shape) if i not in reduced])
    if axes.count.min > max(shape.rank, least):
        raise InferenceError(
            f"axes has length {axes.count}, but data {shape} has rank {shape.rank}",
            clause="there are no more axes than data has",
        )
    if axes.count == 0 or not shape.rank:
        return shape
    if keep_dims:
        return PartialShape([d.join(Dimension(1)) for d in shape])
    if not axes.count.is_static:
        return PartialShape.dynamic()
    return _join_subsequences(shape, shape.rank - axes.count.__index__())


def _join_subsequences(shape: PartialShape, left: int) -> PartialShape:
    """Return the most specific shape that covers every choice of ``left`` dimensions of ``shape``, in order."""
    choices = [shape[i : len(shape) - left + i + 1] for i in range(left)]
    joined = []
    for candidates in choices:
        dim = candidates[0]
        for other in candidates[1:]:
            dim = dim.join(other)
        joined.append(dim)
    return PartialShape(joined)


Rule: TypeAlias = Literal["none", "numpy", "pdpd"]
Names: TypeAlias = tuple[str, str]

NAMES = ("shape", "shape")
"""The default names of the two inputs in messages."""


def broadcast_shapes(
    a: PartialShape, b: PartialShape, rule: Rule = "numpy", names: Names = NAMES
) -> PartialShape:
    """Return the result shape of an elementwise operation on shapes ``a`` and ``b``; ``names`` are for messages.

    Raises:
        InferenceError: if the shapes cannot be broadcast.
    """
    if have_same_lengths(a, b):
        return a
    if rule == "none":
        return _equal(a, b, names)
    if rule == "pdpd":
        return _onto(a, b, names)
    if a.rank is None or b.rank is None:
        return PartialShape.dynamic()
    if a.is_static and b.is_static:  # the common case: one input has the shape of the output
        one, other = a.static, b.static
        if _fits(other, one):
            return a
        if _fits(one, other):
            return b
    rank = max(a.rank, b.rank)
    left = [Dimension(1)] * (rank - a.rank) + list(a)
    right = [Dimension(1)] * (rank - b.rank) + list(b)
    dims = [broadcast_dims(x, y) for x, y in zip(left, right, strict=True)]
    if None in dims:
        axis = dims.index(None) - rank
        raise InferenceError(
            f"{names[0]} {a} and {names[1]} {b} do not broadcast: along axis {axis}, {left[axis]} meets "
            f"{right[axis]}, where both must be equal or one of them 1",
            clause=f"{names[0]} and {names[1]} broadcast: counted from the last axis, lengths are equal or one of them is 1",
        )
    return PartialShape([d for d in dims if d is not None])


def _fits(lengths: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Return whether a shape broadcasts to ``into`` without changing it, as in NumPy."""
    if lengths == into:
        return True
    if len(lengths) > len(into):
        return False
    last = into[len(into) - len(lengths) :]
    return lengths == last or all(own in (1, length) for own, length in zip(lengths, last, strict=True))


def broadcast_dims(a: Dimension, b: Dimension) -> Dimension | None:
    """Return the broadcast of two dimensions, or ``None`` if they are incompatible.

    >>> broadcast_dims(Dimension(1), Dimension(2, 8)), broadcast_dims(Dimension(), Dimension(4))
    (<Dimension: 2..8>, <Dimension: 4>)
    >>> broadcast_dims(Dimension(3), Dimension(4)) is None
    True
    """
    if a == 1 or (a.symbol is not None and a.symbol is b.symbol):
        return b
    if b == 1:
        return a
    if not a.contains(1) and not b.contains(1):
        return a.merge(b)
    if not a.contains(1):
        return a if b.contains(1) or a.compatible(b) else None
    if not b.contains(1):
        return b
    low = max(a.min, b.min) if a.min and b.min else 0
    high = None if a.max is None or b.max is None else max(a.max, b.max)
    return Dimension.between(low, high)


def broadcast_onto(
    a: PartialShape, b: PartialShape, rule: Rule = "numpy", names: Names = NAMES
) -> PartialShape:
    """Return ``a`` refined by the known lengths of ``b``, which must broadcast to it.

    >>> broadcast_onto(PartialShape("?,?,4"), PartialShape("1,3,1"))
    <PartialShape: [?,3,4]>
    """
    if rule != "numpy":
        return _onto(a, b, names) if rule == "pdpd" else _equal(a, b, names)
    if a.rank is None or b.rank is None:
        return a
    extra = max(len(b) - a.rank, 0)
    dims = [Dimension(1)] * (a.rank - len(b)) + list(b)[extra:]
    fitted = [_stretch(x, y) for x, y in zip(a, dims, strict=True)]
    if None in fitted or not all(d.contains(1) for d in b[:extra]):
        raise InferenceError(
            f"{names[1]} {b} does not broadcast to {names[0]} {a}: counted from the last axis, each length must "
            f"be equal or 1",
            clause=f"{names[1]} broadcasts to {names[0]}: counted from the last axis, each length is equal or 1",
        )
    return PartialShape([d for d in fitted if d is not None])


def align(b: Array, rank: int, axis: int = 0) -> Array:
    """Reshape ``b`` so that its first axis aligns with ``axis`` of a tensor of ``rank``.

    Trailing axes of length 1 are appended, or dropped if ``b`` has too many. A negative ``axis`` aligns last axes.
    """
    start = rank - b.ndim if axis < 0 else axis
    return b.reshape((b.shape + (1,) * rank)[: rank - start])


def _equal(a: PartialShape, b: PartialShape, names: Names) -> PartialShape:
    merged = a.merge(b)
    if merged is None:
        raise InferenceError(
            f"{names[0]} {a} and {names[1]} {b} differ, and auto_broadcast is none",
            hint="auto_broadcast numpy stretches lengths of 1",
            clause=f"{names[0]} and {names[1]} have the same shape if auto_broadcast is none",
        )
    return merged


def _onto(a: PartialShape, b: PartialShape, names: Names) -> PartialShape:
    """Return ``a`` refined by ``b`` under PDPD broadcasting, in which ``b`` aligns with the first axes of ``a``."""
    if a.rank is None or b.rank is None:
        return a
    dims = list(b)
    while dims and dims[-1] == 1 and len(dims) > a.rank:
        dims.pop()
    padded = [*dims, *[Dimension(1)] * (a.rank - len(dims))]
    fitted = [_stretch(x, y) for x, y in zip(a, padded, strict=False)]
    if len(padded) > a.rank or None in fitted:
        raise InferenceError(
            f"{names[1]} {b} does not fit into {names[0]} {a}, as auto_broadcast pdpd requires: counted from the "
            f"first axis, each length must be equal or 1",
            clause=f"{names[1]} fits into {names[0]} if auto_broadcast is pdpd: counted from axis 0, each length is equal or 1",
        )
    return PartialShape([d for d in fitted if d is not None])


def _stretch(a: Dimension, b: Dimension) -> Dimension | None:
    return a if b.contains(1) else a.merge(b)


# Inputs whose known elements must be in a range that starts at 0.


def check_below(value: Value, name: str, count: Dimension, things: str) -> None:
    """Require that all known elements are at least 0 and less than ``count``; ``things`` names the counted items in messages."""
    if (wrong := _outside(value, None if count.max is None else count.max - 1)) is not None:
        raise InferenceError(
            f"{name} holds {wrong}, but there are {count} {things}, counted from 0",
            clause=f"{name} is at least 0 and less than the number of {things}",
        )


def check_at_most(value: Value, name: str, most: Dimension, what: str, of_any: str = "") -> None:
    """Require that all known elements are in [0, ``most``].

    Args:
        value: the input.
        name: the name of the input.
        most: the maximum.
        what: a description of the maximum for the message.
        of_any: a description for the clause, if it must not depend on the layer.
    """
    if (wrong := _outside(value, most.max)) is not None:
        raise InferenceError(
            f"{name} holds {wrong}; from 0 to {most}, {what}, is expected",
            clause=f"{name} is at least 0 and at most the maximum, {of_any or what}",
        )


def _outside(value: Value, highest: int | None) -> int | None:
    contents = value.known()
    if contents is None:
        return None
    wrong = contents[contents < 0] if highest is None else contents[(contents < 0) | (contents > highest)]
    return int(wrong.flat[0]) if wrong.size else None


# Inputs with named axes: axes of the same name have the same length.


def fit_axes(name: str, axes: Sequence[str], shape: PartialShape, lengths: dict[str, Dimension]) -> None:
    """Require that an input has the named ``axes``, and merge their lengths into ``lengths``.

    >>> lengths = {"time": Dimension(4)}
    >>> fit_axes("data", ("batch", "time"), PartialShape("2,?"), lengths)
    >>> lengths
    {'time': <Dimension: 4>, 'batch': <Dimension: 2>}
    >>> fit_axes("mask", ("time", "batch"), PartialShape("4,3"), lengths)
    Traceback (most recent call last):
    ir_runtime.errors.InferenceError: error[IR301]: mask has shape [4,3]; [time 4, batch 2] is expected
      clause: mask has the shape [time, batch], with the same lengths as other inputs
    """
    if shape.rank is None:
        return
    merged = [d.merge(lengths.get(a, d)) for a, d in zip(axes, shape, strict=False)]
    if len(axes) != shape.rank or None in merged:
        expected = ", ".join(f"{axis} {lengths[axis]}" if axis in lengths else axis for axis in axes)
        raise InferenceError(
            f"{name} has shape {shape}; [{expected}] is expected",
            clause=f"{name} has the shape [{', '.join(axes)}], with the same lengths as other inputs",
        )
    lengths |= {axis: dim for axis, dim in zip(axes, merged, strict=True) if dim is not None}
