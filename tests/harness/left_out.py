"""Tests that a run leaves out are not made: those of the exhaustive run are more than all others together."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isfunction
from typing import Any

import pytest
from _pytest.mark import ParameterSet

__all__ = ["Chosen"]


class Chosen:
    """A plugin for runs of all tests that have a mark, or of all that have not.

    Args:
        mark: the name of the mark.
        wanted: whether those that have it are run.
    """

    def __init__(self, mark: str, wanted: bool) -> None:
        self._mark, self._wanted = mark, wanted

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, name: str, obj: object
    ) -> list[Any] | None:
        """Make nothing of a function of whose tests none is run; None leaves it to pytest."""
        if not name.startswith("test") or not isfunction(obj):
            return None
        marks = [*collector.iter_markers(), *getattr(obj, "pytestmark", ())]
        whole = self._has(marks)
        if self._wanted:
            return None if whole or any(self._is_split(mark) for mark in marks) else []
        return [] if whole else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Leave out parameters that have the mark, or those that have not, where they are what decides."""
        definition = metafunc.definition
        split = [mark for mark in definition.iter_markers("parametrize") if self._is_split(mark)]
        if self._has(definition.iter_markers()) or len(split) != 1 or split[0] not in definition.own_markers:
            return
        (mark,) = split
        names, sets = mark.args
        # What others are called must not depend on those that are left out.
        if all(isinstance(each, ParameterSet) and each.id is not None for each in sets):
            kept = [each for each in sets if self._has(each.marks) is self._wanted]
            place = definition.own_markers.index(mark)
            definition.own_markers[place] = pytest.mark.parametrize(names, kept, **mark.kwargs).mark

    def _has(self, marks: Iterable[Any]) -> bool:
        return any(mark.name == self._mark for mark in marks)

    def _is_split(self, mark: pytest.Mark) -> bool:
        """Whether it gives parameters some of which have the mark."""
        sets = mark.args[1] if mark.name == "parametrize" and len(mark.args) == 2 else ()
        return any(isinstance(each, ParameterSet) and self._has(each.marks) for each in sets)
