"""A property: its name, which is also a function that pairs the name with a value."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from .kinds import Kind

__all__ = ["Property"]


class Property(str):
    """The name of a property. Called with a value, it is the pair of both, as OpenVINO's are.

    >>> from ir_runtime import properties
    >>> properties.inference_num_threads, properties.inference_num_threads(2)
    ('INFERENCE_NUM_THREADS', ('INFERENCE_NUM_THREADS', 2))
    >>> properties.hint.performance_mode(properties.hint.PerformanceMode.LATENCY)[0]
    'PERFORMANCE_HINT'

    Args:
        name: the name, a key of ``config``.
        kind: reads its values; none where it can only be read.
    """

    known: ClassVar[dict[str, Property]] = {}
    """Every property, by name."""

    kind: Kind | None

    def __new__(cls, name: str, kind: Kind | None = None) -> Self:
        """Declare a property."""
        made = super().__new__(cls, name)
        made.kind = kind
        cls.known[name] = made
        return made

    def __call__(self, *value: Any) -> Any:
        """Return the name alone, or the name and a value.

        Raises:
            TypeError: if the property cannot be set, or has no such value.
        """
        if not value:
            return str(self)
        if self.kind is None:
            raise TypeError(f"{self} cannot be set: call it without arguments for its name")
        try:
            return str(self), self.kind(value if len(value) > 1 else value[0])
        except ValueError as reason:
            raise TypeError(f"{self} {reason}, got {value[0]!r}") from None
