"""Whatever the strings of a model are, a command says what it says of ordinary ones, but for the names."""

from __future__ import annotations

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
from ir_runtime.bench import report
from ir_runtime.bench.start import Start

NAMES = 200
"""Strings of the models."""


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[Path]]:
    """Folders with the model of hostile names, and with its twin, by whether the models are broken."""
    xml, weights = sample()
    found: dict[bool, list[Path]] = {}
    for broken in (False, True):
        for name, word in (("hostile", word_of(WORDS)), ("ordinary", ordinary)):
            folder = tmp_path_factory.mktemp(name)
            prepare(folder, renamed(xml, word, broken), weights, [word(number) for number in range(NAMES)])
            found.setdefault(broken, []).append(folder)
    for folder in found[False]:
        model = ir_runtime.read_model(folder / "model.xml")
        arrays = {port.label: np.zeros(port.shape, port.element_type.dtype) for port in model.inputs}
        np.savez(folder / "inputs.npz", **arrays)
        results = ir_runtime.compile_model(model, backend="reference")(list(arrays.values())).to_tuple()
        np.savez(folder / "results.npz", *results)
    return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    start = Start(imported=0, read=0, compile=0, first=0, base=0, peak=0)
    monkeypatch.setattr(report, "measure", lambda *_: start)
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IR_RUNTIME_BACKEND", "numpy")


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
@pytest.mark.parametrize("command", commands())
def test_names_stay_names(command: str, broken: bool, twins: dict[bool, list[Path]]) -> None:
    words = [[word(number) for number in range(NAMES)] for word in (word_of(WORDS), ordinary)]
    lines = zip(*(invocations(command, names[0]) for names in words), strict=True)
    for number, (line, other) in enumerate(lines):
        if number < 4 or not broken or command in ("validate", "inspect", "graph", "shapes", "report"):
            compare(line, other, twins[broken], words)


def flooding() -> bytes:
    """A model whose longest name is said again and again: for its attributes, its ports, and what reads it."""
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
        if number < 2 or command in ("validate", "inspect", "graph", "shapes"):
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
