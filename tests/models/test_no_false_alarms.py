"""Valid models have no findings: every test model, and every sample as a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.files import model_of
from harness.sample import Sample, all_samples

import ir_runtime as ir
from models.collection import COLLECTION, saved, zoo

# Notes that are true, and nothing to mend.
NOTED = {"if_that_is_decided": ["IR110"]}

# Their samples show that constant indices out of range pick zeros, which is just what deserves a look.
POINTED_AT = {"Gather-1": "IR306", "Gather-7": "IR306", "Gather-8": "IR306"}


MIXED = "IR304"
"""Of samples whose inputs have several types: OpenVINO takes them, the specification does not."""


def by_operation() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in all_samples():
        found.setdefault(sample.op, []).append(sample)
    return found


SAMPLES = by_operation()


def alarms(samples: list[Sample], dynamic: bool) -> list[str]:
    return [str(alarm) for sample in samples for alarm in alarms_of(sample, dynamic)]


def alarms_of(sample: Sample, dynamic: bool) -> list[ir.Diagnostic]:
    found = ir.validate(*model_of(sample, sample.constant, dynamic))
    expected = (
        MIXED if sample.cls.is_mixed([v.element for v in sample.values()]) else POINTED_AT.get(sample.op)
    )
    return [alarm for alarm in found if alarm.code != expected or alarm.severity != "warning"]


@pytest.mark.parametrize("op", SAMPLES)
def test_samples(op: str) -> None:
    assert alarms(SAMPLES[op], dynamic=False) == []


@pytest.mark.oracle
@pytest.mark.parametrize("op", SAMPLES)
def test_samples_with_open_dims(op: str) -> None:
    assert alarms(SAMPLES[op], dynamic=True) == []


@pytest.mark.parametrize("name", COLLECTION)
def test_models(name: str) -> None:
    report = ir.validate(saved(name))
    assert report.errors == []
    assert report.warnings == []
    assert [found.code for found in report.notes] == NOTED.get(name, [])


@pytest.mark.oracle
@pytest.mark.parametrize("path", zoo(), ids=lambda path: path.stem)
def test_networks(path: Path) -> None:
    assert list(ir.validate(path)) == []
