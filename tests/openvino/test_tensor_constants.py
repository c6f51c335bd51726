"""Accessors of a Constant's data, on both packages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.dropin import assert_same, evaluate

ARRAYS: dict[str, Any] = {
    "reals": np.float32([[1.5, 1 / 3, 1e20], [1e-7, -0.0, 2**24]]),
    "ends": np.float64([np.inf, -np.inf, np.nan, 1e300]),
    "halves": np.float16([0.1, 2]),
    "truths": np.array([True, False]),
    "integers": np.int8([[-3], [5]]),
    "large": np.uint64([2**63]),
    "scalar": np.int64(7),
}
EXPRESSIONS = (
    "c.data", "c.get_data()", "c.get_data(dtype=np.float64)", "c.get_data(copy=True)", "c.get_vector()", "c.get_value_strings()",
    "c.get_strides()", "c.strides", "c.get_byte_size()", "c.get_tensor_view()", "c.shape", "c.get_element_type()",
    "c.get_data(copy=True).flags.writeable",
)  # fmt: skip


@pytest.mark.parametrize("given", ARRAYS)
def test_constants(given: str) -> None:
    from ir_runtime import opset13 as ours

    theirs = pytest.importorskip("openvino.opset13")
    for expression in EXPRESSIONS:
        mine, its = (
            evaluate(expression, package, c=opset.constant(ARRAYS[given]))
            for package, opset in (("ir_runtime", ours), ("openvino", theirs))
        )
        assert_same(mine, its)
