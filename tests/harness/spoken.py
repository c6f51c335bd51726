"""Every message that the package can give, read from its source.

A message starts where an error is made (``InferenceError(...)``) or a finding is reported
(``report.error(...)``). From there its text is followed back through variables, helper functions and
their callers to the strings it is written in; what is filled in when running becomes a hole.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

import click

import ir_runtime
import ir_runtime.errors

PACKAGE = Path(ir_runtime.__file__).parent
HOLE = "{…}"
_ERROR = ("Error", "BadParameter", "ClickException", "BadArgumentUsage", "BadOptionUsage")
ERRORS = frozenset(
    name for name in (*dir(ir_runtime.errors), *dir(builtins), *dir(click)) if name.endswith(_ERROR)
)
_FINDINGS = ("error", "warning")
_DEEP = 6
_LETTERS = 4

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Message:
    """A text with holes, and the place it is written at."""

    file: str
    line: int
    text: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What a text that shows it looks like."""
        parts = map(re.escape, self.text.split(HOLE))
        return re.compile(r"(?<![A-Za-z])" + ".*?".join(parts) + r"(?![A-Za-z])")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Piece:
    """Part of a text on its way: what it says, and the line of its longest string."""

    text: str
    module: Module
    line: int

    def letters(self) -> int:
        return sum(map(str.isalpha, self.text.replace(HOLE, "")))


@dataclass(eq=False)
class Module:
    """A file of the package."""

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


class Package:
    """All files, and where functions are defined and called."""

    def __init__(self, folder: Path = PACKAGE) -> None:
        self.modules = [
            Module(str(path.relative_to(folder.parent)), ast.parse(path.read_text(encoding="utf-8")))
            for path in sorted(folder.rglob("*.py"))
        ]
        self.functions: dict[str, list[tuple[Module, Function]]] = defaultdict(list)
        self.calls: dict[str, list[tuple[Module, ast.Call]]] = defaultdict(list)
        for module in self.modules:
            for node in module.inside:
                if isinstance(node, Function):
                    self.functions[node.name].append((module, node))
                elif isinstance(node, ast.Call) and (name := called(node)):
                    self.calls[name].append((module, node))

    def messages(self) -> list[Message]:
        """All there are, in order of files and lines."""
        pieces = [p for text, module in self._texts() for p in _Reader(self, module).read(text)]
        found = {Message(p.module.file, p.line, p.text.strip()) for p in pieces if p.letters() >= _LETTERS}
        return sorted(found)

    def _texts(self) -> Iterator[tuple[ast.expr, Module]]:
        for name, calls in self.calls.items():
            for module, call in calls:
                yield from ((text, module) for text in self._said(name, module, call))

    def _said(self, name: str, module: Module, call: ast.Call) -> Iterator[ast.expr]:
        """The message and the hint of what makes an error or a finding."""
        first = 0 if name in ERRORS else 1
        if name not in ERRORS and not self._is_finding(name, call):
            return
        for given in self._spread(module, call.args):
            yield from given[first : first + 1]
            yield from given[first + 2 : first + 3] if first else ()
        yield from (k.value for k in call.keywords if k.arg in ("message", "hint"))

    @staticmethod
    def _is_finding(name: str, call: ast.Call) -> bool:
        reports = name in _FINDINGS and isinstance(call.func, ast.Attribute) and len(call.args) > 1
        return reports or name == "Diagnostic"

    def _spread(self, module: Module, args: Sequence[ast.expr]) -> Iterator[list[ast.expr]]:
        """Arguments, with ``*helper(...)`` replaced by what the helper returns."""
        choices: list[list[list[ast.expr]]] = []
        for arg in args:
            if isinstance(arg, ast.Starred) and isinstance(arg.value, ast.Call):
                found = [value for _, value in self.returns(called(arg.value), module)]
                choices.append([value.elts for value in found if isinstance(value, ast.Tuple)] or [[]])
            else:
                choices.append([[arg]])
        yield from ([arg for part in chosen for arg in part] for chosen in product(*choices))

    def defined(self, name: str, module: Module) -> list[tuple[Module, Function]]:
        """The functions of a name: those of the same file, else all."""
        found = self.functions.get(name, [])
        return [pair for pair in found if pair[0] is module] or found

    def returns(self, name: str, module: Module) -> Iterator[tuple[Module, ast.expr]]:
        """What functions of a name return."""
        for home, function in self.defined(name, module):
            for node in ast.walk(function):
                mine = isinstance(node, ast.Return) and home.inside[node] is function
                if mine and node.value is not None:  # type: ignore[attr-defined]
                    yield home, node.value  # type: ignore[attr-defined]


@dataclass
class _Reader:
    """Follows one expression back to the strings it is made of."""

    package: Package
    module: Module
    depth: int = 0

    def read(self, node: ast.expr | None) -> list[Piece]:
        """The texts that an expression may be; none where it carries the message of another error."""
        reader = _READERS.get(type(node))
        if node is None or reader is None:
            return [self._hole(node)]
        return reader(self, node)

    def _hole(self, node: ast.AST | None) -> Piece:
        return Piece(HOLE, self.module, getattr(node, "lineno", 0))

    def constant(self, node: ast.Constant) -> list[Piece]:
        return (
            [Piece(node.value, self.module, node.lineno)]
            if isinstance(node.value, str)
            else [self._hole(node)]
        )

    def joined(self, node: ast.JoinedStr) -> list[Piece]:
        plain = "".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))
        says_little = sum(map(str.isalpha, plain)) < _LETTERS
        return self._glued([self._filled(value, says_little) for value in node.values])

    def _filled(self, value: ast.expr, says_little: bool) -> list[Piece]:
        """A part of an f-string; what is filled in is followed where it makes the sentence."""
        if not isinstance(value, ast.FormattedValue):
            return self.read(value)
        sentence = isinstance(value.value, ast.IfExp) or (says_little and value.conversion == -1)
        found = self.read(value.value) if sentence else []
        return found if any(" " in piece.text for piece in found) else [self._hole(value)]

    def added(self, node: ast.BinOp) -> list[Piece]:
        if not isinstance(node.op, ast.Add):
            return [self._hole(node)]
        return self._glued([self.read(node.left), self.read(node.right)])

    def _glued(self, parts: Sequence[list[Piece]]) -> list[Piece]:
        return [
            Piece("".join(p.text for p in chosen), *_home(chosen)) for chosen in product(*parts) if chosen
        ]

    def either(self, node: ast.IfExp) -> list[Piece]:
        return [*self.read(node.body), *self.read(node.orelse)]

    def any_of(self, node: ast.BoolOp) -> list[Piece]:
        return [piece for value in node.values for piece in self.read(value)]

    def element(self, node: ast.Subscript) -> list[Piece]:
        if isinstance(node.value, ast.Name) and node.value.id in self.module.constants:
            known = self.module.constants[node.value.id]
            values = getattr(known, "values", None) or getattr(known, "elts", None) or []
            return [piece for value in values for piece in self.read(value)] or [self._hole(node)]
        return [self._hole(node)]

    def attribute(self, node: ast.Attribute) -> list[Piece]:
        return [] if node.attr in ("message", "hint", "strerror") else [self._hole(node)]

    def call(self, node: ast.Call) -> list[Piece]:
        name = called(node)
        if name == "str" and node.args and isinstance(node.args[0], ast.Name):
            return self._name_or_error(node.args[0])
        if name == "format" and isinstance(node.func, ast.Attribute):
            return [
                Piece(re.sub(r"\{[^}]*\}", HOLE, p.text), p.module, p.line)
                for p in self.read(node.func.value)
            ]
        if self.depth >= _DEEP or name == "join":
            return [self._hole(node)]
        found = list(self.package.returns(name, self.module))
        return [p for home, value in found for p in self._at(home).read(value)] or [self._hole(node)]

    def _name_or_error(self, node: ast.Name) -> list[Piece]:
        return [] if node.id in ("reason", "problem", "error") else self.name(node)

    def name(self, node: ast.Name) -> list[Piece]:
        function = self.module.inside.get(node)
        while function is not None:
            if found := list(_assigned(function, node.id)):
                return [piece for value in found for piece in self.read(value)]
            if node.id in parameters(function):
                return self._from_callers(function, node)
            function = self.module.inside.get(function)
        known = self.module.constants.get(node.id)
        return self.read(known) if known is not None else [self._hole(node)]

    def _from_callers(self, function: Function, node: ast.Name) -> list[Piece]:
        if self.depth >= _DEEP:
            return [self._hole(node)]
        pieces = []
        for module, call in self.package.calls.get(function.name, ()):
            if any(
                home is self.module and f is function
                for home, f in self.package.defined(function.name, module)
            ):
                value = argument(function, call, node.id)
                pieces += self._at(module).read(value) if value is not None else []
        return pieces

    def _at(self, module: Module) -> _Reader:
        return _Reader(self.package, module, self.depth + 1)


_READERS: dict[type, Callable[[_Reader, object], list[Piece]]] = {
    ast.Constant: _Reader.constant,
    ast.JoinedStr: _Reader.joined,
    ast.BinOp: _Reader.added,
    ast.IfExp: _Reader.either,
    ast.BoolOp: _Reader.any_of,
    ast.Subscript: _Reader.element,
    ast.Attribute: _Reader.attribute,
    ast.Call: _Reader.call,
    ast.Name: _Reader.name,
}  # type: ignore[dict-item]


def called(call: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    func = call.func
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def parameters(function: Function) -> list[str]:
    """The names of a function's parameters but for ``self``."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def argument(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives a parameter."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    index = parameters(function).index(name)
    plain = not any(isinstance(a, ast.Starred) for a in call.args[: index + 1])
    return call.args[index] if plain and index < len(call.args) else None


def _assigned(function: Function, name: str) -> Iterator[ast.expr]:
    """What a function gives a variable."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from _given(target, node.value, name)


def _given(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for t, v in zip(target.elts, value.elts, strict=False):
            yield from _given(t, v, name)


def _home(pieces: Iterable[Piece]) -> tuple[Module, int]:
    longest = max(pieces, key=Piece.letters)
    return longest.module, longest.line
