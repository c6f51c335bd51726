"""Fast backends compute or refuse any lengths, layouts and values, and access no memory outside their arrays.

Models are fed nearly correct inputs in processes with guard pages around every array and all scratch memory. The kernels to
test are read from the registrations of the backends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from harness.kernels import registered
from harness.memory import Edge, Process
from harness.subjects import Subject, Task, all_subjects, examine, some_subjects

import ir_runtime
from ir_runtime import PartialShape, opset12

ROOT = Path(__file__).parents[2]
SUBJECTS_PER_PROCESS = 2000
EDGES_AND_THREADS = [(Edge.END, 1), (Edge.START, 2)]

guarded = pytest.mark.parametrize(
    ("edge", "threads"), EDGES_AND_THREADS, ids=lambda value: getattr(value, "value", str(value))
)


@cache
def chosen(each: int) -> tuple[list[Subject], set[str]]:
    return some_subjects(each)


def problems(subjects: Iterable[Subject], edge: Edge, threads: int, feeds: int, openings: int) -> list[str]:
    found = []
    with Process(examine, edge, threads) as process:
        for subject in subjects:
            wrong, died = process.run(Task(subject, feeds, openings, threads))
            found += [died] if died else wrong
    return found


def listed(found: list[str]) -> str:
    """Format a list, its first items in full."""
    return "\n\n".join([f"{len(found)} problems", *found[:10]])


def test_every_kernel_has_a_subject() -> None:
    """If this fails, add a sample for which the kernel is offered, or a pattern to tests/models/patterns.py."""
    _, covered = chosen(2)
    assert registered() - covered == set()


@guarded
@pytest.mark.parametrize("part", range(2))
def test_inputs_that_are_nearly_right(edge: Edge, threads: int, part: int) -> None:
    subjects, _ = chosen(2)
    place = 2 * part + EDGES_AND_THREADS.index((edge, threads))
    found = problems(subjects[place::4], edge, threads, feeds=4, openings=2)
    assert not found, listed(found)


@pytest.mark.oracle
@pytest.mark.long
@guarded
@pytest.mark.parametrize("part", range(2))
def test_many_more_inputs_that_are_nearly_right(edge: Edge, threads: int, part: int) -> None:
    subjects, _ = chosen(4)
    found = problems(subjects[part::2], edge, threads, feeds=25, openings=4)
    assert not found, listed(found)


@pytest.mark.oracle
@pytest.mark.long
@pytest.mark.parametrize(
    ("edge", "threads"),
    [(Edge.END, 2), (Edge.START, 1)],
    ids=lambda value: getattr(value, "value", str(value)),
)
def test_right_inputs_of_all_samples(edge: Edge, threads: int) -> None:
    """Run all samples with static and with dynamic shapes; the tests above cover other thread counts.

    Subjects are split into several processes, as each array takes three of the 65,530 memory mappings of a process, and kernels
    cache jobs for some shapes.
    """
    found = []
    for subjects in batched(all_subjects(), SUBJECTS_PER_PROCESS):
        found += problems(subjects, edge, threads, feeds=0, openings=0)
    assert not found, listed(found)


def batched(subjects: Iterable[Subject], size: int) -> Iterator[list[Subject]]:
    """Split subjects into lists of at most this length."""
    waiting = iter(subjects)
    while some := list(islice(waiting, size)):
        yield some


@pytest.mark.oracle
@pytest.mark.long
@pytest.mark.parametrize("edge", Edge, ids=lambda edge: edge.value)
def test_the_tests_of_kernels_with_guard_pages(edge: Edge) -> None:
    tests = sorted(map(str, (ROOT / "tests" / "backends").glob("test_native_*.py")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "harness.guard_plugin", "-p", "no:xdist"]
    command += ["-p", "no:cacheprovider", "-m", "not oracle", *tests]
    environment = os.environ | {"IR_RUNTIME_TEST_EDGE": edge.value, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def _scattered(data: PartialShape) -> ir_runtime.Model:
    x, axis = opset12.parameter(data, np.float32), opset12.constant(np.int64(0))
    indices, updates = opset12.parameter([0, 2], np.int64), opset12.parameter([0, 2], np.float32)
    result = opset12.scatter_elements_update(x, indices, updates, axis)
    return ir_runtime.Model([result], [x, indices, updates])


def _normalized(scale: PartialShape) -> ir_runtime.Model:
    x, factors, bias = (opset12.parameter(shape, np.float32) for shape in ([2, 4, 3, 2], scale, [4]))
    return ir_runtime.Model([opset12.group_normalization(x, factors, bias, 2, 1e-5)], [x, factors, bias])


@pytest.mark.parametrize("backend", ["reference", "numpy", "native"])
@pytest.mark.parametrize(
    ("model", "place", "wrong"),
    [(_scattered(PartialShape([3, -1])), 0, [3, 1]), (_normalized(PartialShape([-1])), 1, [1])],
    ids=["no indices", "one factor"],
)
def test_dynamic_lengths_that_numpy_would_broadcast_are_refused(
    model: ir_runtime.Model, place: int, wrong: list[int], backend: str
) -> None:
    """They are refused in the first run of a shape, and in one that may be replayed."""
    right = [2 if dim.is_dynamic else dim.get_length() for dim in model.inputs[0].partial_shape]
    shapes = [
        right,
        *([4 if dim.is_dynamic else dim.get_length() for dim in x.partial_shape] for x in model.inputs[1:]),
    ]
    good = [np.ones(shape, x.element_type.to_dtype()) for shape, x in zip(shapes, model.inputs, strict=True)]
    bad = [*good[:place], np.ones(wrong, np.float32), *good[place + 1 :]]
    compiled = ir_runtime.compile_model(model, backend=backend)
    for _ in range(2):
        compiled(good)
        with pytest.raises(ir_runtime.IRError, match="IR402"):
            compiled(bad)
