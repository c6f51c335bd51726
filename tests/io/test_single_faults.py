"""Models with one fault: OpenVINO's reader and ours agree on their validity, except for justified differences."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino as ov
import pytest
from harness.oracle import read
from lxml import etree
from models.controlled import CASES
from models.stateful import total
from openvino import opset13 as op

import ir_runtime as ir

# What stands in place of an attribute; braces stand for what it was.
GARBAGE = ("", " ", "garbage", "-1", "0", "99999", "{} ", " {}", "{}x", "1.5")
DIMS = ("", "?", "-1", "7", "x", "{}x", "1.5", "2..3")
_SPECIAL = ("Const", "Parameter", "Result", "Assign")
MEANT = {
    "element_type": ("i64", "F32", "FP32"),
    "precision": ("I64", "F32", "fp32"),
    "version": ("opset99", "OPSET1", "../../etc"),
    "type": ("Constant", "Add", "RESULT", "parameter"),
    "shape": ("...", "?", "[2]"),
}
"""Others, which are not garbage, but may be wrong where they stand."""


def faults(xml: bytes, seen: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each fault by name, with the model that has it; one for each kind of element and attribute.

    Args:
        xml: a model.
        seen: the faults planted in earlier models; those of this one are added.
    """
    root = etree.fromstring(xml)
    for element in list(root.iter("*")):
        place = _place(element)
        for name, change in _changes(element):
            if (fault := f"{place} {name}") not in seen:
                seen.add(fault)
                before = deepcopy(root)
                path = root.getroottree().getpath(element)
                change(before.getroottree().xpath(path)[0])
                yield fault, etree.tostring(before)


def _changes(element: Any) -> Iterator[tuple[str, Any]]:
    for attribute, was in element.attrib.items():
        yield f"{attribute} gone", lambda e, a=attribute: e.attrib.pop(a)
        for text in (*GARBAGE, *MEANT.get(attribute, ())):
            if (now := text.replace("{}", was)) != was:
                yield f"{attribute}={text!r}", lambda e, a=attribute, t=now: e.set(a, t)
    for text in DIMS if element.tag == "dim" else ():
        now = text.replace("{}", element.text)
        yield f"is {text!r}", lambda e, t=now: setattr(e, "text", t)
    if element.getparent() is not None:
        yield "gone", lambda e: e.getparent().remove(e)
        yield "twice", lambda e: e.addnext(deepcopy(e))


def _place(element: Any) -> str:
    """Return the tags below the layer, its type if that matters, and whether it is in a body."""
    tags: list[str] = []
    for each in (element, *element.iterancestors()):
        tags.append(each.tag)
        if each.tag == "layer":
            special = element.tag == "data" or (element is each and each.get("type") in _SPECIAL)
            tags[-1] = each.get("type") if special else each.tag
            break
    inside = any(each.tag.endswith("body") for each in element.iterancestors())
    return "/".join([*(["body"] if inside else []), *reversed(tags)])


def plain() -> ov.Model:
    """A model with attributes of every kind: lists, numbers, enumerations, booleans, element types."""
    x = op.parameter([1, 3, 8, 8], np.float32, name="x")
    filtered = op.convolution(
        x, op.constant(np.ones((4, 3, 3, 3), np.float32)), [1, 1], [1, 1], [1, 1], [1, 1]
    )
    best = op.topk(op.relu(filtered), op.constant(2), 1, "max", "value")
    both = op.add(best.output(0), op.convert(best.output(1), "f32"))
    flat = op.reshape(both, op.constant([1, -1]), False)
    flat.output(0).set_names({"flat"})
    return ov.Model([op.result(flat)], [x], "plain")


def iterating() -> ov.Model:
    """A TensorIterator over rows."""
    x, start = (op.parameter([n, 3], np.float32, name=name) for n, name in ((4, "x"), (1, "start")))
    part, total = (op.parameter([1, 3], np.float32, name=name) for name in ("part", "total"))
    new = op.add(part, total)
    node = op.tensor_iterator()
    node.set_body(ov.Model([op.result(new)], [part, total]))
    node.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    node.set_merged_input(total, start.output(0), new.output(0))
    return ov.Model([node.get_iter_value(new.output(0), -1)], [x, start])


BASES: dict[str, Callable[[], ov.Model]] = {
    "plain": plain,
    "stateful": total,
    "if": CASES["if_with_other_inputs_in_each_branch"][0],
    "loop": CASES["loop_over_slices"][0],
    "iterator": iterating,
}

# OpenVINO falls over these; they are refused here.
FATAL = (
    r"(ReadValue|Assign)/data (variable_id )?gone",
    r"(body/)?(Const|Parameter) type='Constant'",
    r".*(stride|part_size)='0'",
)

# What OpenVINO refuses, and we accept.
ACCEPTED = {
    r".*output/port precision(='')? ?(gone)?": "the type of an output follows from its layer",
    r".*port/dim is '\?'": "dims are read as in attributes; what they declare decides nothing",
    r".*Const/data (offset|size)='\{\} '": "blanks around numbers of attributes do not count, as for other layers",
    r".*Const/data shape='( |\{\} | \{\})'": "blanks around numbers of attributes do not count, as for other layers",
    r".*Const/data element_type='F32'": "of other layers, OpenVINO reads types in capitals, too",
}

# What OpenVINO reads, and we refuse.
REFUSED = {
    r".*(layer|Const|Parameter|Result|Assign|output|input|body) twice|.*port twice": "which of the two is meant is unknown",
    r".*port/dim is '(\{\}x|1\.5)'": "OpenVINO reads the number that the text begins with",
    r".*data \w+='(\{\}x|1\.5)'": "OpenVINO reads the number that the text begins with",
    r".*input/port precision=.*": "OpenVINO does not look at what cannot be read there",
    r".*(special_zero|stable)=.*": "OpenVINO takes the default for what is no truth value",
    r".*(Result|Assign|ReLU|layer) (type=.*|gone)": "OpenVINO leaves out what no output needs, and so loses one",
    r".*(Const|Parameter) type='parameter'": "the type is to be written as it is; in bodies, OpenVINO refuses others",
    r".*Parameter/data (shape|element_type) gone": "the page asks for them; OpenVINO takes a scalar of any type",
    r".*Convert/data (destination_type )?gone": "OpenVINO leaves the type open, and runs no such layer",
    r"Convolution/data gone": "nothing tells how many spatial axes there are; OpenVINO guesses from the filters",
    r"TopK/data (axis )?gone|TopK/data axis='0'": "k is too large there, which OpenVINO notices when it runs",
    r".*(input|output) gone|.*Assign/output gone": "something is left without what feeds it",
    r".*port_map/(in|out)put (external_port_id|internal_layer_id|purpose|part_size|stride|start|end).*": (
        "it ties what there is not, leaves something untied, or takes parts beyond the end"
    ),
    r".*back_edges/edge .*": "it ties what there is not",
    r".*/(layers|edges) twice": "OpenVINO reads the first, and not the second",
    r"net/layers gone": "edges that lead nowhere",
    r"net/edges/edge from-layer='0'": "the input that it brings does not fit",
}


class Verdict(NamedTuple):
    """The outcome of a model with a fault."""

    theirs: bool
    valid: bool
    read: bool


def judged(xml: bytes, weights: bytes) -> Verdict:
    """Return whether OpenVINO reads the model, whether it is valid here, and whether we read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of declarations, which decide nothing
        return Verdict(
            _works(lambda: read(xml, weights)),
            ir.validate(xml, weights).ok,
            _works(lambda: ir.read_model(xml, weights)),
        )


def _works(action: Callable[[], object]) -> bool:
    try:
        action()
    except RuntimeError:
        return False
    return True


@cache
def verdicts(every: int = 1) -> dict[str, Verdict]:
    """Judge every fault, or every n-th one, in the first model that can have it."""
    seen: set[str] = set()
    found = {}
    for build in BASES.values():
        xml, weights = _saved(build())
        for name, faulty in list(faults(xml, seen))[::every]:
            if not _matches(name, FATAL):
                found[name] = judged(faulty, weights)
    return found


def _saved(model: ov.Model) -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        ov.serialize(model, path)
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def _matches(name: str, patterns: object) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)  # type: ignore[attr-defined]


def accepted(every: int = 1) -> list[str]:
    return [name for name, verdict in verdicts(every).items() if not verdict.theirs and verdict.valid]


def refused(every: int = 1) -> list[str]:
    return [name for name, verdict in verdicts(every).items() if verdict.theirs and not verdict.read]


@pytest.mark.parametrize("base", BASES)
def test_without_a_fault_they_are_valid(base: str) -> None:
    assert judged(*_saved(BASES[base]())) == Verdict(True, True, True)


some_and_all = pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.oracle)])


@some_and_all
def test_what_openvino_refuses_is_refused(every: int) -> None:
    assert len(verdicts(every)) * every > 1000
    assert [name for name in accepted(every) if not _matches(name, ACCEPTED)] == []


@some_and_all
def test_what_openvino_reads_is_read(every: int) -> None:
    assert [name for name in refused(every) if not _matches(name, REFUSED)] == []


@some_and_all
def test_what_is_valid_can_be_read(every: int) -> None:
    assert [name for name, verdict in verdicts(every).items() if verdict.valid and not verdict.read] == []


@pytest.mark.oracle
def test_every_reason_is_needed() -> None:
    for patterns, names in ((ACCEPTED, accepted()), (REFUSED, refused())):
        assert [p for p in patterns if not any(re.fullmatch(p, name) for name in names)] == []
