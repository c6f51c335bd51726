"""Type operations: conversion of element types, and packing and unpacking of strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InferenceError, ValidationError
from ..ir.dimension import Dimension, Interval, span
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Bounds, TensorType, Value, objects
from ._define.bounds import Number, ends, fit
from ._define.operation import (
    EVERY,
    MAX_PROPAGATED,
    Element,
    Input,
    Op,
    Output,
    Propagated,
    Types,
    attr,
    elements,
    op,
)
from ._lengths import check_vector
from .conversion import convert
from .kernels.strings import decode, header_size, pack_strings

NUMERIC = tuple(e for e in EVERY if e is not ElementType.string)
T = Element("T", NUMERIC, "any numeric type, or boolean")
T_LIKE = Element("T2", NUMERIC, "any numeric type, or boolean")
T_PLACE = Element("T_IDX", (ElementType.i64, ElementType.i32), "i64 or i32")
T_BYTE = Element("T_BYTE", (ElementType.u8,), "u8")
T_TEXT = Element("T_TEXT", (ElementType.string,), "string")

# The types of ConvertPromoteTypes by kind, from narrow to wide.
REALS = ("f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64")
SIGNED = ("i4", "i8", "i16", "i32", "i64")
UNSIGNED = ("u1", "u4", "u8", "u16", "u32", "u64")
PROMOTED = tuple(ElementType.parse(label) for label in ("boolean", *UNSIGNED, *SIGNED, *REALS))


CONVERSION = (
    "NaN, and a number too large for an integer type, become the lowest number of i64 or i32, truncated to the type, as on x86 in OpenVINO's reference; the page leaves it open",
    "numbers too large for a real type become infinite, but i32 in f16, which becomes 65504, as in OpenVINO's reference",
    "bf16 is rounded to nearest, ties to even, as in OpenVINO's plugin; its reference rounds even numbers down",
)
"""The decisions of conversions."""


@op("Convert-1")
class Convert(Op):
    """Convert ``data`` to another element type."""

    decisions = CONVERSION

    bounded = True
    flops_per_element = 0

    data = Input(T, "tensor to convert")
    converted = Output("destination_type", "the converted elements, of the shape of data")

    destination_type: ElementType = attr(doc="element type to convert to")

    symbolic = True

    def verify(self) -> None:
        """Require a numeric destination type."""
        if self.destination_type not in NUMERIC:
            raise ValidationError(
                f"attribute 'destination_type' must be a numeric type, not {self.destination_type.label}",
                clause="attribute 'destination_type' is a numeric type",
            )

    def infer(self, data: Value) -> PartialShape:
        return data.shape

    def refuses_lengths(self) -> bool:
        return True  # inference refuses no lengths

    def evaluate(self, data: Array, *, types: Types = ()) -> Array:
        (source,) = elements((data,), types)
        return convert(data, self.destination_type, source)

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate contents, and convert bounds between floating-point and integer types."""
        (data,) = inputs
        if data.bounds is not None:
            return from_reals(data.bounds, data.element, self.destination_type)
        if data.known() is None and data.data is not None and self.destination_type.real:
            return to_reals(data.data, self.destination_type)
        return super().propagate(data)


@op("ConvertLike-1")
class ConvertLike(Op):
    """Convert ``data`` to the element type of ``like``, whose values are ignored."""

    decisions = CONVERSION

    bounded = True
    flops_per_element = 0

    data = Input(T, "tensor to convert")
    like = Input(T_LIKE, "tensor of the element type to convert to")
    converted = Output(T_LIKE, "the converted elements, of the shape of data")

    symbolic = True

    def infer(self, data: Value, like: Value) -> TensorType:
        return TensorType(like.element, data.shape)

    def refuses_lengths(self) -> bool:
        return True  # inference refuses no lengths

    def evaluate(self, data: Array, like: Array, *, types: Types = ()) -> Array:
        source, target = elements((data, like), types)
        return convert(data, target, source)

    def propagate(self, *inputs: Value) -> Array | None:
        """Propagate the contents, which do not depend on ``like``."""
        data, like = inputs
        if data.data is None or data.data.size > MAX_PROPAGATED or like.element is ElementType.dynamic:
            return None
        try:
            return convert(data.data, like.element, data.element)
        except TypeError:
            return None


@op("ConvertPromoteTypes-14")
class ConvertPromoteTypes(Op):
    """Convert both inputs to a common element type that represents the values of either.

    Floating-point types take precedence over integer types, and these over boolean. Of two types of one kind, the common
    type is the narrowest that represents the values of both.
    """

    flops_per_element = 0

    input_0 = Input(
        Element("T1", PROMOTED, "boolean, integers but u2, u3, u6, and common reals"), "first tensor"
    )
    input_1 = Input(
        Element("T2", PROMOTED, "boolean, integers but u2, u3, u6, and common reals"), "second tensor"
    )
    output_0 = Output(Element("T_OUT", PROMOTED, "the common type"), "input_0 in the common type")
    output_1 = Output(Element("T_OUT", PROMOTED, "the common type"), "input_1 in the common type")

    promote_unsafe: bool = attr(
        False,
        doc="whether to allow a type that does not represent all values of the inputs, or that neither input has",
    )
    pytorch_scalar_promotion: bool = attr(
        False, doc="whether a scalar takes the type of a tensor of higher rank, if both types are of one kind"
    )
    u64_integer_promotion_target: ElementType = attr(
        ElementType.f32, doc="common type of u64 and a signed integer"
    )

    def infer(self, input_0: Value, input_1: Value) -> tuple[TensorType, TensorType]:
        element = self.common(input_0.type, input_1.type)
        return TensorType(element, input_0.shape), TensorType(element, input_1.shape)

    def evaluate(self, input_0: Array, input_1: Array, *, types: Types = ()) -> tuple[Array, Array]:
        a, b = elements((input_0, input_1), types)
        element = self.common(Value.constant(input_0, a).type, Value.constant(input_1, b).type)
        return convert(input_0, element, a), convert(input_1, element, b)

    def common(self, a: TensorType, b: TensorType) -> ElementType:
        """Return the common type, or dynamic if it depends on unknown types or ranks."""
        if a.element is b.element or ElementType.dynamic in (a.element, b.element):
            return a.element if a.element is b.element else ElementType.dynamic
        if self.pytorch_scalar_promotion and _kind(a.element) == _kind(b.element):
            if None in (a.shape.rank, b.shape.rank):
                return ElementType.dynamic
            if a.shape.rank == 0 != b.shape.rank:
                return self._like(a.element, b.element)
            if b.shape.rank == 0 != a.shape.rank:
                return self._like(b.element, a.element)
        return self._wide(a.element, b.element)

    def _like(self, scalar: ElementType, tensor: ElementType) -> ElementType:
        """Return the type of the tensor; raise if it may be too narrow for the scalar.

        For an unsigned scalar and a signed tensor, OpenVINO requires only half the bits.
        """
        halved = scalar.label in UNSIGNED and tensor.label in SIGNED
        fits = scalar.bits <= tensor.bits * (2 if halved else 1)
        if scalar.label in SIGNED and tensor.label in UNSIGNED:
            fits = False
        if not (fits or self.promote_unsafe):
            raise self._unsafe(scalar, tensor, f"the scalar may not fit into {tensor.label}")
        return tensor

    def _wide(self, a: ElementType, b: ElementType) -> ElementType:
        low, high = sorted((a, b), key=lambda e: (_kind(e), e.bits))
        if _kind(low) < _kind(high):
            if _kind(low) > 0 and high.bits < 2 * low.bits and not self.promote_unsafe:
                raise self._unsafe(a, b, f"{high.label} has fewer than twice the bits of {low.label}")
            return high
        if _kind(low) == 2:
            wider = high if high.bits > low.bits else ElementType.f32 if high.bits == 16 else ElementType.f16
        elif (low.label in SIGNED) == (high.label in SIGNED):
            wider = high
        else:
            signed, unsigned = (low, high) if low.label in SIGNED else (high, low)
            if unsigned is ElementType.u64:
                if not self.promote_unsafe:
                    raise self._unsafe(a, b, "no signed integer holds the numbers of u64")
                return self.u64_integer_promotion_target
            wider = ElementType.parse(f"i{max(signed.bits, 2 * unsigned.bits)}")
        if wider not in (a, b) and not self.promote_unsafe:
            raise self._unsafe(a, b, f"the numbers of both need {wider.label}")
        return wider

    def _unsafe(self, a: ElementType, b: ElementType, why: str) -> InferenceError:
        return InferenceError(
            f"input_0 and input_1, {a.label} and {b.label}, have no common type: {why}",
            hint="promote_unsafe true allows one",
            clause="promoted types hold the numbers of both inputs, unless promote_unsafe",
        )


@op("StringTensorPack-15")
class StringTensorPack(Op):
    """Build strings from bytes: string i is ``symbols[begins[i]:ends[i]]``.

    Strings may overlap and be in any order; OpenVINO refuses constant begins and ends that do not ascend.
    """

    flops_per_element = 0

    begins = Input(T_PLACE, "start of each string in symbols, of any shape")
    ends = Input(T_PLACE, "exclusive end of each string in symbols, of the shape of begins")
    symbols = Input(T_BYTE, "UTF-8 bytes, 1-D")
    output = Output(ElementType.string, "the strings, of the shape of begins")

    def infer(self, begins: Value, ends: Value, symbols: Value) -> PartialShape:
        check_vector(symbols, "symbols")
        shape = begins.shape.merge(ends.shape)
        if shape is None:
            raise InferenceError(
                f"begins has shape {begins.shape}, but ends {ends.shape}; both must be equal",
                clause="begins and ends have the same shape",
            )
        first, last, most = begins.known(), ends.known(), symbols.count.max
        if first is not None and last is not None:
            wrong = (first < 0) | (last < first)
            wrong |= False if most is None else last > most
            if wrong.any():
                begin, end = first[wrong][0], last[wrong][0]
                raise InferenceError(
                    f"begins and ends hold {begin} and {end} for one string; it must be within the {symbols.count} bytes of "
                    f"symbols, and end after its begin",
                    clause="each string is within symbols, and ends after its begin",
                )
        return shape

    def evaluate(self, begins: Array, ends: Array, symbols: Array) -> Array:
        self.infer(*map(Value.constant, (begins, ends, symbols)))
        content = symbols.tobytes()
        texts = np.empty(begins.size, object)
        texts[:] = [decode(content[a:b]) for a, b in zip(begins.flat, ends.flat, strict=True)]
        return texts.reshape(begins.shape)


@op("StringTensorUnpack-15")
class StringTensorUnpack(Op):
    """The concatenated bytes of the strings in ``data``, with the start and end of each."""

    flops_per_element = 0

    data = Input(T_TEXT, "strings, of any shape")
    begins = Output(ElementType.i32, "start of each string in symbols, of the shape of data")
    ends = Output(ElementType.i32, "exclusive end of each string in symbols, of the shape of data")
    symbols = Output(ElementType.u8, "UTF-8 bytes, 1-D")

    def infer(self, data: Value) -> tuple[PartialShape, PartialShape, PartialShape]:
        length = Dimension(0) if data.count == 0 else Dimension()
        if data.data is not None:
            length = Dimension(len(self.evaluate(data.data)[2]))
        return data.shape, data.shape, PartialShape([length])

    def evaluate(self, data: Array) -> tuple[Array, Array, Array]:
        packed, header = pack_strings(data), header_size(data.size)
        bounds = packed[4:header].view("<i4").astype(np.int32)
        return bounds[:-1].reshape(data.shape), bounds[1:].reshape(data.shape), packed[header:]


def _kind(element: ElementType) -> int:
    return 0 if element is ElementType.boolean else 2 if element.real else 1


# Bounds of floating-point tensors, for shape arithmetic between two Convert operations.

# The floating-point types whose bounds are propagated. In f64, OpenVINO infers wrong bounds, which files declare.
_COUNTING = (ElementType.f16, ElementType.bf16, ElementType.f32)

# Types of fewer bits overflow to infinity at plausible lengths.
_NARROW = 32


def to_reals(numbers: Array, element: ElementType) -> Bounds | None:
    """Convert integers and intervals (``dtype=object``) to bounds of a floating-point type, or ``None`` if unsupported."""
    if element not in _COUNTING:
        return None
    pairs = [ends(number) for number in numbers.flat]
    lower, upper = ([pair[side] for pair in pairs] for side in (0, 1))
    return Bounds(
        _convert_bounds(lower, element, -np.inf).reshape(numbers.shape),
        _convert_bounds(upper, element, np.inf).reshape(numbers.shape),
    )


def _convert_bounds(numbers: Sequence[int | None], element: ElementType, absent: float) -> Array:
    converted = convert(np.array([n or 0 for n in numbers], np.int64), element)
    return np.where([n is None for n in numbers], absent, converted).astype(element.dtype)


def from_reals(bounds: Bounds, source: ElementType, target: ElementType) -> Array | Bounds | None:
    """Convert bounds of a floating-point tensor to another element type; for an integer type, return intervals."""
    if target.real:
        return Bounds(convert(bounds.lower, target, source), convert(bounds.upper, target, source))
    if target is ElementType.boolean:
        return None
    pairs = zip(bounds.lower.flat, bounds.upper.flat, strict=True)
    return objects((_whole(float(a), float(b), source, target) for a, b in pairs), bounds.lower.shape)


def _whole(lower: float, upper: float, source: ElementType, target: ElementType) -> Number:
    # Infinity and values out of range become the lowest integer, so nothing is known of the result.
    limit = 2.0 ** (target.bits - 1)
    if (np.isinf(upper) and source.bits < _NARROW) or limit <= upper < np.inf or -np.inf < lower < -limit:
        return Interval()
    low, high = (None if np.isinf(n) else int(n) for n in (lower, upper))
    return fit(span(low, high), target)
