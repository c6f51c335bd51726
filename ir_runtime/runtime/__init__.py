"""Alias of `ir_runtime` and its submodules, as ``openvino.runtime`` was of ``openvino`` in earlier versions."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PACKAGE = __name__.rpartition(".")[0]


class _Finder(Loader):
    """Imports ``ir_runtime.passes`` for ``ir_runtime.runtime.passes``, and so for every other submodule."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith(f"{__name__}.") else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(_PACKAGE + module.__name__.removeprefix(__name__))


# First, as the other finders would load a second copy of a module from its file.
sys.meta_path.insert(0, _Finder())


def __getattr__(name: str) -> Any:
    return getattr(sys.modules[_PACKAGE], name)


def __dir__() -> list[str]:
    return dir(sys.modules[_PACKAGE])
