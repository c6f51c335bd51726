"""Descriptors: C structs that Python fills and kernels read, declared once for both.

::

    class Job(Descriptor):
        rows: i64
        table: i64
        epsilon: f32

    job = Job.fill(rows=5, table=array, epsilon=1e-5)  # in Python: a NumPy array of one record
    Job.at(address).rows  # in a kernel: a field of the record at an address
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

__all__ = ["Descriptor", "Job", "concatenate", "f32", "i64", "keep_alive"]

_Function = TypeVar("_Function", bound=Callable[..., object])

_MOST = float(np.finfo(np.float32).max)

i64 = Annotated[int, np.int64]
"""A field with a 64-bit integer or an address; the class attribute is its index for `load_i64`."""
f32 = Annotated[np.float32, np.float32]
"""A field with an f32; the class attribute is its index for `load_f32`."""


class Descriptor(int):
    """The address of a record with the layout of a C struct, which subclasses declare by annotations.

    Instances are addresses, whose attributes kernels read as fields. The class attribute of a field is its index in the
    record, in units of the field's type, or of 8 bytes for a nested record. Besides `i64` and `f32`, fields can be

    - ``other: Other``: a nested record. In kernels it evaluates to the address of the field.
    - ``axes: Annotated[int, (np.int64, (3,))]``: an array, which also evaluates to its address.
    - ``other: Annotated[Other, np.int64]``: the address of a record, which evaluates to that record.
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
        """Return record ``index`` of the array of records at ``address``, whose fields kernels can read.

        Parameters of kernels that are annotated with the class are such records, too.
        """
        return cls(address + cls.dtype.itemsize * index)

    @classmethod
    def fill(cls, **values: object) -> Array:
        """Return a NumPy array of one record.

        Args:
            values: the values of all fields. That of a nested record is a tuple; that of an address may be a NumPy array,
                which the record then keeps alive, or ``None`` for 0.

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
        try:  # several times faster than filling a NumPy record
            return np.frombuffer(bytearray(cls._pack(*numbers)), cls.dtype)
        except (OverflowError, TypeError, error):
            numbers = [value if type(value) is int else _number(value) for value in numbers]
            return Job.of(np.frombuffer(bytearray(cls._pack(*numbers)), cls.dtype), record)


def concatenate(*records: Array) -> Array:
    """Concatenate records to one array of i64 words, which keeps alive the arrays that they point to."""
    words = np.frombuffer(b"".join(record.tobytes() for record in records), np.int64)
    return Job.of(words, *(record.kept for record in records if isinstance(record, Job)))


class Job(np.ndarray):
    """A record that keeps alive the arrays whose addresses it holds."""

    kept: tuple[object, ...]
    """The arrays to keep alive."""

    @classmethod
    def of(cls, record: Array, *arrays: object) -> Array:
        """Return a view of a record that keeps ``arrays`` alive."""
        job = record.view(cls)
        job.kept = arrays
        return job

    def __array_finalize__(self, source: object) -> None:
        """Let views and copies of a job keep the same arrays alive."""
        self.kept = getattr(source, "kept", ())


def keep_alive(function: _Function, *arrays: object) -> _Function:
    """Make a function keep ``arrays`` alive, whose addresses its descriptors hold; return the function."""
    vars(function)["kept"] = arrays
    return function


def _own_fields(cls: type[Descriptor]) -> dict[str, Any]:
    """Return the evaluated annotations of a class, without those of its bases.

    `typing.get_type_hints` evaluates those of the bases, too, and takes ten times as long.
    """
    names = vars(sys.modules[cls.__module__])
    return {
        name: names[text] if text in names else eval(text, names)  # noqa: S307 - our own modules
        for name, text in cls.__annotations__.items()
    }


def _format(kind: DType) -> str:
    """Return the format string of a field for `struct.Struct`."""
    if kind.fields:
        return "".join(_format(kind.fields[name][0]) for name in kind.names or ())
    return kind.base.char.replace("l", "q") * math.prod(kind.shape)


def _number(value: object) -> object:
    """Return the number to store for a field value: the address of an array, 0 for ``None``."""
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
