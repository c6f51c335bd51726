"""Resampling: the taps of each output element."""

from __future__ import annotations

import numpy as np
import pytest

from ir_runtime.ops.kernels.resample import Axis, Filter, Taps, resample

SHRINK, GROW = Axis(1, 20, 7, 0.35), Axis(2, 5, 13, 2.6)


@pytest.mark.parametrize(
    ("mode", "taps"), [("linear", 2), ("linear_onnx", 2), ("cubic", 4), ("bilinear_pillow", 6)]
)
def test_taps_of_weight_0_are_left_out(mode: str, taps: int) -> None:
    """The other taps keep their order."""
    (all_taps,) = Filter(mode).steps([SHRINK])
    some = all_taps.compact()
    assert len(some) == taps
    for index, weight, few, weights in zip(
        all_taps.index, all_taps.weight, some.index, some.weight, strict=True
    ):
        kept = np.flatnonzero(weight)
        np.testing.assert_array_equal(few[: len(kept)], index[kept])
        np.testing.assert_array_equal(weights[: len(kept)], weight[kept])
        assert not weights[len(kept) :].any()


@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "area"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.int64])
def test_integers_do_not_depend_on_them(
    mode: str, dtype: type[np.generic], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(2).integers(0, 100, (2, 20, 5, 3)).astype(dtype)
    found = resample(x, [SHRINK, GROW], Filter(mode))
    monkeypatch.setattr(Taps, "compact", lambda taps: taps)
    np.testing.assert_array_equal(found, resample(x, [SHRINK, GROW], Filter(mode)))
