"""Records of the tests for each operation: an example that ran, and what its samples were compared with.

``make index`` writes `_examples.json` from the samples of the tests; a test compares it with them.
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
    """How many samples were compared with OpenVINO's reference, with its CPU plugin, and with results by hand."""

    reference: int
    plugin: int
    by_hand: int
    ranks: Sequence[int]
    types: Sequence[str]


class Recorded(NamedTuple):
    """An example of an operation that ran, and its samples; None for operations that tests run as whole models."""

    xml: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    samples: Samples | None
    flops: str
    macs: str
    """Arithmetic of the example: a number, or a formula of open lengths; empty where it is unknown."""


def recorded(name: str) -> Recorded | None:
    """Return what the tests recorded of an operation such as ``ReduceL2-4``; ``None`` for extensions."""
    found = _every().get(name)
    if found is None:
        return None
    inputs, outputs = ([Tensor(*tensor) for tensor in found[side]] for side in ("inputs", "outputs"))
    samples = Samples(**found["samples"]) if "samples" in found else None
    return Recorded(found["xml"], inputs, outputs, samples, found.get("flops", ""), found.get("macs", ""))


@cache
def _every() -> Mapping[str, Described]:
    text = files("ir_runtime.ops").joinpath("_examples.json").read_text(encoding="utf-8")
    found: Mapping[str, Described] = json.loads(text)
    return found
