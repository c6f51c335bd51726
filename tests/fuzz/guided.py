"""Coverage-guided fuzzing of the same target with atheris: ``python -m fuzz.guided MINUTES SEED OUT``."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["ir_runtime"]):
    from .corpus import Corpus, build
    from .fuzz import save
    from .mutations import OF_FILES, Recipe, mutant
    from .worker import guarded


def recipe(data: bytes, corpus: Corpus) -> Recipe:
    """Decode bytes to a recipe; the fuzzer mutates and combines the bytes."""
    read = atheris.FuzzedDataProvider(data)
    kind = OF_FILES[read.ConsumeIntInRange(0, len(OF_FILES) - 1)]
    base, donor = (read.ConsumeIntInRange(0, len(corpus) - 1) for _ in range(2))
    steps = tuple(read.ConsumeUInt(4) for _ in range(read.ConsumeIntInRange(1, 8)))
    return Recipe(kind, base, donor, steps, read.ConsumeBool())


def main(minutes: float, seed: int, out: Path) -> None:
    """Run until the time is over, or a finding is saved in ``out``."""
    corpus = build()
    guarded(corpus[0])

    def one(data: bytes) -> None:
        chosen = recipe(data, corpus)
        result = guarded(mutant(corpus, chosen), seconds=10)  # counting lines takes time, too
        if result.finding:
            path = save(corpus, chosen, result, out)
            raise AssertionError(f"{result.finding}: see {path}")

    bounds = [
        f"-seed={seed or 1}",
        "-max_len=64",
        "-len_control=0",
        "-timeout=60",
        f"-max_total_time={round(60 * minutes)}",
    ]
    atheris.Setup([sys.argv[0], *bounds], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
