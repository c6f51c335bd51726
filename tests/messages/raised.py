"""Every message that the package can raise or report, extracted from its source.

A message starts where an error is constructed (``InferenceError(...)``) or a finding reported (``report.error(...)``). Its
text is traced back through variables, loops, helper functions and their callers to string literals; values formatted into it
become holes.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import click
from harness.snapshots import FOLDER
from harness.sources import PACKAGE, Function, Module, Sources, assigned, called, looped, parameters

import ir_runtime.errors

HOLE = "{…}"
_ERROR = ("Error", "BadParameter", "ClickException", "BadArgumentUsage", "BadOptionUsage")
ERRORS = frozenset(
    name for name in (*dir(ir_runtime.errors), *dir(builtins), *dir(click)) if name.endswith(_ERROR)
)
_FINDINGS = ("error", "warning", "note")
# What else makes a text for users, and which of its arguments are message and hint.
_OTHERS = {
    "Diagnostic": (1, 4),
    "Cause": (0, -1),
    "warn": (0, -1),
    "_warn_once": (0, -1),
    "failure": (0, -1),
}
_CARRIED = ("message", "hint", "strerror", "text")
_CAUGHT = ("reason", "problem")
_DEEP = 7
_LETTERS = 3


@dataclass(frozen=True, order=True)
class Message:
    """A text with holes, and the place of its literal."""

    file: str
    line: int
    text: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression for formatted texts of the message."""
        parts = map(re.escape, self.text.split(HOLE))
        return re.compile(r"(?<![A-Za-z])" + ".*?".join(parts) + r"(?![A-Za-z])")

    def letters(self) -> int:
        """The number of letters outside holes."""
        return sum(map(str.isalpha, self.text.replace(HOLE, "")))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def messages(folder: Path = PACKAGE) -> list[Message]:
    """Return all messages of a package, ordered by file and line."""
    return sorted({message for found in _read(folder) for message in found if message.letters() >= _LETTERS})


def lost(folder: Path = PACKAGE) -> list[Message]:
    """Return errors and findings whose text could not be traced to a literal."""
    return sorted(
        {found[0] for found in _read(folder) if found and all(m.letters() < _LETTERS for m in found)}
    )


@cache
def _read(folder: Path) -> list[list[Message]]:
    """Yield the possible messages of each error and finding; none if it repeats that of another error."""
    sources = Sources(folder)
    read = [_Reader(sources, module).read(text) for text, module in _texts(sources)]
    return [[Message(p.module.file, p.line, p.text.strip()) for p in found if p.text] for found in read]


def _texts(sources: Sources) -> Iterator[tuple[ast.expr, Module]]:
    """Return the messages and hints passed to the constructor of an error, a finding or a warning."""
    for name, calls in sources.calls.items():
        for module, call in calls:
            yield from ((text, module) for text in _said(sources, name, module, call))


def _said(sources: Sources, name: str, module: Module, call: ast.Call) -> Iterator[ast.expr]:
    if name in ERRORS or name in _OTHERS:
        message, hint = _OTHERS.get(name, (0, -1))
    elif name in _FINDINGS and isinstance(call.func, ast.Attribute) and len(call.args) > 1:
        message, hint = 1, 3
    else:
        return
    for given in _spread(sources, module, call.args):
        yield from (given[place] for place in (message, hint) if 0 <= place < len(given))
    yield from (k.value for k in call.keywords if k.arg in ("message", "hint"))


def _spread(sources: Sources, module: Module, args: Sequence[ast.expr]) -> Iterator[list[ast.expr]]:
    """Return arguments, with ``*helper(...)`` replaced by the helper's return value."""
    choices: list[list[list[ast.expr]]] = []
    for arg in args:
        if isinstance(arg, ast.Starred) and isinstance(arg.value, ast.Call):
            found = [value for _, value in sources.returns(arg.value, module)]
            choices.append([value.elts for value in found if isinstance(value, ast.Tuple)] or [[]])
        else:
            choices.append([[arg]])
    yield from ([arg for part in chosen for arg in part] for chosen in product(*choices))


@dataclass(frozen=True)
class _Piece:
    """A partial text, and the place where most of it is written."""

    text: str
    module: Module
    line: int

    def letters(self) -> int:
        return sum(map(str.isalpha, self.text.replace(HOLE, "")))


@dataclass(frozen=True)
class _Reader:
    """Traces expressions of one file back to string literals."""

    sources: Sources
    module: Module
    depth: int = 0

    def read(self, node: ast.expr | None) -> list[_Piece]:
        """Return the possible texts of an expression; none if it is the message of another error."""
        reader = _READERS.get(type(node))
        return self._hole(node) if node is None or reader is None else reader(self, node)

    def _hole(self, node: ast.AST | None) -> list[_Piece]:
        return [_Piece(HOLE, self.module, getattr(node, "lineno", 0))]

    def _elsewhere(self, found: Iterable[tuple[Module, ast.expr]]) -> list[_Piece]:
        if self.depth >= _DEEP:
            return []
        return [p for home, value in found for p in _Reader(self.sources, home, self.depth + 1).read(value)]

    def constant(self, node: ast.Constant) -> list[_Piece]:
        text = isinstance(node.value, str)
        return [_Piece(str(node.value), self.module, node.lineno)] if text else self._hole(node)

    def joined(self, node: ast.JoinedStr) -> list[_Piece]:
        plain = "".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))
        says_little = sum(map(str.isalpha, plain)) < _LETTERS
        return self._glued([self._filled(value, says_little) for value in node.values])

    def _filled(self, value: ast.expr, says_little: bool) -> list[_Piece]:
        """Return the texts of a replacement field of an f-string, traced if it forms part of the sentence."""
        if not isinstance(value, ast.FormattedValue):
            return self.read(value)
        chosen = isinstance(value.value, ast.IfExp) or _is_template(value.value)
        sentence = chosen or (says_little and value.conversion == -1)
        found = self.read(value.value) if sentence else []
        return found if any(" " in piece.text for piece in found) else self._hole(value)

    def added(self, node: ast.BinOp) -> list[_Piece]:
        added = isinstance(node.op, ast.Add)
        sides = [self.read(side) or self._hole(side) for side in (node.left, node.right)]
        return self._glued(sides) if added else self._hole(node)

    def _glued(self, parts: Sequence[list[_Piece]]) -> list[_Piece]:
        glued = []
        for chosen in product(*parts):
            most = max(chosen, key=_Piece.letters, default=_Piece("", self.module, 0))
            glued.append(_Piece("".join(p.text for p in chosen), most.module, most.line))
        return glued

    def either(self, node: ast.IfExp) -> list[_Piece]:
        return [*self.read(node.body), *self.read(node.orelse)]

    def any_of(self, node: ast.BoolOp) -> list[_Piece]:
        return [piece for value in node.values for piece in self.read(value)]

    def element(self, node: ast.Subscript) -> list[_Piece]:
        """Return the texts in a constant of the file."""
        known = self.module.constants.get(node.value.id) if isinstance(node.value, ast.Name) else None
        values = known.values if isinstance(known, ast.Dict) else getattr(known, "elts", [])
        return [piece for value in values for piece in self.read(value)] or self._hole(node)

    def attribute(self, node: ast.Attribute) -> list[_Piece]:
        return [] if node.attr in _CARRIED else self._hole(node)

    def call(self, node: ast.Call) -> list[_Piece]:
        name = called(node)
        if name == "str" and isinstance(node.args[0], ast.Name) and node.args[0].id in _CAUGHT:
            return []
        if name in _CARRIED and isinstance(node.func, ast.Attribute):
            return []
        if name == "format" and isinstance(node.func, ast.Attribute):
            template = self.read(node.func.value)
            return [_Piece(re.sub(r"\{[^}]*\}", HOLE, p.text), p.module, p.line) for p in template]
        if name == "join":
            each = getattr(node.args[0], "elt", None)
            return self.read(each) if isinstance(each, ast.Attribute | ast.JoinedStr) else self._hole(node)
        return self._elsewhere(self.sources.returns(node, self.module)) or self._hole(node)

    def name(self, node: ast.Name) -> list[_Piece]:
        """Return the texts of a variable, a parameter, or a constant of the file."""
        for function in self._around(node):
            if found := list(assigned(function, node.id)):
                return [p for value, part in found for p in self._part(value, part)]
            if loops := list(looped(function, node.id)):
                return [p for values in loops for p in self.items(values)] or self._hole(node)
            if node.id in parameters(function):
                return self._elsewhere(self.sources.given(self.module, function, node.id))
        known = self.sources.constant(node.id, self.module)
        return self._hole(node) if known is None else self._elsewhere([known])

    def _around(self, node: ast.AST) -> Iterator[Function]:
        function = self.module.inside.get(node)
        while function is not None:
            yield function
            function = self.module.inside.get(function)

    def _part(self, value: ast.expr, part: int | None) -> list[_Piece]:
        """Return the texts of an expression, or of one item of the tuples that a function returns."""
        if part is None or not isinstance(value, ast.Call):
            return self.read(value)
        found = self.sources.returns(value, self.module)
        tuples = [(home, pair.elts[part]) for home, pair in found if isinstance(pair, ast.Tuple)]
        return self._elsewhere(tuples) or self._hole(value)

    def items(self, node: ast.expr) -> list[_Piece]:
        """Return the texts in the iterable of a loop."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [piece for value in node.elts for piece in self.read(value)]
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.read(node.elt)
        if isinstance(node, ast.Call):
            return self._elsewhere(self.sources.yields(node, self.module))
        return self._listed(node) if isinstance(node, ast.Name) else []

    def _listed(self, node: ast.Name) -> list[_Piece]:
        """Return the texts appended to a list, or passed in a list by callers."""
        for function in self._around(node):
            put = [call.args[0] for call in ast.walk(function) if _appends(call, node.id)]  # type: ignore[attr-defined]
            found = [p for value in put for p in self.read(value)]
            found += [
                p for value, part in assigned(function, node.id) if part is None for p in self.items(value)
            ]
            if node.id in parameters(function) and self.depth < _DEEP:
                for home, value in self.sources.given(self.module, function, node.id):
                    found += _Reader(self.sources, home, self.depth + 1).items(value)
            if found:
                return found
        return []


def _is_template(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) == "format"


def _appends(node: ast.AST, name: str) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    on = func.value if isinstance(func, ast.Attribute) and func.attr == "append" else None
    return isinstance(on, ast.Name) and on.id == name


_READERS: dict[type, Callable[[_Reader, ast.expr], list[_Piece]]] = {
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


_STOPS = "stops arithmetic on intervals where nothing is known; inference catches it"
_DAMAGED = "caught where files are opened, where the file is said to be damaged"
_HELD = "says what cannot be, as whatever enters a plan is held against its type; kernels are guarded all the same"
_KERNEL = "tells whoever writes a kernel"
NO_MESSAGES = {
    ("ir_runtime/ir/dimension.py", "is not a single number"): _STOPS,
    ("ir_runtime/ir/dimension.py", "has no known bounds"): _STOPS,
    ("ir_runtime/ops/conversion.py", "bounds on integers say nothing"): _STOPS,
    ("ir_runtime/ops/reduction.py", "the reduction of no elements"): _STOPS,
    ("ir_runtime/_util/array_files.py", "the header is too long"): _DAMAGED,
    ("ir_runtime/_util/array_files.py", "the header cannot be read"): _DAMAGED,
    ("ir_runtime/_util/array_files.py", "a length is negative"): _DAMAGED,
    ("ir_runtime/executor/context.py", "cannot delete"): "completes a mapping; no operation deletes",
    ("ir_runtime/executor/guard.py", "expected the inferred shape"): _HELD,
    ("ir_runtime/executor/guard.py", "an earlier layer computes"): _HELD,
    ("ir_runtime/backends/native/codegen/descriptor.py", "expected a field"): _KERNEL,
    ("ir_runtime/backends/native/codegen/descriptor.py", "got unknown fields"): _KERNEL,
    ("ir_runtime/backends/native/codegen/ir.py", "is no constant of"): _KERNEL,
    ("ir_runtime/backends/native/build/", ""): _KERNEL,
}
"""What is raised, but never reaches a user; by the start of the path and part of the text, with the reason."""


def shown() -> str:
    """Return all snapshots as one text."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def is_for_users(message: Message) -> bool:
    """Return whether a message may reach a user."""
    return not any(is_one(message, *key) for key in NO_MESSAGES)


def is_one(message: Message, path: str, part: str) -> bool:
    """Return whether a key of `NO_MESSAGES` matches a message."""
    return message.file.startswith(path) and part in message.text


def missing() -> list[Message]:
    """Return the messages without a snapshot."""
    text = shown()
    return [m for m in messages() if is_for_users(m) and not is_in(m, text)]


def is_in(message: Message, text: str) -> bool:
    """Return whether a text contains a message. Patterns are slow, so they are tried only where the longest literal part occurs."""
    longest = max(message.text.split(HOLE), key=len)
    if "\n" in message.text or longest not in text:
        return longest in text and message.pattern.search(text) is not None
    return any(message.pattern.search(line) for line in _lines_with(longest, text))


def _lines_with(part: str, text: str) -> Iterator[str]:
    """Return the lines of a text that contain a part."""
    at = text.find(part)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[text.rfind("\n", 0, at) + 1 : end]
        at = text.find(part, end)
