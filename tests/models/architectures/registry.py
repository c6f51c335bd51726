"""Registry of networks, and inputs that they share. Does not import torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from openvino import Model
    from torch import nn

Arrays = dict[str, np.ndarray]
Builder = Callable[[], "nn.Module"]
Draw = Callable[[np.random.Generator], Arrays]
Shape = tuple[int, ...]  # -1 is a dynamic dimension


class Entry(NamedTuple):
    """A network: its builder, example inputs, and saved input shapes."""

    build: Builder
    inputs: Draw
    shape: Shape | dict[str, Shape] | None  # of every input, or of each; None: as the example inputs
    past: Callable[[], Arrays]  # arguments that `finish` turns into variables
    finish: Callable[[Model], None]  # what is done to the converted model

    def shape_of(self, name: str, example: Shape) -> Shape:
        """Return the saved shape of the input `name`."""
        given = self.shape.get(name) if isinstance(self.shape, dict) else self.shape
        return given or tuple(example)


MODELS: dict[str, Entry] = {}


def image(
    rng: np.random.Generator, size: int = 224, name: str = "x", channels: int = 3, dims: int = 2
) -> Arrays:
    """Draw an image: noise at several scales, so that regions, channels and images differ."""
    pixels = np.zeros((1, channels, *[size] * dims))
    for step in (1, 4, 16, 32):
        coarse = rng.standard_normal((1, channels, *[-(-size // step)] * dims))
        for axis in range(2, 2 + dims):
            coarse = coarse.repeat(step, axis)
        pixels += coarse[(..., *[slice(size)] * dims)] / 2
    return {name: pixels.astype(np.float32)}


def tokens(rng: np.random.Generator, vocabulary: int, length: int = 128, segments: bool = False) -> Arrays:
    """Draw a token sequence whose last quarter is padding (with `segments`, of two sentences)."""
    position = np.arange(length)[None]
    arrays = {
        "input_ids": rng.integers(vocabulary, size=(1, length)),
        "attention_mask": (position < length - length // 4).astype(np.int64),
    }
    return arrays | ({"token_type_ids": (position >= length // 3).astype(np.int64)} if segments else {})


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw a normally distributed array."""
    return rng.standard_normal(shape).astype(np.float32)


def model(
    name: str,
    inputs: Draw = image,
    shape: Shape | dict[str, Shape] | None = None,
    past: Callable[[], Arrays] = dict,
    finish: Callable[[Model], None] = lambda converted: None,
) -> Callable[[Builder], Builder]:
    """Register the decorated builder as `name`; the keys of `inputs` are the arguments of its `forward`."""

    def register(build: Builder) -> Builder:
        MODELS[name] = Entry(build, inputs, shape, past, finish)
        return build

    return register
