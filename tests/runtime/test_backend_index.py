"""The lists of modules with kernels are what importing all of them finds.

``python tests/runtime/test_backend_index.py`` writes them anew.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from ir_runtime import backends

TEXT = '''"""The modules that offer kernels for each type of operation.

Written by ``python tests/runtime/test_backend_index.py``.
"""

__all__ = ["MODULES"]

MODULES = {{
{lines}
}}
'''
FAST = [name for name in backends.available() if name != "reference"]


def package(name: str) -> Any:
    return import_module(f"{backends.__name__}.{name}")


def index(name: str) -> Path:
    return Path(package(name).__file__).with_name("_index.py")


def lines(name: str) -> Iterator[str]:
    """One for each type of operation that some module registers an offer for."""
    home = package(name)
    for module in iter_modules(home.__path__, f"{home.__name__}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    found: dict[str, set[str]] = {}
    for kind in (home.backend.offers, home.backend.finders):
        for op, offers in kind.items():
            found.setdefault(op.name, set()).update(offer.__module__ for offer in offers)
    for type, modules in sorted(found.items()):
        homes = " ".join(sorted(module.rpartition(".")[2] for module in modules))
        yield f'    "{type}": "{homes}",'


@pytest.mark.parametrize("name", FAST)
def test_it_is_up_to_date(name: str) -> None:
    assert index(name).read_text(encoding="utf-8") == TEXT.format(lines="\n".join(lines(name)))


@pytest.mark.parametrize("name", FAST)
def test_what_multiplies_compressed_weights_is_there_from_the_beginning(name: str) -> None:
    """They are asked for before any operation is."""
    count = f"from ir_runtime.backends.{name} import backend; print(sum(map(len, backend.packed.values())))"
    found = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    list(lines(name))
    assert int(found.stdout) == sum(map(len, package(name).backend.packed.values()))


@pytest.mark.parametrize("name", FAST)
def test_only_what_is_needed_is_imported(name: str) -> None:
    code = f"""
import sys
from ir_runtime.backends.{name} import backend
from ir_runtime.ops import registry
backend._import(registry.resolve("MatMul"))
assert registry.resolve("MatMul") in backend.offers
assert "{package(name).__name__}.convolution" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    for name in FAST:
        index(name).write_text(TEXT.format(lines="\n".join(lines(name))), encoding="utf-8")
