"""The lists of modules with kernels are what importing all of them finds.

``python tests/runtime/test_backend_index.py`` writes them anew.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from ir_runtime import backends

TEXT = '''"""The modules that offer kernels for each type of operation, and those that find matches ending with it.

Written by ``python tests/runtime/test_backend_index.py``.
"""

__all__ = ["MATCHES", "MODULES"]

MODULES = {{
{offers}
}}

MATCHES: dict[str, str] = {{
{finders}
}}
'''
FAST = [name for name in backends.available() if name != "reference"]


def package(name: str) -> Any:
    return import_module(f"{backends.__name__}.{name}")


def index(name: str) -> Path:
    return Path(package(name).__file__).with_name("_index.py")


def text(name: str) -> str:
    """The list, from all modules."""
    home = package(name)
    for module in iter_modules(home.__path__, f"{home.__name__}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    return TEXT.format(offers=lines(home.backend.offers), finders=lines(home.backend.finders)).replace(
        "{\n\n}", "{}"
    )


def lines(registered: Mapping[Any, Sequence[Any]]) -> str:
    """One for each type of operation that some module registers a function for."""
    found: dict[str, set[str]] = {}
    for op, functions in registered.items():
        found.setdefault(op.name, set()).update(function.__module__ for function in functions)
    homes = {
        type: " ".join(sorted(m.rpartition(".")[2] for m in modules))
        for type, modules in sorted(found.items())
    }
    return "\n".join(f'    "{type}": "{home}",' for type, home in homes.items())


@pytest.mark.parametrize("name", FAST)
def test_it_is_up_to_date(name: str) -> None:
    assert index(name).read_text(encoding="utf-8") == text(name)


@pytest.mark.parametrize("name", FAST)
def test_what_multiplies_compressed_weights_is_there_from_the_beginning(name: str) -> None:
    """They are asked for before any operation is."""
    count = f"from ir_runtime.backends.{name} import backend; print(sum(map(len, backend.packed.values())))"
    found = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    text(name)
    assert int(found.stdout) == sum(map(len, package(name).backend.packed.values()))


@pytest.mark.parametrize("name", FAST)
def test_only_what_is_needed_is_imported(name: str) -> None:
    code = f"""
import sys
from ir_runtime.backends.{name} import backend
from ir_runtime.ops import registry
backend._import(registry.resolve("MatMul"), backend.homes)
assert registry.resolve("MatMul") in backend.offers
assert "{package(name).__name__}.convolution" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    for name in FAST:
        index(name).write_text(text(name), encoding="utf-8")
