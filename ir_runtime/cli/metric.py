"""Load the user's metric: ``--metric rate.py:top1``."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from .._util.child_process import search_path
from .._util.nearest import did_you_mean
from ..errors import InputError

if TYPE_CHECKING:
    from ..debug.budget import Metric
    from ..ir.tensor import Array

__all__ = ["load_metric"]

_FORM = "--metric FILE.py:FUNCTION, or --metric MODULE:FUNCTION for a module that is installed"


def load_metric(text: str) -> Metric:
    """Load a function that rates outputs; its exceptions become errors with file and line.

    A file is run only if it is named as a file. Modules are found on the search path of this program without the working
    directory, so that files there are not run by accident.

    Args:
        text: ``FILE.py:FUNCTION`` or ``MODULE:FUNCTION``.

    Raises:
        InputError: if there is no such file, module or function, or it cannot be loaded.
    """
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise InputError(f"{text!r} does not name a function", hint=_FORM)
    with _explained(text, "cannot be loaded"):
        module = _file(where) if where.endswith(".py") else _module(where)
    metric = getattr(module, name, None)
    if not callable(metric):
        functions = [each for each, found in vars(module).items() if callable(found)]
        raise InputError(f"{where} has no function {name!r}", hint=did_you_mean(name, functions) or _FORM)
    return _called(text, metric)


def _called(text: str, metric: Callable[..., float]) -> Metric:
    def rate(outputs: list[dict[str, Array]]) -> float:
        with _explained(text, "failed"):
            return metric(outputs)

    return rate


@contextmanager
def _explained(text: str, what: str) -> Iterator[None]:
    """Turn exceptions of the user's code into errors with file and line."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except (Exception, SystemExit) as problem:
        frames = [each for each in traceback.extract_tb(problem.__traceback__) if each.filename != __file__]
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        raise InputError(f"--metric {text} {what}: {type(problem).__name__}: {problem}{place}") from None


def _file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise InputError(f"{path!r} is not a file", hint=_FORM)
    spec = spec_from_file_location("ir_runtime_metric", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    before = sys.path
    sys.path = search_path()
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not name.startswith(problem.name):
            raise
        file = Path(*name.split(".")).with_suffix(".py")
        here = f"./{file.as_posix()}"
        hint = f"--metric {here}:FUNCTION runs the file in the working directory" if file.is_file() else _FORM
        raise InputError(f"unknown module {name!r}", hint=hint) from None
    finally:
        sys.path = before
