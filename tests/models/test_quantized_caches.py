"""8-bit KV caches against an emulation that quantizes the variables after each run."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core
from harness.session import only_new_objects
from openvino import opset6
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime.ir.quantized_cache import PREFIX, QuantizedCache, pack_rows, unpack_rows
from ir_runtime.ir.tensor import Array
from models import llm, stateful
from models.compressed import f32

U8 = {"KV_CACHE_PRECISION": "u8"}
SIZES = llm.Sizes(layers=2, width=72, inner=96, heads=6, shared=2, vocabulary=50)


def read(model: ov.Model, tmp_path: Any) -> ir.Model:
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    return ir.read_model(tmp_path / "model.xml")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> ir.Model:
    return read(llm.build(f32, SIZES), tmp_path_factory.mktemp("llama"))


def compiled(model: ir.Model, **config: object) -> ir.CompiledModel:
    return ir.compile_model(model, "CPU", config, backend="native")


def inputs(tokens: int, past: int, seed: int = 0) -> dict[str, Array]:
    return llm.step(tokens, past, SIZES, seed)


def states(request: ir.InferRequest) -> dict[str, Any]:
    return {state.name: state for state in request.query_state()}


class Emulated:
    """Runs exactly, and quantizes the rows that each run has appended to variables."""

    def __init__(self, model: ir.Model) -> None:
        self._request, self._length = compiled(model).create_infer_request(), 0

    def infer(self, feeds: Mapping[str, Array]) -> Array:
        """Run like a request; later runs also round appended rows before attention reads them."""
        found: Array = self._request.infer(dict(feeds))[0]
        for state in self._request.query_state():
            held = state.state.data.copy()
            held[:, :, self._length :] = unpack_rows(pack_rows(held[:, :, self._length :]))
            state.state = held
        self._length = held.shape[2]
        return found


def test_steps_agree_with_the_emulation(llama: ir.Model) -> None:
    """The emulation's attention reads new rows unquantized, the kernel's quantized."""
    request, emulated = compiled(llama, **U8).create_infer_request(), Emulated(llama)
    exact = compiled(llama).create_infer_request()
    past = 0
    for seed, tokens in enumerate([5, 1, 1, 3, 1, 7, 1]):
        feeds = inputs(tokens, past, seed)
        found, wanted = request.infer(feeds)[0], emulated.infer(feeds)
        off = np.abs(found - exact.infer(feeds)[0]).max()
        if seed == 0:
            np.testing.assert_array_equal(found, wanted)  # nothing was packed before
        else:
            assert 0 < off < 0.1 * np.abs(wanted).std()
            assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).std()
        past += tokens
    for name, state in states(request).items():
        wanted = states(emulated._request)[name].state.data
        assert state.state.data.shape == wanted.shape
        assert np.abs(state.state.data - wanted).max() < 0.03


def attention_alone() -> ov.Model:
    """A model with attention to caches of keys and values."""
    q, k, v = (
        op.parameter([-1, heads, -1, 20], np.float32, name=name)
        for name, heads in (("q", 2), ("k", 2), ("v", 2))
    )
    beams = op.parameter([-1], np.int32, name="beams")
    grown, assigned = [], []
    for x, name in ((k, "keys"), (v, "values")):
        held = opset6.read_value(
            op.constant(np.zeros((1, 2, 0, 20), np.float32)), name, np.float32, [-1, 2, -1, 20]
        )
        grown.append(op.concat([op.gather(held, beams, op.constant(0)), x], 2))
        assigned.append(opset6.assign(grown[-1], name))
    length = op.shape_of(grown[0])
    out = op.scaled_dot_product_attention(q, *grown)
    return ov.Model([op.result(out), op.result(length)], assigned, [q, k, v, beams])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> ir.Model:
    return read(attention_alone(), tmp_path_factory.mktemp("alone"))


def tokens(count: int, seed: int, beams: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [
        *(rng.standard_normal((beams, 2, count, 20)).astype(np.float32) for _ in range(3)),
        np.arange(beams, dtype=np.int32),
    ]


def attended(q: Array, k: Array, v: Array) -> Array:
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ v.astype(np.float64))


def test_attention_is_that_of_packed_rows(alone: ir.Model) -> None:
    request = compiled(alone, **U8).create_infer_request()
    held: list[Array] = [np.zeros((1, 2, 0, 20), np.float32)] * 2
    for run, count in enumerate([4, 1, 1, 6, 1]):
        feeds = tokens(count, run)
        new = feeds[1:3] if run == 0 else [unpack_rows(pack_rows(x)) for x in feeds[1:3]]
        keys, values = (np.concatenate(pair, axis=2) for pair in zip(held, new, strict=True))
        found = request.infer(feeds)
        np.testing.assert_allclose(found[0], attended(feeds[0], keys, values), rtol=2e-5, atol=2e-5)
        assert found[1].tolist() == [1, 2, keys.shape[2], 20]
        held = [unpack_rows(pack_rows(x)) for x in (keys, values)] if run == 0 else [keys, values]
        for name, wanted in zip(("keys", "values"), held, strict=True):
            state = states(request)[name].state
            assert state.element_type == ir.Type.f32
            np.testing.assert_allclose(state.data, wanted, rtol=1e-6, atol=1e-6)


def test_a_state_that_is_set_is_read_as_it_is(alone: ir.Model) -> None:
    request = compiled(alone, **U8).create_infer_request()
    rng = np.random.default_rng(0)
    held = [rng.standard_normal((1, 2, 3, 20)).astype(np.float32) for _ in range(2)]
    for name, array in zip(("keys", "values"), held, strict=True):
        states(request)[name].state = array
        np.testing.assert_array_equal(states(request)[name].state.data, array)
    feeds = tokens(1, 1)
    keys, values = (np.concatenate(pair, axis=2) for pair in zip(held, feeds[1:3], strict=True))
    np.testing.assert_allclose(
        request.infer(feeds)[0], attended(feeds[0], keys, values), rtol=2e-5, atol=2e-5
    )
    request.reset_state()
    assert request.infer(feeds)[1].tolist() == [1, 2, 1, 20]


def test_one_of_two_states_can_be_set(alone: ir.Model) -> None:
    """Keys are then f32, and values quantized."""
    request = compiled(alone, **U8).create_infer_request()
    first, second = tokens(3, 0), tokens(1, 1)
    request.infer(first)
    keys, values = tokens(3, 5)[1], states(request)["values"].state.data.copy()
    states(request)["keys"].state = keys
    wanted = attended(
        second[0],
        np.concatenate([keys, second[1]], 2),
        np.concatenate([values, unpack_rows(pack_rows(second[2]))], 2),
    )
    np.testing.assert_allclose(request.infer(second)[0], wanted, rtol=2e-5, atol=2e-5)


def test_beams_are_reordered(alone: ir.Model) -> None:
    request = compiled(alone, **U8).create_infer_request()
    request.infer([*tokens(3, 0)[:3], np.zeros(1, np.int32)])
    two = tokens(1, 1, beams=2)
    request.infer([*two[:3], np.zeros(2, np.int32)])
    before = {name: state.state.data.copy() for name, state in states(request).items()}
    request.infer([*tokens(1, 2, beams=2)[:3], np.int32([1, 0])])
    for name, state in states(request).items():
        np.testing.assert_array_equal(state.state.data[:, :, :4], before[name][::-1])


def test_observed_runs_share_the_variables(alone: ir.Model) -> None:
    """Observed runs compute layer by layer in f32, from the contents of the variables."""
    request, seen = compiled(alone, **U8).create_infer_request(), list[Any]()

    class Note:
        def before(self, step: ir.Step, inputs: Any) -> None:
            seen.append([array.dtype for array in inputs])

        def after(self, step: ir.Step, outputs: Any, seconds: float) -> None: ...

    request.infer(tokens(3, 0))
    keys = states(request)["keys"].state.data.copy()
    request.infer(tokens(1, 1), observers=[Note()])
    assert seen
    assert all(dtype != np.uint8 for dtypes in seen for dtype in dtypes)
    found = request.infer(tokens(1, 2))
    assert found[1].tolist() == [1, 2, 5, 20]
    np.testing.assert_allclose(states(request)["keys"].state.data[:, :, :3], keys, rtol=1e-5, atol=0.03)


def test_variables_hold_bytes(alone: ir.Model) -> None:
    request = compiled(alone, **U8).create_infer_request()
    request.infer(tokens(9, 0))
    for held in request._variables.values():
        assert isinstance(held, QuantizedCache)
        assert held.packed.dtype == np.uint8
        assert held.packed.shape == (1, 2, 9, 20 + PREFIX)


def test_most_runs_copy_nothing(alone: ir.Model) -> None:
    request, places = compiled(alone, **U8).create_infer_request(), list[int]()
    for run in range(200):
        request.infer(tokens(1, run))
        held = request._variables["keys"]
        assert isinstance(held, QuantizedCache)
        places.append(held.packed.__array_interface__["data"][0])
    assert sum(a != b for a, b in pairwise(places)) <= 5


def test_growth_is_limited(alone: ir.Model) -> None:
    limited = ir.compile_model(alone, "CPU", U8, backend="native", limits=ir.Limits(memory=1 << 20))
    request, runs = limited.create_infer_request(), iter(range(30))
    with pytest.raises(ir.LimitError):
        deque((request.infer(tokens(1000, run)) for run in runs), maxlen=0)
    assert next(runs) > 2


def test_another_number_of_heads_is_refused(alone: ir.Model) -> None:
    request = compiled(alone, **U8).create_infer_request()
    request.infer(tokens(2, 0))
    q, k, v, _ = tokens(1, 1, beams=2)
    with pytest.raises(ir.ExecutionError, match="Concat"):
        request.infer([q, k, v, np.zeros(1, np.int32)])


def run_precision(model: ir.Model, backend: str = "native", **config: object) -> str:
    found = ir.compile_model(model, "CPU", config, backend=backend)
    names = ("KV_CACHE_PRECISION", "KEY_CACHE_PRECISION", "VALUE_CACHE_PRECISION")
    (kind,) = {found.get_property(name).to_string() for name in names}
    return kind


def test_a_model_says_what_its_caches_are_held_in(alone: ir.Model, llama: ir.Model) -> None:
    for model in (alone, llama):
        assert run_precision(model) == "f32"
        assert run_precision(model, **U8) == "u8"
        assert run_precision(model, **U8, EXECUTION_MODE_HINT="ACCURACY") == "u8"
        assert run_precision(model, EXECUTION_MODE_HINT="PERFORMANCE") == "u8"
        assert run_precision(model, EXECUTION_MODE_HINT="PERFORMANCE", KV_CACHE_PRECISION="f32") == "f32"


@pytest.mark.parametrize(
    ("backend", "asked"), [("native", "f16"), ("native", "u4"), ("numpy", "u8"), ("reference", "u8")]
)
def test_what_a_backend_does_not_follow_is_said(alone: ir.Model, backend: str, asked: str) -> None:
    takes = "f32, u8" if backend == "native" else "f32"
    with pytest.warns(match=f"KV_CACHE_PRECISION={asked} is ignored: the backend {backend} takes {takes}"):
        assert run_precision(alone, backend, KV_CACHE_PRECISION=asked) == "f32"


def test_a_model_without_variables_is_no_reason_to_warn(tmp_path: Any) -> None:
    x = op.parameter([2], np.float32, name="x")
    model = read(ov.Model([op.relu(x)], [x]), tmp_path)
    assert run_precision(model, KV_CACHE_PRECISION="f16") == run_precision(model, "numpy", **U8) == "f32"


def test_profiles_name_the_kernels(alone: ir.Model) -> None:
    request = compiled(alone, **U8, PERF_COUNT=True).create_infer_request()
    request.infer(tokens(2, 0))
    names = [info.exec_type for info in request.get_profiling_info()]
    assert names.count("append_u8") == 2
    assert names.count("sdpa_u8") == 1


@pytest.mark.parametrize("build", [stateful.cache, lambda: stateful.decoder(1), stateful.total])
def test_caches_that_others_read_stay_f32(build: Callable[[], ov.Model], tmp_path: Any) -> None:
    model = read(build(), tmp_path)
    assert run_precision(model, **U8) == "f32"


def other_reader() -> ov.Model:
    """Attention whose values have another consumer; its keys are then kept like the values."""
    model = attention_alone()
    (joined,) = (
        node
        for node in model.get_ops()
        if node.get_type_name() == "Assign" and node.get_variable_id() == "values"
    )
    return ov.Model(
        [*model.get_results(), op.result(op.relu(joined.input_value(0)))],
        model.get_sinks(),
        model.get_parameters(),
    )


def test_a_cache_whose_partner_stays_f32_does_so_too(tmp_path: Any) -> None:
    model = read(other_reader(), tmp_path)
    assert run_precision(model, **U8) == "f32"
    feeds = tokens(3, 0)
    packed, exact = (compiled(model, **config).create_infer_request() for config in (U8, {}))
    for _ in range(2):
        for one, other in zip(packed.infer(feeds).to_tuple(), exact.infer(feeds).to_tuple(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_an_output_that_is_asked_for_is_f32(alone: ir.Model) -> None:
    (name,) = (
        node.friendly_name
        for node in alone.get_ops()
        if node.get_type_name() == "Assign" and node.get_variable_id() == "keys"
    )
    del name
    model = alone.clone()
    grown = next(node for node in model.get_ops() if node.get_type_name() == "Concat")
    model.add_outputs(grown.output(0))
    assert run_precision(model, **U8) == "f32"


@cache
def _steps() -> list[dict[str, Array]]:
    return [inputs(12, 0), *(inputs(1, 12 + i, i) for i in range(6))]


def test_errors_are_at_most_those_of_openvino(llama: ir.Model, tmp_path: Any) -> None:
    """Both keep caches in u8, and multiply in f32."""
    ov.save_model(llm.build(f32, SIZES), tmp_path / "model.xml", compress_to_fp16=False)
    ours = compiled(llama, **U8).create_infer_request()
    theirs = core().compile_model(tmp_path / "model.xml", "CPU", {**PLUGIN, **U8}).create_infer_request()
    exact = compiled(llama).create_infer_request()
    errors = np.zeros(2)
    for feeds in _steps():
        wanted = exact.infer(feeds)[0]
        errors += [np.square(request.infer(feeds)[0] - wanted).sum() for request in (ours, theirs)]
    assert 0 < errors[0] <= 1.2**2 * errors[1]


def test_packed_rows_are_freed_with_the_request(alone: ir.Model) -> None:
    from ir_runtime.compiler.kv_cache import _Buffer

    def buffers() -> int:
        gc.collect()
        return sum(isinstance(found, _Buffer) for found in gc.get_objects())

    with only_new_objects():
        assert buffers() == 0
        request = compiled(alone, **U8).create_infer_request()
        for run in range(3):
            request.infer(tokens(1, run))
        assert buffers() == 2
        del request
        assert buffers() == 0
