"""Replace openvino by ir_runtime: every import of ``openvino…`` gives our module."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["install"]


class _InPlace(MetaPathFinder, Loader):
    """A finder that resolves ``openvino.x`` to ``ir_runtime.x``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == "openvino" or name.startswith("openvino.") else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(module.__name__.replace("openvino", "ir_runtime", 1))


def install() -> None:
    """Install the finder."""
    assert not any(name.partition(".")[0] == "openvino" for name in sys.modules), (
        "openvino is imported already"
    )
    sys.meta_path.insert(0, _InPlace())
