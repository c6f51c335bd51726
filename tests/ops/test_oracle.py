"""Every sample against OpenVINO (types, shapes and values, on every backend); fast backends against the reference."""

from __future__ import annotations

import numpy as np
from harness.files import model_of
from harness.oracle import Ours, answer, assert_agree, plugin, read
from harness.sample import Sample, every_sample

from ir_runtime.backends import available
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array

# Relative to the largest number of a result: what rounding alone may do in a reasonable order of summing.
ROUNDING = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}


def expected(sample: Sample, xml: bytes, weights: bytes, fed: list[Array]) -> list[Array]:
    if sample.oracle == "none":
        assert sample.expect is not None, "say what is right"
        assert sample.differs, "say why OpenVINO is not asked"
        return list(sample.expect)
    return answer(read(xml, weights), fed, sample.oracle)


def assert_same(sample: Sample, found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    element = ElementType.from_dtype(found.dtype)
    if not element.real:
        np.testing.assert_array_equal(found, wanted)
        return
    wide = np.float64
    bound = ROUNDING.get(element.label, 0.0)
    finite = wanted.astype(wide)[np.isfinite(wanted.astype(wide))]
    largest = np.abs(finite).max(initial=0.0)
    rtol = bound if sample.rtol is None else sample.rtol
    atol = bound * largest if sample.atol is None else sample.atol
    np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=rtol, atol=atol)


@every_sample
def test_values(sample: Sample) -> None:
    xml, weights = model_of(sample, sample.constant)
    fed = [x for i, x in enumerate(sample.inputs) if i not in sample.constant]
    for x in sample.inputs:
        x.setflags(write=False)  # a kernel that changes its input fails here
    wanted = expected(sample, xml, weights, fed)
    ours = Ours(xml, weights)
    assert list(ours.report) == []
    results = {backend: ours.run(fed, backend) for backend in available()}
    in_f32 = plugin(read(xml, weights), fed) if sample.in_f32 else None
    for backend, found in results.items():
        assert len(found) == len(wanted)
        by_type = None if backend == "reference" else in_f32
        for f, w, r in zip(found, by_type or wanted, by_type or results["reference"], strict=True):
            assert_same(sample, f, w)
            assert_agree(f, r, backend)


@every_sample
def test_inferred_from_constants(sample: Sample) -> None:
    """With constant inputs the exact type is inferred, and folding gives the result of a run."""
    op, values = sample.layer(), sample.values()
    for inferred, array in zip(op.infer_values(*values), sample.evaluate(), strict=True):
        assert isinstance(array, np.ndarray)
        assert inferred.shape == PartialShape(array.shape)
        assert inferred.element.dtype == array.dtype
        if (known := inferred.known()) is not None:
            wide = np.float64 if inferred.element.real else array.dtype  # NaN of bf16 differs from itself
            np.testing.assert_array_equal(known.astype(wide), array.astype(wide))
