"""The lists of modules that define operations and kernels: ``make index`` writes them, tests compare them.

A module is imported when a model needs it; these lists say which one that is. They are what importing every module
finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from typing import Any

import ir_runtime.ops
from harness.examples import examples
from harness.factories import written
from ir_runtime import backends
from ir_runtime.ops import registry

__all__ = ["FAST", "indexes"]

FAST = [name for name in backends.available() if name != "reference"]

_OPERATIONS = '''"""The modules that define each type of operation, which is in small letters as files may spell it.

Written by ``make index``.
"""

__all__ = ["MODULES"]

MODULES = {{
{lines}
}}
'''

_KERNELS = '''"""The modules that offer kernels for each type of operation, and those that find patterns ending with it.

Written by ``make index``.
"""

__all__ = ["PATTERNS", "MODULES"]

MODULES = {{
{offers}
}}

PATTERNS: dict[str, str] = {{
{patterns}
}}
'''


def indexes() -> Iterator[tuple[Path, str]]:
    """Every list: its file, and what is to be in it."""
    yield Path(ir_runtime.ops.__file__).with_name("_index.py"), _operations()
    for name in FAST:
        package: Any = import_module(f"{backends.__name__}.{name}")
        yield Path(package.__file__).with_name("_index.py"), _kernels(package)
    yield from written()


def _operations() -> str:
    package = ir_runtime.ops
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    found = []
    for spelling, name in sorted(registry._names.items()):
        modules = {cls.__module__.partition(f"{package.__name__}.")[2] for cls in registry.versions(name)}
        if any(modules):
            found.append(f'    "{spelling}": "{" ".join(sorted(modules))}",')
    return _OPERATIONS.format(lines="\n".join(found))


def _kernels(package: Any) -> str:
    kernels: Any = import_module(f"{package.__name__}.kernels")
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    text = _KERNELS.format(
        offers=_by_type(package.backend.offers), patterns=_by_type(package.backend.patterns)
    )
    return text.replace("{\n\n}", "{}")


def _by_type(registered: Mapping[Any, Sequence[Any]]) -> str:
    """A line for each type of operation that some module registers a function for."""
    found: dict[str, set[str]] = {}
    for op, functions in registered.items():
        found.setdefault(op.name, set()).update(function.__module__ for function in functions)
    return "\n".join(
        f'    "{type}": "{" ".join(sorted(module.rpartition(".")[2] for module in modules))}",'
        for type, modules in sorted(found.items())
    )


if __name__ == "__main__":
    for file, text in (*indexes(), examples()):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
