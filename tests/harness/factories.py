"""Write the modules ``opset1`` … ``opset17``: functions that create operations, with OpenVINO's parameters.

What a function says of itself is what the operation declares.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ir_runtime
from harness.factory_table import FACTORIES
from ir_runtime.ir.element import ElementType
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.attributes import MISSING, Attribute

__all__ = ["parameters_of", "written"]

WIDTH = 110
_ROW = re.compile(r"(?P<name>\w+) = (?P<what>@?[\w-]*)(?:\((?P<parameters>.*)\))?")
_PARAMETER = re.compile(r"(?P<stars>\**)(?P<name>\w+)(?:>(?P<target>\w+))?(?:=(?P<default>.*))?")
_HAND = "@"

_MODULE = '''"""The operations that {opset} added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

{imports}
from ..api.nodes import Node

__all__ = [
{names}
]
{functions}'''

_PACKAGE = '''"""Functions that create the operations of {opset}, as ``openvino.{opset}`` has them. Written by ``make index``."""

{imports}
'''


@dataclass
class Parameter:
    """A parameter of a factory: an input or an attribute of the operation, or several."""

    name: str
    target: str
    kind: str
    """``input``, ``inputs``, ``attribute`` or ``attributes``."""
    default: str | None
    annotation: str
    doc: str

    @property
    def text(self) -> str:
        quoted = None if self.default is None else self.default.replace("'", '"')
        default = "" if quoted is None else f" = {quoted}"
        optional = self.default == "None" and self.annotation != "Any"
        return f"{self.name}: {self.annotation}{' | None' if optional else ''}{default}"


@dataclass
class Factory:
    """A function of an opset."""

    name: str
    cls: type[Op] | None
    parameters: list[Parameter] = field(default_factory=list)
    by_hand: str = ""


def written() -> Iterator[tuple[Path, str]]:
    """Yield every module of an opset: its file, and what is to be in it.

    Factories that a later opset replaces have modules of their own, so that each opset imports what it has, and
    nothing twice: type checkers would take the former one.
    """
    root = Path(ir_runtime.__file__).parent
    groups: dict[tuple[int, int], list[Factory]] = {}
    for number in FACTORIES:
        for factory in factories_of(number):
            groups.setdefault((number, _replaced(number, factory.name)), []).append(factory)
    for (number, until), factories in groups.items():
        yield root / f"opset{number}" / f"{_module_name(until)}.py", _module(number, factories)
    for number in FACTORIES:
        yield root / f"opset{number}" / "__init__.py", _package(number, list(groups))


def _replaced(number: int, name: str) -> int:
    """Return the opset that replaces a factory; 0 if none does."""
    later = (n for n in sorted(FACTORIES) if n > number and any(f.name == name for f in factories_of(n)))
    return next(later, 0)


def _module_name(until: int) -> str:
    return f"until_{until}" if until else "ops"


def factories_of(number: int) -> Iterator[Factory]:
    """Yield the factories that an opset adds."""
    for row in FACTORIES[number].split("\n"):
        if row.strip():
            yield _factory(row.strip())


def _factory(row: str) -> Factory:
    found = _ROW.fullmatch(row)
    assert found is not None, row
    what = found["what"]
    if what.startswith(_HAND):
        return Factory(found["name"], None, by_hand=what.removeprefix(_HAND) or found["name"])
    type, _, since = what.rpartition("-")
    cls = next(c for c in registry.versions(type) if c.since == int(since))
    said = found["parameters"]
    return Factory(found["name"], cls, parameters_of(cls, None if said is None else said))


def parameters_of(cls: type[Op], said: str | None) -> list[Parameter]:
    """Return the parameters of a factory: those that are listed, or else those of the declaration."""
    inputs = {port.name: port for port in cls.inputs}
    if said is None:
        listed = [f"{n}=None" if p.optional else f"*{n}" if p.variadic else n for n, p in inputs.items()]
        listed += [
            n if a.required else f"{n}={_default(a)}" for n, a in cls.schema().items() if not a.external
        ]
    else:
        listed = re.split(r", (?=\*|\w)", said)
    parsed = [_PARAMETER.fullmatch(text) for text in listed]
    names = [m["target"] or m["name"] for m in parsed if m]
    left = [name for name in inputs if name not in map(str.lower, names)]
    return [_parameter(cls, match, left) for match in parsed if match is not None]


def _parameter(cls: type[Op], match: re.Match[str], left: list[str]) -> Parameter:
    """Return a parameter; take the next input that is left for a name that the declaration does not have."""
    name, target, default = match["name"], match["target"] or match["name"], match["default"]
    inputs = {port.name: port for port in cls.inputs}
    if match["stars"] == "**":
        return Parameter(name, name, "attributes", default, "Mapping[str, Any]", "the attributes by name")
    if match["stars"] == "*":
        port = cls.inputs[-1]
        return Parameter(name, port.name, "inputs", default, "Sequence[NodeInput]", port.doc)
    if target in cls.schema() and target.lower() not in inputs:
        attribute = cls.schema()[target]
        return Parameter(
            name, target, "attribute", default, _annotation(attribute), _attribute_doc(attribute)
        )
    own = target.lower() if target.lower() in inputs else left.pop(0)
    return Parameter(name, own, "input", default, "NodeInput", inputs[own].doc)


def _default(attribute: Attribute) -> str:
    value = attribute.default
    if isinstance(value, ElementType):
        return f"'{value.label}'"
    return "None" if value == () or value is MISSING else repr(value)


def _annotation(attribute: Attribute) -> str:
    if attribute.type is ElementType:
        return "TypeLike"
    kind = attribute.type
    simple: Mapping[Any, str] = {int: "int", float: "float", bool: "bool", str: "str"}
    if kind in simple:
        return simple[kind]
    text = str(kind)
    if text.startswith("tuple["):
        item = text.removeprefix("tuple[").split(",")[0]
        return f"Sequence[{item if item in ('int', 'float', 'bool') else 'str'}]"
    return "str" if "Literal" in text else "Any"


def _attribute_doc(attribute: Attribute) -> str:
    return attribute.doc or attribute.allows().removeprefix("must be ")


def _module(number: int, factories: list[Factory]) -> str:
    functions = "".join(map(_function, (f for f in factories if f.cls is not None)))
    used = {"make"} if functions else set()
    used |= {name for name in ("NodeInput", "TypeLike") if name in functions}
    hand = [f"{f.by_hand} as {f.name}" if f.by_hand != f.name else f.name for f in factories if f.by_hand]
    text = _MODULE.format(
        opset=f"opset{number}",
        imports=_import("..api.building.factories", sorted({*used, *hand}, key=_import_order)),
        names="\n".join(f'    "{f.name}",' for f in factories),
        functions=functions,
    )
    return _without_unused(text)


def _import_order(name: str) -> tuple[bool, str]:
    return (name[0].islower(), name)


def _without_unused(text: str) -> str:
    head, rest = text.split("__all__", 1)
    for name in ("Mapping", "Sequence"):
        if f"{name}[" not in rest:
            head = re.sub(rf"\b{name}(, )?", "", head.replace(f", {name}\n", "\n"), count=1)
    head = head.replace("from collections.abc import \n", "")
    if "Any]" not in rest:
        head = head.replace("from typing import Any\n", "")
    if "-> Node" not in rest:
        head = head.replace("from ..api.nodes import Node\n", "")
    return re.sub(r"\n{3,}", "\n\n", head) + "__all__" + rest


def _function(factory: Factory) -> str:
    cls, parameters = factory.cls, factory.parameters
    assert cls is not None
    sequences = [p for p in parameters if p.kind == "inputs"]
    inputs = {p.target: p.name for p in parameters if p.kind in ("input", "inputs")}
    ordered = [inputs[port.name] for port in cls.inputs if port.name in inputs]
    ordered = [f"*{name}" if any(p.name == name for p in sequences) else name for name in ordered]
    spread = [
        f"**({p.name} or {{}})" if p.default else f"**{p.name}" for p in parameters if p.kind == "attributes"
    ]
    pairs = [f'"{p.target}": {p.name}' for p in parameters if p.kind == "attribute"]
    lines = ["", "", f"def {factory.name}("]
    lines += [f"    {p.text}," for p in parameters]
    lines += ["    name: str | None = None,", ") -> Node:", *_doc(cls, parameters)]
    attributes = [f"            {item}," for item in (*spread, *pairs)]
    lines += ["    return make(", f'        "{cls.name}",', f"        {cls.since},"]
    lines += [f"        [{', '.join(ordered)}],"]
    lines += ["        {", *attributes, "        },"] if attributes else ["        {},"]
    lines += ["        name,", "    )", ""]
    return "\n".join(lines)


def _doc(cls: type[Op], parameters: list[Parameter]) -> list[str]:
    summary = next((c.__doc__ for c in cls.__mro__ if "__doc__" in vars(c) and c.__doc__), "") or ""
    first = " ".join(summary.strip().split("\n\n")[0].split())
    first = first if first.endswith(".") else first + "."
    whole = f'    """{cls.versioned_name()}: {first}'
    lines = [whole]
    if len(whole) > WIDTH:
        lines = [f'    """Create {cls.versioned_name()}.', ""]
        lines += textwrap.wrap(first, WIDTH, initial_indent="    ", subsequent_indent="    ")
    lines += ["", "    Args:"]
    every = [*((p.name, p.doc) for p in parameters), ("name", "the name of the node")]
    for name, doc in every:
        text = " ".join(doc.split()) or "see the specification"
        lines += textwrap.wrap(f"        {name}: {text}.", WIDTH, subsequent_indent=" " * 12)
    return [*lines, '    """']


def _package(number: int, groups: Sequence[tuple[int, int]]) -> str:
    own = [f"from .{_module_name(u)} import *" for n, u in groups if n == number]
    others = [
        f"from ..opset{n}.{_module_name(u)} import *"
        for n, u in groups
        if n < number and (not u or u > number)
    ]
    return _PACKAGE.format(opset=f"opset{number}", imports="\n".join([*others, *own]))


def _import(module: str, names: list[str]) -> str:
    one = f"from {module} import {', '.join(names)}"
    if len(one) <= WIDTH:
        return one
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"
