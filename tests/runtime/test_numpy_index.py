"""The list of modules with kernels is what importing all of them finds.

``python tests/runtime/test_numpy_index.py`` writes it anew.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from ir_runtime.backends import numpy
from ir_runtime.backends.numpy import backend

PACKAGE = numpy.__name__
INDEX = Path(numpy.__file__).with_name("_index.py")
TEXT = '''"""The modules that offer kernels for each type of operation.

Written by ``python tests/runtime/test_numpy_index.py``.
"""

__all__ = ["MODULES"]

MODULES = {{
{lines}
}}
'''


def lines() -> Iterator[str]:
    """One for each type of operation that some module registers an offer for."""
    for module in iter_modules(numpy.__path__, f"{PACKAGE}."):
        import_module(module.name)
    found: dict[str, set[str]] = {}
    assert not backend.packed  # which are asked for before
    for kind in (backend.offers, backend.finders):
        for op, offers in kind.items():
            found.setdefault(op.name, set()).update(offer.__module__ for offer in offers)
    for name, modules in sorted(found.items()):
        homes = " ".join(sorted(module.rpartition(".")[2] for module in modules))
        yield f'    "{name}": "{homes}",'


def test_it_is_up_to_date() -> None:
    assert INDEX.read_text(encoding="utf-8") == TEXT.format(lines="\n".join(lines()))


def test_only_what_is_needed_is_imported() -> None:
    code = f"""
import sys
from ir_runtime.backends.numpy import backend
from ir_runtime.ops import registry
backend._import(registry.resolve("MatMul"))
assert registry.resolve("MatMul") in backend.offers
assert "{PACKAGE}.convolution" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    INDEX.write_text(TEXT.format(lines="\n".join(lines())), encoding="utf-8")
