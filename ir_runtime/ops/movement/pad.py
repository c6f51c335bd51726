"""Padding: elements added to, or cut from, both ends of each axis."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import INTEGERS, NUMBERS, Element, Input, Op, Output, attr, op
from .._lengths import check_scalar, check_vector

T_DATA = Element("T", (*NUMBERS, ElementType.boolean, ElementType.string), "any number, boolean or string")
# Two variables, as OpenVINO lets the two inputs differ in type.
T_BEGIN = Element("T_BEGIN", INTEGERS, "any integer type")
T_END = Element("T_END", INTEGERS, "any integer type")


class PadBase(Op):
    """Base of the versions. A negative pad crops, in both versions."""

    flops_per_element = 0

    data = Input(T_DATA, "tensor to pad")
    pads_begin = Input(T_BEGIN, "elements to add before each axis; negative numbers cut")
    pads_end = Input(T_END, "elements to add after each axis; negative numbers cut")
    pad_value = Input(T_DATA, "scalar that fills, for pad_mode constant; absent, it is 0", optional=True)
    padded = Output(T_DATA, "each axis longer by its two pads")

    pad_mode: Literal["constant", "edge", "reflect", "symmetric"] = attr(
        default_with_warning="constant",
        doc="fill with pad_value, the outermost element, or a mirror image without or with that element",
    )

    symbolic = True

    def infer(
        self, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None
    ) -> PartialShape:
        constant = self.pad_mode == "constant"
        if constant and pad_value is not None:
            check_scalar(pad_value, "pad_value")
        pads = []
        for value, name in ((pads_begin, "pads_begin"), (pads_end, "pads_end")):
            check_vector(value, name)
            if None not in (value.shape.rank, data.shape.rank) and not value.count.contains(len(data.shape)):
                raise InferenceError(
                    f"{name} has length {value.count}, but data {data.shape} has rank {data.shape.rank}",
                    clause=f"{name} has a number for each axis of data",
                )
            pads.append(value.numbers())
        begins, ends = pads
        if data.shape.rank is None or begins is None or ends is None:
            return PartialShape.dynamic(data.shape.rank)
        return PartialShape(map(self._length, range(len(data.shape)), data.shape, begins, ends))

    def _length(self, axis: int, dim: Dimension, begin: int | Interval, end: int | Interval) -> Dimension:
        if self.pad_mode != "constant":
            for name, pad in (("pads_begin", begin), ("pads_end", end)):
                least = pad.min if isinstance(pad, Interval) else pad
                if least is not None and least > 0:
                    dim = self._check_copies(axis, dim, name, least)
        padded = dim + (begin + end)
        return Dimension.of(padded.map(lambda n: max(n, 0)) if padded is not dim else dim)

    def _check_copies(self, axis: int, dim: Dimension, name: str, pad: int) -> Dimension:
        """Return the length of an axis, which must have enough elements to copy."""
        needed = {"reflect": pad + 1, "symmetric": pad}.get(self.pad_mode, 1)
        if dim.max == 0:
            raise InferenceError(
                f"axis {axis} of data has length 0, and pad_mode {self.pad_mode} pads with its elements",
                clause="data is not empty along an axis that is padded with its elements",
            )
        if dim.max is not None and dim.max < needed:
            raise InferenceError(
                f"element {axis} of {name} is {pad}, but axis {axis} of data has length {dim}, and pad_mode "
                f"{self.pad_mode} finds at most {dim.max - needed + pad} elements to mirror there",
                clause=f"{name} is at most what pad_mode finds in data",
            )
        return dim if dim.min >= needed else Dimension.between(needed, dim.max, dim.symbol)

    def evaluate(
        self, data: Array, pads_begin: Array, pads_end: Array, pad_value: Array | None = None
    ) -> Array:
        inputs = (data, pads_begin, pads_end) + (() if pad_value is None else (pad_value,))
        shape = self.infer(
            *map(Value.constant, inputs)
        ).static  # raises if there are too few elements to mirror
        begins = [int(n) for n in pads_begin]
        if self.pad_mode == "constant":
            return _pad_constant(data, shape, begins, _nothing(data) if pad_value is None else pad_value)
        for axis, (length, new, begin) in enumerate(zip(data.shape, shape, begins, strict=True)):
            places = np.arange(new) - begin
            if self.pad_mode == "edge":
                places = places.clip(0, max(length - 1, 0))
            else:
                # Mirroring applies to the original data, not to the cropped data.
                gap = int(self.pad_mode == "symmetric")
                places = np.where(places < 0, -places - gap, places)
                places = np.where(places >= length, 2 * (length - 1) - places + gap, places)
            data = data.take(places, axis)
        return data


def _pad_constant(data: Array, shape: tuple[int, ...], begins: list[int], fill: object) -> Array:
    padded = np.full(shape, fill, data.dtype)
    source, target = [], []
    for old, new, begin in zip(data.shape, shape, begins, strict=True):
        first = max(-begin, 0)
        last = max(min(old, new - begin), first)
        source.append(slice(first, last))
        target.append(slice(first + begin, last + begin))
    padded[tuple(target)] = data[tuple(source)]
    return padded


def _nothing(data: Array) -> object:
    return "" if data.dtype == object and all(isinstance(x, str) for x in data.flat) else 0


@op("Pad-1")
class Pad1(PadBase):
    """Extend ``data`` by ``pads_begin`` and ``pads_end`` elements along each axis.

    The page asks for pads of at least 0; OpenVINO treats this version as the next.
    """


@op("Pad-12")
class Pad12(PadBase):
    """Extend or shorten ``data`` by ``pads_begin`` and ``pads_end`` elements along each axis."""
