"""For a model with hostile names, a command prints the same as for ordinary names, except for the names."""

from __future__ import annotations

import math
import tempfile
import webbrowser
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from harness.hostile import (
    PARSERS,
    WORDS,
    BrokenOutError,
    commands,
    compare,
    invocations,
    ordinary,
    outcome,
    prepare,
    renamed,
    sample,
    word_of,
)
from harness.nets import Net

import ir_runtime
from ir_runtime.bench import profiled, report
from ir_runtime.bench.start import Start

NAMES = 200
"""Strings of the models."""
TURNS = 4
FORMS = {"--format", "--output", "--report-type", "--fusion", "--print-after"}
"""Options that decide in which format something is written."""
STATIC = ("validate", "inspect", "graph", "shapes", "report")
"""Commands that say of a broken model more than what is wrong."""


Twins = dict[tuple[bool, int], list[Path]]


def turned(turn: int) -> list[str]:
    """Return the hostile words, rotated so that over all turns each word serves as every kind of string."""
    start = turn * len(WORDS) // TURNS
    return [*WORDS[start:], *WORDS[:start]]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """Folders with the hostile model and its twin, by whether the models are invalid, and by turn."""
    xml, weights = sample()
    found: Twins = {}
    for broken, turn in product((False, True), range(TURNS)):
        for word in (word_of(turned(turn)), ordinary):
            folder = tmp_path_factory.mktemp("model")
            prepare(folder, renamed(xml, word, broken), weights, [word(number) for number in range(NAMES)])
            if not broken:
                model = ir_runtime.read_model(folder / "model.xml")
                arrays = [np.zeros(port.shape, port.element_type.dtype) for port in model.inputs]
                np.savez(
                    folder / "inputs.npz",
                    **{port.label: x for port, x in zip(model.inputs, arrays, strict=True)},
                )
                results = ir_runtime.compile_model(model, backend="reference")(arrays).to_tuple()
                np.savez(folder / "results.npz", *results)
            found.setdefault((broken, turn), []).append(folder)
    return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    start = Start(imported=0, read=0, compile=0, first=0, base=0, peak=0)
    monkeypatch.setattr(report, "measure", lambda *_: start)
    monkeypatch.setattr(profiled, "_BUSY", math.inf)  # or a sentence is there or not, as the machine is busy
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IR_RUNTIME_BACKEND", "numpy")


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
@pytest.mark.parametrize("command", commands())
def test_names_stay_names(command: str, broken: bool, twins: Twins) -> None:
    """All invocations once; those that select the output format with each rotation of the words."""
    for turn in range(TURNS):
        words = [[word(number) for number in range(NAMES)] for word in (word_of(turned(turn)), ordinary)]
        lines = list(zip(*(invocations(command, names[0]) for names in words), strict=True))
        for number, (line, other) in enumerate(lines):
            decides = FORMS & {*line[len(lines[0][0]) :]}
            if number < 2 or decides or (not turn and (not broken or command in STATIC)):
                compare(line, other, twins[broken, turn], words)


def flooding() -> bytes:
    """A model whose longest name appears many times: for its attributes, ports and consumers."""
    net, many = Net(), 40
    x = net.parameter("x", "2", out="FP32 2")
    unknown = {f"colour{number}": "red" for number in range(4 * many)}
    name = f"{'é' * 50_000}/{'x' * 50_000}"
    joined = net.op("Concat", *[x] * many, name=name, axis=0, out=f"FP32 {2 * many}", **unknown)
    for number in range(many):
        net.result(net.op("ReLU", joined, name=f"relu{number}", out=f"FP32 {2 * many + number % 2}"))
    return net.xml()


@pytest.mark.parametrize("command", commands())
def test_what_is_written_is_in_proportion_to_the_model(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xml = flooding()
    prepare(tmp_path, xml, b"", [])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cache").mkdir()
    for number, line in enumerate(invocations(command, "x")):
        if number < 2 or (command in STATIC and FORMS & {*line}):
            assert outcome(line, tmp_path, []).size < 30 * len(xml), line


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("text", b"a\n  ::stop-commands::x\n"),
        ("text", b"a ##[group]b"),
        ("text", "a\u202eb".encode()),
        ("json", b'{"a": NaN}'),
        ("json", b'["##[group]"]'),
        ("github", b"::error title=a::b\nc"),
        ("github", b"::error title=a,b::c"),
        ("github", "::error title=a::\x85".encode()),
        ("dot", b'digraph "a"b" {}'),
        ("html", b"<p onclick=x>"),
        ("html", b"<a href=' javascript:x'>"),
        ("csv", b"=1+1;2"),
        ("csv", b"a,@x;2"),
        ("py", b"x = '"),
    ],
)
def test_what_breaks_out_is_found(form: str, text: bytes) -> None:
    with pytest.raises((BrokenOutError, ValueError, SyntaxError)):
        PARSERS[form](text, [])
