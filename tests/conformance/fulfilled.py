"""The clauses that a passing case fulfils: those whose checks ran without refusing anything.

A check is an ``if`` around an error with a ``clause``. Its condition is traced while a model runs on the backend `reference`;
the clause has the text that the check would state at that point. This instrumentation is not in the package; it is used only
to build a corpus.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import _lru_cache_wrapper, cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ir_runtime as ov
import ir_runtime.ops
from ir_runtime.conformance.case import Case
from ir_runtime.ir import signature
from ir_runtime.ops._define import attributes
from ir_runtime.ops._define.operation import clauses

__all__ = ["fulfilled", "held_while", "with_fulfilled"]

_ATTRIBUTES = str(Path(attributes.__file__))
_Parents = Mapping[ast.AST, ast.AST]


@dataclass(frozen=True, eq=False)
class _Check:
    """A check in the source.

    Args:
        guards: the lines of its condition.
        error: the line of the error.
        parts: the text of the clause: strings, and expressions to evaluate in the scope of the condition.
    """

    guards: range
    error: int
    parts: Sequence[str | CodeType]

    def pattern(self, frame: FrameType) -> str:
        """Return the clause as a pattern; names computed only for the error match anything."""
        return "".join(
            re.escape(part) if isinstance(part, str) else _evaluate(part, frame) for part in self.parts
        )


def _evaluate(part: CodeType, frame: FrameType) -> str:
    try:
        return re.escape(str(eval(part, frame.f_globals, frame.f_locals)))
    except Exception:
        return ".*"


class _Watch:
    """A trace function for the checks of operations."""

    def __init__(self) -> None:
        self._patterns: dict[_Check, set[str]] = {}
        self._failed: set[_Check] = set()
        self._attributes: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        """Trace a call, unless its function has no checks."""
        code = frame.f_code
        if code.co_filename == _ATTRIBUTES and code.co_name == "check":
            # Where the file states it: a refused value would have ended the run.
            if frame.f_locals["text"] is not None:
                self._attributes.add(re.escape(frame.f_locals["self"].clause))
            return None
        return self._line if _lines(code.co_filename, code) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            for check in _lines(frame.f_code.co_filename, frame.f_code).get(frame.f_lineno, ()):
                if frame.f_lineno == check.error:
                    self._failed.add(check)
                else:
                    self._patterns.setdefault(check, set()).add(check.pattern(frame))
        return self._line

    def held(self) -> list[re.Pattern[str]]:
        """Return the patterns of the clauses whose checks passed."""
        held = (texts for check, texts in self._patterns.items() if check not in self._failed)
        return [re.compile(text) for text in sorted(self._attributes.union(*held))]


def fulfilled(case: Case) -> list[str]:
    """Return the numbers of the clauses of its operation that a case fulfils: ``C1``, ``C3``."""

    def run() -> None:
        model = ov.read_model(case.xml, case.weights)
        request = ov.compile_model(model, backend="reference").create_infer_request()
        for feeds in case.feeds:
            request.infer(list(feeds))

    return held_while(case.operation, run)


def held_while(operation: str, run: Callable[[], object]) -> list[str]:
    """Return the numbers of the clauses of an operation whose checks passed while a function ran."""
    _forget()
    watch, before = _Watch(), sys.gettrace()
    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(before)
    held = watch.held()
    numbered = enumerate(clauses(operation), 1)
    return [f"C{number}" for number, clause in numbered if any(p.fullmatch(clause) for p in held)]


def with_fulfilled(case: Case) -> Case:
    """Return a case with the clauses that it fulfils."""
    return replace(case, fulfils=fulfilled(case))


def _forget() -> None:
    """Clear the caches of operations, as cached checks do not run."""
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{ir_runtime.ops.__name__}.") and getattr(module, "__file__", None) in _checks():
            for function in vars(module).values():
                if isinstance(function, _lru_cache_wrapper) and function.__module__ == name:
                    function.cache_clear()


@cache
def _lines(file: str, code: CodeType) -> Mapping[int, Sequence[_Check]]:
    """Return the checks in a function by the lines of conditions and errors."""
    inside = range(code.co_firstlineno, max(line for _, _, line in code.co_lines() if line is not None) + 1)
    found: dict[int, list[_Check]] = {}
    for check in _checks().get(file, ()):
        if check.guards[0] in inside:
            for line in {*check.guards, check.error}:
                found.setdefault(line, []).append(check)
    return found


@cache
def _checks() -> Mapping[str, Sequence[_Check]]:
    """Return the checks by file."""
    files = [*sorted(Path(ir_runtime.ops.__file__).parent.rglob("*.py")), Path(signature.__file__)]
    return {str(path): [*_checks_of(ast.parse(path.read_text(encoding="utf-8")))] for path in files}


def _checks_of(module: ast.Module) -> Iterator[_Check]:
    parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(module):
        if not isinstance(node, ast.keyword) or node.arg != "clause":
            continue
        if isinstance(node.value, ast.JoinedStr | ast.Constant) and (parts := [*_parts(node.value)]):
            for raised in _raised(_statement(node, parents), parents, module):
                if guards := _guards(raised, parents):
                    yield _Check(guards, raised.lineno, parts)


def _parts(text: ast.JoinedStr | ast.Constant) -> Iterator[str | CodeType]:
    for part in text.values if isinstance(text, ast.JoinedStr) else [text]:
        if isinstance(part, ast.FormattedValue):
            whole = ast.Expression(ast.JoinedStr([part]))
            yield compile(ast.fix_missing_locations(whole), "<clause>", "eval")
        elif isinstance(part, ast.Constant) and part.value:
            yield str(part.value)


def _statement(node: ast.AST, parents: _Parents) -> ast.stmt:
    while not isinstance(node, ast.stmt):
        node = parents[node]
    return node


def _raised(error: ast.stmt, parents: _Parents, module: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that raise an error: its own, or the callers of the function that returns it."""
    if not isinstance(error, ast.Return):
        yield error
        return
    function = parents[error]
    if isinstance(function, ast.FunctionDef):
        for call in ast.walk(module):
            if isinstance(call, ast.Call) and _name(call.func) == function.name:
                yield _statement(call, parents)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _guards(error: ast.stmt, parents: _Parents) -> range:
    """Return the lines of the condition of an error; for an error at the end of a function, its first statement."""
    node: ast.AST = error
    while (parent := parents.get(node)) is not None:
        if isinstance(parent, ast.If):
            return range(_outermost(parent, parents).test.lineno, (parent.test.end_lineno or 0) + 1)
        if isinstance(parent, ast.Try):
            return range(parent.body[0].lineno, parent.body[0].lineno + 1)
        if isinstance(parent, ast.FunctionDef):
            first = next(s for s in parent.body if not _is_docstring(s))
            return range(first.lineno, first.lineno + 1)
        node = parent
    return range(0)


def _outermost(test: ast.If, parents: _Parents) -> ast.If:
    """Return the outermost of conditions nested without other statements."""
    outer = parents[test]
    if not isinstance(outer, ast.If) or outer.body[-1] is not test:
        return test
    narrows = all(isinstance(statement, ast.Assign) for statement in outer.body[:-1])
    return _outermost(outer, parents) if narrows else test


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
