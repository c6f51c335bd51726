"""Expected results: OpenVINO's reference or its CPU plugin at f32, our own reference, and how far results may differ."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov

from harness.files import packed
from ir_runtime.analysis.validate import check_graph
from ir_runtime.backends import load as load_backend
from ir_runtime.backends.native.codegen.target import TARGET
from ir_runtime.compiler.compile import compile_plan
from ir_runtime.diagnostics import Diagnostics
from ir_runtime.io.reader.model import load
from ir_runtime.ir.element import ElementType, unpack
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array, Value

PLUGIN = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
    "INFERENCE_NUM_THREADS": "1",
    "NUM_STREAMS": "1",
}


@cache
def core() -> Any:
    """Return OpenVINO's Core, created once."""
    return ov.Core()


def read(xml: bytes, weights: bytes = b"") -> Any:
    """Read a model with OpenVINO."""
    return core().read_model(xml, weights)


def answer(model: Any, inputs: Sequence[Array], oracle: str = "reference") -> list[Array]:
    """Return OpenVINO's outputs: of its reference if requested and implemented, else of its CPU plugin."""
    if oracle == "reference" and (found := evaluated(model, inputs)) is not None:
        return found
    return plugin(model, inputs)


def plugin(model: Any, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of the CPU plugin, with its approximations disabled."""
    request = core().compile_model(model, "CPU", PLUGIN).create_infer_request()
    for i, tensor in enumerate(_tensors(model, inputs)):
        request.set_input_tensor(i, tensor)
    request.infer()
    return [array_of(request.get_output_tensor(i)) for i in range(len(model.outputs))]


def evaluated(model: Any, inputs: Sequence[Array]) -> list[Array] | None:
    """Return the outputs of `Model.evaluate`, or ``None`` if it lacks an operation."""
    outputs = [ov.Tensor(o.get_element_type(), _shape(o)) for o in model.outputs]
    try:
        if not model.evaluate(outputs, _tensors(model, inputs)):
            return None
    except RuntimeError:
        return None
    return [array_of(o) for o in outputs]


def _tensors(model: Any, inputs: Sequence[Array]) -> list[Any]:
    return [tensor(x, o.get_element_type().to_string()) for x, o in zip(inputs, model.inputs, strict=True)]


def tensor(array: Array, label: str) -> Any:
    """Return an array as an OpenVINO tensor; some types are passed as raw bits."""
    element = ElementType.parse(label)
    if element is ElementType.dynamic:
        element = ElementType.from_dtype(array.dtype)
    found = ov.Tensor(getattr(ov.Type, element.label), ov.Shape(array.shape))
    if element is ElementType.string:
        found.str_data = array.astype(str)
    elif array.size:
        found.data.reshape(-1).view(np.uint8)[...] = np.frombuffer(packed(array, element), np.uint8)
    return found


def array_of(tensor: Any) -> Array:
    """Return an OpenVINO tensor as an array."""
    element, shape = ElementType.parse(tensor.element_type.to_string()), tuple(tensor.shape)
    if element is ElementType.string:
        return np.array(tensor.str_data, object).reshape(shape)
    if not tensor.size:
        return np.empty(shape, element.dtype)
    raw = np.array(tensor.data).reshape(-1).view(np.uint8)
    if element.bits < 8:
        raw = unpack(raw, element.bits, tensor.size)
    return raw.view(element.dtype).reshape(shape)


def _shape(output: Any) -> Any:
    shape = output.get_partial_shape()
    return shape.to_shape() if shape.is_static else ov.Shape([0])


class Ours:
    """A model read by our reader, with its findings."""

    def __init__(self, xml: bytes, weights: bytes = b"") -> None:
        self.report = Diagnostics()
        self.graph = load(xml, weights, self.report)[0].graph
        self.values = check_graph(self.graph, self.report).values
        results = self.graph.of_type("Result")
        self.outputs = [p for r in results for p in self.graph.sources(r) if p is not None]

    def types(self) -> list[Value]:
        return [self.values[port] for port in self.outputs]

    def run(self, inputs: Sequence[Array], backend: str = "reference") -> list[Array]:
        name, chain = load_backend(backend)
        plan = compile_plan(self.graph, self.values, self.outputs, chain, fold=name != "reference")
        return plan.run(inputs)

    def value(self, layer: str) -> Value:
        found = next(la for la in self.graph if la.name == layer)
        return self.values[Port(found.id, 0)]


# Relative to a number, and to the largest of a result: sums of thousands of products have few digits of their
# own near zero. f16 and bf16 have about 3 and 2 digits, f64 nearly 16; numbers of 8 bits are equal.
RTOL = {"f64": 1e-10, "f32": 1e-4, "f16": 2e-3, "bf16": 1.6e-2}
FLOOR = {"f64": 1e-11, "f32": 5e-5, "f16": 2e-3, "bf16": 1.6e-2}


def assert_agree(found: Array, wanted: Array, backend: str, atol: float = 0.0) -> None:
    """Require a result to agree with the reference: floating-point values approximately, all others exactly.

    Args:
        found: the result of a fast backend.
        wanted: the result of the reference.
        backend: the name of the fast backend.
        atol: the least absolute tolerance.

    Raises:
        AssertionError: if they differ.
    """
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), backend
    element = ElementType.from_dtype(found.dtype) if found.dtype != object else ElementType.string
    if not element.real:
        np.testing.assert_array_equal(found, wanted, err_msg=backend)
        return
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    floor = max(atol, FLOOR.get(element.label, 0) * np.abs(b[np.isfinite(b)]).max(initial=0.0))
    np.testing.assert_allclose(a, b, rtol=RTOL.get(element.label, 0), atol=floor, err_msg=backend)


def rounded_to_bf16(x: Array) -> Array:
    """Round f32 to bf16, to nearest even."""
    found: Array = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    return found


def multiply_add(a: Array, b: Any, c: Any) -> Array:
    """Return ``a * b + c`` as f32, rounded once if the processor has FMA.

    LLVM contracts multiplications and additions for vectors of any width.
    """
    wide = a.astype(np.float64) * np.float64(b)
    if not (TARGET.is_arm or TARGET.has("fma")):
        wide = wide.astype(np.float32).astype(np.float64)
    found: Array = (wide + np.float64(c)).astype(np.float32)
    return found


# Names that OpenVINO makes up while it reads, and its own version, which it notes when it saves.
_MADE_UP = re.compile(r' (?:name|names)="\w+_\d+"|\s*<info name="OpenVINO Runtime".*|\s*<optimization />')


def seen_by_openvino(path: Path) -> tuple[str, bytes]:
    """Return OpenVINO's serialization of a model: every layer with its attributes, types and shapes, and all weights.

    Models with equal serializations give equal results in OpenVINO.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.xml")
        ov.serialize(core().read_model(path), copy)
        text = _MADE_UP.sub("", copy.read_text()).replace("<rt_info />", "<rt_info>\n\t</rt_info>")
        return text, copy.with_suffix(".bin").read_bytes()


def assert_identical(found: Array, wanted: Array) -> None:
    """Require equal bits, NaNs included."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype == object:
        assert found.tolist() == wanted.tolist()
    else:
        assert found.tobytes() == wanted.tobytes()


# Scores are f32 from 0 to 1, behind some dozens of layers: the last digits depend on the order of sums.
TIE = 1e-5


def assert_same_detections(
    ours: Sequence[Array], theirs: Sequence[Array], *, rtol: float, atol: float, tie: float = TIE
) -> None:
    """Require the same detections in the same order; rows with tied scores may be swapped.

    Args:
        ours: boxes ``[n, 4]``, scores ``[n]`` and labels ``[n]``.
        theirs: likewise.
        rtol: relative tolerance.
        atol: absolute tolerance of boxes.
        tie: scores closer than this are tied.

    Raises:
        AssertionError: if they differ.
    """
    assert [array.shape for array in ours] == [array.shape for array in theirs]
    assert len(theirs[0]), "nothing was found that could be compared"
    place = _nearest(ours, theirs)
    assert sorted(place) == list(range(len(place))), "some row has no row of its own among theirs"
    _, scores, labels = theirs
    apart = np.abs(scores[place] - scores)
    assert (apart <= tie).all(), (
        f"rows {np.flatnonzero(apart > tie)} stand elsewhere, and their scores differ"
    )
    np.testing.assert_array_equal(ours[2], labels[place])
    np.testing.assert_allclose(ours[1], scores[place], rtol=rtol, atol=0)
    np.testing.assert_allclose(ours[0], theirs[0][place], rtol=rtol, atol=atol)
    assert (np.diff(ours[1]) <= 0).all(), "scores do not descend"


def _nearest(ours: Sequence[Array], theirs: Sequence[Array]) -> Array:
    """Return, for each of our rows, the index of their row with the same label and the nearest box and score."""
    a, b = (np.column_stack(arrays).astype(np.float64) for arrays in (ours, theirs))
    return np.abs(a[:, None] - b).max(-1).argmin(-1)
