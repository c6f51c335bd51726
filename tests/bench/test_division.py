"""The simulation of many threads counts units as kernels divide them, and sums them as threads would take them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.kernels import loaded
from openvino import opset13 as op

import ir_runtime
from ir_runtime.backends.native import kernels
from ir_runtime.backends.native.codegen.language import ROUTINES, Callee, Device
from ir_runtime.backends.native.codegen.memory import barrier
from ir_runtime.backends.native.kernels._copy import copy
from ir_runtime.backends.native.kernels._gemm import CACHED
from ir_runtime.backends.native.kernels._gemm_tile import ROW_MULTIPLE, WIDE_ROWS
from ir_runtime.backends.native.kernels._int8_windows import levels_windows
from ir_runtime.backends.native.kernels._panels import chunk_rows
from ir_runtime.backends.native.kernels.concat import ROWS_PER_UNIT, concat
from ir_runtime.backends.native.kernels.depthwise import DEPTHWISE
from ir_runtime.backends.native.kernels.normalization import _SOFTMAX as SOFTMAX
from ir_runtime.backends.native.kernels.normalization import _softmax_job
from ir_runtime.backends.native.kernels.padding import pad_images
from ir_runtime.backends.native.kernels.recurrence import run_steps
from ir_runtime.backends.native.threading.parallel import parallel_for
from ir_runtime.backends.native.threading.task import UNUSED, WORKER_WORDS, Task

ROWS = 1001


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let benchmark programs import each other by name, as they do when run from their folder."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def test_the_longest_thread_takes_whole_units() -> None:
    from simulation import Phase

    assert Phase(7.0, 7, 4).longest == 2.0
    assert Phase(7.0, 7, 64).longest == 1.0
    assert Phase(7.0, 7, 1).longest == 7.0
    assert Phase(8.0, 2, 4, rounds=4).longest == 4.0
    assert not Phase(7.0, 1, 64).shared


def test_balance_serial_part_and_speedup() -> None:
    from division import figures
    from simulation import Phase, Ran

    steps = [
        Ran("even", [Phase(4.0, 8, 4)], rest=0.5),
        Ran("odd", [Phase(3.0, 3, 4)]),
        Ran("alone", [Phase(2.0, 9, 1)], rest=0.5),
    ]
    found = figures(steps, 4)
    assert found["work"] == 10_000.0
    assert found["serial"] == pytest.approx(0.3)
    assert found["waiting"] == pytest.approx((1.0 - 3.0 / 4) / 10.0)
    assert found["balance"] == pytest.approx((7.0 / 4) / (1.0 + 1.0))
    assert found["speedup"] == pytest.approx(10.0 / (3.0 + 2.0))
    assert found["steps"] == [
        ("even", pytest.approx(0.05), 0.0),
        ("odd", 0.0, pytest.approx(0.025)),
        ("alone", pytest.approx(0.25), 0.0),
    ]


def test_reads_the_counters_of_each_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of two phases: five units, a barrier, then three."""
    import simulation

    begun = []

    def task(address: int) -> None:
        counters = np.ctypeslib.as_array((ctypes.c_int64 * 24).from_address(address + 8 * WORKER_WORDS))
        for take, done, units in ((0, 1, 5), (2, 3, 3)):
            while True:
                unit, counters[take] = int(counters[take]), counters[take] + 1
                if unit >= units:
                    break
                begun.append((take, unit))
                counters[done] += take == 0

    monkeypatch.setattr(simulation, "_function", lambda _: task)
    monkeypatch.setattr(simulation, "_by_phases", lambda: {0})
    found = simulation.phases(0, [0] * 5, 4)
    assert [(phase.units, phase.threads) for phase in found] == [(5, 4), (3, 4)]
    whole = [(0, unit) for unit in range(5)] + [(2, unit) for unit in range(3)]
    assert begun == whole + whole[5:]  # the second run leaves out the first phase


def test_knows_the_tasks_with_barriers() -> None:
    """Only these run again without their first phases."""
    import simulation

    loaded("native")
    found = {
        task.address
        for task in ROUTINES.values()
        if isinstance(task, Task) and task.function.__module__.startswith(kernels.__name__) and _waits(task)
    }
    assert found == simulation._by_phases() | {run_steps.address}


def _waits(callee: Callee) -> bool:
    """Return whether a kernel calls `barrier`, directly or indirectly."""
    function = callee.function
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    called = [*map(function.__globals__.get, function.__code__.co_names), *enclosed]
    return callee is barrier or any(_waits(other) for other in called if isinstance(other, (Device, Task)))


def test_softmax_of_rows_stays_in_its_memory() -> None:
    """One of its counters assigns memory to threads, and was once mistaken for a counter of units."""
    from simulation import Watch, many_threads

    rows, length, threads, stride = 64, 1000, 4, 32
    memory, x = np.zeros(2 * rows * stride, np.float32), np.ones((rows, length), np.float32)
    sums, found = memory[: threads * stride], np.empty_like(x)
    with many_threads(watch := Watch(), threads):
        job = _softmax_job(rows, length, False)
        parallel_for(SOFTMAX.address, job, found.reshape(-1), x, sums, UNUSED, threads)
    assert not memory[threads * stride :].any()
    np.testing.assert_allclose(found, 1 / length, rtol=1e-5)
    (phase,) = watch.steps[None].phases
    assert (phase.units, phase.threads) == (16, threads)


def test_adds_the_units_of_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread visits all shares, and finds each empty once."""
    import simulation

    def task(address: int) -> None:
        counters = np.ctypeslib.as_array((ctypes.c_int64 * 24).from_address(address + 8 * WORKER_WORDS))
        counters[[0, 1, 8, 16]] = 4, 3, 4, 4

    monkeypatch.setattr(simulation, "_function", lambda _: task)
    monkeypatch.setattr(simulation, "_by_shares", lambda: {0})
    (found,) = simulation.phases(0, [0] * 5, 64)
    assert (found.units, found.threads) == (11, 64)


@pytest.fixture
def joined(tmp_path: Path) -> tuple[Path, Path]:
    """A network that concatenates the channels of two channels-last maps with `ROWS` rows."""
    maps = [op.parameter([1, ROWS, 256], np.float32, name=name) for name in "xy"]
    for parameter in maps:
        parameter.output(0).set_names({parameter.friendly_name})
    turned = [op.transpose(each, op.constant([0, 2, 1])) for each in maps]
    ov.save_model(ov.Model([op.concat(turned, 1)], maps), tmp_path / "model.xml", compress_to_fp16=False)
    np.savez(tmp_path / "inputs.npz", **dict.fromkeys("xy", np.ones((1, ROWS, 256), np.float32)))
    return tmp_path / "model.xml", tmp_path / "inputs.npz"


@pytest.fixture
def no_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no threads, which are only simulated."""
    from ir_runtime.backends.native.threading import parallel

    def refuse(workers: int) -> None:
        raise AssertionError(f"{workers} workers were wanted")

    monkeypatch.setattr(parallel, "acquire", refuse)


@pytest.mark.usefixtures("no_pools")
@pytest.mark.parametrize("threads", [4, 64])
def test_units_are_those_of_the_kernel(joined: tuple[Path, Path], threads: int) -> None:
    import simulation

    steps = simulation.simulated(*joined, threads, "accuracy")
    found = _phase(steps, concat)
    assert (found.units, found.threads) == (-(-ROWS // ROWS_PER_UNIT), threads)
    (step,) = (step for step in steps if found in step.phases)
    assert [ran.name for ran in steps if ran.rest] == ["outside steps"], "its run is not direct"
    assert "Concat" in step.name


@pytest.mark.usefixtures("no_pools")
@pytest.mark.parametrize(("threads", "units"), [(2, 14), (16, 38), (64, 112)])
def test_every_thread_has_rows_of_a_depthwise_convolution(tmp_path: Path, threads: int, units: int) -> None:
    """With 8 rows per unit, as for two threads, 50 of 64 threads would be idle."""
    import simulation

    x = op.parameter([1, 32, 112, 112], np.float32, name="x")
    x.output(0).set_names({"x"})
    filters = op.constant(np.ones((32, 1, 1, 3, 3), np.float32))
    y = op.group_convolution(x, filters, [1, 1], [1, 1], [1, 1], [1, 1])
    ov.save_model(ov.Model([y], [x], "depthwise"), tmp_path / "model.xml", compress_to_fp16=False)
    np.savez(tmp_path / "inputs.npz", x=np.ones((1, 32, 112, 112), np.float32))
    steps = simulation.simulated(tmp_path / "model.xml", tmp_path / "inputs.npz", threads, "accuracy")
    found = _phase(steps, DEPTHWISE)
    assert (found.units, found.threads) == (units, threads)


@pytest.mark.usefixtures("no_pools")
@pytest.mark.parametrize("threads", [24, 64])
def test_threads_share_lines_of_levels_with_few_channels(tmp_path: Path, threads: int) -> None:
    """One thread used to get all 112 lines of a block of channels, which did not divide evenly."""
    import simulation

    x = op.parameter([1, 32, 112, 112], np.float32, name="x")
    x.output(0).set_names({"x"})
    limits = [op.constant(np.float32(limit)) for limit in (-4, 4 * 127 / 128)]
    y = op.fake_quantize(x, *limits, *limits, 256)
    for shape in ((32, 32, 1, 1), (32, 1, 1, 3, 3)):
        levels = op.convert(op.constant(np.ones(shape, np.int8)), np.float32)
        w = op.multiply(levels, op.constant(np.float32(1e-2)))
        convolution = op.convolution if len(shape) == 4 else op.group_convolution
        y = convolution(y, w, [1, 1], [shape[-1] // 2] * 2, [shape[-1] // 2] * 2, [1, 1])
        y = op.fake_quantize(y, *limits, *limits, 256)
    ov.save_model(ov.Model([y], [x], "levels"), tmp_path / "model.xml", compress_to_fp16=False)
    np.savez(tmp_path / "inputs.npz", x=np.ones((1, 32, 112, 112), np.float32))
    steps = simulation.simulated(tmp_path / "model.xml", tmp_path / "inputs.npz", threads, "accuracy")
    assert _phase(steps, levels_windows).units >= threads


@pytest.mark.parametrize(("rows", "panels"), [(49, 3), (196, 4), (784, 2), (12544, 1), (128, 12), (49, 32)])
def test_threads_have_about_the_same_share_of_a_product(rows: int, panels: int) -> None:
    """Units used to be multiples of the rows of all tiles: two of 49 rows, so 58 of 64 threads were idle."""
    for threads in (32, 64):
        chunk, _ = chunk_rows(rows, 1024, 1 << 18, panels, threads, CACHED)
        units, share = -(-rows // chunk) * panels, rows * panels / threads
        assert -(-units // threads) * min(chunk, rows) < max(1.5 * share, share + WIDE_ROWS)
    whole, _ = chunk_rows(rows, 1024, 1 << 18, panels, 1, CACHED)
    assert whole % ROW_MULTIPLE == 0


COPIED = np.arange(2 * 58 * 36 * 28, dtype=np.int32).reshape(2, 58, 36, 28)


@pytest.mark.parametrize("threads", [1, 2, 64])
@pytest.mark.parametrize(
    "x",
    [
        COPIED.reshape(116, 1008).T,
        COPIED[:, ::2],
        COPIED.transpose(1, 0, 3, 2),
        COPIED[::-1, :, ::-3, 4:],
        COPIED.reshape(-1)[::2],
        COPIED[:1, :2, :3, ::-1],
    ],
)
def test_several_threads_share_a_strided_copy(x: Any, threads: int) -> None:
    from simulation import Watch, many_threads

    found = np.empty(x.shape, x.dtype)
    with many_threads(watch := Watch(), threads):
        assert copy(x, found)
    assert (found == x).all()
    (phase,) = watch.steps[None].phases
    assert phase.shared == (threads > 1 and x.size > 10_000)


def test_several_threads_share_the_zeros_around_a_picture() -> None:
    from simulation import Watch, many_threads

    with many_threads(watch := Watch(), 64):
        pad_images(np.ones((1, 3, 224, 224), np.float32), [(1, 1), (1, 1)])
    (phase,) = watch.steps[None].phases
    assert phase.shared


@pytest.mark.usefixtures("no_pools")
def test_results_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    from simulation import Watch, many_threads

    rng = np.random.default_rng(0)
    x = op.parameter([1, 96, 7, 7], np.float32, name="x")
    x.output(0).set_names({"x"})
    y = x
    for shape in ((160, 96, 1, 1), (96, 160, 3, 3)):
        w = op.constant(rng.standard_normal(shape, np.float32))
        y = op.relu(op.convolution(y, w, [1, 1], [shape[3] // 2] * 2, [shape[3] // 2] * 2, [1, 1]))
    ov.save_model(ov.Model([y], [x], "products"), tmp_path / "model.xml", compress_to_fp16=False)
    feed, found = rng.standard_normal((1, 96, 7, 7), np.float32), set()
    for threads in (1, 2, 16, 64):
        with many_threads(Watch(), threads):
            config = {"INFERENCE_NUM_THREADS": threads}
            compiled = ir_runtime.compile_model(tmp_path / "model.xml", config=config, backend="native")
            found |= {compiled(feed)[0].tobytes() for _ in range(3)}
    assert len(found) == 1


def _phase(steps: Sequence[Any], task: Task) -> Any:
    """Return the only phase of a kernel; other kernels of its step may copy inputs and result."""
    (found,) = (phase for step in steps for phase in step.phases if phase.task == task.address)
    return found
