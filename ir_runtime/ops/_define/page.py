"""The reference page of an operation in Markdown, as printed by ``ir-runtime ops NAME``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from .describe import record
from .examples import Described
from .operation import Op

__all__ = ["page"]

_WIDTH = 100


def page(cls: type[Op]) -> str:
    """Return the page of an operation version."""
    return "\n".join(_page(record(cls))) + "\n"


def _page(description: Described) -> Iterator[str]:
    yield f"# {description['operation']}"
    yield ""
    yield from (textwrap.fill(line, _WIDTH) for line in description["doc"].splitlines())
    yield from _section("Inputs", map(_input, description["inputs"]))
    yield from _section("Outputs", map(_output, description["outputs"]))
    yield from _section("Attributes", map(_attribute, description["attributes"]))
    yield from _section("Types", map(_element, description["types"]))
    for title in ("Clauses", "Decisions"):
        yield from _section(title, _numbered(title[0], description[title.lower()]))
    if description["tests"]:
        yield from _example(description["tests"])
        yield from _flops(description["tests"], description["flops_per_element"])
        yield from _test_summary(description["tests"]["samples"], description["tested_against"])
    yield "\n## Where it is\n"
    yield f"* Since opset{description['version']}, in the group {description['group'] or 'extension'}"
    if description["spec"]:
        yield f"* Specification: <{description['spec']}>"
    yield f"* Declared in `{description['source']}`"


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    lines = [_item(item) for item in items]
    if lines:
        yield from (f"\n## {title}\n", *lines)


def _item(text: str) -> str:
    return textwrap.fill(
        f"* {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _input(port: Described) -> str:
    kind = f"type {port['type']}" + " (or another floating-point type, as in OpenVINO)" * port["mixed"]
    qualifiers = [kind, *["optional"] * port["optional"], *["any number"] * port["variadic"]]
    return _entry(port["name"], qualifiers, port["doc"])


def _output(port: Described) -> str:
    return _entry(port["name"], [f"type {port['type']}", *["any number"] * port["variadic"]], port["doc"])


def _attribute(attribute: Described) -> str:
    return _entry(attribute["name"], [attribute["kind"], *_allowed_values(attribute)], attribute["doc"])


def _allowed_values(attribute: Described) -> Iterator[str]:
    if not attribute["required"]:
        default = attribute["default"]
        yield "optional" if default is None else f"default {_default(default)}"
    elif attribute["openvino_default"] is None:
        yield "required"
    else:
        yield f"required (OpenVINO takes {attribute['openvino_default'] or 'an empty list'} where it is missing)"
    for key, sign in (("greater_than", ">"), ("at_least", ">="), ("at_most", "<=")):
        if attribute[key] is not None:
            yield f"{sign} {attribute[key]:g}"


def _default(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return repr(value) if value == "" else str(value)


def _element(element: Described) -> str:
    return _entry(element["name"], element["allowed"], "")


def _numbered(letter: str, sentences: Sequence[str]) -> Iterator[str]:
    return (f"{letter}{number}: {sentence}" for number, sentence in enumerate(sentences, 1))


def _entry(name: str, qualifiers: Sequence[str], doc: str) -> str:
    return f"`{name}`: {', '.join(qualifiers)}" + (f"; {doc}" if doc else "")


def _example(tests: Described) -> Iterator[str]:
    yield "\n## Example\n"
    yield f"```xml\n{tests['example']}\n```"
    for side in ("inputs", "outputs"):
        tensors = "\n".join(map(_tensor, tests[side]))
        yield f"\n{side.capitalize()}:\n\n```text\n{tensors}\n```"


def _flops(tests: Described, per_element: int | None) -> Iterator[str]:
    sentences = []
    if per_element is not None:
        sentences.append(
            f"{per_element} for each element of the first output"
            if per_element
            else "None: elements are only moved"
        )
    if tests["flops"] and per_element != 0:
        added = f", of {tests['macs']} multiply-accumulates" if tests["macs"] != "0" else ""
        sentences.append(f"{tests['flops']} in the example{added}")
    if sentences:
        yield "\n## FLOPs\n"
        yield "; ".join(sentences) + "."


def _tensor(tensor: Described) -> str:
    shape = ",".join(map(str, tensor["shape"]))
    return f"{tensor['port']}  {tensor['type']} [{shape}]\n{tensor['text']}"


def _test_summary(samples: Described | None, against: str) -> Iterator[str]:
    yield "\n## Tested against\n"
    if samples is None:
        yield f"{against}, in whole models."
        return
    by = [
        f"{samples[key]} {text}"
        for key, text in (
            ("reference", "with its reference"),
            ("plugin", "with its CPU plugin"),
            ("by_hand", "with results computed by hand"),
        )
        if samples[key]
    ]
    total = samples["reference"] + samples["plugin"] + samples["by_hand"]
    ranks = ", ".join(map(str, samples["ranks"]))
    types = ", ".join(samples["types"])
    text = f"{against}: {total} samples, {', '.join(by)}; inputs of rank {ranks}, in {types}."
    yield textwrap.fill(text, _WIDTH)
