"""Derive the package's table from the answers of releases, and store the answers.

A release supports a feature if it reads a model with it. The table omits what follows from other features: the type of an
operation is readable from the release with the opset of its version on, and so on.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import ir_runtime.releases

__all__ = [
    "ANSWERS",
    "NEVER",
    "TABLE",
    "Answers",
    "asked_releases",
    "collect",
    "derive",
    "first_of_each",
    "load",
    "predict",
    "save",
    "source",
]

ANSWERS = Path(__file__).with_name("answers.tsv")
TABLE = Path(ir_runtime.releases.__file__).with_name("_table.py")
NEVER = "never"
"""The first release of what none reads."""

Probe: TypeAlias = "Mapping[str, Any]"
"""A probe as it is written to a file."""

Answers: TypeAlias = Mapping[tuple[str, ...], str]
"""The first release that reads a model, and that all later ones read, by the features of the model."""

_SHAPE = "shape:"
_PLAIN = "Parameter-1"
"""What every release reads."""
_LINE = 110


Ask: TypeAlias = "Callable[[str, Sequence[Probe]], Sequence[Mapping[str, Any]]]"
"""Asks a release about probes."""


def collect(probes: Sequence[Probe], releases: Sequence[str], ask: Ask) -> Answers:
    """Return the first release that reads each combination of features.

    A release is asked only about probes that no older one reads and the newest does, as releases rarely drop features; the
    exceptions concern single shapes.

    Args:
        probes: the probes.
        releases: the releases, oldest first.
        ask: asks one of them.
    """
    newest = ask(releases[-1], probes)
    first: dict[tuple[str, ...], str] = {}
    left = []
    for probe, said in zip(probes, newest, strict=True):
        first.setdefault(tuple(probe["features"]), NEVER)
        if "error" not in said:
            left.append((probe, said.get("attributes") or ()))
    for release in releases:
        answers = ask(release, [probe for probe, _ in left])
        unread = []
        for (probe, written), said in zip(left, answers, strict=True):
            if _is_read(probe, said, written):
                key = tuple(probe["features"])
                first[key] = min(first[key], release)  # as texts, in the order of time
            else:
                unread.append((probe, written))
        left = unread
    return first


def _is_read(probe: Probe, said: Mapping[str, Any], written: Collection[str]) -> bool:
    """Return whether a release reads a probe, and keeps all attributes that the newest one writes."""
    kept = said.get("attributes")
    lost = kept is not None and any(name in written and name not in kept for name in probe["attributes"])
    return "error" not in said and not lost


def predict(table: Mapping[str, str], features: Iterable[str], oldest: str) -> str:
    """Return the first release that reads all features."""
    return max((table.get(feature, oldest) for feature in features), default=oldest)


def derive(answers: Answers, oldest: str) -> dict[str, str]:
    """Return the first release of each feature, unless it follows from those of others."""
    first = first_of_each(answers)
    having: dict[str, list[tuple[str, ...]]] = {}
    for features in answers:
        for feature in features:
            having.setdefault(feature, []).append(features)
    table: dict[str, str] = {}
    for feature in sorted(first, key=_rank):
        if first[feature] > min(predict(table, features, oldest) for features in having[feature]):
            table[feature] = first[feature]
    return table


def _rank(feature: str) -> tuple[int, str]:
    """Return the precedence of a feature; other features follow from those of low rank."""
    kinds = ("version:", "opset:", "type:", "shape:")
    kind = next((number for number, start in enumerate(kinds) if feature.startswith(start)), len(kinds))
    detail = 1 + ("@" in feature) + 2 * (":" in feature or "/" in feature) if kind == len(kinds) else 0
    return kind + detail, feature


def save(answers: Answers, asked: Sequence[str]) -> None:
    """Save a line for each release: the features that it is the first to support."""
    by_release: dict[str, list[str]] = {release: [] for release in (*asked, NEVER)}
    for feature, release in first_of_each(answers).items():
        if release != asked[0]:
            by_release[release].append(feature)
    lines = (f"{release}\t{' '.join(sorted(features))}\n" for release, features in by_release.items())
    ANSWERS.write_text("".join(lines), encoding="utf-8")


def load() -> dict[str, str]:
    """Return the saved first release of each feature."""
    return {feature: release for release, features in _saved() for feature in features.split()}


def asked_releases() -> Sequence[str]:
    """Return the releases behind the saved answers, oldest first."""
    return [release for release, _ in _saved() if release != NEVER]


def _saved() -> Iterator[tuple[str, str]]:
    for line in ANSWERS.read_text(encoding="utf-8").splitlines():
        release, _, features = line.partition("\t")
        yield release, features


def first_of_each(answers: Answers) -> dict[str, str]:
    """Return the first release that reads some model with a feature.

    For dims, the last refusal counts, as some releases cannot infer every dim and therefore do not refuse it.
    """
    first: dict[str, str] = {}
    for features, release in answers.items():
        for feature in features:
            first[feature] = min(first.get(feature, NEVER), release)
    for shape in [feature for feature in first if feature.startswith(_SHAPE)]:
        others = [key for key in answers if shape in key]
        plain = [
            key for key in others if all(first[other] == first[_PLAIN] for other in key if other != shape)
        ]
        first[shape] = max(answers[key] for key in plain)
    return first


def source(table: Mapping[str, str]) -> str:
    """Return the source of the module that holds the table."""
    by_release: dict[str, list[str]] = {}
    for feature, release in table.items():
        by_release.setdefault(release, []).append(feature)
    entries = "\n".join(_entry(release, by_release[release]) for release in sorted(by_release))
    return (
        '"""The first release of OpenVINO that reads each feature; all others read what is not here.\n\n'
        "Generated by ``make releases``, which asks the released wheels.\n"
        '"""\n\n'
        '__all__ = ["FEATURES", "NEVER"]\n\n'
        f'NEVER = "{NEVER}"\n\n'
        f"FEATURES = {{\n{entries}\n}}\n"
    )


def _entry(release: str, features: Sequence[str]) -> str:
    text = " ".join(sorted(features, key=_rank))
    if len(text) + len(release) + 10 <= _LINE:
        return f'    "{release}": "{text}",'
    lines = textwrap.wrap(text, _LINE - 11, break_long_words=False, break_on_hyphens=False)
    quoted = "\n".join(f'        "{line} "' for line in lines[:-1])
    return f'    "{release}": (\n{quoted}\n        "{lines[-1]}"\n    ),'
