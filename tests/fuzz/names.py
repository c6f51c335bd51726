"""Valid models with hostile strings, passed to all commands and formats that print parts of a model.

Outputs must equal those of a twin with ordinary strings, except for the names; `harness.hostile` compares them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from harness.hostile import WORDS, compare, invocations, ordinary, prepare, renamed, word_of

from .corpus import Case

__all__ = ["COMMANDS", "hostile", "probe"]

COMMANDS = ("validate", "inspect", "graph", "shapes", "cost")
"""Those that compute nothing, of which there can be many in a second."""
_STRINGS = 2000
_LETTERS = (
    "\t\n\r \x7f\x85\x9b\u200e\u2028\u202e\u2066\ufeff\ufffd\uff1d\\\"'`$%&#*?[]{}()<>=+-@;:,./|~^!_aA0é名🤖"
)


def hostile(base: Case, steps: Sequence[int]) -> Case:
    """Return a model with hostile strings, drawn from the first step, and commands drawn from all steps."""
    return replace(base, seeds=tuple(steps))


def probe(case: Case) -> str:
    """Rename the model and its twin, and run some commands on both.

    Returns:
        ``"names"``.

    Raises:
        BrokenOutError: if a name escapes its place.
    """
    assert case.seeds is not None
    first = Random(case.seeds[0])
    broken = first.random() < 0.5
    words = [_word(first) for _ in range(first.choice((1, 5, 40)))]
    with tempfile.TemporaryDirectory(prefix="ir_runtime-fuzz-") as place:
        folders = [Path(place) / name for name in ("hostile", "ordinary")]
        for folder, word in zip(folders, (word_of(words), ordinary), strict=True):
            prepare(folder, renamed(case.xml, word, broken), case.weights, words)
        names = [[word(number) for number in range(_STRINGS)] for word in (word_of(words), ordinary)]
        for step in case.seeds:
            rng = Random(step)
            command = rng.choice(COMMANDS)
            # What an option takes means more than a name where it is one: a = parts it.
            lines = [line for line in invocations(command, words[0]) if words[0] not in line]
            line = rng.choice(lines)
            compare(line, line, folders, names)
    return "names"


def _word(rng: Random) -> str:
    """Return a hostile word, several joined, or special characters; all words are distinct."""
    kind = rng.random()
    if kind < 0.4:
        found = rng.choice(WORDS)
    elif kind < 0.6:
        found = "".join(rng.choices(WORDS, k=rng.randint(2, 4)))
    else:
        found = "".join(rng.choices(_LETTERS, k=rng.choice((1, 2, 5, 20, 2000))))
    return (
        f"{found}{rng.randrange(1 << 32):x}" if rng.random() < 0.5 else f"{rng.randrange(1 << 32):x}{found}"
    )
