"""The public names at the import path of OpenVINO's extension module, ``openvino._pyopenvino``, which programs use.

Each submodule mirrors the public module of the same name, and adds the members of its enumerations as names.

>>> from ir_runtime._pyopenvino import DescriptorTensor, preprocess
>>> from ir_runtime._pyopenvino.properties.hint import inference_precision
>>> inference_precision == "INFERENCE_PRECISION_HINT", preprocess.RGB is preprocess.ColorFormat.RGB
(True, True)
"""

from __future__ import annotations

import sys
from enum import Enum
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from .. import _offline_transformations, frontend
from .._util.absent import explaining_getattr
from ..openvino.ports import DescriptorTensor
from ..openvino.state import VariableState
from ..utils.node_factory import NodeFactory

_PACKAGE = __name__.rpartition(".")[0]
_PUBLIC = sys.modules[_PACKAGE]

# OpenVINO's extension module also has the frontend names at its top level, and names that no public module has.
__all__ = [*dir(_PUBLIC), *frontend.__all__]
__all__ += ["DescriptorTensor", "NodeFactory", "VariableState", "_offline_transformations", "util"]


class _Mirror(ModuleType):
    """A submodule: the names of a public module, and mirrors of its submodules."""

    def __init__(self, name: str, public: ModuleType) -> None:
        super().__init__(name)
        names = getattr(public, "__all__", None) or dir(public)
        members = [_members(getattr(public, member)) for member in names]
        self._homes: dict[str, Any] = {name: home for homes in members for name, home in homes.items()}
        self._homes |= dict.fromkeys(names, public)
        self.__all__ = list(self._homes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for while the mirror is imported
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        if name not in self._homes:
            explaining_getattr(self.__name__)(name)
        return _mirror(self, name, getattr(self._homes[name], name))


def _members(value: object) -> dict[str, Any]:
    """Map the member names of an enumeration to the enumeration; return an empty dict for any other object."""
    if not isinstance(value, type) or not issubclass(value, Enum):
        return {}
    return dict.fromkeys(value.__members__, value)


def _mirror(owner: ModuleType, name: str, value: Any) -> Any:
    """Cache an attribute in a mirror and return it; a module is replaced by its own mirror."""
    mirrored = import_module(f"{owner.__name__}.{name}") if isinstance(value, ModuleType) else value
    setattr(owner, name, mirrored)
    return mirrored


class _Finder(Loader):
    """Imports a mirror of ``ir_runtime.op`` as ``ir_runtime._pyopenvino.op``, and so for other modules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(f"{__name__}.") or not isinstance(_public(name), ModuleType):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Mirror(spec.name, _public(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the mirror is complete."""


def _public(name: str) -> Any:
    """Return the public object that a mirror's dotted name stands for, or None."""
    first, *rest = name.removeprefix(f"{__name__}.").split(".")
    try:
        return resolve_name(".".join([_PACKAGE, "utils" if first == "util" else first, *rest]))
    except (ImportError, AttributeError):
        return None


sys.meta_path.insert(0, _Finder())


def __getattr__(name: str) -> Any:
    home = frontend if name in frontend.__all__ and not hasattr(_PUBLIC, name) else _PUBLIC
    if name == "util" or (name in __all__ and isinstance(getattr(home, name), ModuleType)):
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        explaining_getattr(__name__)(name)
    return getattr(home, name)
