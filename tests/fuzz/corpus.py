"""Valid models, from which invalid ones are derived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness.files import model_of
from harness.legacy import CASES, loop
from harness.sample import Sample, all_samples, is_sampled

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["Case", "Corpus", "build", "read", "write"]

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.xml"
PAGES = Path(__file__).parents[1] / "frontend/pages"
LARGEST = 60_000
"""Bytes of the XML of a model; larger ones take time and show nothing new."""


@dataclass(frozen=True, slots=True)
class Case:
    """An input: a name that identifies its origin, the XML or page, and the ``.bin``."""

    name: str
    xml: bytes
    weights: bytes = b""
    inputs: tuple[Array, ...] | None = None
    """What it is run with, where that is what matters."""
    seeds: tuple[int, ...] | None = None
    """What its strings and the commands that are called follow from, where those are what matters."""
    manifest_of: str = ""
    """The result of a run by rows whose manifest it is, instead of a model."""
    kind: str = "lengths"
    """What was changed in these inputs, and so what is held against what."""


Corpus = list[Case]


def read(path: Path) -> Case:
    """Read a case written by `write`."""
    weights, inputs = path.with_suffix(".bin"), path.with_suffix(".npz")
    return Case(
        path.stem,
        path.read_bytes(),
        weights.read_bytes() if weights.exists() else b"",
        _read_arrays(inputs) if inputs.exists() else None,
    )


def write(case: Case, path: Path) -> None:
    """Write the XML to a file, and the other data next to it."""
    path.write_bytes(case.xml)
    if case.weights:
        path.with_suffix(".bin").write_bytes(case.weights)
    if case.inputs is not None:
        named = {f"{i} {ElementType.from_dtype(x.dtype).label}": _plain(x) for i, x in enumerate(case.inputs)}
        np.savez(path.with_suffix(".npz"), **named)


def _plain(array: Array) -> Array:
    """Return an array that NumPy can save: types that it lacks as integers."""
    if array.dtype == object:
        return array.astype(str)
    return array.view(f"u{array.itemsize}") if array.dtype.kind == "V" else array


def _read_arrays(path: Path) -> tuple[Array, ...]:
    with np.load(path) as saved:
        found = [(np.dtype(ElementType.parse(name.split()[1]).dtype), saved[name]) for name in saved]
    return tuple(x.astype(object) if dtype.kind == "O" else x.view(dtype) for dtype, x in found)


def build(whole: bool = True) -> Corpus:
    """Yield digits, every operation version, pages, and (with OpenVINO) every test model of moderate size."""
    found = [Case("digits", DIGITS.read_bytes(), DIGITS.with_suffix(".bin").read_bytes())]
    found += [Case(page.stem, page.read_bytes()) for page in sorted(PAGES.glob("*.txt"))]
    found += legacy()
    found += layers(all_samples())
    found += networks() if whole else ()
    return found


def legacy() -> Iterator[Case]:
    """Yield layers of IR versions 2 to 7, and a loop of version 5."""
    for number, case in enumerate(CASES):
        net = case.net()
        yield Case(f"Legacy {number} {case.type}", net.xml(), net.weights)
    net = loop()
    yield Case("legacy loop", net.xml(), net.weights)


def layers(samples: Iterable[Sample]) -> Iterator[Case]:
    """Yield each operation version as a model: static, fully dynamic, and with all but its first input constant."""
    seen: set[str] = set()
    for sample in samples:
        if sample.op in seen or not is_sampled(sample.cls):
            continue
        seen.add(sample.op)
        rest = range(1, len(sample.inputs))
        yield Case(sample.op, *model_of(sample, sample.constant))
        yield Case(f"{sample.op} any", *model_of(sample, sample.constant, dynamic=True))
        yield Case(f"{sample.op} fed", *model_of(sample, rest))
        yield Case(f"{sample.op} folded", *model_of(sample, (0, *rest)))


def networks() -> Iterator[Case]:
    """Yield the test models: bodies, variables, caches, quantized and compressed weights."""
    from models.collection import COLLECTION, saved

    for name in COLLECTION:
        path = saved(name)
        weights = path.with_suffix(".bin")
        if path.stat().st_size <= LARGEST:
            yield Case(name, path.read_bytes(), weights.read_bytes() if weights.exists() else b"")
