"""Packages depend on those below them only: imports, lazy and for typing too, make no cycles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import ir_runtime

ROOT = Path(ir_runtime.__file__).parent
ABOVE = {
    "ir": {
        "ops",
        "kernels",
        "analysis",
        "reader",
        "writer",
        "transform",
        "backends",
        "executor",
        "api",
        "cli",
    },
    "kernels": {
        "ir",
        "ops",
        "analysis",
        "reader",
        "writer",
        "transform",
        "backends",
        "executor",
        "api",
        "cli",
    },
    "ops": {"analysis", "reader", "writer", "transform", "backends", "executor", "api", "cli"},
    "analysis": {"reader", "writer", "transform", "backends", "executor", "api", "cli"},
}


def modules() -> dict[str, Path]:
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in paths.items()}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = path.parents[node.level - 1].relative_to(ROOT).parts
            base = [*package, *(node.module or "").split(".")] if node.module else [*package]
            for alias in node.names:
                name = ".".join([*base, alias.name])
                yield name if name in known else ".".join(base)


@pytest.fixture(scope="module")
def imports() -> nx.DiGraph:
    known = modules()
    graph = nx.DiGraph()
    graph.add_edges_from(
        (name, other) for name, path in known.items() for other in imported(path, known) if other != name
    )
    return graph


@pytest.mark.parametrize("package", ABOVE)
def test_modules_do_not_import_each_other(imports: nx.DiGraph, package: str) -> None:
    inside = imports.subgraph(name for name in imports if name.partition(".")[0] == package)
    assert [sorted(found) for found in nx.strongly_connected_components(inside) if len(found) > 1] == []


@pytest.mark.parametrize("package", ABOVE)
def test_a_package_imports_nothing_above_it(imports: nx.DiGraph, package: str) -> None:
    wrong = [
        (name, other)
        for name, other in imports.edges
        if name.partition(".")[0] == package and other.partition(".")[0] in ABOVE[package]
    ]
    assert wrong == []
