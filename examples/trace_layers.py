"""An observer: prints what every layer of the digits model makes of one image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ir_runtime

DIGITS = Path(__file__).parent / "digits"


class Trace:
    """Prints the statistics of each output, as soon as it exists."""

    def before(self, step: ir_runtime.Step, inputs: Sequence[NDArray[np.generic]]) -> None:
        """Nothing to say before a layer has run."""

    def after(self, step: ir_runtime.Step, outputs: Sequence[NDArray[np.generic]], seconds: float) -> None:
        """One line for each output."""
        for array in outputs:
            numbers = array.astype(np.float64)
            shape = "x".join(map(str, array.shape))
            print(
                f"{step.layer.type:<12} {shape:<12} {numbers.min():>9.3f} … {numbers.max():>8.3f}"
                f"  mean {numbers.mean():>8.3f}  {seconds * 1e3:6.2f} ms  {step.layer.name[-40:]}"
            )


def main() -> None:
    """Run the first image with the observer watching."""
    compiled = ir_runtime.compile_model(DIGITS / "digits.xml")
    image = np.load(DIGITS / "images.npy")[:1]
    scores = compiled(image, observers=[Trace()])[0]
    print("answer:", scores.argmax())


if __name__ == "__main__":
    main()
