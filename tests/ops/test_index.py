"""The list of modules that define operations is what importing all of them finds.

``python tests/ops/test_index.py`` writes it anew.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import ir_runtime.ops
from ir_runtime.ops import Input, Op, Output, T, op, registry

PACKAGE = ir_runtime.ops.__name__
INDEX = Path(ir_runtime.ops.__file__).with_name("_index.py")
TEXT = '''"""The modules that define each type of operation, which is in small letters as files may spell it.

Written by ``python tests/ops/test_index.py``.
"""

__all__ = ["MODULES"]

MODULES = {{
{lines}
}}
'''


def lines() -> Iterator[str]:
    """One for each spelling of a type that modules of the package register."""
    for module in walk_packages(ir_runtime.ops.__path__, f"{PACKAGE}."):
        import_module(module.name)
    for spelling, name in sorted(registry._names.items()):
        homes = {cls.__module__.partition(f"{PACKAGE}.")[2] for cls in registry.versions(name)}
        if any(homes):
            yield f'    "{spelling}": "{" ".join(sorted(homes))}",'


def test_it_is_up_to_date() -> None:
    assert INDEX.read_text(encoding="utf-8") == TEXT.format(lines="\n".join(lines()))


def test_only_what_is_needed_is_imported() -> None:
    code = f"""
import sys
from {PACKAGE} import registry
assert registry.resolve("relu", 1).name == "ReLU", registry.resolve("relu", 1)
assert "{PACKAGE}.activation.clipped" in sys.modules
assert "{PACKAGE}.detection.proposal" not in sys.modules
assert len(registry) > 200
assert "{PACKAGE}.detection.proposal" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_defined_elsewhere_must_be_new() -> None:
    with pytest.raises(ValueError, match="Eye-9 is defined twice"):

        @op("Eye-9")
        class Eye(Op):
            """As one that may not have been imported."""

            data = Input(T)
            result = Output(T)


if __name__ == "__main__":
    INDEX.write_text(TEXT.format(lines="\n".join(lines())), encoding="utf-8")
