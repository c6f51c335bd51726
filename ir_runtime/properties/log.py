"""Log levels. They are accepted and have no effect: nothing is logged."""

from __future__ import annotations

from .kinds import Choice, Property, choice

__all__ = ["Level", "level"]


class Level(Choice):
    """The lowest severity to log, from none to all.

    >>> from ir_runtime.properties import log
    >>> log.level("LOG_INFO")[1] is log.Level.INFO
    True
    """

    NO = -1
    ERR = 0
    WARNING = 1
    INFO = 2
    DEBUG = 3
    TRACE = 4


_NAMES = {"LOG_NONE": "NO", "LOG_ERROR": "ERR"}
_level = choice(Level, "LOG_")


def _parse_level(value: object) -> Level:
    parsed: Level = _level(_NAMES.get(str(value), value))
    return parsed


level: Property = Property("LOG_LEVEL", _parse_level)
