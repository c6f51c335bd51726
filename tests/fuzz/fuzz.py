"""Try to break the package: ``make fuzz``, or ``python -m fuzz.fuzz --help`` in ``tests``."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import click

from ir_runtime.cli.render import table

from . import empties, lengths, manifests, planted
from .corpus import Corpus, build, write
from .mutations import KINDS, OF_FILES, Kind, Recipe, mutant, recipe
from .target import compiled_backends
from .worker import Pool, Result

PLANTED = "planted"
"""Modules in the working directory: a kind that has no models as inputs, but processes."""
# A trial of that kind takes as long as that many inputs of another.
_INPUTS_A_TRIAL = 500


@dataclass(slots=True)
class Tally:
    """Counts the outcomes of all inputs."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: dict[str, tuple[Recipe, Result]] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)

    def add(self, recipe: Recipe, result: Result) -> None:
        kind = recipe.kind
        self.outcomes[kind, result.outcome] += 1
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), result.seconds)
        self.largest[kind] = max(self.largest.get(kind, 0), result.memory)
        if result.finding:
            self.times[result.finding] += 1
            shorter = len(recipe.steps) < len(self.findings.get(result.finding, (recipe,))[0].steps)
            if shorter or result.finding not in self.findings:
                self.findings[result.finding] = recipe, result

    @property
    def inputs(self) -> int:
        return sum(self.outcomes.values())

    def summary(self) -> str:
        """Return the inputs by outcome, with the slowest and largest of each kind."""
        kinds = sorted({kind for kind, _ in self.outcomes})
        names = sorted({outcome for _, outcome in self.outcomes}, key=lambda name: (name != "model", name))
        rows = [[name, *(str(self.outcomes[kind, name]) for kind in kinds)] for name in names]
        rows.append(
            ["inputs", *(str(sum(n for (k, _), n in self.outcomes.items() if k == kind)) for kind in kinds)]
        )
        rows.append(["slowest (CPU s)", *(f"{self.slowest[kind]:.2f}" for kind in kinds)])
        rows.append(["largest (MiB)", *(str(self.largest[kind] >> 20) for kind in kinds)])
        found = table("What became of the inputs", ("outcome", *kinds), rows, right=kinds)
        listed = [[str(n), name] for name, n in self.times.most_common()]
        return found + (
            "\n" + table("Findings", ("times", "finding"), listed, right=("times",)) if listed else ""
        )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--count", default=20_000, show_default=True, help="Inputs of each kind.")
@click.option("--seed", default=0, show_default=True, help="Other seeds give other inputs.")
@click.option("--minutes", type=float, help="Stop after that long, or before if the count is reached.")
@click.option(
    "--kind",
    type=click.Choice(["all", *KINDS, PLANTED]),
    default="all",
    show_default=True,
    help="Changes to make.",
)
@click.option("--backend", multiple=True, help="A backend to run on; by default, all that can run here.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/fuzz"),
    show_default=True,
    help="Folder for findings.",
)
@click.option(
    "--atheris/--no-atheris",
    default=None,
    help="Go on with changes that coverage leads. By default, where it is installed.",
)
def main(
    count: int,
    seed: int,
    minutes: float | None,
    kind: str,
    backend: tuple[str, ...],
    workers: int,
    out: Path,
    atheris: bool | None,
) -> None:
    """Feed broken models to the package until one causes anything but an error of the package.

    The exit code is then 1. Each finding is saved as a model with a description.
    """
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    executed = _planted(seed, count, end, out) if kind in ("all", PLANTED) else 0
    kinds = KINDS if kind == "all" else tuple(k for k in KINDS if k == kind)
    if not kinds:
        raise SystemExit(1 if executed else 0)
    sources = {
        **dict.fromkeys((*OF_FILES, "names"), build),
        **dict.fromkeys(("lengths", "booleans"), lengths.cases),
        "empties": empties.cases,
        "manifests": manifests.cases,
    }
    corpus = [case for source in dict.fromkeys(sources[kind] for kind in kinds) for case in source()]
    tally = Tally()
    with Pool(corpus, workers, compiled_backends(backend)) as pool:
        try:
            for done, result in pool.run(_recipes(corpus, kinds, seed, count, end)):
                tally.add(done, result)
                _progress(tally, count * len(kinds))
        except KeyboardInterrupt:
            click.echo("interrupted; what was found until now:", err=True)
        for finding, (found, result) in tally.findings.items():
            save(corpus, pool.smallest(found, finding), result, out)
    _progress(tally, None)
    click.echo(tally.summary())
    if tally.findings:
        click.echo(f"{len(tally.findings)} findings are in {out}", err=True)
    if tally.findings or executed:
        raise SystemExit(1)
    if find_spec("atheris") if atheris is None else atheris:
        raise SystemExit(_guided(minutes or 5, seed, out))


def _planted(seed: int, count: int, end: float, out: Path) -> int:
    """Run commands in folders with planted modules; return the number of trials in which one was executed."""
    found = list(planted.findings(seed, max(count // _INPUTS_A_TRIAL, 1), end, time.monotonic))
    for text in found:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"planted_{zlib.crc32(text.encode()):08x}.txt").write_text(text, encoding="utf-8")
        click.echo(f"executed in the working directory: {text}", err=True)
    return len(found)


def _recipes(corpus: Corpus, kinds: tuple[Kind, ...], seed: int, count: int, end: float) -> Iterator[Recipe]:
    for number in range(count):
        for kind in kinds:
            if time.monotonic() > end:
                return
            yield recipe(corpus, kind, seed, number)


def _progress(tally: Tally, whole: int | None) -> None:
    """Print a line that is overwritten, on terminals only."""
    if not sys.stderr.isatty() or (whole and tally.inputs % 50):
        return
    line = f"{tally.inputs} of {whole} inputs, {len(tally.findings)} findings" if whole else ""
    click.echo(f"\r\033[K{line}", nl=False, err=True)


def save(corpus: Corpus, recipe: Recipe, result: Result, out: Path) -> Path:
    """Save a finding: the model, and its description."""
    out.mkdir(parents=True, exist_ok=True)
    case = mutant(corpus, recipe)
    brief, number = re.sub(r"\W+", "_", result.finding)[:60], zlib.crc32(result.finding.encode())
    path = out / f"{brief}_{number:08x}.xml"
    write(case, path)
    about = f"{result.finding}\nfrom {case.name}: {recipe}\n{result.seconds:.2f} s, {result.memory >> 20} MiB\n\n{result.detail}"
    path.with_suffix(".txt").write_text(about, encoding="utf-8")
    return path


def _guided(minutes: float, seed: int, out: Path) -> int:
    """Run the coverage-guided loop in a subprocess, which must instrument its imports."""
    command = [sys.executable, "-m", "fuzz.guided", str(minutes), str(seed), str(out)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    main()
