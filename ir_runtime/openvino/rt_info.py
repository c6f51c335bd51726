"""Runtime information (``rt_info``) of models, layers and ports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, overload

from ..codes import Code
from ..errors import InputError
from .any_value import Entries, OVAny, plain, wrap_values

__all__ = ["HasRTInfo", "RTMap"]


class RTMap(MutableMapping[str, Any]):
    """A mapping view of the runtime information of a model, layer or port. As OpenVINO's ``RTMap``.

    A change replaces the entries instead of modifying them in place, so that copies of a model can share them.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> node = opset1.relu(opset1.parameter([2], np.float32))
    >>> node.rt_info["note"] = "looked at"
    >>> node.rt_info["note"].value
    'looked at'

    Args:
        read: returns the entries. Without it, the map starts empty.
        write: replaces the entries. Without it, they belong to this map alone.
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, object]] | None = None,
        write: Callable[[Entries], None] | None = None,
    ) -> None:
        self._own: Entries = {}
        self._read, self._write = read or self._get_own, write or self._set_own

    def _get_own(self) -> Entries:
        return self._own

    def _set_own(self, entries: Entries) -> None:
        self._own = entries

    def __getitem__(self, name: str) -> OVAny | Entries:
        entry = self._read()[name]
        return wrap_values(plain(entry)) if isinstance(entry, Mapping) else OVAny(entry)

    def __setitem__(self, name: str, value: object) -> None:
        self._write({**self._read(), name: plain(value)})

    def __delitem__(self, name: str) -> None:
        entries = dict(self._read())
        del entries[name]
        self._write(entries)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._read()))

    def __len__(self) -> int:
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and plain(self._read()) == plain(other)

    def __repr__(self) -> str:
        return "<RTMap>"  # as in OpenVINO, whatever the entries


class HasRTInfo:
    """Mixin for objects with runtime information.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> node = opset1.relu(opset1.parameter([2], np.float32))
    >>> node.set_rt_info("f16", ["plan", "precision"])
    >>> node.rt_info["plan"]["precision"].value, node.has_rt_info(["plan", "device"])
    ('f16', False)
    >>> node.get_rt_info(["plan", "precision"]).value
    'f16'
    """

    @abstractmethod
    def _entries(self) -> Mapping[str, object]:
        """Return the runtime information."""

    @abstractmethod
    def _replace_rt_info(self, entries: Entries) -> None:
        """Replace the runtime information."""

    @property
    def rt_info(self) -> RTMap:
        """The runtime information."""
        return RTMap(self._entries, self._replace_rt_info)

    @overload
    def get_rt_info(self) -> RTMap: ...
    @overload
    def get_rt_info(self, path: str | Sequence[str]) -> OVAny: ...
    def get_rt_info(self, path: str | Sequence[str] = ()) -> RTMap | OVAny:
        """Return the runtime information, or the entry at a path.

        Raises:
            InputError: if there is no such entry.
        """
        return OVAny(_find_entry(self._entries(), _names(path))) if path else self.rt_info

    def has_rt_info(self, path: str | Sequence[str]) -> bool:
        """Return whether there is an entry at a path."""
        try:
            _find_entry(self._entries(), _names(path))
        except InputError:
            return False
        return True

    def set_rt_info(self, value: object, path: str | Sequence[str]) -> None:
        """Set the entry at a path.

        Args:
            value: the value, which is saved as text.
            path: the name of the entry, or the list of names that lead to it.

        Raises:
            InputError: if the path leads through an entry without children.
        """
        *way, last = _names(path)
        changed: Entries = plain(self._entries())
        entries = changed
        for name in way:
            further = entries.setdefault(name, {})
            if not isinstance(further, dict):
                raise InputError(f"entry {name!r} of rt_info has no further entries", code=Code.BAD_REQUEST)
            entries = further
        entries[last] = {} if value is None else plain(value)
        self._replace_rt_info(changed)


def _names(path: str | Sequence[str]) -> list[str]:
    return [path] if isinstance(path, str) else list(path)


def _find_entry(entries: object, path: Sequence[str]) -> object:
    for name in path:
        if not isinstance(entries, Mapping) or name not in entries:
            # openvino-model-api compares the message with OpenVINO's.
            why = "Cannot get runtime attribute. Path to runtime attribute is incorrect."
            raise InputError(f"rt_info has no {name!r} ({why})", code=Code.NO_SUCH_NAME)
        entries = entries[name]
    return entries
