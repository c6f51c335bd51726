"""The source of kernels: the syntax tree of a Python function, and the objects that its names refer to."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

__all__ = ["CompileError", "Source", "source_of"]


class CompileError(Exception):
    """A kernel uses an unsupported Python feature; the message gives its file and line."""


@dataclass(frozen=True)
class Source:
    """The source of a function.

    Args:
        name: the function's name.
        file: the path of its file.
        tree: its syntax tree, with line numbers in the file.
        names: the objects of its closure and module, by name.
    """

    name: str
    file: str
    tree: ast.FunctionDef
    names: Mapping[str, object]

    @property
    def parameters(self) -> list[str]:
        """The names of the function's parameters."""
        return [parameter.arg for parameter in self.tree.args.args]

    def resolve(self, name: str) -> object:
        """Return the object that a free variable of the function refers to.

        Raises:
            KeyError: if the name is not defined.
        """
        return self.names[name] if name in self.names else vars(builtins)[name]

    def fail(self, node: ast.AST, reason: str) -> NoReturn:
        """Raise a `CompileError` at a node of the function."""
        line = getattr(node, "lineno", self.tree.lineno)
        code = "" if node is self.tree else f": {ast.unparse(node)}"
        raise CompileError(f"{self.file}:{line}: in {self.name}: {reason}{code}")


def source_of(function: Callable[..., object]) -> Source:
    """Return the source of a function defined by ``def``.

    Raises:
        CompileError: if it has no source, or parameters of an unsupported kind.
    """
    code = function.__code__
    tree = _functions(code.co_filename).get((code.co_name, code.co_firstlineno))
    if tree is None:
        raise CompileError(
            f"{code.co_filename}:{code.co_firstlineno}: {code.co_name} is not defined by def, or its file cannot be read"
        )
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    source = Source(function.__qualname__, code.co_filename, tree, names)
    arguments = tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        source.fail(tree, "kernels have positional parameters without defaults only")
    return source


@cache
def _functions(file: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Return the functions of a file by name and first line, that of the first decorator if there is one."""
    tree = ast.parse("".join(linecache.getlines(file)), file)
    return {
        (node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])): node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
