"""The number of streams: concurrent inferences, among which the threads are divided."""

from __future__ import annotations

from typing import Any, ClassVar

from .kinds import Property, number

__all__ = ["Num", "num"]


class Num:
    """The number of streams, as in OpenVINO's ``streams.Num``.

    >>> from ir_runtime.properties import streams
    >>> streams.num(streams.Num(4)), streams.num(streams.Num.AUTO)
    (('NUM_STREAMS', 4), ('NUM_STREAMS', -1))
    >>> Num(2).to_integer()
    2

    Args:
        number: the count; -1 to choose by the performance hint, -2 for one per NUMA node.
    """

    AUTO: ClassVar[Num]
    NUMA: ClassVar[Num]

    def __init__(self, number: int) -> None:
        self._number = int(number)

    def to_integer(self) -> int:
        """Return the number."""
        return self._number

    def __int__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Num) and self._number == other._number

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"<Num: {self._number}>"


Num.AUTO, Num.NUMA = Num(-1), Num(-2)


def _streams(value: Any) -> int:
    """Read a number of streams; AUTO is -1, NUMA is -2."""
    if isinstance(value, Num):
        return value.to_integer()
    named = {"AUTO": -1, "-1": -1, "NUMA": -2, "-2": -2}
    name = str(value).upper().rpartition(".")[2]
    return named[name] if name in named else number(value)


num: Property = Property("NUM_STREAMS", _streams)
