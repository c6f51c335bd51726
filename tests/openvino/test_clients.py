"""Wrappers that use OpenVINO as real projects do, on both packages; ``make clients`` runs the projects themselves."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from openvino import opset13 as opset

DIGITS = Path(__file__).parents[2] / "examples/digits"
IMAGES = np.load(DIGITS / "images.npy")[:4]
PACKAGES = ("openvino", "ir_runtime")
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}  # where the processor has bf16, OpenVINO computes in it
WIDTH, WORDS = 8, 30
ZERO, ONE = opset.constant(0), opset.constant([1])


def of(package: str, module: str = "") -> Any:
    return importlib.import_module(f"{package}.{module}".rstrip("."))


def assert_equal(found: list[Any]) -> None:
    ours, theirs = found[PACKAGES.index("ir_runtime")], found[PACKAGES.index("openvino")]
    assert len(ours) == len(theirs) > 0
    for mine, its in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A one-layer language model; past tokens are kept in a variable, reordered by ``beam_idx``."""
    draw = np.random.default_rng(0)
    ids = opset.parameter([-1, -1], openvino.Type.i64, name="input_ids")
    mask = opset.parameter([-1, -1], openvino.Type.i64, name="attention_mask")
    beams = opset.parameter([-1], openvino.Type.i32, name="beam_idx")
    table = opset.constant(draw.normal(size=(WORDS, WIDTH)).astype(np.float32))
    words = opset.gather(table, ids, opset.constant(np.int64(0)))
    size, length = opset.shape_of(ids), opset.shape_of(mask)
    before = opset.subtract(opset.gather(length, ONE, ZERO), opset.gather(size, ONE, ZERO))
    shape = opset.concat([opset.gather(size, opset.constant([0]), ZERO), before, opset.constant([WIDTH])], 0)
    empty = opset.broadcast(opset.constant(np.float32(0)), shape)
    info = openvino.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = (
        openvino.PartialShape([-1, -1, WIDTH]),
        openvino.Type.f32,
        "past",
    )
    variable = openvino.op.util.Variable(info)
    past = opset.gather(opset.read_value(empty, variable), beams, opset.constant(np.int64(0)))
    seen = opset.concat([past, words], 1)
    scores = opset.matmul(words, seen, False, True)
    weight = opset.unsqueeze(opset.convert(mask, "f32"), opset.constant(np.int64(1)))
    mixed = opset.matmul(opset.multiply(opset.softmax(scores, 2), weight), seen, False, False)
    logits = opset.matmul(mixed, table, False, True)
    for parameter in (ids, mask, beams):
        parameter.output(0).set_names({parameter.friendly_name})
    logits.output(0).set_names({"logits"})
    model = openvino.Model(
        [opset.result(logits)], [opset.assign(seen, variable)], [ids, mask, beams], "decoder"
    )
    path = tmp_path_factory.mktemp("decoder") / "openvino_model.xml"
    openvino.save_model(model, path, compress_to_fp16=False)
    return path


class CausalModel:
    """A decoder as in optimum-intel: stateful, one request, shared inputs, states reset for each prompt."""

    def __init__(self, ov: Any, path: Path) -> None:
        core = ov.Core()
        model = core.read_model(path, path.with_suffix(".bin"))
        assert len(model.get_sinks()) > 0
        self.inputs = {key.get_any_name(): n for n, key in enumerate(model.inputs)}
        self.types = {key.get_any_name(): key.get_element_type().get_type_name() for key in model.inputs}
        shapes = {inputs: inputs.get_partial_shape() for inputs in model.inputs}
        for inputs in shapes:
            shapes[inputs][0] = -1
        model.reshape(shapes)
        config = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "CACHE_DIR": "",
            "KV_CACHE_PRECISION": "f32",
            **EXACT,
        }
        self.compiled = core.compile_model(model, "CPU", config)
        self.request = self.compiled.create_infer_request()
        self.past = 0

    def forward(self, ids: Any, beams: Any = None) -> Any:
        if beams is None and ids.shape[1] > 1:
            self.request.reset_state()
            self.past = 0
        beams = np.arange(len(ids)) if beams is None else beams
        self.past += ids.shape[1]
        mask = np.ones((len(ids), self.past), np.int64)
        feeds = {"input_ids": ids, "attention_mask": mask, "beam_idx": beams.astype(np.int32)}
        self.request.start_async(feeds, share_inputs=True)
        self.request.wait()
        return np.copy(self.request.get_tensor("logits").data)

    def greedy(self, ids: Any, steps: int) -> Any:
        found, given = ids, ids
        for _ in range(steps):
            given = self.forward(given)[:, -1].argmax(axis=-1)[:, None]
            found = np.concatenate([found, given], axis=1)
        return found

    def beams(self, ids: Any, count: int, steps: int) -> Any:
        """Run beam search; ``beam_idx`` reorders the states."""
        found = np.repeat(ids, count, axis=0)
        totals = np.array([0.0] + [-1e9] * (count - 1))
        logits, order = self.forward(found)[:, -1], np.arange(count)
        for _ in range(steps):
            odds = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)) + totals[:, None]
            best = np.argsort(-odds.ravel(), kind="stable")[:count]
            order, words, totals = best // WORDS, best % WORDS, odds.ravel()[best]
            found = np.concatenate([found[order], words[:, None]], axis=1)
            logits = self.forward(words[:, None], order)[:, -1]
        return found


def test_a_decoder_as_optimum_has_it(decoder: Path) -> None:
    ids = np.random.default_rng(1).integers(0, WORDS, (2, 5))
    found = []
    for package in PACKAGES:
        model = CausalModel(of(package), decoder)
        assert model.types["input_ids"] == "i64"
        found.append(
            [
                model.greedy(ids, 9),
                model.beams(ids[:1], 3, 9),
                model.greedy(ids, 9),
                model.request.query_state()[0].state.shape,
            ]
        )
    assert_equal(found)


class Detector:
    """A model as in ultralytics: read with its weights, compiled with keyword arguments, results as a list."""

    def __init__(self, ov: Any, path: Path) -> None:
        core = ov.Core()
        device = "CPU" if core.available_devices == ["CPU"] else "AUTO"
        model = core.read_model(model=str(path), weights=path.with_suffix(".bin"))
        if model.get_parameters()[0].get_layout().empty:
            model.get_parameters()[0].set_layout(ov.Layout("NCHW"))
        batch = ov.get_batch(model)
        self.batch = batch.get_length() if batch.is_static else 0
        assert not any(node.get_type_name() == "FakeQuantize" for node in model.get_ops())
        self.ov, self.compiled = (
            ov,
            core.compile_model(
                model, device_name=device, config={"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT", **EXACT}
            ),
        )
        self.name = self.compiled.input().get_any_name()
        assert ", ".join(self.compiled.get_property("EXECUTION_DEVICES")) == "CPU"

    def at_once(self, images: Any) -> list[Any]:
        return list(self.compiled(images).values())

    def one_by_one(self, images: Any) -> Iterator[Any]:
        results: list[Any] = [None] * len(images)

        def keep(request: Any, place: int) -> None:
            results[place] = np.copy(next(iter(request.results.values())))

        queue = self.ov.AsyncInferQueue(self.compiled)
        queue.set_callback(keep)
        for n in range(len(images)):
            queue.start_async(inputs={self.name: images[n : n + 1]}, userdata=n)
        queue.wait_all()
        yield from results


def test_a_detector_as_ultralytics_has_it() -> None:
    detectors = [Detector(of(package), DIGITS / "digits.xml") for package in PACKAGES]
    # OpenVINO overwrites arrays that it shares.
    assert_equal([[*each.at_once(IMAGES.copy()), *each.one_by_one(IMAGES.copy())] for each in detectors])
    assert len({each.batch for each in detectors}) == 1


class Adapter:
    """A model as in openvino-model-api and anomalib: embedded preprocessing, loaded from bytes, with a cache folder."""

    def __init__(self, package: str, folder: Path) -> None:
        ov, preprocess = of(package), of(package, "preprocess")
        core = ov.Core()
        core.set_property({"CACHE_DIR": str(folder)})
        xml, weights = (DIGITS / "digits.xml").read_bytes(), (DIGITS / "digits.bin").read_bytes()
        model = core.read_model(xml, weights)
        with pytest.raises(RuntimeError, match="Path to runtime attribute is incorrect"):
            model.get_rt_info(["model_info", "labels"])
        steps = preprocess.PrePostProcessor(model)
        steps.input(0).tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
        steps.input(0).model().set_layout(ov.Layout("NCHW"))
        steps.input(0).preprocess().convert_element_type(ov.Type.f32).mean([3.0]).scale([2.0])
        model = steps.build()
        model.set_rt_info("0 1 2 3 4 5 6 7 8 9", ["model_info", "labels"])
        assert model.get_rt_info(["model_info", "labels"]).astype(str).split()[3] == "3"
        self.compiled = core.compile_model(model, "AUTO", EXACT)
        self.output = self.compiled.outputs[0]

    def __call__(self, images: Any) -> list[Any]:
        results = self.compiled.infer_new_request({0: images})
        return [results[self.output], *[results[name] for name in sorted(self.output.get_names())]]


def test_an_adapter_with_preprocessing(tmp_path: Path) -> None:
    images = (IMAGES * 15).astype(np.uint8).transpose(0, 2, 3, 1)
    assert_equal([Adapter(package, tmp_path)(images) for package in PACKAGES])


@pytest.mark.parametrize("package", PACKAGES)
def test_models_are_prepared_as_exporters_prepare_them(package: str, tmp_path: Path) -> None:
    """As in optimum-intel: simplify, compress to f16, save, and read again."""
    ov, offline = of(package), of(package, "_offline_transformations")
    model = ov.Core().read_model(DIGITS / "digits.xml")
    offline.apply_moc_transformations(model, cf=False)
    offline.compress_model_transformation(model)
    ov.save_model(model, tmp_path / "small.xml", compress_to_fp16=False)
    assert (tmp_path / "small.bin").stat().st_size < 0.6 * (DIGITS / "digits.bin").stat().st_size
    expected = ov.Core().compile_model(DIGITS / "digits.xml", "CPU")(IMAGES)[0]
    found = ov.Core().compile_model(tmp_path / "small.xml", "CPU")(IMAGES)[0]
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=0.05)
    np.testing.assert_allclose(ov.Core().compile_model(model, "CPU")(IMAGES)[0], found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("package", PACKAGES)
def test_nodes_are_created_by_name(package: str) -> None:
    ov, types = of(package), of(package, "utils.types")
    x = of(package, "opset13").parameter([2], ov.Type.f32, name="x")
    factory = of(package, "utils.node_factory").NodeFactory("opset13")
    total = factory.create("Add", [x, types.make_constant_node([1, 2], np.float32)])
    model = ov.Model([factory.create("Relu", [total])], [x], "sum")
    assert ov.compile_model(model, "CPU")(np.float32([-3, 3]))[0].tolist() == [0, 5]
    assert types.get_element_type(np.int8) == ov.Type.i8
    assert types.get_element_type_str(np.float16) == "f16"
    assert types.get_dtype(ov.Type.u8) == np.uint8
    assert types.as_node(x) is x
    with pytest.raises(RuntimeError):
        factory.create("Addition", [x])


@pytest.mark.parametrize("package", PACKAGES)
def test_inputs_become_variables(package: str) -> None:
    """As optimum-intel makes decoders stateful, by the names of inputs and outputs."""
    ov, op = of(package), of(package, "opset13")
    x, past = (op.parameter([2], ov.Type.f32, name=name) for name in ("x", "past"))
    total = op.add(x, past)
    for node, name in ((x, "x"), (past, "past"), (total, "present")):
        node.output(0).set_names({name})
    model = ov.Model([op.result(total), op.result(op.relu(total))], [x, past], "sums")
    of(package, "_offline_transformations").apply_make_stateful_transformation(model, {"past": "present"})
    assert (len(model.get_sinks()), len(model.inputs), len(model.outputs)) == (1, 1, 1)
    request = ov.compile_model(model, "CPU").create_infer_request()
    found = [request.infer([np.float32([1, -1])])[0].tolist() for _ in range(3)]
    assert found == [[1, 0], [2, 0], [3, 0]]
