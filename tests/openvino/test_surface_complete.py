"""Every public name of OpenVINO either exists, or gives an error that explains it and names an alternative."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
import types
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import openvino
import pytest

from ir_runtime._util.absent import SENTENCES, ExplainsAbsent, sentence
from ir_runtime.openvino.conversion import Converter

# They need frameworks that may not be installed; one sentence holds for all that is in them.
_NOT_IMPORTED = re.compile(r"^(frontend\.|tools\.|torch|preprocess\.torchvision)")
_PRIVATE = re.compile(r"\._(?!offline_transformations)")


# Not its `__path__`, to which OpenVINO adds every folder of this name, such as that of these tests.
_FOLDER = str(Path(openvino.__file__).parent)


def modules(path: Iterable[str] = (_FOLDER,), prefix: str = "") -> Iterator[str]:
    """Return the public modules of OpenVINO, without its own name; none is imported."""
    for found in pkgutil.iter_modules(list(path)):
        name = prefix + found.name
        if not _PRIVATE.search(f".{name}"):
            yield name
            yield from modules([str(Path(each, found.name)) for each in path], f"{name}.")


def names() -> Iterator[tuple[str, str]]:
    """Yield OpenVINO's own public names, with their modules."""
    for module in ["", *modules()]:
        if _NOT_IMPORTED.search(module):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = importlib.import_module(f"openvino.{module}".rstrip("."))
        for name in dir(found):
            if not name.startswith("_") and _is_own(getattr(found, name)):
                yield module, name


def _is_own(thing: Any) -> bool:
    where = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", "")
    return str(where).startswith("openvino")


@cache
def members() -> list[tuple[type, str]]:
    """Yield the public methods and attributes of OpenVINO's classes that we have as well."""
    found = {}
    for module, name in NAMES:
        theirs = getattr(importlib.import_module(f"openvino.{module}".rstrip(".")), name)
        ours = _ours(module, name)
        if inspect.isclass(theirs) and inspect.isclass(ours) and not issubclass(ours, Converter):
            found[theirs] = ours
    return [(ours, member) for theirs, ours in found.items() for member in dir(theirs) if member[0] != "_"]


def _ours(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"ir_runtime.{module}".rstrip(".")), name)
    except (AttributeError, ImportError):
        return None


def _has(cls: type, member: str) -> bool:
    """Return whether instances of a class have an attribute."""
    if issubclass(cls, enum.Enum):
        return hasattr(next(iter(cls)), member)
    own = [each for each in cls.__mro__ if each.__module__.startswith("ir_runtime")]
    return hasattr(cls, member) or any(
        re.search(rf"self\.{member}\b.*=|^    {member}: ", inspect.getsource(each), re.M) for each in own
    )


NAMES = list(names())


@pytest.mark.parametrize("module", list(modules()))
def test_every_module_answers(module: str) -> None:
    try:
        importlib.import_module(f"ir_runtime.{module}")
    except ModuleNotFoundError as reason:
        assert sentence(module)
        assert sentence(module) in str(reason)  # noqa: PT017


def test_every_name_answers() -> None:
    silent = []
    for module, name in NAMES:
        if _ours(module, name) is None and not sentence(f"{module}.{name}".lstrip(".")):
            silent.append(f"{module}.{name}")
    assert silent == []
    assert len(NAMES) > 1000


def test_every_member_answers() -> None:
    silent = [
        f"{ours.__name__}.{member}"
        for ours, member in members()
        if not _has(ours, member)
        and not (issubclass(ours, ExplainsAbsent) and sentence(f"{ours.__name__}.{member}"))
    ]
    assert silent == []
    assert len(members()) > 1000


def test_every_sentence_is_needed() -> None:
    """Each pattern is the first to match some absent name of OpenVINO."""
    asked = [f"{module}.{name}".lstrip(".") for module, name in NAMES if _ours(module, name) is None]
    asked += [f"{ours.__name__}.{member}" for ours, member in members()]
    asked += [*modules(), "_pyopenvino"]
    found = {sentence(name) for name in asked}
    assert {said for _, said in SENTENCES} <= found
