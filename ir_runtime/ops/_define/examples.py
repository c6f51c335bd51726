"""Test records of operations: an executed example, and the references of its samples.

``make index`` writes `_examples.json` from the test samples; a test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Described", "Recorded", "Samples", "Tensor", "recorded"]

Described: TypeAlias = dict[str, Any]
"""An operation, or a part of it, as data for JSON."""


class Tensor(NamedTuple):
    """A tensor of an example: port, element type, shape, and elements as NumPy prints them."""

    port: str
    type: str
    shape: Sequence[int]
    text: str


class Samples(NamedTuple):
    """The numbers of samples compared with OpenVINO's reference, its CPU plugin, and manual results."""

    reference: int
    plugin: int
    by_hand: int
    ranks: Sequence[int]
    types: Sequence[str]


class Recorded(NamedTuple):
    """An executed example and samples of an operation; None for operations that are tested in whole models."""

    xml: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    samples: Samples | None
    flops: str
    macs: str
    """Arithmetic of the example: a number, or a formula of dynamic lengths; empty if unknown."""


def recorded(name: str) -> Recorded | None:
    """Return the test record of an operation such as ``ReduceL2-4``; ``None`` for extensions."""
    entry = _every().get(name)
    if entry is None:
        return None
    inputs, outputs = ([Tensor(*tensor) for tensor in entry[side]] for side in ("inputs", "outputs"))
    samples = Samples(**entry["samples"]) if "samples" in entry else None
    return Recorded(entry["xml"], inputs, outputs, samples, entry.get("flops", ""), entry.get("macs", ""))


@cache
def _every() -> Mapping[str, Described]:
    text = files("ir_runtime.ops").joinpath("_examples.json").read_text(encoding="utf-8")
    entries: Mapping[str, Described] = json.loads(text)
    return entries
