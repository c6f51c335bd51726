"""Recognise 100 handwritten digits with `digits.xml`, draw a few, and count how many came out right.

Needs only numpy and ir_runtime. The pictures were kept out of training; `train.py` says how all was made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ir_runtime as ir

HERE = Path(__file__).parent
SHADES = " ░▒▓█"
DRAWN = 5
REQUIRED = 0.97

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


def recognise(images: Images) -> Labels:
    """The digit the network takes each picture for: the one with the highest score."""
    model = ir.read_model(HERE / "digits.xml")
    compiled = ir.compile_model(model)
    scores = compiled({"image": images})["scores"]
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def draw(image: Images) -> list[str]:
    """One picture, [1, 8, 8] with values 0..1, as lines of text; two characters a pixel make it square."""
    levels = np.rint(image[0] * (len(SHADES) - 1)).astype(int)
    return ["".join(SHADES[level] * 2 for level in row) for row in levels]


def caption(answer: int, label: int) -> str:
    """The answer, and the truth with it where they differ."""
    return f"{answer}" if answer == label else f"{answer}, WRONG: is {label}"


def choose(right: NDArray[np.bool_]) -> list[int]:
    """Which pictures to draw: the first few, but if any was misread, the first such takes the last place."""
    wrong = np.flatnonzero(~right)
    chosen = [*np.flatnonzero(right)[:DRAWN], *wrong[:1]]
    return [int(index) for index in chosen[-DRAWN:]]


def main() -> int:
    """Draw, count, and report: 0 if enough pictures were recognised, else 1."""
    images: Images = np.load(HERE / "images.npy")
    labels: Labels = np.load(HERE / "labels.npy")
    answers = recognise(images)
    right = answers == labels

    chosen = choose(right)
    for line in zip(*(draw(images[index]) for index in chosen), strict=True):
        print("    ".join(line).rstrip())
    print("    ".join(f"{caption(answers[index], labels[index]):^16}" for index in chosen).rstrip())

    print(f"\n{right.sum()} of {len(right)} images recognised ({100 * right.mean():.1f} %)")
    if right.mean() < REQUIRED:
        print(f"too few: at least {100 * REQUIRED:.0f} % expected", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
