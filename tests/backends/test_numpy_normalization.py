"""Group and instance normalization of the NumPy backend against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from harness.kernels import agree, numbers, unknown
from harness.layers import layer

from ir_runtime.backends import KernelTemplate
from ir_runtime.backends.numpy import backend
from ir_runtime.ir.tensor import Value

pytestmark = pytest.mark.usefixtures("one_and_three_threads")

LENGTHS = [(1,), (1100,), (70, 90), (5, 6, 41), (0, 3), (150, 151)]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(
    ("images", "groups", "width"), [(1, 1, 40), (2, 8, 4), (1, 17, 1), (0, 2, 3), (1, 2, 1500)]
)
@pytest.mark.parametrize("odd", [None, np.inf, np.nan])
def test_groups_of_channels(
    images: int, groups: int, width: int, lengths: tuple[int, ...], odd: float | None
) -> None:
    op = layer("GroupNormalization-12", num_groups=str(groups), epsilon="1e-3")
    if width * np.prod(lengths) > 1 << 18:
        lengths = (7,)
    x = numbers(images, groups * width, *lengths) + np.float32(3)
    if odd is not None and x.size:
        x.reshape(-1)[x.size // 2] = odd
    agree(op, x, numbers(groups * width, seed=3), numbers(groups * width, seed=4))


@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
@pytest.mark.parametrize("variance", [False, True])
@pytest.mark.parametrize("channels", [1, 17, 33])
@pytest.mark.parametrize("axes", [(2, 3), (-1, 1, 2)])
def test_each_image_or_channel_by_itself(
    axes: tuple[int, ...], channels: int, variance: bool, mode: str
) -> None:
    op = layer("MVN-6", normalize_variance=str(variance).lower(), eps="1e-3", eps_mode=mode)
    agree(op, numbers(2, channels, 90, 95) + np.float32(3), np.array(axes), dynamic=True)


def test_layers_behind_it() -> None:
    op = layer("MVN-6", normalize_variance="true", eps="1e-3", eps_mode="inside_sqrt")
    x, axes = numbers(2, 40, 30, 31), np.array([2, 3])
    other = numbers(*x.shape, seed=1)
    kernel = backend.kernel(op, [unknown(x), Value.constant(axes)])
    assert isinstance(kernel, KernelTemplate)
    fused = kernel.fuse(layer("Add-1"), [unknown(x), unknown(x)], 0)
    assert isinstance(fused, KernelTemplate)
    fused = fused.fuse(layer("ReLU-1"), [unknown(x)], 0)
    assert isinstance(fused, KernelTemplate)
    with backend.around():
        found = fused.prepare()(x, axes, other)
    np.testing.assert_allclose(found, np.maximum(op.evaluate(x, axes) + other, 0), atol=1e-5)
