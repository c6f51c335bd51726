"""Mutants of a Python source: the same text with one operator, constant or statement changed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of"]

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_NO_CODE = ("annotation", "returns", "decorator_list", "type_params")
"""Fields of nodes that are not run, or that say how the rest is."""


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a source.

    Args:
        line: where the place is.
        scope: the names of the classes and functions around it, from the outside in.
        text: the source.
        span: where the place begins and ends in it, in bytes of UTF-8.
        after: what replaces the place.
    """

    line: int
    scope: tuple[str, ...]
    text: str
    span: tuple[int, int]
    after: str

    @property
    def before(self) -> str:
        """What is replaced."""
        return self.text.encode()[slice(*self.span)].decode()

    @property
    def source(self) -> str:
        """The text with the replacement."""
        data, (begin, end) = self.text.encode(), self.span
        return (data[:begin] + self.after.encode() + data[end:]).decode()


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a source, in the order of its lines."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, scope in _places(ast.parse(source), ()):
        changed = _change_statement(node) if isinstance(node, ast.stmt) else _change_expression(node)
        if changed is None:
            continue
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        text = ast.unparse(changed)
        after = f"({text})" if isinstance(changed, ast.expr) else text
        yield Mutant(node.lineno, scope, source, (begin, end), after)


def _places(node: ast.AST, scope: tuple[str, ...]) -> Iterator[tuple[ast.expr | ast.stmt, tuple[str, ...]]]:
    """Walk the statements and expressions that are run, not those that only type checkers read."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.JoinedStr):  # Python 3.11 does not know the places inside
        return
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        scope = (*scope, node.name)
    if isinstance(node, ast.expr | ast.stmt):
        yield node, scope
    for name, field in ast.iter_fields(node):
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and name not in _NO_CODE:
                yield from _places(child, scope)


def _change_expression(node: ast.expr) -> ast.expr | None:
    changed = copy.copy(node)
    match changed:
        case ast.Compare(ops=[operator, *others]):
            changed.ops = [_SWAPS[type(operator)](), *others]  # type: ignore[list-item]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in _SWAPS:
            changed.op = _SWAPS[type(operator)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return operand
        case ast.IfExp(test=test):
            changed.test = ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool() as value):
            return ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            return ast.Constant(value + 1)
        case _:
            return None
    return changed


def _change_statement(node: ast.stmt) -> ast.stmt | None:
    match node:
        case ast.AugAssign(op=operator) if type(operator) in _SWAPS:
            return ast.AugAssign(node.target, _SWAPS[type(operator)](), node.value)  # type: ignore[arg-type]
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Delete():
            return ast.Pass()
        case ast.Return(value=ast.Constant(value=None)):
            return None
        case ast.Return(value=ast.expr()):
            return ast.Return(ast.Constant(None))
        case ast.Break():
            return ast.Continue()
        case ast.Continue():
            return ast.Break()
    return None
