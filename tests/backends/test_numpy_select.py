"""Select on the NumPy backend: the bits of the reference, whether its condition often changes or not."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer
from harness.numpy_kernels import layouts, numbers, unknown

from ir_runtime.backends.numpy import backend
from ir_runtime.backends.numpy.kernels import select


@pytest.mark.parametrize("type_", ["f4", "f2", "f8", "i8", "u1"])
@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize(
    ("condition", "then", "otherwise"),
    [
        ((2, 5, 40, 30), (2, 5, 40, 30), (2, 5, 40, 30)),
        ((1, 40, 130), (7, 1, 130), (1,)),
        ((40, 130), (), (2, 1, 130)),
        ((40, 130), (40, 130), ()),
        ((40, 130), (0, 40, 130), (1, 1, 1)),
        ((), (3,), (3,)),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_elements_are_selected(
    type_: str, steady: bool, condition: tuple[int, ...], then: tuple[int, ...], otherwise: tuple[int, ...]
) -> None:
    op, chosen = layer("Select-1"), numbers(*condition) > 0
    if steady:
        chosen = np.sort(chosen.reshape(-1)).reshape(condition)
    x, y = (
        numbers(*shape, seed=seed, special=type_ == "f4").astype(type_)
        for seed, shape in ((1, then), (2, otherwise))
    )
    kernel = backend.kernel(op, [*map(unknown, (chosen, x, y))])
    assert kernel is not None
    for c in layouts(chosen):
        for data in layouts(x):
            found, wanted = np.asarray(kernel(c, data, y)), op.evaluate(c, data, y)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            assert found.tobytes() == wanted.tobytes()


def test_both_ways_are_taken() -> None:
    changing = numbers(1, select.MANY) > 0
    assert not select._is_steady(changing)
    assert select._is_steady(np.sort(changing))
