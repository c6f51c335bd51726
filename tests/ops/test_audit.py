"""Audits of operations warn of constants that are certainly mistakes, and of no others."""

from __future__ import annotations

import pytest
from harness.sample import all_samples, case, value

MEANT = {
    "Gather-8": "its page says that indices out of range pick zeros; a sample shows that they do",
    "Gather-7": "the same, of the version before",
    "Gather-1": "the same, of the first version",
    "Bucketize-3": "samples show which buckets OpenVINO finds where they do not ascend",
}
"""Operations of which samples show what others would not mean."""


def test_samples_are_meant() -> None:
    found = {(s.op, sentence) for s in all_samples() for sentence in s.layer().audit(*s.values())}
    assert {op for op, _ in found} == set(MEANT)
    assert all(sentence.endswith("it picks zeros") for op, sentence in found if op.startswith("Gather"))


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("Gather-8", ("f32 2..5,3", [4, -5], 0)),
        ("Gather-8", ("f32 ?,3", [100], 0)),
        ("Gather-8", ("f32 2,3", [100], "i64")),
        ("Gather-8", ("f32 ...", [100], 0)),
        ("Gather-8", ("f32 2,3", "i64 2", 0)),
        ("Bucketize-3", ("f32 2", [1, 1, 2])),
        ("Bucketize-3", ("f32 2", "i64 2")),
        ("Divide-1", ("i64 0", [0])),
        ("Divide-1", ("f32 2", "f32 2")),
        ("GatherTree-1", ("i32 2,1,1", "i32 2,1,1", "i32 1", "i32")),
    ],
)
def test_silent_about_what_may_be_meant(name: str, inputs: tuple[object, ...]) -> None:
    assert list(case(name).layer().audit(*map(value, inputs))) == []


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"),
    [
        ("GatherElements-6", ("f32 2..5", [4, -5]), {"axis": 0}),
        ("GatherND-8", ("f32 ?,3", [[100, 2]]), {}),
        ("ScatterUpdate-3", ("f32 ..5", [4], "f32 1", 0), {}),
        ("ScatterNDUpdate-4", ("f32 2,3", [[1, -3]], "f32 1"), {}),
        ("ScatterElementsUpdate-3", ("f32 2", [100], "f32 1", "i64"), {}),
        ("ReverseSequence-1", ("f32 1,..3", [3]), {}),
    ],
)
def test_inference_takes_what_some_length_allows(
    name: str, inputs: tuple[object, ...], attributes: dict[str, object]
) -> None:
    assert case(name, **attributes).layer().infer_types(*map(value, inputs))
