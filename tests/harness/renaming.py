"""Other names and numbers for the layers of a model."""

from __future__ import annotations

import random
from typing import Any


def anonymous(tree: Any) -> None:
    """Rename and renumber every layer; all but inputs and outputs are in another order in the file."""
    layers = tree.find("layers")
    ids = [layer.get("id") for layer in layers]
    numbers = dict(zip(ids, random.Random(0).sample(range(1000, 1000 + 2 * len(ids)), len(ids)), strict=True))
    for layer in layers:
        layer.set("name", f"layer_{numbers[layer.get('id')]}")
        layer.set("id", str(numbers[layer.get("id")]))
    inner = [layer for layer in layers if layer.get("type") not in ("Parameter", "Result")]
    ends = [layer for layer in layers if layer.get("type") in ("Parameter", "Result")]
    layers[:] = [*random.Random(1).sample(inner, len(inner)), *ends]
    for edge in tree.find("edges"):
        for end in ("from-layer", "to-layer"):
            edge.set(end, str(numbers[edge.get(end)]))
