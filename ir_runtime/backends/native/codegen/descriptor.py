"""Descriptors: records that Python fills and kernels read. One declaration gives the layout to both.

class Job(Descriptor):
rows: i64
epsilon: f32

job = Job.fill(rows=5, epsilon=1e-5)   # in Python: a NumPy array of one record
Job.at(address).rows                   # in a kernel: what is there
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from struct import Struct
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np

from ...._util.arrays import DType
from ....ir.tensor import Array

__all__ = ["Descriptor", "Job", "concatenate", "f32", "i64", "keeping"]

_Function = TypeVar("_Function", bound=Callable[..., object])

i64 = Annotated[int, np.int64]
"""A 64-bit integer or address; the attribute of the class is the index for `load_i64`."""
f32 = Annotated[np.float32, np.float32]
"""A single-precision number; the attribute of the class is the index for `load_f32`."""


class Descriptor(int):
    """The address of a record with the layout of a C struct; a class attribute for each field holds its index.

    Subclasses add fields.

    The index counts elements of the type of the field. A field ``Annotated[int, Other]``, of another descriptor, is
    counted in 8-byte words; ``Annotated[int, (np.int64, (3,))]`` is an array.
    """

    dtype: ClassVar[DType]
    words: ClassVar[int]
    _select: ClassVar[Callable[[dict[str, object]], tuple[object, ...]]]
    _pack: ClassVar[Callable[..., bytes]]
    _nested: ClassVar[bool]
    _kinds: ClassVar[Mapping[str, DType]] = {}

    def __init_subclass__(cls) -> None:
        cls._kinds = {**cls._kinds, **_own_fields(cls)}
        fields = list(cls._kinds.items())
        cls.dtype = np.dtype(fields, align=True)
        cls.words = cls.dtype.itemsize // 8
        cls._select = itemgetter(*(name for name, _ in fields))
        cls._pack = Struct("".join(_format(kind) for _, kind in fields) + "0q").pack
        cls._nested = any(kind.fields or kind.shape for _, kind in fields)
        for name, kind in fields:
            assert cls.dtype.fields is not None
            setattr(cls, name, cls.dtype.fields[name][1] // min(kind.base.itemsize, 8))

    @classmethod
    def at(cls, address: int) -> Self:
        """Return the record at an address; kernels read its fields. Parameters of devices with this annotation are such records."""
        return cls(address)

    @classmethod
    def fill(cls, **values: object) -> Array:
        """Return an array of one record with these values of all its fields, tuples for nested ones.

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
        try:  # several times faster than making a record of NumPy
            packed = cls._pack(*(_flat(record) if cls._nested else record))
        except OverflowError:  # a number that is infinite as f32
            return np.array([record], cls.dtype)
        return np.frombuffer(bytearray(packed), cls.dtype)


def concatenate(*records: Array) -> Array:
    """Return records that follow one another in memory, as words."""
    return np.frombuffer(b"".join(record.tobytes() for record in records), np.int64)


class Job(np.ndarray):
    """A record that holds the arrays that it points to."""

    kept: tuple[object, ...]

    @classmethod
    def of(cls, record: Array, *arrays: object) -> Array:
        """Return a record as such a job."""
        found = record.view(cls)
        found.kept = arrays
        return found


def keeping(function: _Function, *arrays: object) -> _Function:
    """Let a function hold the arrays that its descriptors point to."""
    vars(function)["kept"] = arrays
    return function


def _own_fields(cls: type[Descriptor]) -> dict[str, DType]:
    """Return the fields that a class adds. `typing.get_type_hints` evaluates those of its bases, too, and takes ten times as long."""
    names = vars(sys.modules[cls.__module__])
    fields = {}
    for name, written in cls.__annotations__.items():
        hint: Any = names[written] if written in names else eval(written, names)  # noqa: S307 - our own modules
        fields[name] = _dtype(hint.__metadata__[0])
    return fields


def _dtype(kind: np.typing.DTypeLike | type[Descriptor]) -> DType:
    return kind.dtype if isinstance(kind, type) and issubclass(kind, Descriptor) else np.dtype(kind)


def _format(kind: DType) -> str:
    """Return the format of a field for `struct`, which aligns as C does."""
    if kind.fields:
        return "".join(_format(kind.fields[name][0]) for name in kind.names or ())
    return kind.base.char.replace("l", "q") * math.prod(kind.shape)


def _flat(record: tuple[object, ...]) -> list[object]:
    values: list[object] = []
    for value in record:
        if type(value) is tuple:
            values += value
        else:
            values.append(value)
    return values
