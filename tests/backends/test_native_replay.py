"""Consecutive steps of the native backend become one call with the same results."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset1, opset3, opset4, opset8, opset12, opset13
from ir_runtime.backends import available
from ir_runtime.backends.native.kernels import quantized_network
from ir_runtime.backends.native.threading import recorder
from ir_runtime.executor import plan
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def dense(x: Any, inputs: int, outputs: int) -> Any:
    product = opset1.matmul(x, opset1.constant(numbers(inputs, outputs)), False, False)
    return opset1.relu(opset1.add(product, opset1.constant(numbers(1, outputs))))


def perceptron(rows: int = 3) -> ir.Model:
    x = opset1.parameter([rows, 8], np.float32, name="x")
    y = dense(dense(x, 8, 16), 16, 16)
    return ir.Model([opset8.softmax(y, 1), y], [x])


def convolutions() -> ir.Model:
    """Image layers in channels-last memory, and a view of the last one."""
    x = opset1.parameter([1, 16, 12, 12], np.float32, name="x")
    y: Any = x
    for kernel in (1, 3):
        w = opset1.constant(numbers(16, 16, kernel, kernel))
        pads = [kernel // 2] * 2
        y = opset1.relu(opset1.convolution(y, w, [1, 1], pads, pads, [1, 1]))
    y = opset1.max_pool(y, [2, 2], [0, 0], [0, 0], [2, 2])
    return ir.Model([opset1.reshape(y, opset1.constant([1, -1]), False), y], [x])


def volumes() -> ir.Model:
    """Layers on volumes with few channels."""
    x = opset1.parameter([1, 12, 6, 6, 6], np.float32, name="x")
    y: Any = x
    for _ in range(2):
        w = opset1.constant(numbers(12, 12, 3, 3, 3))
        y = opset1.relu(opset1.convolution(y, w, [1] * 3, [1] * 3, [1] * 3, [1] * 3))
        y = opset8.max_pool(y, [1] * 3, [1] * 3, [0] * 3, [0] * 3, [2] * 3).output(0)
    return ir.Model([y], [x])


def upsampled() -> ir.Model:
    """Transposed convolutions with overlapping windows: phases of equal and unequal size, and cropped borders."""
    x = opset1.parameter([1, 16, 8, 8], np.float32, name="x")
    y: Any = x
    for kernel in (4, 3):
        w = opset1.constant(numbers(16, 16, kernel, kernel))
        y = opset1.relu(opset1.convolution_backprop_data(y, w, [2] * 2, None, [1] * 2, [1] * 2, [1] * 2))
    return ir.Model([y], [x])


def joined() -> ir.Model:
    """Concatenated channels of two maps, and of small tensors."""
    x = opset1.parameter([1, 16, 12, 12], np.float32, name="x")
    parts = [
        opset1.relu(
            opset1.convolution(x, opset1.constant(numbers(16, 16, 1, 1)), [1, 1], [0, 0], [0, 0], [1, 1])
        )
        for _ in range(3)
    ]
    y = opset1.max_pool(opset1.concat(parts, 1), [4, 4], [0, 0], [0, 0], [4, 4])
    y = opset1.max_pool(opset1.concat([y, y], 1), [2, 2], [0, 0], [0, 0], [2, 2])
    return ir.Model([y], [x])


def large_maps() -> ir.Model:
    """Layers with more than a megabyte each."""
    x = opset1.parameter([1, 16, 160, 160], np.float32, name="x")
    y: Any = x
    for _ in range(3):
        y = opset1.convolution(y, opset1.constant(numbers(16, 16, 1, 1)), [1, 1], [0, 0], [0, 0], [1, 1])
    return ir.Model([y], [x])


def two_inputs() -> ir.Model:
    x, y = (opset1.parameter([2, 4096], np.float32, name=name) for name in "xy")
    return ir.Model([opset1.multiply(opset1.subtract(x, y), opset1.constant(np.float32(3)))], [x, y])


def one_layer() -> ir.Model:
    x = opset1.parameter([2, 8], np.float32, name="x")
    return ir.Model([opset1.relu(x)], [x])


def bags(rows: int = 5) -> ir.Model:
    indices = opset1.parameter([4], np.int64, name="indices")
    table, offsets = opset1.constant(numbers(rows, 8)), opset1.constant(np.array([0, 3]))
    found = opset3.embedding_bag_offsets_sum(table, indices, offsets, name="bags")
    return ir.Model([dense(found, 8, 4)], [indices])


def compiled(model: ir.Model, threads: int = 1) -> ir.CompiledModel:
    return ir.compile_model(model, backend="native", config={"INFERENCE_NUM_THREADS": threads})


def instructions(model: ir.CompiledModel) -> int:
    """Return the number of instructions of the next run."""
    programs = model._plan.programs
    assert programs.recorded
    return min(len(program.instructions) for program in programs.recorded.values())


def equal(found: Any, expected: Any) -> None:
    for index in range(len(expected)):
        np.testing.assert_array_equal(found[index], expected[index])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "make", [perceptron, convolutions, volumes, upsampled, two_inputs, bags, joined, large_maps]
)
def test_all_steps_become_one_call_that_gives_the_same(make: Callable[[], ir.Model], threads: int) -> None:
    model = make()
    fast, plain = compiled(model, threads), compiled(model, threads)
    for turn in range(5):
        inputs = [
            numbers(*port.shape) if port.element_type.to_dtype() == np.float32 else np.array([4, 1, turn, 0])
            for port in fast.inputs
        ]
        plain._plan.programs.run_counts.clear()
        equal(fast(inputs), plain(inputs))
    assert instructions(fast) == 1
    assert len(fast._plan.steps) > 1 or make is two_inputs


@pytest.mark.parametrize("threads", [1, 2])
def test_pictures_in_bf16_are_replayed(threads: int) -> None:
    """The zero border is in memory that other layers used before."""
    x, w = opset1.parameter([1, 3, 40, 40], np.float32, name="x"), opset1.constant(numbers(16, 3, 3, 3))
    y = opset1.convolution(
        opset1.multiply(x, opset1.constant(np.float32(2))), w, [1, 1], [2, 0], [1, 3], [1, 1]
    )
    config = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "bf16"}
    fast = ir.compile_model(ir.Model([opset1.relu(y)], [x]), backend="native", config=config)
    given = numbers(1, 3, 40, 40)
    expected = fast([given]).to_tuple()
    for _ in range(4):
        equal(fast([given]), expected)
    assert instructions(fast) == 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", [perceptron, two_inputs, volumes, one_layer])
def test_a_plan_that_is_one_call_needs_no_slots(
    make: Callable[[], ir.Model], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = compiled(make(), threads)
    inputs = [numbers(*port.shape) for port in fast.inputs]
    expected = fast(inputs).to_tuple()
    equal(fast(inputs), expected)

    def refuse(*_: object) -> Any:
        raise NotImplementedError

    monkeypatch.setattr(plan.Programs, "next", refuse)
    for _ in range(2):
        equal(fast(inputs), expected)
    with pytest.raises(NotImplementedError):
        fast([np.asfortranarray(inputs[0]), *inputs[1:]])
    with pytest.raises(NotImplementedError):
        fast._plan.run(inputs, threads=threads, limits=ir.Limits(seconds=1e-3))


def test_results_belong_to_the_caller() -> None:
    fast, x, y = compiled(perceptron()), numbers(3, 8), numbers(3, 8)
    for _ in range(2):
        fast(x)
    first = fast(x)
    kept = [array.copy() for array in first.to_tuple()]
    fast(y)
    first[1][...] = 7
    equal(fast(x), kept)


def test_runs_at_once_do_not_share_memory() -> None:
    fast, inputs = compiled(perceptron(64)), [numbers(64, 8) for _ in range(8)]
    expected = [fast(x).to_tuple() for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(fast, inputs * 20), expected * 20, strict=True):
            equal(found, wanted)


def test_inputs_of_other_strides() -> None:
    fast, x = compiled(perceptron()), numbers(3, 8)
    expected = fast(x).to_tuple()
    fast(x)
    equal(fast(np.asfortranarray(x)), expected)
    equal(fast(np.repeat(x, 2, axis=1)[:, ::2]), expected)
    equal(fast(x), expected)
    other = compiled(perceptron())
    for _ in range(3):
        found = other(np.asfortranarray(x))
    equal(other(x), found.to_tuple())


def test_a_number_that_is_gathered_before_a_replay_is_an_array() -> None:
    """Tasks take addresses of arrays; a NumPy scalar would have the address of something else."""
    x = opset1.parameter([-1], np.float32, name="x")
    at = opset1.parameter([], np.int64, name="at")
    y = opset1.parameter([2, 3], np.float32, name="y")
    number = opset8.gather(x, at, np.int64(0))
    out = opset1.relu(opset1.add(opset1.multiply(y, number), opset1.exp(number)))
    compiled = ir.compile_model(ir.Model([out], [x, at, y]), backend="native")
    ones = np.ones((2, 3), np.float32)
    for start in range(5):
        strided = np.arange(start, start + 8, dtype=np.float32)[::2]
        found = compiled([strided, np.int64(1), ones])[0]
        np.testing.assert_allclose(found, ones * (start + 2 + np.exp(start + 2)), rtol=1e-6)


def test_parts_of_an_input_with_channels_last_are_taken_without_ending_the_replay() -> None:
    """One layer of the replay reads both slices, another the first."""
    x = opset1.parameter([1, 16, 15, 20], np.float32, name="x")
    parts = opset1.split(x, opset1.constant(1), 2)
    y = opset1.multiply(opset1.relu(parts.output(1)), parts.output(0))
    y = dense(opset1.reduce_mean(y, opset1.constant([2, 3]), False), 8, 4)
    model = ir.Model([y, opset3.non_zero(parts.output(0))], [x])
    plain, fast = ir.compile_model(model, backend="reference"), compiled(model)
    for _ in range(4):
        data = numbers(1, 15, 20, 16).transpose(0, 3, 1, 2)
        wanted, found = plain(data), fast(data)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found[1], wanted[1])
    (program,) = fast._plan.programs.recorded.values()
    assert list(program.starts)[1] >= 2  # with the layer that reads both


def test_inputs_of_other_shapes() -> None:
    model = perceptron()
    model.reshape([-1, 8])
    fast = compiled(model)
    for rows in (3, 5, 3, 1, 0, 3, 5, 0, 3, 5):
        x = numbers(rows, 8)
        equal(fast(x), compiled(model)(x).to_tuple())
    assert len(fast._plan.programs.recorded) == 3
    assert instructions(fast) == 1


def test_shapes_that_change_with_every_run_are_not_recorded() -> None:
    model = perceptron()
    model.reshape([-1, 8])
    fast = compiled(model)
    for rows in range(1, 80):
        fast(numbers(rows, 8))
    assert not fast._plan.programs.recorded


def test_of_many_shapes_those_that_come_often_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording costs as much as many runs, and a growing cache has a new length for each token."""
    model = perceptron()
    model.reshape([-1, 8])
    fast = compiled(model)
    programs = fast._plan.programs
    monkeypatch.setattr(plan, "KEPT_STEPS", 24 * len(programs.steps))
    for turn in range(1, 19):
        for rows in range(1, 31):
            fast(numbers(rows, 8))
        assert len(programs.recorded) == (0 if turn == 1 else 16 if turn <= 16 else 24)
    x = numbers(30, 8)
    equal(fast(x), compiled(model)(x).to_tuple())


def test_replays_count_memory() -> None:
    """Memory limits hold as they do without replays."""
    x = opset1.parameter([-1, 64], np.float32, name="x")
    y: Any = x
    for _ in range(6):
        y = opset8.softmax(y, 1)
    model, data = ir.Model([y], [x]), numbers(1 << 10, 64)
    limits = ir.Limits(memory=3 * data.nbytes)
    fast = ir.compile_model(model, backend="native", config={"INFERENCE_NUM_THREADS": 1}, limits=limits)
    for _ in range(4):
        fast(data)
    with pytest.raises(ir.LimitError):
        fast(numbers(1 << 12, 64))


def test_what_replays_make_counts_for_the_steps_after_them() -> None:
    """Two results of a replay are alive when the length of a third is read from data."""
    x = opset1.parameter([-1, 64], np.float32, name="x")
    count = opset1.parameter([1], np.int64, name="count")
    y = opset8.softmax(x, 1)
    for _ in range(3):
        y = opset8.softmax(y, 1)
    z = opset8.softmax(y, 1)
    largest = opset1.reduce_max(z, opset1.constant([0, 1]), False)
    model = ir.Model([y, z, opset3.broadcast(largest, count, name="wide")], [x, count])
    data = numbers(1 << 10, 64)
    limits = ir.Limits(memory=4 * data.nbytes)
    fast = ir.compile_model(model, backend="native", config={"INFERENCE_NUM_THREADS": 1}, limits=limits)
    for turn in range(4):
        assert fast([data, np.array([10])])[2].shape == (10,)
        with pytest.raises(ir.LimitError, match="layer 'wide'"):
            fast([data, np.array([data.size * 5 // 2])])
        assert bool(fast._plan.programs.recorded) == (turn > 0)


def test_an_array_for_two_inputs_in_the_first_run() -> None:
    """The address of an array does not tell then which input a kernel read."""
    fast, x, y = compiled(two_inputs()), numbers(2, 4096), numbers(2, 4096)
    for _ in range(3):
        assert not fast([x, x])[0].any()
    np.testing.assert_array_equal(fast([x, y])[0], (x - y) * np.float32(3))
    np.testing.assert_array_equal(fast([x, y])[0], (x - y) * np.float32(3))


def test_a_layer_that_refuses_its_data_is_named() -> None:
    fast, good = compiled(bags()), np.array([0, 1, 2, 3])
    expected = fast(good).to_tuple()
    for _ in range(4):
        with pytest.raises(ir.ExecutionError, match=r"layer 'bags'"):
            fast(np.array([0, 1, 2, 5]))
        equal(fast(good), expected)


def test_a_layer_in_the_middle_of_a_replay_is_named() -> None:
    """By its place among the steps that are one call, and with the shapes that it was given."""
    x = opset1.parameter([6, 8], np.float32, name="x")
    indices = opset1.parameter([4], np.int64, name="indices")
    table, offsets = dense(opset1.relu(dense(x, 8, 8)), 8, 8), opset1.constant(np.array([0, 3]))
    found = opset3.embedding_bag_offsets_sum(table, indices, offsets, name="bags")
    fast = compiled(ir.Model([dense(found, 8, 4)], [x, indices]))
    data, good = numbers(6, 8), np.array([0, 1, 2, 3])
    expected = fast([data, good]).to_tuple()
    for _ in range(4):
        with pytest.raises(ir.ExecutionError, match=r"layer 'bags' .*indices holds 6"):
            fast([data, np.array([0, 1, 2, 6])])
        equal(fast([data, good]), expected)
    assert instructions(fast) == 1


def test_messages_are_added_up_as_part_of_the_call() -> None:
    rows, width = 40, 8
    x, places = opset1.parameter([rows, width], np.float32), opset1.parameter([rows, 1], np.int64)
    everywhere = opset1.broadcast(places, opset1.constant([rows, width]))
    zeros = opset1.constant(numbers(6, width))
    summed = opset12.scatter_elements_update(
        zeros, everywhere, dense(x, width, width), opset1.constant(0), "sum", name="messages"
    )
    model = ir.Model([dense(summed, width, 4)], [x, places])
    fast, plain = compiled(model, 2), compiled(model, 2)
    for turn in range(5):
        given = [numbers(rows, width), RANDOM.integers(-6, 6, (rows, 1))]
        plain._plan.programs.run_counts.clear()
        equal(fast(given), plain(given).to_tuple())
        if turn > 2:
            with pytest.raises(ir.ExecutionError, match=r"layer 'messages'"):
                fast([given[0], given[1] + 7])
    assert instructions(fast) == 1


def test_observers_see_every_layer() -> None:
    fast, x = compiled(perceptron()), numbers(3, 8)
    expected = fast(x).to_tuple()
    layers: list[str] = []

    class Names:
        def before(self, step: Any, inputs: Any) -> None:
            layers.append(step.layer.type)

        def after(self, step: Any, outputs: Any, seconds: float) -> None: ...

    fast(x, observers=[Names()])
    assert layers.count("MatMul") == 2
    equal(fast(x), expected)


def test_steps_between_large_arrays_stay_apart() -> None:
    """Otherwise interrupts and deadlines would wait for a long replay."""
    x = opset1.parameter([1 << 11, 1 << 11], np.float32, name="x")
    fast = compiled(ir.Model([opset1.exp(opset8.softmax(opset8.softmax(x, 1), 1))], [x]))
    for _ in range(2):
        fast(numbers(1 << 11, 1 << 11))
    assert instructions(fast) == len(fast._plan.steps)


def attention(mask_type: Any = np.bool_) -> ir.Model:
    """Two layers of masked attention with a dynamic number of tokens; heads are joined by a computed shape."""
    tokens, width, heads = -1, 8, 2
    x = opset1.parameter([1, tokens, width], np.float32, name="x")
    mask = opset1.parameter([1, 1, tokens, tokens], mask_type, name="mask")
    lengths = opset8.gather(opset3.shape_of(x), opset1.constant([0, 1]), opset1.constant(0))
    apart = opset1.concat([lengths, opset1.constant([heads, width // heads])], 0)
    y: Any = x
    for _ in range(2):
        q, k, v = (
            opset1.transpose(
                opset1.reshape(dense(y, width, width), apart, False), opset1.constant([0, 2, 1, 3])
            )
            for _ in range(3)
        )
        found = opset13.scaled_dot_product_attention(q, k, v, mask)
        joined = opset1.transpose(found, opset1.constant([0, 2, 1, 3]))
        y = opset1.reshape(joined, opset3.shape_of(x), False)
    return ir.Model([y], [x, mask])


@pytest.mark.parametrize("tokens", [3, 40])
@pytest.mark.parametrize("mask_type", [np.bool_, np.float32])
def test_attention_and_shapes_are_part_of_the_call(mask_type: Any, tokens: int) -> None:
    model = attention(mask_type)
    fast, plain = compiled(model, 2), compiled(model, 2)
    for _ in range(5):
        x = numbers(1, tokens, 8)
        mask = RANDOM.random((1, 1, tokens, tokens)) < 0.9
        mask[..., 0] = True
        added = mask if mask_type is np.bool_ else np.where(mask, numbers(tokens, tokens), np.float32(-9))
        plain._plan.programs.run_counts.clear()
        equal(fast([x, added]), plain([x, added]).to_tuple())
    assert instructions(fast) == 1


def test_lengths_that_depend_on_data_are_looked_at_in_every_replay() -> None:
    count = opset1.parameter([], np.int64, name="count")
    zero, one = opset1.constant(np.int64(0)), opset1.constant(np.int64(1))
    x = opset1.convert(opset4.range(zero, count, one, "i64"), "f32")
    target = opset1.concat([opset3.shape_of(x), opset1.constant([1])], 0)
    column = opset1.reshape(x, target, False)
    y = opset8.softmax(opset1.multiply(dense(column, 1, 8), column), 1)
    model = ir.Model([y, opset3.shape_of(y)], [count])
    fast, plain = compiled(model), compiled(model)
    for length in (4, 4, 4, 6, 4, 1, 0, 4, 6):
        plain._plan.programs.run_counts.clear()
        equal(fast(np.int64(length)), plain(np.int64(length)).to_tuple())
    assert instructions(fast) < len(fast._plan.steps)


def test_rotary_embedding_and_a_mask_that_is_turned_are_part_of_the_call() -> None:
    tokens, width = 5, 8
    x, cos, sin = (opset1.parameter([1, n, tokens, width], np.float32, name=str(n)) for n in (2, 1, 1))
    mask = opset1.parameter([1, 1, tokens, tokens], np.bool_, name="mask")
    first, second = opset1.split(x, opset1.constant(-1), 2).outputs()
    turned = opset1.concat([opset1.negative(second), first], -1)
    q = opset1.add(opset1.multiply(x, cos), opset1.multiply(turned, sin))
    other_way = opset1.transpose(mask, opset1.constant([0, 1, 3, 2]))
    found = opset13.scaled_dot_product_attention(q, q, x, other_way)
    joined = opset1.transpose(found, opset1.constant([0, 2, 1, 3]))
    model = ir.Model([dense(joined, width, width)], [x, cos, sin, mask])
    fast, plain = compiled(model), compiled(model)
    for _ in range(4):
        seen = np.tril(RANDOM.random((1, 1, tokens, tokens)) < 0.8)
        seen[..., -1, :] = True
        given = [numbers(*port.shape) for port in fast.inputs[:3]]
        plain._plan.programs.run_counts.clear()
        equal(fast([*given, seen]), plain([*given, seen]).to_tuple())
    assert instructions(fast) == 1


def test_deep_networks_are_one_replay() -> None:
    x = opset1.parameter([1, 16], np.float32, name="x")
    y: Any = x
    for _ in range(150):
        y = opset8.softmax(y, 1)
    run, data = compiled(ir.Model([y], [x])), numbers(1, 16)
    plain, *_, replayed = [run(data)[0] for _ in range(4)]
    assert instructions(run) == 1
    np.testing.assert_array_equal(replayed, plain)


def test_networks_of_large_constants_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An integer network is one step: it reads packed weights, not the constants of its definition."""
    monkeypatch.setattr(recorder, "MAX_CALL_BYTES", 1 << 12)
    x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    limits = [opset1.constant(np.float32(limit)) for limit in (-4, 4 * 127 / 128)]
    y = opset1.fake_quantize(x, *limits, *limits, 256)
    for channels in [3, *[32] * recorder.MANY_CALLS]:
        levels = opset1.constant(RANDOM.integers(-127, 128, (32, channels, 3, 3)).astype(np.int8))
        w = opset1.multiply(opset1.convert(levels, np.float32), opset1.constant(np.float32([[[[1e-3]]]])))
        y = opset1.convolution(y, w, [1, 1], [1, 1], [1, 1], [1, 1])
        y = opset1.fake_quantize(y, *limits, *limits, 256)
    run = compiled(ir.Model([opset1.reduce_mean(y, opset1.constant([2, 3]), False)], [x]))
    data = numbers(1, 3, 2, 2)
    wanted = [run(data)[0] for _ in range(5)][-1]
    monkeypatch.setattr(quantized_network._Network, "__call__", None)  # nothing calls it any more
    np.testing.assert_array_equal(run(data)[0], wanted)


def test_a_recorded_run_needs_no_more_memory_than_the_run_before() -> None:
    x = opset1.parameter([1, 16, 128, 128], np.float32, name="x")
    y: Any = x
    for _ in range(8):
        y = opset1.convolution(y, opset1.constant(numbers(16, 16, 1, 1)), [1, 1], [0, 0], [0, 0], [1, 1])
    model = compiled(ir.Model([opset1.reduce_max(y, opset1.constant([2, 3]), True)], [x]))
    data = numbers(1, 16, 128, 128)
    peaks = []
    for _ in range(4):
        tracemalloc.start()
        model(data)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert instructions(model) < 9
    assert max(peaks[1:]) < peaks[0] + data.nbytes // 2
