"""The Python reference: signatures and docstrings as Markdown."""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["Entry", "Module", "modules", "public"]

PACKAGE = "ir_runtime"
MODULES = ("ir_runtime", "debug", "ops", "preprocess", "passes", "op", "properties", "properties.hint", "properties.device", "helpers", "utils", "exceptions", "backends", "dask", "report")  # fmt: skip
"""The modules that users import from; the opsets have pages of operations instead."""
GOOGLE = ("Args", "Returns", "Raises", "Yields", "Attributes", "Examples", "Note")
_HEADING = re.compile(rf"^({'|'.join(GOOGLE)}):$")
_FIELD = re.compile(r"^    (\*{0,2}[\w., *]+): (.*)$")


class Entry(NamedTuple):
    """The page of a class."""

    name: str
    path: str
    text: str


class Module(NamedTuple):
    """The page of a module, and those of its classes."""

    name: str
    summary: str
    path: str
    text: str
    classes: list[Entry]


def modules() -> Iterator[Module]:
    """Return a page for each module with public names."""
    every = {name if name == PACKAGE else f"{PACKAGE}.{name}": None for name in MODULES}
    pages = _class_pages(list(every))
    for name in every:
        module = import_module(name)
        doc = inspect.getdoc(module) or ""
        functions, rows, classes = [], [], []
        for key, thing in public(module):
            if not inspect.isclass(thing):
                functions.append(_entry(name, key, thing))
                continue
            path = pages[thing]
            about = (inspect.getdoc(thing) or "").partition("\n")[0].replace("|", "\\|")
            rows.append(f"| [{key}]({path.removeprefix('python/')}) | {markdown(about)} |")
            if path == _class_path(name, key):
                classes.append(Entry(key, path, f"# {name}.{key}\n\n{_class(name, key, thing, pages)}\n"))
        table = ["\n".join(("## Classes", "", "| class | what it is |", "|---|---|", *rows))] if rows else []
        text = "\n\n".join((f"# {name}", markdown(doc), *table, *functions)) + "\n"
        yield Module(name, doc.partition("\n")[0], f"python/{name}.md", text, classes)


def _class_path(module: str, name: str) -> str:
    return f"python/{module}/{name}.md"


def _class_pages(names: list[str]) -> dict[type, str]:
    """Return the page of each class, below the first module that exports it."""
    pages: dict[type, str] = {}
    for name in names:
        for key, thing in public(import_module(name)):
            if inspect.isclass(thing):
                pages.setdefault(thing, _class_path(name, key))
    return pages


def public(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Return the public names of a module in alphabetical order, without modules."""
    for name in sorted(getattr(module, "__all__", ()), key=str.casefold):
        thing = getattr(module, name)
        if not name.startswith("_") and not isinstance(thing, types.ModuleType):
            yield name, thing


def _entry(module: str, name: str, thing: Any) -> str:
    head = f"## {name}"
    return "\n\n".join(
        filter(
            None, (head, f"```python\n{_signature(f'{module}.{name}', thing)}\n```", markdown(_doc(thing)))
        )
    )


def _class(module: str, name: str, cls: type, pages: dict[type, str]) -> str:
    """Return the text of a class, without the members inherited from classes with pages."""
    bases = [base for base in cls.__mro__[1:] if base in pages]
    parts = [f"```python\n{_signature(f'{module}.{name}', cls)}\n```", markdown(_doc(cls))]
    if bases:
        links = ", ".join(f"[{base.__name__}](../{pages[base].removeprefix('python/')})" for base in bases)
        parts.append(f"It also has what it inherits from {links}.")
    parts += [markdown(text) for text in _inherited_examples(cls)]
    inherited = {each for base in bases for each in base.__mro__}
    own = [base for base in cls.__mro__ if base not in inherited]
    parts += [_member(name, key, member) for key, member in _members(own)]
    return "\n\n".join(filter(None, parts))


def _inherited_examples(cls: type) -> Iterator[str]:
    """Return the examples of undocumented base classes, which show inherited methods."""
    listed = import_module(PACKAGE).__all__
    for base in (each for each in cls.__mro__[1:] if each.__name__ not in listed):
        if base.__module__.startswith(PACKAGE) and ">>> " in (text := inspect.cleandoc(base.__doc__ or "")):
            _, _, rest = text.partition("\n\n")
            yield re.split(rf"^(?:{'|'.join(GOOGLE)}):$", rest, maxsplit=1, flags=re.MULTILINE)[0].rstrip()


def _doc(thing: Any) -> str:
    """Return an object's own docstring; an instance's inherited one describes its class."""
    if inspect.isclass(thing) or callable(thing):
        return inspect.getdoc(thing) or ""
    return (
        inspect.getdoc(thing) or ""
        if inspect.getdoc(thing) != inspect.getdoc(type(thing))
        else f"`{thing!r}`"
    )


def _members(classes: list[type]) -> Iterator[tuple[str, Any]]:
    """Yield the public members defined by classes, in method resolution order."""
    found: dict[str, Any] = {}
    for base in reversed(classes):
        if base.__module__.startswith(PACKAGE):
            found |= vars(base)
    for name, member in sorted(found.items()):
        if name.startswith("_"):
            continue
        if isinstance(member, (enum.Enum, property, classmethod, staticmethod)) or inspect.isfunction(member):
            yield name, member


def _member(owner: str, name: str, member: Any) -> str:
    if isinstance(member, enum.Enum):
        return f"* `{owner}.{name}` = `{member.value!r}`"
    if isinstance(member, property):
        return f"## {owner}.{name}\n\n" + markdown(inspect.getdoc(member) or "")
    inner = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
    text = _signature(f"{owner}.{name}", inner)
    return f"## {owner}.{name}\n\n```python\n{text}\n```\n\n" + markdown(inspect.getdoc(inner) or "")


def _signature(name: str, thing: Any) -> str:
    if isinstance(thing, type) and issubclass(thing, (enum.Enum, BaseException)):
        bases = ", ".join(base.__name__ for base in thing.__bases__)
        return f"class {name}({bases})"
    try:
        signature = str(inspect.signature(thing)).replace("ir_runtime.", "") if callable(thing) else ""
    except ValueError:
        signature = "(...)"
    text = f"{name}{signature}"
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", re.sub(r" at 0x[0-9a-f]+", "", text))
    if len(text) > 88 and ", " in signature:
        inside, _, after = text.partition("(")[2].rpartition(")")
        text = f"{name}(\n    " + ",\n    ".join(_split(inside)) + f",\n){after}"
    return f"class {text}" if isinstance(thing, type) else text


def _split(text: str) -> Iterator[str]:
    """Split the parameters of a signature at commas outside brackets."""
    depth, start = 0, 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def markdown(doc: str) -> str:
    """Return a docstring as Markdown: sections become lists, examples code blocks, ```` ``x`` ```` becomes `x`."""
    blocks = re.split(r"\n\n+", doc.strip())
    return "\n\n".join(_block(block) for block in _joined(blocks) if block.strip())


def _joined(blocks: list[str]) -> Iterator[str]:
    """Join consecutive examples into one block."""
    held = ""
    for block in blocks:
        if _is_example(block) and _is_example(held):
            held = f"{held}\n{inspect.cleandoc(block)}"
        else:
            yield held
            held = inspect.cleandoc(block) if _is_example(block) else block
    yield held


def _is_example(block: str) -> bool:
    return block.lstrip().startswith(">>>")


def _block(block: str) -> str:
    if _is_example(block):
        return f"```pycon\n{block}\n```"
    lines = block.replace("``", "`").split("\n")
    heading = _HEADING.match(lines[0])
    if heading is None:
        return "\n".join(lines)
    rest = "\n".join(lines[1:])
    if _is_example(rest):
        return f"```pycon\n{inspect.cleandoc(rest)}\n```"
    return f"**{heading[1]}**\n\n" + "\n".join(map(_field, lines[1:]))


def _field(line: str) -> str:
    found = _FIELD.match(line)
    return (
        f"* `{found[1]}`: {found[2]}" if found else line if line.startswith("      ") else f"* {line.strip()}"
    )
