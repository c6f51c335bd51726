"""The table of releases agrees with the recorded answers, and is derived from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pytest
from harness.sample import all_samples

from ir_runtime.releases import _table
from ir_runtime.releases.release import WHEELS, Release, releases
from releases.ask import FOLDER, ask, is_installed
from releases.probes import Probe, probe_lines, probe_of
from releases.table import Answers, asked_releases, collect, derive, load, predict, source

OLDEST = str(releases()[0])


@pytest.fixture(scope="module")
def some_probes() -> list[Probe]:
    """Return one sample of every twenty."""
    return list(map(probe_of, islice(all_samples(), 0, None, 20)))


def first(features: Iterator[str] | tuple[str, ...]) -> str:
    """Return the first release that supports features, according to the package."""
    return predict(
        {feature: release for release, said in _table.FEATURES.items() for feature in said.split(" ")},
        features,
        OLDEST,
    )


def test_the_table_says_what_the_releases_said(some_probes: list[Probe]) -> None:
    """Omitted features follow from others."""
    said = load()
    assert [p.features for p in some_probes if first(p.features) != predict(said, p.features, OLDEST)] == []


def test_the_table_is_of_the_releases_that_are_asked() -> None:
    """A release added to `WHEELS` must be asked."""
    assert asked_releases() == list(WHEELS) == sorted(WHEELS)
    assert max(WHEELS) < _table.NEVER
    assert set(_table.FEATURES) <= {*WHEELS, _table.NEVER}


FIRST = {
    "version:10": "2021.4",
    "version:11": "2022.1",
    "version:7": "never",
    "opset:7": "2021.4",
    "opset:8": "2022.1",
    "opset:13": "2023.2",
    "ScaledDotProductAttention-13": "2023.3",
    "RandomUniform-8/alignment=pytorch": "2024.3",
    "type:nf4": "2023.2",
    "type:f8e4m3": "2024.0",
    "shape:?": "2022.1",
    "shape:0": "2023.2",
    "Abs-1@17": "never",
}
"""What is known from elsewhere: the notes of releases, and OpenVINO's sources."""


@pytest.mark.parametrize("feature", FIRST)
def test_what_is_known_from_elsewhere(feature: str) -> None:
    wanted = FIRST[feature]
    found = [release for release in releases() if release.reads(feature)]
    assert found == ([] if wanted == "never" else [r for r in releases() if r >= Release.of(wanted)])


def test_features_are_read_where_one_probe_is_read() -> None:
    refused: dict[str, object] = {"error": "no"}
    said = {
        ("A-1",): [{}, {}, {}],
        ("A-1", "B-2"): [refused, refused, {}],
        ("A-1", "B-2", "B-2:x=u8"): [refused, {}, {}],
        ("A-1", "A-1/far"): [{"attributes": []}, {"attributes": []}, {"attributes": ["far"]}],
        ("A-1", "C-9"): [refused, refused, refused],
    }
    probes = [{"features": f, "attributes": ["far"] if "A-1/far" in f else []} for f in said]
    asked = []

    def answers_of(release: str, probes: Sequence[Mapping[str, Any]]) -> list[Any]:
        asked.append((release, len(probes)))
        return [said[probe["features"]][int(release[0]) - 1] for probe in probes]

    answers = collect(probes, ["1.0", "2.0", "3.0"], answers_of)
    assert list(answers.values()) == ["1.0", "3.0", "2.0", "3.0", "never"]
    assert asked == [("3.0", 5), ("1.0", 4), ("2.0", 3), ("3.0", 2)]
    assert derive(answers, "1.0") == {"B-2": "2.0", "A-1/far": "3.0", "C-9": "never"}


def test_of_dims_what_refuses_last_counts() -> None:
    answers: Answers = {
        ("Parameter-1",): "1.0",
        ("Parameter-1", "shape:0"): "2.0",
        ("NonZero-3", "Parameter-1", "shape:0"): "1.0",
    }
    assert derive(answers, "1.0") == {"shape:0": "2.0"}


def test_the_module_of_a_table_holds_it() -> None:
    table = {f"Name-{number}": "2.0" for number in range(40)} | {"other": "never"}
    module: dict[str, dict[str, str]] = {}
    exec(source(table), module)
    assert {f: r for r, text in module["FEATURES"].items() for f in text.split(" ")} == table


@pytest.mark.oracle
@pytest.mark.parametrize("release", WHEELS)
def test_a_release_reads_what_the_table_says(release: str) -> None:
    if not is_installed(FOLDER / release):
        pytest.skip(f"make releases installs OpenVINO {release}")
    lines = list(probe_lines(7))
    asked = list(map(json.loads, lines))
    said = ask(FOLDER / release, lines)
    odd = [
        probe["features"]
        for probe, answer in zip(asked, said, strict=True)
        if ("error" in answer) != (first(tuple(probe["features"])) > release) and "attributes" not in answer
    ]
    assert len(odd) <= len(asked) // 100, odd
