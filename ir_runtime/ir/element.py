"""The element types of tensors, as IR files and OpenVINO name them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from .._util.arrays import Array, DType

__all__ = ["ElementType", "pack", "packed_size", "unpack"]

# `stored_dtype` of types whose bits are not exposed as uint8; strings are exposed as UTF-8 bytes.
_STORED = {"bf16": np.float16, "i4": np.int8, "string": np.bytes_}


class _NoTypeError(ValueError, TypeError):
    """Raised for an unknown element type.

    It is a ValueError, as Python's enumerations raise, and a TypeError, as OpenVINO raises.
    """


class ElementType(Enum):
    """An element type of the IR: its name, its NumPy dtype, and its width in bits.

    Types that NumPy lacks come from ml_dtypes; ``u1``, ``u3``, ``u6`` and ``nf4`` are stored as
    codes in ``uint8``. ``dynamic`` stands for a type not known yet.

    >>> ElementType.parse("FP32"), ElementType.from_dtype("float16").bits
    (<Type: 'float32'>, 16)
    >>> u4 = ElementType.u4
    >>> u4.bitwidth, u4.size, u4.c_name, u4.to_dtype(), u4.stored_dtype, u4.is_encoded, u4.is_packed
    (4, 1, 'uint4_t', dtype(uint4), dtype('uint8'), False, True)
    >>> u4.is_real(), u4.is_integral(), u4.is_signed(), u4.is_quantized(), u4.is_integral_number()
    (False, True, False, False, True)
    >>> u4.is_static(), u4.is_dynamic(), u4.merge(ElementType.dynamic), u4.compatible(ElementType.u8)
    (True, False, <Type: 'uint4_t'>, False)
    >>> u4.to_string(), u4.type_name, ElementType.of_port("FP16"), ElementType.of_attribute("i64")
    ('u4', 'u4', <Type: 'float16'>, <Type: 'int64_t'>)
    >>> u4.real, u4.integral, u4.signed, u4.quantized, u4.integral_number
    (False, True, False, False, True)
    """

    boolean = "boolean", np.bool_, 8
    bf16 = "bf16", ml_dtypes.bfloat16, 16
    f16 = "f16", np.float16, 16
    f32 = "f32", np.float32, 32
    f64 = "f64", np.float64, 64
    f8e4m3 = "f8e4m3", ml_dtypes.float8_e4m3fn, 8
    f8e5m2 = "f8e5m2", ml_dtypes.float8_e5m2, 8
    f8e8m0 = "f8e8m0", ml_dtypes.float8_e8m0fnu, 8
    f4e2m1 = "f4e2m1", ml_dtypes.float4_e2m1fn, 4
    nf4 = "nf4", np.uint8, 4
    i4 = "i4", ml_dtypes.int4, 4
    i8 = "i8", np.int8, 8
    i16 = "i16", np.int16, 16
    i32 = "i32", np.int32, 32
    i64 = "i64", np.int64, 64
    u1 = "u1", np.uint8, 1
    u2 = "u2", ml_dtypes.uint2, 2
    u3 = "u3", np.uint8, 3
    u4 = "u4", ml_dtypes.uint4, 4
    u6 = "u6", np.uint8, 6
    u8 = "u8", np.uint8, 8
    u16 = "u16", np.uint16, 16
    u32 = "u32", np.uint32, 32
    u64 = "u64", np.uint64, 64
    string = "string", np.object_, 0
    dynamic = "dynamic", np.void, 0

    label: str
    dtype: DType
    bits: int
    is_packed: bool
    """Whether several elements share a byte."""
    stored_dtype: DType
    """The dtype of ``Tensor.data``. Types of ml_dtypes appear as raw bits, as in OpenVINO; those of bf16 as float16."""

    def __init__(self, label: str, dtype: type, bits: int) -> None:
        self.label, self.dtype, self.bits = label, np.dtype(dtype), bits
        self.is_packed = 0 < bits < 8
        has_bits = self.is_packed or label.startswith("f8")
        stored = _STORED.get(label, np.uint8 if has_bits else None)
        self.stored_dtype = self.dtype if stored is None else np.dtype(stored)

    @classmethod
    def _missing_(cls, value: object) -> ElementType | None:
        """Support ``Type(numpy.float32)``, as OpenVINO does."""
        try:
            return cls.from_dtype(value)
        except TypeError:
            raise _NoTypeError(f"{value!r} is not an element type") from None

    @classmethod
    def parse(cls, text: str) -> ElementType:
        """Return the element type with a name as spelled in IR files: ``f32``, ``FP32``, ``BOOL``, ``undefined``.

        Raises:
            ValueError: if no element type has that name.
        """
        try:
            return _BY_SPELLING[text.strip()]
        except KeyError:
            raise ValueError(
                f"{text!r} is not an element type; known are {', '.join(element.label for element in cls)}"
            ) from None

    @classmethod
    def of_attribute(cls, text: str) -> ElementType:
        """Parse an attribute value as OpenVINO does: names are case-insensitive, and whitespace is an error.

        Raises:
            ValueError: if no element type has that name.
        """
        return _look_up(_BY_NAME, text.lower())

    @classmethod
    def of_port(cls, text: str) -> ElementType:
        """Parse the ``precision`` of a port as OpenVINO does: ``FP32``, ``I64``, ``BOOL``, or ``f32``.

        Raises:
            ValueError: if no element type has that name.
        """
        return _look_up(_BY_PRECISION, text)

    @classmethod
    def from_dtype(cls, dtype: Any) -> ElementType:
        """Return the element type of a NumPy dtype.

        Raises:
            ValueError: if OpenVINO has no such type, as for complex dtypes.
        """
        numpy_dtype = np.dtype(dtype)
        element = cls.string if numpy_dtype.kind in "SUT" else _BY_DTYPE.get(numpy_dtype.newbyteorder("="))
        if element is None:
            raise ValueError(f"NumPy dtype {numpy_dtype} has no element type in OpenVINO")
        return element

    @property
    def is_encoded(self) -> bool:
        """Whether arrays of this type hold codes in ``uint8`` instead of values."""
        return self in (ElementType.u1, ElementType.u3, ElementType.u6, ElementType.nf4)

    @property
    def real(self) -> bool:
        """Whether this is a floating-point type."""
        return self.label[0] in "fbn" and self is not ElementType.boolean

    @property
    def integral(self) -> bool:
        """Whether this is an integer type; as in OpenVINO, ``boolean`` counts as one."""
        return not self.real and self not in (ElementType.string, ElementType.dynamic)

    def is_real(self) -> bool:
        """Return whether this is a floating-point type."""
        return self.real

    def is_integral(self) -> bool:
        """Return whether this is an integer type; as in OpenVINO, ``boolean`` counts as one."""
        return self.integral

    @property
    def bitwidth(self) -> int:
        """Bits per element in a file."""
        return self.bits

    @property
    def size(self) -> int:
        """Bytes per element, rounded up."""
        return (self.bits + 7) // 8

    def nbytes(self, count: int) -> int:
        """Return the number of bytes that ``count`` packed elements take in a file.

        >>> ElementType.u4.nbytes(3), ElementType.u3.nbytes(8), ElementType.u6.nbytes(4)
        (2, 3, 3)
        """
        return packed_size(self.bits, count)

    @property
    def c_name(self) -> str:
        """The C type name that OpenVINO's ``repr`` shows, such as ``int64_t``."""
        if self.label[0] in "iu" and self.bits:
            return f"{'u' if self.label[0] == 'u' else ''}int{self.bits}_t"
        return _C_NAMES.get(self.label, self.label)

    @property
    def type_name(self) -> str:
        """The name as written in IR files, such as ``f32``."""
        return self.label

    @property
    def signed(self) -> bool:
        """Whether the type is signed; as in OpenVINO, ``boolean`` is and ``nf4`` is not."""
        return self.label[0] in "fi" or self in (ElementType.bf16, ElementType.boolean)

    @property
    def integral_number(self) -> bool:
        """Whether this is an integer type other than ``boolean``, or ``nf4``."""
        return (self.integral or self is ElementType.nf4) and self is not ElementType.boolean

    @property
    def quantized(self) -> bool:
        """Whether OpenVINO counts this among the types of quantized tensors."""
        return self.label in _QUANTIZED

    def is_signed(self) -> bool:
        """Return whether the type is signed; see ``signed``."""
        return self.signed

    def is_integral_number(self) -> bool:
        """Return whether this is an integer type other than ``boolean``; see ``integral_number``."""
        return self.integral_number

    def is_quantized(self) -> bool:
        """Return whether OpenVINO counts this among the types of quantized tensors."""
        return self.quantized

    def is_static(self) -> bool:
        """Return whether the type is known."""
        return self is not ElementType.dynamic

    def is_dynamic(self) -> bool:
        """Return whether the type is not known yet."""
        return self is ElementType.dynamic

    def merge(self, other: ElementType) -> ElementType | None:
        """Return the more specific of the two types, or ``None`` if they are incompatible."""
        if self is other or other is ElementType.dynamic:
            return self
        return other if self is ElementType.dynamic else None

    def compatible(self, other: ElementType) -> bool:
        """Return whether the types are equal, or one of them is dynamic."""
        return self.merge(other) is not None

    def to_dtype(self) -> DType:
        """Return the dtype of unpacked arrays of this type, such as inputs and results of a model."""
        return self.dtype

    def to_string(self) -> str:
        """Return the name as written in IR files, such as ``f32``."""
        return self.label

    def get_type_name(self) -> str:
        """Return the name as written in IR files, such as ``f32``."""
        return self.label

    def get_size(self) -> int:
        """Return the bytes per element, rounded up."""
        return self.size

    def get_bitwidth(self) -> int:
        """Return the bits per element in a file."""
        return self.bits

    def __str__(self) -> str:
        return repr(self)  # as OpenVINO; messages say `label`

    def __repr__(self) -> str:
        return f"<Type: {_SHOWN.get(self.label, self.c_name)!r}>"


def _look_up(table: Mapping[str, ElementType], text: str) -> ElementType:
    if (element := table.get(text)) is None:
        raise ValueError(f"{text!r} is not an element type")
    return element


def _spellings(element: ElementType) -> tuple[str, ...]:
    legacy = element.label.upper()
    if element in (ElementType.f16, ElementType.f32, ElementType.f64):
        legacy = legacy.replace("F", "FP")
    return (element.label, legacy)


_C_NAMES = {
    "boolean": "char",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float",
    "f64": "double",
    "nf4": "nfloat4",
}
_QUANTIZED = frozenset({"i4", "i8", "i32", "u8", "nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0"})
_SHOWN = {"f32": "float32", "f64": "double64"}
_BY_SPELLING = {spelling: e for e in ElementType for spelling in _spellings(e)} | {
    "BOOL": ElementType.boolean,
    "BIN": ElementType.u1,
    "bool": ElementType.boolean,
    "undefined": ElementType.dynamic,
    "UNSPECIFIED": ElementType.dynamic,
}
_BY_NAME = {e.label: e for e in ElementType} | {"undefined": ElementType.dynamic}
_NO_PRECISION = ("BOOLEAN", "DYNAMIC", "bool")
_BY_PRECISION = {text: e for text, e in _BY_SPELLING.items() if text not in _NO_PRECISION}
_BY_DTYPE = {e.dtype: e for e in ElementType if not e.is_encoded and e is not ElementType.dynamic}


Bytes: TypeAlias = Array
Codes: TypeAlias = Array

# 3- and 6-bit codes are split into a low and a high part, with these bits; a group of codes fills three bytes.
_SPLIT = {3: (2, 1), 6: (4, 2)}


def packed_size(bits: int, count: int) -> int:
    """Return the number of bytes that ``count`` packed elements of ``bits`` bits take.

    >>> packed_size(4, 3), packed_size(1, 9), packed_size(3, 3), packed_size(6, 5)
    (2, 2, 3, 6)
    """
    if bits in _SPLIT:
        return -(-count * bits // 24) * 3
    return -(-count * bits // 8)


def unpack(raw: Bytes, bits: int, count: int) -> Codes:
    """Unpack the first ``count`` codes of 1, 2, 3, 4 or 6 bits into one byte each.

    >>> unpack(np.array([0x21, 0x43], np.uint8), 4, 3)
    array([1, 2, 3], dtype=uint8)
    """
    if bits == 1:
        return np.asarray(np.unpackbits(raw, count=count))
    if bits not in _SPLIT:
        return _fields(raw, bits, high_first=False)[:count]
    low, high = _SPLIT[bits]
    groups = raw.reshape(-1, 3)
    lows = _fields(groups[:, :2].ravel(), low, high_first=True)
    highs = _fields(groups[:, 2], high, high_first=True)
    return np.asarray(lows | highs << low)[:count]


def pack(codes: Codes, bits: int) -> Bytes:
    """Pack codes, one per byte, into ``bits`` bits each; the last group is padded with zeros.

    >>> pack(np.array([1, 2, 3], np.uint8), 4)
    array([33,  3], dtype=uint8)
    """
    size = packed_size(bits, codes.size)
    whole = np.zeros(size * 8 // bits, np.uint8)
    whole[: codes.size] = codes.ravel()
    if bits == 1:
        return np.packbits(whole)
    if bits not in _SPLIT:
        return _bytes(whole, bits, high_first=False)
    low, high = _SPLIT[bits]
    lows = _bytes(whole & (1 << low) - 1, low, high_first=True).reshape(-1, 2)
    highs = _bytes(whole >> low, high, high_first=True).reshape(-1, 1)
    return np.hstack([lows, highs]).ravel()


def _shifts(bits: int, high_first: bool) -> Codes:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return shifts[::-1] if high_first else shifts


def _fields(raw: Bytes, bits: int, high_first: bool) -> Codes:
    mask = np.uint8((1 << bits) - 1)
    fields = np.empty((raw.size, 8 // bits), np.uint8)
    for column, shift in enumerate(
        _shifts(bits, high_first)
    ):  # so that NumPy's inner loop runs over all bytes
        np.bitwise_and(raw >> shift, mask, out=fields[:, column])
    return fields.ravel()


def _bytes(codes: Codes, bits: int, high_first: bool) -> Bytes:
    fields = codes.reshape(-1, 8 // bits) << _shifts(bits, high_first)
    return np.asarray(np.bitwise_or.reduce(fields, axis=1)).astype(np.uint8)
