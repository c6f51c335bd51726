"""Does `debug.compare` find mistakes of twelve kinds in the layer that has them, and does it name the kind?

    python tests/bench/kinds.py [--out DIR] [--seed N] [--every N] [MODEL...]

The models (tests/models/unseen.py, with two of the zoo that have resizing and recurrent layers) are built and converted into
the folder on first use. Mistakes (tests/models/ported.py) are put into a run of NumPy's kernels, whose tensors
are seen. A mistake counts if it changes what its layer computes; it is located if the first unit that rounding does not
explain has its layer, and named if the report says what kind it is, in that layer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from models import unseen, zoo  # noqa: F401  registers the models
from models.ported import KINDS, Mistake, Ported, mistakes

import ir_runtime as ir
from ir_runtime import debug

NAMES = (
    "regnet", "googlenet", "maxvit", "deeplab", "distilbert", "electra", "opt", "wav2vec", "segformer", "convnextv2", "poolformer", "gru",
    "lstm", "unet",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """The outcome of a mistake.

    Args:
        model: the name of the model.
        mistake: the mistake.
        report: the report.
    """

    model: str
    mistake: Mistake
    report: debug.Comparison

    @property
    def located(self) -> bool:
        """Whether the layer was found, in a unit or, if only the outputs are wrong, by the mistake."""
        first, likeness = self.report.first or self.report.first_decision, self.report.likeness
        if first is None:
            return likeness is not None and self.mistake.layer.name == likeness.layer
        return self.mistake.layer.name in first.layers

    @property
    def named(self) -> bool:
        """Whether its kind was found as well."""
        likeness = self.report.likeness
        return (
            likeness is not None
            and likeness.layer == self.mistake.layer.name
            and likeness.kind in self.mistake.names
        )

    def __str__(self) -> str:
        first = self.report.first or self.report.first_decision
        where = "located" if self.located else f"taken for {first.layers if first else 'rounding'}"
        name = "named" if self.named else "NOT named"
        mistake = self.mistake
        return f"{self.model:12} {mistake.kind}: {mistake.layer.name!r} ({mistake.layer.operation}), {mistake.what}: {where}, {name}: {self.report.likeness}"


def findings(name: str, model: ir.Model, inputs: object, seed: int = 0, every: int = 1) -> Iterator[Finding]:
    """Judge runs with one mistake each."""
    for mistake in mistakes(model, inputs, seed):
        yield Finding(name, mistake, debug.compare(model, inputs, Ported(mistake, every)))


def table(found: Sequence[Finding]) -> Iterator[str]:
    """Return a line for each kind, and one for all."""
    yield f"{'mistake':14} {'made':>5} {'located':>12} {'named':>12}"
    for kind in (*KINDS, "all"):
        these = [each for each in found if kind in ("all", each.mistake.kind)]
        if these:
            located, named = (sum(part) for part in zip(*((f.located, f.named) for f in these), strict=True))
            count = len(these)
            yield f"{kind:14} {count:5} {located:5} {located / count:6.1%} {named:5} {named / count:6.1%}"


def main(arguments: Iterable[str] | None = None) -> None:
    """Print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help="models (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/unseen"), help="where models are (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the choice of mistakes (default: %(default)s)"
    )
    parser.add_argument(
        "--every", type=int, default=1, help="one of so many tensors is seen (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    found: list[Finding] = []
    for name in options.names or NAMES:
        start, path = time.process_time(), zoo.ir_path(name, options.out)
        for each in findings(
            name, ir.read_model(path), zoo.example_inputs(name, 5), options.seed, options.every
        ):
            found.append(each)
            print(each, flush=True)
        print(f"{name:12} {time.process_time() - start:.0f} s of CPU", flush=True)
    print(*table(found), sep="\n")


if __name__ == "__main__":
    main()
