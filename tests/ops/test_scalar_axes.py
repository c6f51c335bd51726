"""Axes of scalars: OpenVINO's behavior is checked for every operation with an attribute or port named like an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from harness.files import Writer
from harness.oracle import PLUGIN, core, plugin
from harness.sample import Sample, all_samples, text

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import TensorType

NAMES = (
    "axis",
    "axes",
    "axes_mapping",
    "batch_axis",
    "end_axis",
    "reduction_axes",
    "reversed_axes",
    "seq_axis",
)


def scalars() -> Iterator[object]:
    """Yield samples with scalar data for each operation with an axis: one, or in the exhaustive run all attributes."""
    seen = set()
    for sample in all_samples():
        inputs = [i for i, port in enumerate(sample.cls.inputs[: len(sample.inputs)]) if port.name in NAMES]
        attributes = [a.xml for a in sample.cls.schema().values() if a.xml in NAMES]
        data = [i for i in range(len(sample.inputs)) if i not in inputs]
        for axis, alone in product((0, -1), (True, False)) if inputs or attributes else ():
            found = _of_scalars(sample, data[:1] if alone else data, inputs, attributes, axis)
            keys = {(sample.op, axis, alone), (sample.op, axis, alone, str(found.attributes))}
            if not keys <= seen:
                marks = pytest.mark.oracle if keys & seen else ()
                seen |= keys
                elements = [type.element for type in sample.layer().infer_types(*sample.values())]
                yield pytest.param(found, elements, id=f"{found}-{'one' if alone else 'all'}", marks=marks)


def _of_scalars(
    sample: Sample, data: list[int], inputs: list[int], attributes: list[str], axis: int
) -> Sample:
    arrays = list(sample.inputs)
    for index in data:
        arrays[index] = np.asarray((*arrays[index].ravel(), arrays[index].dtype.type(0))[0])
    for index in inputs:
        is_mask = arrays[index].dtype.kind in "bu"
        arrays[index] = np.full(
            (1,) * min(arrays[index].ndim, 1), abs(axis) if is_mask else axis, arrays[index].dtype
        )
    return replace(
        sample, inputs=tuple(arrays), attributes={**sample.attributes, **dict.fromkeys(attributes, axis)}
    )


def file_of(sample: Sample, outputs: Sequence[ElementType]) -> tuple[bytes, bytes]:
    """A model with the first input dynamic and the others constant. No port declares dims."""
    writer, any_shape = Writer(), PartialShape([])
    first, *others = sample.values()
    sources = [(writer.parameter(first.element, text(first.shape.static), first.type), 0)]
    sources += [(writer.constant(value), 0) for value in others]
    declared = [TensorType(value.element, any_shape) for value in sample.values()]
    attributes = {name: text(value) for name, value in sample.attributes.items()}
    given = [TensorType(element, any_shape) for element in outputs]
    layer = writer.layer(sample.cls.name, f"opset{sample.cls.since}", attributes, sources, given, declared)
    for index, type in enumerate(given):
        writer.layer("Result", "opset1", {}, [(layer, len(declared) + index)], inputs=[type])
    return writer.xml(), writer.weights


@pytest.mark.parametrize(("sample", "outputs"), list(scalars()))
def test_what_openvino_accepts_of_scalars_runs(sample: Sample, outputs: Sequence[ElementType]) -> None:
    """Such layers run on every backend with equal results. OpenVINO reads a few more, but does not compile them."""
    file = file_of(sample, outputs)
    try:
        theirs = core().read_model(*file)
        core().compile_model(theirs, "CPU", PLUGIN)
    except RuntimeError:
        return
    model = ir_runtime.read_model(*file)
    for found, wanted in zip(model.outputs, theirs.outputs, strict=True):
        assert str(found.partial_shape) == str(wanted.get_partial_shape())
    wanted = plugin(theirs, sample.inputs[:1])
    for backend in available():
        found = ir_runtime.compile_model(model, backend=backend)(sample.inputs[0]).to_tuple()
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, strict=True)
