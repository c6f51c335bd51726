"""Syntax trees of the package: definitions of functions, their calls, and their returned expressions."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import ir_runtime
from ir_runtime._util.scoped import no_collection

__all__ = [
    "PACKAGE",
    "Function",
    "Module",
    "Sources",
    "argument",
    "assigned",
    "called",
    "looped",
    "parameters",
    "trees",
]

PACKAGE = Path(ir_runtime.__file__).parent

Function = ast.FunctionDef | ast.AsyncFunctionDef
_OWN = ("self", "cls")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@cache
def trees(folder: Path = PACKAGE) -> Mapping[Path, ast.Module]:
    """Return the syntax tree of each file, parsed once; treat them as read-only.

    They are more than a million objects, which are frozen to keep garbage collections short.
    """
    gc.collect()
    with no_collection():
        files = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}
    gc.freeze()
    return files


@dataclass(eq=False)
class Module:
    """A file: the function around each node, and the values of its global names."""

    file: str
    tree: ast.Module
    inside: dict[ast.AST, Function | None] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._walk(self.tree, None)
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self.constants |= {t.id: node.value for t in targets if isinstance(t, ast.Name)}

    def _walk(self, node: ast.AST, function: Function | None) -> None:
        for child in ast.iter_child_nodes(node):
            self.inside[child] = function
            self._walk(child, child if isinstance(child, Function) else function)


class Sources:
    """All files of the package. Functions are identified by name and file."""

    def __init__(self, folder: Path = PACKAGE) -> None:
        self.modules = [
            Module(str(path.relative_to(folder.parent)), tree) for path, tree in trees(folder).items()
        ]
        self._functions: dict[str, list[tuple[Module, Function]]] = defaultdict(list)
        self.calls: dict[str, list[tuple[Module, ast.Call]]] = defaultdict(list)
        for module in self.modules:
            for node in module.inside:
                if isinstance(node, Function):
                    self._functions[node.name].append((module, node))
                elif isinstance(node, ast.Call) and (name := called(node)):
                    self.calls[name].append((module, node))

    def defined(self, call: ast.Call, module: Module) -> list[tuple[Module, Function]]:
        """Return the functions that a call may refer to: those of the file, else those of all files; for methods, those of all files."""
        found = self._functions.get(called(call), [])
        if _is_of_another(call):
            return [pair for pair in found if _is_method(pair[1])] or found
        return [pair for pair in found if pair[0] is module] or found

    def constant(self, name: str, module: Module) -> tuple[Module, ast.expr] | None:
        """Return the value of a global name: of the file, else of the file that defines it for the others."""
        homes = [home for home in (module, *self.modules) if name in home.constants]
        return (homes[0], homes[0].constants[name]) if homes else None

    def returns(self, call: ast.Call, module: Module) -> list[tuple[Module, ast.expr]]:
        """Return the expressions returned by the functions that a call may refer to."""
        return list(self._results(call, module, ast.Return))

    def yields(self, call: ast.Call, module: Module) -> list[tuple[Module, ast.expr]]:
        """Return the expressions yielded by the functions that a call may refer to."""
        return list(self._results(call, module, ast.Yield))

    def _results(
        self, call: ast.Call, module: Module, kind: type[ast.AST]
    ) -> Iterator[tuple[Module, ast.expr]]:
        for home, function in self.defined(call, module):
            for node in ast.walk(function):
                value = getattr(node, "value", None)
                if isinstance(node, kind) and home.inside[node] is function and value is not None:
                    yield home, value

    def given(self, module: Module, function: Function, parameter: str) -> Iterator[tuple[Module, ast.expr]]:
        """Yield the arguments that callers pass for a parameter."""
        for home, call in self.calls.get(function.name, ()):
            if any(found is function for _, found in self.defined(call, home)):
                value = argument(function, call, parameter)
                if value is not None:
                    yield home, value


def called(call: ast.Call) -> str:
    """Return the name of the called function, without its object or module."""
    func = call.func
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def _is_of_another(call: ast.Call) -> bool:
    """Return whether a method call is on an object other than ``self``."""
    on = call.func.value if isinstance(call.func, ast.Attribute) else None
    return on is not None and not (isinstance(on, ast.Name) and on.id in _OWN)


def _is_method(function: Function) -> bool:
    return any(a.arg in _OWN for a in function.args.args[:1])


def parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters, except ``self``."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return names[1:] if names and names[0] in _OWN else names


def argument(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument that a call passes for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    index = parameters(function).index(name)
    plain = not any(isinstance(a, ast.Starred) for a in call.args[: index + 1])
    return call.args[index] if plain and index < len(call.args) else None


def assigned(function: Function, name: str) -> Iterator[tuple[ast.expr, int | None]]:
    """Yield the expressions assigned to a variable, with the item of the tuple if it is unpacked."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _unpacked(target, node.value, name)


def looped(function: Function, name: str) -> Iterator[ast.expr]:
    """Yield the iterables that a variable loops over, in loops and comprehensions."""
    for node in ast.walk(function):
        loops = node.generators if isinstance(node, _COMPREHENSIONS) else [node]
        for loop in loops:
            if isinstance(loop, ast.For | ast.comprehension) and isinstance(loop.target, ast.Name):
                yield from [loop.iter] if loop.target.id == name else []


def _unpacked(target: ast.expr, value: ast.expr, name: str) -> Iterator[tuple[ast.expr, int | None]]:
    if isinstance(target, ast.Name) and target.id == name:
        yield value, None
    if not isinstance(target, ast.Tuple):
        return
    if isinstance(value, ast.Tuple):
        for one, given in zip(target.elts, value.elts, strict=False):
            yield from _unpacked(one, given, name)
    elif isinstance(value, ast.Call):
        for index, one in enumerate(target.elts):
            if isinstance(one, ast.Name) and one.id == name:
                yield value, index
