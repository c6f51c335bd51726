"""Tests that are likely to fail if some place of the package is wrong, the likeliest first."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import networkx as nx

__all__ = ["ROOMS", "other_tests", "related_tests", "samples_of"]

ROOMS = ("ops", "analysis", "io", "compiler", "executor")
"""Parts of the package that are mutated, and the folders of their tests."""
_SWEEPS = (
    "test_oracle.py",
    "test_contract.py",
    "test_partial_shapes.py",
    "test_mixed_types.py",
    "test_soundness.py",
    "test_table.py",
    "test_flops.py",
    "test_attributes.py",
    "test_building_operations.py",
)
"""Tests of all samples, of which those of one operation are run, and all if they import what is mutated."""
_TYPICAL = ("Add", "MatMul", "Concat", "ReduceSum", "Gather", "If")
"""Operations that stand for all, where a module defines none."""
_OTHERS = ("browser", "clients", "fuzz", "mutants", "scaling", "world", "bench")
"""Folders of tests that say little about one place, or take long."""
_MOST = 8
_VERSION = re.compile(r"(Base)?\d*$")
"""The end of the names of classes of operations, which tests call by their types."""


@cache
def _texts(tests: Path) -> dict[Path, str]:
    files = sorted(tests.rglob("test_*.py"))
    return {file: file.read_text() for file in files if not {*file.relative_to(tests).parts} & {*_OTHERS}}


def related_tests(tests: Path, module: Path, scope: tuple[str, ...]) -> list[Path]:
    """Return files of tests that import a module, have its name, or mention what it defines.

    Args:
        tests: the folder of all tests.
        module: its path in the package.
        scope: the classes and functions around the place.
    """
    names = [name for part in scope if len(name := _VERSION.sub("", part.strip("_"))) > 3]
    dotted = ".".join(module.with_suffix("").parts)
    scores = {
        file: _score(file.relative_to(tests), text, module, dotted, names)
        for file, text in _texts(tests).items()
    }
    for file in [file for file in scores if file.name in _SWEEPS]:
        if not _imports(_texts(tests)[file], dotted):
            del scores[file]
    ranked = sorted(scores, key=lambda file: (-scores[file], len(_texts(tests)[file])))
    return [file for file in ranked[:_MOST] if scores[file] > 1]


def _score(file: Path, text: str, module: Path, dotted: str, names: list[str]) -> int:
    stem = {*re.split(r"_", file.stem.removeprefix("test_"))}
    at_home = file.parts[0] == module.parts[0]
    score = 2 * at_home
    # Elsewhere, a name in common may be chance: tests of kernels about lengths, and constraints on lengths.
    score += (3 if at_home else 1) * bool(stem & {*module.stem.strip("_").split("_"), *module.parts[1:-1]})
    score += 4 * _imports(text, dotted)
    score += sum(2 for name in names if re.search(rf"\b_*{re.escape(name)}\b", text))
    return score


def _imports(text: str, dotted: str) -> bool:
    return re.search(rf"\b{re.escape(dotted)}\b", text) is not None


def samples_of(tests: Path, module: Path, scope: tuple[str, ...]) -> list[str]:
    """Return arguments of pytest for the samples of an operation.

    Where the place is in none, those of the operations of its module that use it are run, or else of the modules that
    import it.
    """
    if module.parts[0] != "ops":
        return []
    package = tests.parent / "ir_runtime"
    source = (package / module).read_text()
    types = _types_of(source, scope) or _operations(source) or _served(package, module) or _TYPICAL
    chosen = " or ".join(f"{name}-" for name in types[:6])
    return [*(str(file) for name in _SWEEPS for file in tests.rglob(name)), "-k", chosen]


def _operations(source: str) -> list[str]:
    """Return the operations that a module defines."""
    return list(dict.fromkeys(re.findall(r'@op\(\s*"(\w+)-\d+', source)))


def _users(source: str, name: str) -> list[str]:
    """Return the operations of a module that use a definition of its top level, directly or by others."""
    definitions = {
        node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    uses = nx.DiGraph(
        (user, used.id)
        for user, node in definitions.items()
        for used in ast.walk(node)
        if isinstance(used, ast.Name) and used.id in definitions.keys() - _locals(node)
    )
    users = {name, *(nx.ancestors(uses, name) if name in uses else ())}
    texts = (
        ast.get_source_segment(source, decorator) or ""
        for user in definitions
        if user in users
        for decorator in definitions[user].decorator_list
    )
    return list(dict.fromkeys(operation for text in texts for operation in _operations(f"@{text}")))


def _locals(node: ast.AST) -> set[str]:
    """Return the names that are assigned somewhere inside a definition, and the parameters."""
    stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}


def _served(package: Path, module: Path) -> list[str]:
    """Return the operations of the modules that import one, taking a few of each."""
    imported = re.compile(rf"^from \.[\w.]*\b{re.escape(module.stem)} import ", re.MULTILINE)
    texts = (file.read_text() for file in sorted((package / "ops").rglob("*.py")))
    return [name for text in texts if imported.search(text) for name in _operations(text)[:2]]


def other_tests(tests: Path, module: Path, scope: tuple[str, ...] = ()) -> list[Path]:
    """Return what is left to be run: all messages, and the folders of this part of the package.

    Of an operation, whose folder holds all samples, those files are run instead that name its type.
    """
    messages = tests / "messages" / "test_messages.py"
    if module.parts[0] != "ops":
        return [messages, tests / module.parts[0]]
    types = _types_of((tests.parent / "ir_runtime" / module).read_text(), scope)
    done = {messages, *related_tests(tests, module, scope)}
    counts = {
        file: sum(len(re.findall(rf"\b{name}\b", text)) for name in types)
        for file, text in _texts(tests).items()
        if file not in done and file.name not in _SWEEPS
    }
    ranked = sorted(filter(counts.get, counts), key=lambda file: -counts[file])
    return [messages, *ranked[:_MOST]]


def _types_of(source: str, scope: tuple[str, ...]) -> list[str]:
    """Return the operations of a module that a place is in, or that use the definition around it."""
    types = _users(source, scope[0]) if scope else []
    return [name for name in types if name in scope] or types
