"""Observe a side by running it, or from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, starmap

from ..ir.graph import Port
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import entry_for
from .observation import Observation, SideLike
from .progress import skipped
from .reference import Reference
from .sides import side_of

__all__ = ["observed"]


def observed(
    model: Model, plain: Reference, feeds: list[Array], side: SideLike, ports: Sequence[Port]
) -> Observation:
    """Run a side, or restore its observations from the cache."""
    entry = entry_for(f"observation {list(ports)}", model, feeds, side)
    found = None if entry is None else entry.read("seen")
    if found is not None:
        skipped()
        record, arrays = found
        count = len(plain.outputs)
        tensors = dict(zip(starmap(Port, record.pop("tensors")), arrays[count:], strict=True))
        unobserved, ran = tuple(starmap(Port, record.pop("unobserved"))), tuple(record.pop("ran"))
        wide, held = tuple(record.pop("wide")), tuple(record.pop("held"))
        seen = Observation(outputs=arrays[:count], tensors=tensors, ran=ran, wide=wide, held=held, **record)
        return replace(seen, unobserved=unobserved)
    seen = side_of(side).observe(model, plain, feeds, ports)
    if entry is not None:
        record = {
            "name": seen.name, "asked": seen.asked, "ran": seen.ran, "unobserved": seen.unobserved,
            "tensors": list(seen.tensors), "wide": seen.wide, "held": seen.held, "f16_in_f32": seen.f16_in_f32,
            "settings": dict(seen.settings),
        }  # fmt: skip
        entry.write("seen", record, chain(seen.outputs, seen.tensors.values()))
    return seen
