"""f16 models, which the fast backends compute in f32, as OpenVINO's CPU plugin does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core
from models.compressed import constant
from openvino import opset6
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.backends import available
from ir_runtime.debug.reference import Reference
from ir_runtime.executor.step import Step
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Array
from ir_runtime.openvino.compiling import program_after

fast = pytest.mark.parametrize("backend", [name for name in available() if name != "reference"])
HALF = np.float16


def rms(found: Array, wanted: Array) -> float:
    """Return the relative RMS difference of two results."""
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    return float(np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2)))


def numbers(*shape: int, seed: int = 0, of: Any = HALF) -> Array:
    found: Array = np.random.default_rng(seed).standard_normal(shape).astype(of)
    return found


def saved(folder: Path, outputs: Sequence[Any], parameters: Sequence[Any], sinks: Sequence[Any] = ()) -> Path:
    model = ov.Model([op.result(each) for each in outputs], list(sinks), list(parameters))
    ov.save_model(model, path := folder / "m.xml", compress_to_fp16=False)
    return path


def plugin(path: Path, *inputs: Array) -> list[Array]:
    return list(core().compile_model(path, "CPU", PLUGIN)(list(inputs)).to_tuple())


def network(folder: Path) -> Path:
    """A network of f16 layers in which rounding after each layer is visible; and its unrounded result."""
    x = op.parameter([1, 3, 16, 16], HALF, name="x")
    found = x
    for number, (before, after) in enumerate([(3, 8), (8, 8)]):
        w = op.constant(numbers(after, before, 3, 3, seed=number) / HALF(4))
        found = op.convolution(found, w, [1, 1], [1, 1], [1, 1], [1, 1], name=f"conv{number}")
        found = op.relu(op.add(found, op.constant(numbers(1, after, 1, 1))), name=f"relu{number}")
    mean = op.reduce_mean(found, op.constant(np.array([2, 3])), False)
    y = op.softmax(op.matmul(mean, op.constant(numbers(8, 5)), False, False, name="matmul"), 1, name="y")
    return saved(folder, [y, op.convert(y, "f32")], [x])


PICTURE = numbers(1, 3, 16, 16, seed=7)


class Seen:
    """An observer that keeps all results."""

    def __init__(self) -> None:
        self.inputs: dict[str, list[Array]] = {}
        self.outputs: dict[str, list[Array]] = {}

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        assert step.layer.name not in self.inputs
        self.inputs[step.layer.name] = [array.copy() for array in inputs]

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        self.outputs[step.layer.name] = [array.copy() for array in outputs]


@fast
@pytest.mark.parametrize("hint", [None, "f32", "f16"])
def test_a_network_is_rounded_once(hint: str | None, backend: str, tmp_path: Path) -> None:
    path, config = network(tmp_path), {} if hint is None else {"INFERENCE_PRECISION_HINT": hint}
    half, before = ir.compile_model(path, backend=backend, config=config)(PICTURE).to_tuple()
    assert (half.dtype, before.dtype) == (HALF, np.float32)
    np.testing.assert_array_equal(half, before.astype(HALF))
    error = rms(before, plugin(path, PICTURE)[1])
    assert error > 1e-5 if hint == "f16" else error < 1e-6


def test_the_reference_computes_what_the_file_says(tmp_path: Path) -> None:
    path = network(tmp_path)
    half, before = ir.compile_model(path, backend="reference")(PICTURE).to_tuple()
    np.testing.assert_array_equal(half.astype(np.float32), before)


@fast
def test_observers_see_the_declared_types(backend: str, tmp_path: Path) -> None:
    path, seen, wanted = network(tmp_path), Seen(), Seen()
    compiled, reference = ir.compile_model(path, backend=backend), ir.compile_model(path, backend="reference")
    found = compiled(PICTURE, observers=[seen])
    reference(PICTURE, observers=[wanted])
    assert list(seen.inputs) == list(wanted.inputs)
    for name in seen.inputs:
        for ours, theirs in (seen.inputs, wanted.inputs), (seen.outputs, wanted.outputs):
            assert [a.dtype for a in ours[name]] == [a.dtype for a in theirs[name]]
    np.testing.assert_array_equal(seen.inputs["conv0"][0], PICTURE)
    assert rms(found[1], compiled(PICTURE)[1]) < 1e-6


@fast
def test_patches_see_and_give_the_declared_types(backend: str, tmp_path: Path) -> None:
    compiled, types = ir.compile_model(network(tmp_path), backend=backend), []

    def look(array: Array) -> None:
        types.append(array.dtype)

    def halve(array: Array) -> Array:
        return array / 2

    plain = compiled(PICTURE)[1]
    same, other = compiled(PICTURE, patch={"relu0": look})[1], compiled(PICTURE, patch={"relu0": halve})[1]
    assert types == [HALF]
    assert rms(same, plain) < 1e-6  # what is not replaced is not rounded
    assert rms(other, plain) > 1e-3


@fast
def test_stepping_shows_the_declared_types(backend: str, tmp_path: Path) -> None:
    compiled = ir.compile_model(network(tmp_path), backend=backend)
    run = debug.step(compiled, PICTURE)
    stops = [(stop.name, stop.outputs[0].dtype) for stop in run]
    assert ("relu1", HALF) in stops
    assert len(dict(stops)) == len(stops)
    assert rms(run.results[1], compiled(PICTURE)[1]) < 1e-6
    other = debug.step(compiled, PICTURE)
    for stop in other:
        if stop.name == "relu1":
            stop.outputs[0][...] = 0
    np.testing.assert_allclose(other.results[1], 0.2, rtol=1e-6)


@fast
@pytest.mark.parametrize("side", ["itself", "openvino"])
def test_nobody_is_accused_of_not_rounding(side: str, backend: str, tmp_path: Path) -> None:
    model = ir.read_model(network(tmp_path))
    found = debug.compare(model, [PICTURE], backend if side == "itself" else side)
    assert found.explained
    assert len(found.units) > 3


@fast
def test_converts_to_f16_and_back_round_nothing(backend: str, tmp_path: Path) -> None:
    x, n = op.parameter([4], np.float32, name="x"), op.parameter([4], np.int32, name="n")
    there = op.multiply(op.convert(op.convert(x, "f16"), "f32"), op.constant(np.float32(1)))
    counted = op.convert(op.convert(n, "f16"), "i32")
    scaled = op.convert(op.multiply(op.convert(n, "f16"), op.constant(HALF(3))), "i32")
    path = saved(tmp_path, [there, counted, scaled, op.convert(x, "f16")], [x, n])
    inputs = [np.float32([1 / 3, 1e5, 1e-9, -np.pi]), np.int32([1001, 2049, 4097, 100000])]
    compiled = ir.compile_model(path, backend=backend)
    found = compiled(inputs).to_tuple()
    for ours, theirs in zip(found, plugin(path, *inputs), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(found[0], inputs[0])
    np.testing.assert_array_equal(compiled(inputs, observers=[Seen()])[0], inputs[0])
    literal = ir.compile_model(path, backend="reference")(inputs)[0]
    np.testing.assert_array_equal(literal[[0, 3]], inputs[0][[0, 3]].astype(HALF).astype(np.float32))


@fast
def test_constants_are_folded_in_f32(backend: str, tmp_path: Path) -> None:
    x = op.parameter([64], HALF, name="x")
    one, other = numbers(64), numbers(64, seed=1)
    y = op.convert(op.multiply(x, op.multiply(op.constant(one), op.constant(other))), "f32")
    found = ir.compile_model(saved(tmp_path, [y], [x]), backend=backend)(np.ones(64, HALF))[0]
    np.testing.assert_array_equal(found, one.astype(np.float32) * other.astype(np.float32))


@fast
def test_lengths_that_f16_cannot_hold(backend: str, tmp_path: Path) -> None:
    """2049 is not representable in f16."""
    x = op.parameter([-1], np.float32, name="x")
    scaled = op.multiply(op.convert(op.shape_of(x), "f16"), op.constant(HALF(1)))
    path = saved(tmp_path, [op.broadcast(op.constant(np.float32(1)), op.convert(scaled, "i64"))], [x])
    data = np.zeros(2049, np.float32)
    model = ir.read_model(path)
    assert ir.compile_model(model, backend=backend)(data)[0].shape == plugin(path, data)[0].shape == (2049,)
    model.reshape([2049])
    compiled = ir.compile_model(model, backend=backend)
    assert compiled(data)[0].shape == compiled(data, observers=[Seen()])[0].shape == (2049,)


def counting(folder: Path) -> Path:
    """A variable that accumulates a part of the input; its new value is f32."""
    x = op.parameter([4], HALF, name="x")
    held = opset6.read_value(op.constant(np.zeros(4, HALF)), "sum", HALF, [4])
    new = op.add(held, op.multiply(x, op.constant(HALF(1e-3))))
    return saved(folder, [op.convert(new, "f32")], [x], [opset6.assign(new, "sum")])


@fast
def test_variables_are_shown_as_declared(backend: str, tmp_path: Path) -> None:
    path, data = counting(tmp_path), numbers(4)
    request = ir.compile_model(path, backend=backend).create_infer_request()
    theirs = core().compile_model(path, "CPU", PLUGIN).create_infer_request()
    for number in range(1, 6):
        found = request.infer([data])[0]
        np.testing.assert_allclose(
            found, number * data.astype(np.float32) * np.float32(HALF(1e-3)), rtol=1e-6
        )
        np.testing.assert_allclose(found, theirs.infer([data])[0], rtol=3e-3)
    (state,) = request.query_state()
    assert state.state.element_type == ir.Type.f16
    np.testing.assert_array_equal(state.state.data, found.astype(HALF))
    with pytest.raises(ir.InputError, match=r"variable 'sum' must be f16\[4\], got f16\[5\]"):
        state.state = np.ones(5, HALF)
    state.state = np.ones(4, HALF)
    np.testing.assert_array_equal(state.state.data, np.ones(4, HALF))
    step = data.astype(np.float32) * np.float32(HALF(1e-3))
    np.testing.assert_allclose(request.infer([data])[0], 1 + step, rtol=1e-6)
    request.reset_state()
    np.testing.assert_allclose(request.infer([data])[0], step, rtol=1e-6)


@fast
def test_variables_between_runs_that_are_watched_and_that_are_not(backend: str, tmp_path: Path) -> None:
    compiled, data = ir.compile_model(counting(tmp_path), backend=backend), numbers(4)
    step = data.astype(np.float32) * np.float32(HALF(1e-3))
    compiled(data)
    np.testing.assert_allclose(compiled(data, observers=[Seen()])[0], 2 * step, rtol=1e-6)
    np.testing.assert_allclose(compiled(data)[0], 3 * step, rtol=1e-6)


def looping(folder: Path) -> Path:
    """An f16 recurrence over the rows of the input, and an If."""
    x, h0 = op.parameter([7, 8], HALF, name="x"), op.parameter([1, 8], HALF, name="h")
    row, h = op.parameter([1, 8], HALF), op.parameter([1, 8], HALF)
    new = op.tanh(op.add(op.matmul(h, op.constant(numbers(8, 8)), False, False), row), name="new")
    loop = op.loop(op.constant(np.array(7)), op.constant(np.array(True)))
    body = ov.Model([op.result(op.constant(np.array(True))), op.result(new)], [row, h])
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    loop.set_merged_input(h, h0.output(0), body.results[1].output(0))
    every = loop.get_concatenated_slices(body.results[1].output(0), 0, 1, 1, -1, 0)
    a, b = op.parameter([7, 8], HALF), op.parameter([7, 8], HALF)
    total = op.reduce_sum(h0, op.constant(np.array([0, 1])), False)
    choice = op.if_op(op.greater(total, op.constant(HALF(0))).output(0))
    then = ov.Model([op.result(op.multiply(a, op.constant(HALF(1 / 3))))], [a])
    other = ov.Model([op.result(op.add(b, op.constant(HALF(1 / 3))))], [b])
    choice.set_then_body(then)
    choice.set_else_body(other)
    choice.set_input(every, a, b)
    y = choice.set_output(then.results[0], other.results[0])
    return saved(folder, [op.convert(y, "f32"), y], [x, h0])


@fast
@pytest.mark.parametrize("sign", [1, -1])
def test_bodies_are_computed_in_f32(sign: int, backend: str, tmp_path: Path) -> None:
    path = looping(tmp_path)
    data = [numbers(7, 8), (np.abs(numbers(1, 8)) * HALF(sign)).astype(HALF)]
    compiled, types = ir.compile_model(path, backend=backend), dict[str, set[str]]()

    class Look(Seen):
        def before(self, step: Step, inputs: Sequence[Array]) -> None:
            types.setdefault(step.layer.name, set()).update(array.dtype.name for array in inputs)

    found, half = compiled(data).to_tuple()
    assert rms(found, plugin(path, *data)[0]) < 1e-6
    assert rms(found, ir.compile_model(path, backend="reference")(data)[0]) > 1e-5
    np.testing.assert_array_equal(half, found.astype(HALF))
    watched = compiled(data, observers=[Look()])[0]
    assert rms(watched, found) < 1e-6
    assert [found for name, found in types.items() if name.endswith("/body/new")] == [{"float16"}]


@fast
def test_random_numbers_continue_whoever_watches(backend: str, tmp_path: Path) -> None:
    def uniform(element: str, of: Any) -> Path:
        low, high = op.constant(of(-1)), op.constant(of(1))
        y = op.random_uniform(op.constant(np.array([9])), low, high, element, 3, 5)
        (folder := tmp_path / element).mkdir()
        return saved(folder, [y], [])

    one = ir.compile_model(uniform("f32", np.float32), backend=backend)
    other = ir.compile_model(path := uniform("f16", HALF), backend=backend)
    np.testing.assert_array_equal((first := other()[0]), plugin(path)[0])
    for found in (first, other(observers=[Seen()])[0], other()[0]):
        np.testing.assert_array_equal(found, one()[0].astype(HALF))


class Sees(ir.Op):
    """A custom operation that records its input types."""

    seen: ClassVar[list[str]] = []

    def __init__(self, inputs: Any = None) -> None:
        super().__init__(self, inputs)

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, inputs: Any) -> Any:
        return Sees(inputs)

    def evaluate(self, outputs: Any, inputs: Any) -> bool:
        self.seen.append(inputs[0].data.dtype.name)
        outputs[0].data[...] = inputs[0].data
        return True

    def has_evaluate(self) -> bool:
        return True


@fast
def test_operations_from_outside_are_given_what_they_declare(backend: str) -> None:
    x = ir.opset13.parameter([3], HALF, "x")
    third = ir.opset13.multiply(x, ir.opset13.constant(HALF(1 / 3)))
    y = ir.opset13.convert(ir.opset13.multiply(Sees([third]).output(0), third), "f32")
    compiled = ir.compile_model(ir.Model([y], [x]), backend=backend)
    Sees.seen.clear()
    data = np.array([1, 3, 5], HALF)
    exact = data.astype(np.float32) * np.float32(HALF(1 / 3))
    for observers in (), (Seen(),):
        found = compiled(data, observers=observers)[0]
        np.testing.assert_array_equal(found, exact.astype(HALF).astype(np.float32) * exact)
    assert Sees.seen == ["float16", "float16"]


def test_what_has_no_f16_is_left_alone(tmp_path: Path) -> None:
    """A model that only stores f16 is left alone, too."""
    x = op.parameter([2, 64], np.float32, name="x")
    y = op.matmul(x, op.constant(numbers(64, 64, of=np.float32)), False, False, name="y")
    ov.save_model(ov.Model([y], [x]), path := tmp_path / "m.xml", compress_to_fp16=True)
    model = ir.read_model(path)
    assert "Convert" in {layer.type for layer in model._graph}
    compiled = ir.compile_model(model, backend="numpy")
    steps, graph = compiled._compile_unfused().steps, compiled._model._graph
    assert all(layer in graph for step in steps for layer in step.layers)
    assert all(step.declared is None for step in steps)


def test_the_graph_that_runs(tmp_path: Path) -> None:
    model = ir.read_model(network(tmp_path))
    lines = program_after(model, "widen", "numpy").splitlines()
    assert [line for line in lines if line.endswith("f16[1,3,16,16]")] == lines[:1]
    assert [line.partition(" ")[0] for line in lines if line.endswith("f16[1,5]")] == ['"y/f16"']
    assert "f32" not in program_after(model, "widen", "reference").rpartition("Softmax")[0]
    nodes = ir.compile_model(model, backend="numpy").get_runtime_model().get_ordered_ops()
    precisions = {node.friendly_name: str(node.get_rt_info()["outputPrecisions"].value) for node in nodes}
    assert (precisions["conv0"], precisions["y"]) == ("f32", "f32")


@fast
def test_constants_take_no_more_memory_than_compressed_ones(backend: str, tmp_path: Path) -> None:
    """Compare a pure f16 model with an f32 model that has f16 weights."""

    def held(half: bool) -> int:
        x = op.parameter([2, 256], HALF if half else np.float32, name="x")
        found = x
        for number in range(2):
            w = op.constant(numbers(256, 256, seed=number))
            found = op.relu(op.matmul(found, w if half else op.convert(w, "f32"), False, True))
        compiled = ir.compile_model(saved(tmp_path, [found], [x]), backend=backend)
        arrays = [a for a in compiled._plan.slots if a is not None and a.size > 1024 and any(a.strides)]
        return sum(array.nbytes for array in arrays)

    assert held(half=True) == held(half=False)


KINDS = ("i8", "u8", "i4", "u4", "nf4", "f8e4m3", "f8e5m2", "f4e2m1")


def weights(kind: str, with_zero: bool, grouped: bool, rows: int, columns: int) -> Any:
    """Dequantized weights: codes as f16, minus zero points, times scales by group of 32 or by row, as f32."""
    rng, element = np.random.default_rng(1), E.parse(kind)
    shape = (rows, columns // 32, 32) if grouped else (rows, columns)
    if element.real and kind != "nf4":
        codes = rng.standard_normal(shape).astype(element.dtype)
    else:
        low, high = {"i8": (-128, 128), "u8": (0, 256), "i4": (-8, 8)}.get(kind, (0, 16))
        codes = rng.integers(low, high, shape).astype(np.int8 if low else np.uint8).astype(element.dtype)
    small = (*shape[:-1], 1)
    found = op.convert(constant(codes, element), "f16")
    if with_zero and element.real:
        found = op.subtract(found, op.constant(rng.standard_normal(small).astype(HALF)))
    elif with_zero:
        zeros = constant(rng.integers(0, 7, small).astype(np.uint8).astype(element.dtype), element)
        found = op.subtract(found, op.convert(zeros, "f16"))
    found = op.multiply(found, op.constant(rng.uniform(0.001, 0.01, small).astype(HALF)))
    if grouped:
        found = op.reshape(found, op.constant(np.array([rows, columns])), False)
    return op.convert(found, "f32")


def consumer(name: str, folder: Path, chain: tuple[str, bool, bool]) -> tuple[Path, Array]:
    """A model with a layer that reads such weights, and its data."""
    if name == "MatMul":
        x, data = op.parameter([-1, 128], np.float32), numbers(5, 128, of=np.float32)
        return saved(folder, [op.matmul(x, weights(*chain, 96, 128), False, True)], [x]), data
    if name == "Gather":
        x, indices = op.parameter([-1], np.int64), np.array([3, 95, 0, 3])
        return saved(folder, [op.gather(weights(*chain, 96, 128), x, op.constant(0))], [x]), indices
    x, data = op.parameter([1, 32, 9, 9], np.float32), numbers(1, 32, 9, 9, of=np.float32)
    filters = op.reshape(weights(*chain, 64, 288), op.constant(np.array([64, 32, 3, 3])), False)
    return saved(folder, [op.convolution(x, filters, [1, 1], [1, 1], [1, 1], [1, 1])], [x]), data


@fast
@pytest.mark.parametrize("reader", ["MatMul", "Gather", "Convolution"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("with_zero", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_compressed_weights_are_multiplied_in_f32(
    kind: str, with_zero: bool, grouped: bool, reader: str, backend: str, tmp_path: Path
) -> None:
    path, data = consumer(reader, tmp_path, (kind, with_zero, grouped))
    model = ir.read_model(path)
    found = ir.compile_model(model, backend=backend)(data)[0]
    if kind == "nf4" and reader != "MatMul":  # OpenVINO rounds the table of nf4 to f16 there
        assert rms(found, Reference(model, wide=True).run([data])[0]) < 1e-6
        assert rms(found, plugin(path, data)[0]) < 3e-4
    else:
        assert rms(found, plugin(path, data)[0]) < 1e-6
