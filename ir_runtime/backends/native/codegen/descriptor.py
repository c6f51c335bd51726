"""Descriptors: records that Python fills and kernels read, with one declaration of the layout for both.

class Job(Descriptor):
rows: i64
table: i64
epsilon: f32

job = Job.fill(rows=5, table=array, epsilon=1e-5)   # in Python: a NumPy array of one record
Job.at(address).rows                                # in a kernel: the field of the record there
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from struct import Struct, error
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np

from ...._util.arrays import DType
from ....ir.tensor import Array

__all__ = ["Descriptor", "Job", "concatenate", "f32", "i64", "keeping"]

_Function = TypeVar("_Function", bound=Callable[..., object])

_MOST = float(np.finfo(np.float32).max)

i64 = Annotated[int, np.int64]
"""A 64-bit integer or address; the class attribute is the index for `load_i64`."""
f32 = Annotated[np.float32, np.float32]
"""A single-precision number; the class attribute is the index for `load_f32`."""


class Descriptor(int):
    """The address of a record with the layout of a C struct; each field is a class attribute that holds its index.

    Subclasses add fields.

    The index counts elements of the field's type, or words of 8 bytes for a nested descriptor, ``other:
    Other``. ``Annotated[int, (np.int64, (3,))]`` is an array. In kernels, both evaluate to the address of the
    field. ``other: Annotated[Other, np.int64]`` is a descriptor outside the record, at the address in the
    field.
    """

    dtype: ClassVar[DType]
    layouts: ClassVar[Mapping[str, type[Descriptor]]] = {}
    words: ClassVar[int]
    _select: ClassVar[Callable[[dict[str, object]], tuple[object, ...]]]
    _pack: ClassVar[Callable[..., bytes]]
    _is_nested: ClassVar[bool]
    _kinds: ClassVar[Mapping[str, DType]] = {}

    def __init_subclass__(cls) -> None:
        hints = _own_fields(cls)
        origins = {name: getattr(hint, "__origin__", hint) for name, hint in hints.items()}
        own = {name: kind for name, kind in origins.items() if issubclass(kind, Descriptor)}
        cls.layouts = {**cls.layouts, **own}
        kinds = {
            name: np.dtype(hint.__metadata__[0]) if hasattr(hint, "__metadata__") else hint.dtype
            for name, hint in hints.items()
        }
        cls._kinds = {**cls._kinds, **kinds}
        fields = list(cls._kinds.items())
        cls.dtype = np.dtype(fields, align=True)
        cls.words = cls.dtype.itemsize // 8
        cls._select = itemgetter(*(name for name, _ in fields))
        cls._pack = Struct("".join(_format(kind) for _, kind in fields) + "0q").pack
        cls._is_nested = any(kind.fields or kind.shape for _, kind in fields)
        for name, kind in fields:
            assert cls.dtype.fields is not None
            setattr(cls, name, cls.dtype.fields[name][1] // min(kind.base.itemsize, 8))

    @classmethod
    def at(cls, address: int, index: int = 0) -> Self:
        """Return the record at an index of an array of records.

        Kernels read its fields; parameters annotated with the class are such records.
        """
        return cls(address + cls.dtype.itemsize * index)

    @classmethod
    def fill(cls, **values: object) -> Array:
        """Return an array of one record with the given field values; nested records are tuples.

        The value of an address field may be the array itself, which the record then keeps alive, or ``None``
        for 0.

        Raises:
            TypeError: if a field is missing or unknown.
        """
        try:
            record = cls._select(values)
        except KeyError as missing:
            raise TypeError(f"{cls.__name__} expected a field {missing}") from None
        if len(values) != len(record):
            unknown = ", ".join(values.keys() - set(cls.dtype.names or ()))
            raise TypeError(f"{cls.__name__} got unknown fields: {unknown}")
        numbers = _flat(record) if cls._is_nested else record
        try:  # several times faster than making a record of NumPy
            return np.frombuffer(bytearray(cls._pack(*numbers)), cls.dtype)
        except (OverflowError, TypeError, error):
            numbers = [value if type(value) is int else _number(value) for value in numbers]
            return Job.of(np.frombuffer(bytearray(cls._pack(*numbers)), cls.dtype), record)


def concatenate(*records: Array) -> Array:
    """Concatenate records in memory as words; the result keeps their arrays alive."""
    words = np.frombuffer(b"".join(record.tobytes() for record in records), np.int64)
    return Job.of(words, *(record.kept for record in records if isinstance(record, Job)))


class Job(np.ndarray):
    """A record that keeps alive the arrays it points to."""

    kept: tuple[object, ...]

    @classmethod
    def of(cls, record: Array, *arrays: object) -> Array:
        """View a record as a job of this class."""
        job = record.view(cls)
        job.kept = arrays
        return job

    def __array_finalize__(self, source: object) -> None:
        """Copy the references to kept arrays to views and copies."""
        self.kept = getattr(source, "kept", ())


def keeping(function: _Function, *arrays: object) -> _Function:
    """Make a function keep alive the arrays that its descriptors point to."""
    vars(function)["kept"] = arrays
    return function


def _own_fields(cls: type[Descriptor]) -> dict[str, Any]:
    """Return the annotations of the class itself, without its bases.

    `typing.get_type_hints` also evaluates those of the bases, and takes ten times as long.
    """
    names = vars(sys.modules[cls.__module__])
    return {
        name: names[written] if written in names else eval(written, names)  # noqa: S307 - our own modules
        for name, written in cls.__annotations__.items()
    }


def _format(kind: DType) -> str:
    """Return the format of a field for `struct`, with C's alignment."""
    if kind.fields:
        return "".join(_format(kind.fields[name][0]) for name in kind.names or ())
    return kind.base.char.replace("l", "q") * math.prod(kind.shape)


def _number(value: object) -> object:
    """Return the number stored for a field value."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    if isinstance(value, float) and not -_MOST <= value <= _MOST:
        return float(np.float32(value))  # infinite
    return 0 if value is None else value


def _flat(record: tuple[object, ...]) -> list[object]:
    values: list[object] = []
    for value in record:
        if type(value) is tuple:
            values += value
        else:
            values.append(value)
    return values
