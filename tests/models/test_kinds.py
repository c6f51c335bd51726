"""Networks of many kinds against OpenVINO, for batch size 1 or 2; for both in the exhaustive run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness import oracle

import ir_runtime
from models.kinds import KINDS, inputs_of


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        pytest.param(name, batch, marks=pytest.mark.oracle if (number + batch) % 2 else ())
        for number, name in enumerate(KINDS)
        for batch in (1, 2)
    ],
)
def test_gives_the_same_as_openvino(name: str, batch: int, tmp_path: Path) -> None:
    model = KINDS[name](batch)
    inputs = inputs_of(model)
    path = tmp_path / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    found = ir_runtime.compile_model(path, backend="numpy")(inputs)
    for ours, theirs in zip(found.to_tuple(), oracle.plugin(model, list(inputs.values())), strict=True):
        assert np.isfinite(theirs).all()
        assert np.ptp(theirs) > 0
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4 * np.abs(theirs).max())


def test_the_same_weights_in_every_process() -> None:
    first, second = (KINDS["tabular"]().get_ordered_ops() for _ in range(2))
    for one, other in zip(first, second, strict=True):
        if one.get_type_name() == "Constant":
            np.testing.assert_array_equal(one.data, other.data)
