"""The functions of opsets, compiled on first use.

A function is compiled from generated source: parameters come from `FACTORIES` and the declaration of the
operation, the docstring from the declaration. Calls are as fast as those of handwritten functions, and
Python's errors for wrong arguments name the function and the parameter. Type checkers read ``opset1.pyi`` …
``opset17.pyi``, which ``make index`` writes from the same source.
"""

from __future__ import annotations

import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .factory_table import FACTORIES

if TYPE_CHECKING:
    from ...ops import Op
    from ...ops._define.attributes import Attribute

__all__ = ["Factory", "Parameter", "attach", "factories_of", "origins"]

_PACKAGE = __name__.partition(".")[0]
_WIDTH = 110
_ROW = re.compile(r"(?P<mark>@ )?(?P<names>[\w> ]+?)(?: \((?P<parameters>.*)\))?")
_PARAMETER = re.compile(r"(?P<stars>\**)(?P<name>\w+)(?:>(?P<target>\w+))?(?:=(?P<default>.*))?")


def attach(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of the module of an opset.

    The module becomes a package that is its own submodule ``ops``, where OpenVINO defines the additions of an
    opset.
    """
    opset = int(module.rpartition("opset")[2])
    opsets = origins(opset)
    namespace = vars(sys.modules[module])
    namespace["__path__"] = []
    namespace["ops"] = sys.modules[f"{module}.ops"] = sys.modules[module]

    def get(name: str) -> Any:
        added_by = opsets.get(name)
        if added_by is None:
            from ..._util.absent import explaining_getattr

            explaining_getattr(module)(name)
        if added_by == opset:
            function = _create(opset, name)
        else:
            function = getattr(import_module(f"{_PACKAGE}.opset{added_by}"), name)
        return namespace.setdefault(name, function)  # the first one, if threads race

    return get, lambda: list(opsets), list(opsets)


def origins(opset: int) -> dict[str, int]:
    """Return the opset that added each factory of an opset, by name.

    >>> origins(8)["softmax"], origins(7)["softmax"]
    (8, 1)
    """
    added_by = {name: number for number in range(1, opset + 1) for name in _rows(number)}
    return dict(sorted(added_by.items()))


@dataclass
class Parameter:
    """A parameter of a factory: an input, an attribute, or several of them."""

    name: str
    target: str
    kind: str
    """``input``, ``inputs``, ``attribute`` or ``attributes``."""
    default: str | None
    annotation: str
    doc: str

    @property
    def text(self) -> str:
        """The source of the parameter in the definition."""
        quoted = None if self.default is None else self.default.replace("'", '"')
        default = "" if quoted is None else f" = {quoted}"
        optional = self.default == "None" and self.annotation != "Any"
        return f"{self.name}: {self.annotation}{' | None' if optional else ''}{default}"


@dataclass
class Factory:
    """A function of an opset."""

    name: str
    cls: type[Op] | None
    """The operation; None if the function is written by hand."""
    parameters: list[Parameter] = field(default_factory=list)
    by_hand: str = ""
    """The name in `factories` of a function that is written by hand."""

    def definition(self) -> str:
        """Return the source of the signature and docstring."""
        assert self.cls is not None
        parameters = [*(p.text for p in self.parameters), "name: str | None = None"]
        line = f"def {self.name}({', '.join(parameters)}) -> Node:"
        lines = [line]
        if len(line) > _WIDTH:
            lines = [f"def {self.name}(", *(f"    {text}," for text in parameters), ") -> Node:"]
        return "\n".join([*lines, *_doc(self.cls, self.parameters), ""])

    def body(self) -> str:
        """Return the source of the body, a call of `factories.make`."""
        assert self.cls is not None
        names = {p.target: p.name for p in self.parameters if p.kind == "input"}
        names |= {p.target: f"*{p.name}" for p in self.parameters if p.kind == "inputs"}
        inputs = [names[port.name] for port in self.cls.inputs if port.name in names]
        attributes = [
            f"**({p.name} or {{}})" if p.default else f"**{p.name}"
            for p in self.parameters
            if p.kind == "attributes"
        ]
        attributes += [f'"{p.target}": {p.name}' for p in self.parameters if p.kind == "attribute"]
        arguments = [f'"{self.cls.name}"', str(self.cls.since), f"[{', '.join(inputs)}]"]
        arguments += [f"{{{', '.join(attributes)}}}", "name"]
        return f"    return make({', '.join(arguments)})\n"


def _create(opset: int, name: str) -> Any:
    """Return a function added by an opset."""
    from . import factories

    factory = _factory(opset, name)
    if factory.cls is None:
        return getattr(factories, factory.by_hand)
    text, file = factory.definition() + factory.body(), f"<{_PACKAGE}.opset{opset}.{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # for debuggers
    namespace: dict[str, Any] = {}
    # compile inherits the import of annotations from this module: they stay text, as in a stub.
    exec(compile(text, file, "exec"), vars(factories), namespace)  # noqa: S102
    function = namespace[name]
    function.__module__ = f"{_PACKAGE}.opset{opset}.ops"
    return function


def factories_of(opset: int) -> list[Factory]:
    """Return the factories added by an opset."""
    return [_factory(opset, name) for name in _rows(opset)]


class _Row(NamedTuple):
    """The table's entry for a factory."""

    target: str
    """The operation, or the function in `factories`; empty if the name of the factory tells."""
    parameters: str | None
    by_hand: bool


@cache
def _rows(opset: int) -> dict[str, _Row]:
    """Return the rows of an opset's added factories, by name."""
    rows = {}
    for text in FACTORIES[opset].strip().split("\n"):
        match = _ROW.fullmatch(text.strip())
        assert match is not None, text
        for word in match["names"].split():
            name, _, target = word.partition(">")
            rows[name] = _Row(target, match["parameters"], bool(match["mark"]))
    return rows


def _factory(opset: int, name: str) -> Factory:
    from ...ops import registry

    row = _rows(opset)[name]
    if row.by_hand:
        return Factory(name, None, by_hand=row.target or name)
    versions = registry.versions(row.target or name.replace("_", ""))
    cls = [version for version in versions if version.since <= opset and registry.is_own(version)][-1]
    return Factory(name, cls, _parameters(cls, row.parameters))


def _parameters(cls: type[Op], listed: str | None) -> list[Parameter]:
    """Return the parameters of a factory: the listed ones, or else those of the declaration."""
    texts = _declared_parameters(cls) if listed is None else re.split(r", (?=\*|\w)", listed)
    matches = [_PARAMETER.fullmatch(text) for text in texts]
    names = [m["target"] or m["name"] for m in matches if m]
    left = [port.name for port in cls.inputs if port.name not in map(str.lower, names)]
    return [_parameter(cls, match, left) for match in matches if match is not None]


def _declared_parameters(cls: type[Op]) -> list[str]:
    """Return the declared parameters of an operation in the notation of the table."""
    inputs = [
        f"{port.name}=None" if port.optional else f"*{port.name}" if port.variadic else port.name
        for port in cls.inputs
    ]
    attributes = {name: a for name, a in cls.schema().items() if not a.external}
    return inputs + [name if a.required else f"{name}={_default(a)}" for name, a in attributes.items()]


def _parameter(cls: type[Op], match: re.Match[str], left: list[str]) -> Parameter:
    """Return a parameter; an undeclared name takes the next remaining input."""
    name, target, default = match["name"], match["target"] or match["name"], match["default"]
    inputs = {port.name: port for port in cls.inputs}
    if match["stars"] == "**":
        return Parameter(name, name, "attributes", default, "Mapping[str, Any]", "the attributes by name")
    if match["stars"] == "*":
        port = cls.inputs[-1]
        return Parameter(name, port.name, "inputs", default, "Sequence[NodeInput]", port.doc)
    if target in cls.schema() and target.lower() not in inputs:
        attribute = cls.schema()[target]
        doc = attribute.doc or attribute.allows().removeprefix("must be ")
        return Parameter(name, target, "attribute", default, _annotation(attribute.type), doc)
    own = target.lower() if target.lower() in inputs else left.pop(0)
    return Parameter(name, own, "input", default, "NodeInput", inputs[own].doc)


def _default(attribute: Attribute) -> str:
    from ...ir.element import ElementType
    from ...ops._define.attributes import MISSING

    value = attribute.default
    if isinstance(value, ElementType):
        return f"'{value.label}'"
    return "None" if value == () or value is MISSING else repr(value)


def _annotation(type: object) -> str:
    from ...ir.element import ElementType

    simple: Mapping[Any, str] = {
        int: "int",
        float: "float",
        bool: "bool",
        str: "str",
        ElementType: "TypeLike",
    }
    if type in simple:
        return simple[type]
    text = str(type)
    if text.startswith("tuple["):
        item = text.removeprefix("tuple[").split(",")[0]
        return f"Sequence[{item if item in ('int', 'float', 'bool') else 'str'}]"
    return "str" if "Literal" in text else "Any"


def _doc(cls: type[Op], parameters: list[Parameter]) -> list[str]:
    """Return the lines of the docstring, taken from the declaration of the operation."""
    summary = next((c.__doc__ for c in cls.__mro__ if "__doc__" in vars(c) and c.__doc__), "") or ""
    first = " ".join(summary.strip().split("\n\n")[0].split())
    first = first if first.endswith(".") else first + "."
    whole = f'    """{cls.versioned_name()}: {first}'
    lines = [whole]
    if len(whole) > _WIDTH:
        lines = [f'    """Create {cls.versioned_name()}.', "", *_wrap(first, "    ", "    ")]
    lines += ["", "    Args:"]
    for name, doc in (*((p.name, p.doc) for p in parameters), ("name", "the name of the node")):
        text = " ".join(doc.split()) or "see the specification"
        lines += _wrap(f"{name}: {text}.", " " * 8, " " * 12)
    return [*lines, '    """']


def _wrap(text: str, first: str, later: str) -> list[str]:
    if len(first + text) <= _WIDTH:
        return [first + text]
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=later)
