"""Results do not depend on the memory order of inputs: transposed layers give column-major arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.sample import Sample, all_samples

pytestmark = pytest.mark.oracle

PURE = [sample for sample in all_samples() if sample.cls.pure and sample.inputs]
# Sums of other orders round otherwise.
RTOL, ATOL = 1e-4, 1e-5


@pytest.mark.parametrize("sample", PURE, ids=str)
def test_inputs_in_the_order_of_columns_give_the_same(sample: Sample) -> None:
    columns = replace(sample, inputs=tuple(x.copy(order="F") for x in sample.inputs))
    for found, wanted in zip(columns.evaluate(), sample.evaluate(), strict=True):
        assert found.shape == wanted.shape
        if found.dtype.kind in "fV" and found.dtype.names is None:
            pair = (x.astype(np.float64) for x in (found, wanted))
            np.testing.assert_allclose(*pair, rtol=RTOL, atol=max(ATOL, sample.atol or 0.0))
        else:
            np.testing.assert_array_equal(found, wanted)
