"""What is wrong with a model, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Diagnostic", "Diagnostics", "Location", "Severity"]


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a model: the file, the line, and the layer with its operation.

    >>> print(Location("net.xml", 26, "conv1", "Convolution-1"))
    net.xml:26: layer 'conv1' (Convolution-1)
    """

    file: str = ""
    line: int | None = None
    layer: str | None = None
    operation: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        layer = f"layer {self.layer!r}" if self.layer is not None else ""
        if layer and self.operation:
            layer += f" ({self.operation})"
        return ": ".join(filter(None, (place, layer)))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    >>> print(Diagnostic("IR301", "rank 3 expected", Location("a.xml", 7, "mm", "MatMul-1")))
    a.xml:7: layer 'mm' (MatMul-1): error[IR301]: rank 3 expected
    """

    code: str
    message: str
    where: Location | None = None
    severity: Severity = Severity.ERROR
    hint: str = ""

    @property
    def layer(self) -> str | None:
        """The name of the layer, if the finding is about one."""
        return self.where.layer if self.where else None

    @property
    def line(self) -> int | None:
        """The line in the .xml, if it is known."""
        return self.where.line if self.where else None

    def record(self) -> dict[str, Any]:
        """The finding as plain data, for JSON."""
        where = self.where or Location()
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "file": where.file or None,
            "line": where.line,
            "layer": where.layer,
            "operation": where.operation or None,
            "hint": self.hint or None,
        }

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where and str(self.where) else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.severity}[{self.code}]: {self.message}{hint}"


@dataclass(slots=True)
class Diagnostics:
    """Findings that passes add to, so that one run reports them all."""

    found: list[Diagnostic] = field(default_factory=list)

    def error(self, code: str, message: str, where: Location | None = None, hint: str = "") -> None:
        """Add something that makes the model invalid."""
        self.found.append(Diagnostic(code, message, where, Severity.ERROR, hint))

    def warning(self, code: str, message: str, where: Location | None = None, hint: str = "") -> None:
        """Add something that deserves a look."""
        self.found.append(Diagnostic(code, message, where, Severity.WARNING, hint))

    @property
    def errors(self) -> list[Diagnostic]:
        """The findings that make the model invalid."""
        return [d for d in self.found if d.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Diagnostic]:
        """The findings that deserve a look."""
        return [d for d in self.found if d.severity is Severity.WARNING]

    @property
    def ok(self) -> bool:
        """Whether nothing makes the model invalid."""
        return not self.errors

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)
