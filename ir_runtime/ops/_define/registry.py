"""The registry of operations, by type and by the opset that introduced each version.

Modules that define operations are imported on demand, as a model needs few of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import ClassVar, Generic, Protocol, TypeVar

from ..._util.nearest import nearest

__all__ = ["Registry"]


class Version(Protocol):
    """A version of an operation, as required by the registry."""

    name: ClassVar[str]
    since: ClassVar[int]
    until: ClassVar[int | None]

    @classmethod
    def versioned_name(cls) -> str:
        """Return the name used by the specification."""
        ...


_VersionT = TypeVar("_VersionT", bound=type[Version])


class Registry(Generic[_VersionT]):
    """Operations by type, then by the opset that introduced the version.

    Args:
        package: the package of the modules that define operations.
        modules: the modules of each type in lower case, relative to the package, separated by spaces.
    """

    def __init__(self, package: str = "", modules: Mapping[str, str] | None = None) -> None:
        self._versions: dict[str, dict[int, _VersionT]] = {}
        self._names: dict[str, str] = {}  # OpenVINO reads type names case-insensitively
        self._package = package
        self._modules = modules or {}
        self._imported: set[str] = set()
        self._complete = False
        self._resolved: dict[tuple[str, int | None], _VersionT] = {}

    def _import(self, type: str) -> None:
        """Import every version of an operation."""
        key = type.lower()
        if key in self._imported or key not in self._modules:
            return
        for module in self._modules[key].split():
            import_module(f"{self._package}.{module}")
        self._imported.add(key)  # only now: other threads must wait for the import

    def _import_all(self) -> None:
        if not self._complete:
            for type in self._modules:
                self._import(type)
            self._complete = True

    def add(self, cls: _VersionT, aliases: tuple[str, ...] = ()) -> None:
        """Register one version of an operation.

        Raises:
            ValueError: if the version is registered already.
        """
        if not self.is_own(cls):
            self._import(cls.name)
        versions = self._versions.setdefault(cls.name, {})
        if cls.since in versions:
            raise ValueError(f"{cls.versioned_name()} is defined twice")
        versions[cls.since] = cls
        self._resolved.clear()
        self._names |= {spelling.lower(): cls.name for spelling in (cls.name, *aliases)}

    def remove(self, cls: _VersionT) -> None:
        """Remove a version of an operation, such as one declared by a test."""
        versions = self._versions[cls.name]
        del versions[cls.since]
        self._resolved.clear()
        if not versions:
            del self._versions[cls.name]
            self._names = {k: v for k, v in self._names.items() if v != cls.name}

    def name(self, type: str) -> str | None:
        """Return the canonical name of an operation for any spelling of its type."""
        self._import(type)
        return self._names.get(type.lower())

    def versions(self, type: str) -> list[_VersionT]:
        """Return every version of an operation, oldest first."""
        versions_by_opset = self._versions.get(self.name(type) or "", {})
        return [cls for _, cls in sorted(versions_by_opset.items())]

    def resolve(self, type: str, opset: int | None = None) -> _VersionT | None:
        """Return the newest version up to ``opset``, as OpenVINO resolves files; ``None`` if it was removed."""
        if (resolved := self._resolved.get((type, opset))) is not None:
            return resolved
        candidates = [cls for cls in self.versions(type) if opset is None or cls.since <= opset]
        newest = candidates[-1] if candidates else None
        if newest is None or (opset is not None and opset > (newest.until or opset)):
            return None  # which is not kept, as files have any number of unknown types
        self._resolved[type, opset] = newest
        return newest

    def require(self, type: str, opset: int = 1) -> _VersionT:
        """Return an operation's version in an opset.

        Raises:
            LookupError: if the opset does not have the operation.
        """
        operation = self.resolve(type, opset)
        if operation is None:
            raise LookupError(f"opset{opset} has no operation {type!r}")
        return operation

    def is_own(self, cls: _VersionT) -> bool:
        """Return whether an operation belongs to OpenVINO's opsets rather than to another package."""
        return cls.__module__.startswith(f"{self._package}.")

    def near(self, type: str) -> str | None:
        """Return the operation name most similar to a misspelled ``type``."""
        self._import_all()
        similar = nearest(type.lower(), self._names)
        return None if similar is None else self._names[similar]

    def __iter__(self) -> Iterator[_VersionT]:
        self._import_all()
        for _, versions in sorted(self._versions.items()):
            yield from (cls for _, cls in sorted(versions.items()))

    def __len__(self) -> int:
        self._import_all()
        return sum(map(len, self._versions.values()))
