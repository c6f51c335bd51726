"""Samples of image operations: resizing in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
MODES = ("nearest", "linear", "linear_onnx", "cubic")
PILLOW = ("bilinear_pillow", "bicubic_pillow")
IMAGE = numbers(1, 2, 5, 7)

# What the reference leaves out is asked of the plugin, which computes f64 as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_atol": 1e-5, "_differs": "the plugin computes f64 as f32"}


def floats(*factors: float, dtype: str = "f4") -> Any:
    return np.array(factors, dtype)


def resize(data: Any, target: Any, axes: Any = None, mode: str = "nearest", **attributes: Any) -> Sample:
    """Interpolate-11 by sizes if they are integers, else by scales; OpenVINO requires constant axes."""
    how = "sizes" if target.dtype.kind in "iu" else "scales"
    inputs = (data, target) if axes is None else (data, target, axes)
    constant = () if axes is None else (2,)
    return case(
        "Interpolate-11",
        *inputs,
        **{"mode": mode, "shape_calculation_mode": how, "_constant": constant} | attributes,
    )


def both(sample: Sample) -> list[Sample]:
    """The same for version 4, which has separate ports for sizes and scales, but no Pillow modes."""
    if sample.attributes["mode"] in PILLOW:
        return [sample]
    data, target, *axes = sample.inputs
    n = len(target)
    by_sizes = sample.attributes["shape_calculation_mode"] == "sizes"
    ports = (target, np.ones(n, "f4")) if by_sizes else (np.full(n, 3), target)
    fields = {
        f"_{name}": getattr(sample, name) for name in ("oracle", "expect", "differs", "wider", "rtol", "atol")
    }
    older = case(
        "Interpolate-4",
        data,
        *ports,
        *axes,
        **sample.attributes,
        **fields,
        _constant=(3,) if axes else (),
    )
    return [sample, older]


PLANES = ints(2, 3)
RESIZED = [
    *(
        resize(IMAGE, target, PLANES, mode, coordinate_transformation_mode=coordinates)
        for mode in MODES
        for coordinates in COORDINATES
        for target in (ints(9, 4), floats(0.7, 2.5))
    ),
    *(
        resize(
            numbers(1, 1, 3, 8),
            target,
            PLANES,
            "nearest",
            nearest_mode=rounding,
            coordinate_transformation_mode=c,
        )
        for rounding in ROUNDINGS
        for c in ("half_pixel", "asymmetric")
        for target in (ints(6, 4), ints(2, 16))
    ),
    *(
        resize(IMAGE, ints(1, 1), PLANES, mode, coordinate_transformation_mode=c)
        for mode in MODES
        for c in COORDINATES
    ),
    *(
        resize(IMAGE, target, PLANES, mode)
        for mode in PILLOW
        for target in (ints(9, 4), ints(3, 20), floats(0.5, 2), ints(5, 3))
    ),
    *(resize(numbers(2, 3, 5, 1), ints(2, 4), ints(1, 2), mode) for mode in PILLOW),
    resize(IMAGE, ints(3, 3), PLANES, "bicubic_pillow", cube_coeff=-0.5),
    resize(IMAGE, ints(3, 3), PLANES, "cubic", cube_coeff=-0.5),
    *(
        resize(IMAGE, target, PLANES, "linear", antialias=True)
        for target in (ints(2, 3), ints(9, 3), floats(0.3, 2.2))
    ),
    *(resize(IMAGE, ints(2, 3), PLANES, mode, antialias=True) for mode in ("nearest", "cubic")),
    *(
        resize(IMAGE, ints(8, 6), PLANES, mode, pads_begin=(0, 0, 1, 2), pads_end=(0, 0, 2, 0))
        for mode in MODES
    ),
    resize(IMAGE, floats(2, 1.5), PLANES, "linear", pads_begin=(0, 1), pads_end=(1,)),
    *(resize(numbers(2, 3, 4), ints(3, 2, 7), None, mode) for mode in ("nearest", "linear", "cubic")),
    *(resize(numbers(4, 6), floats(0.5, 2), None, mode) for mode in MODES),
    *(resize(numbers(2, 3, 4, 5), ints(7, 2), ints(3, 1), mode) for mode in ("nearest", "linear", "cubic")),
    *(resize(numbers(5), ints(3), None, mode) for mode in ("nearest", "linear", "cubic")),
    *(resize(numbers(1, 2, 3, 2, 4), ints(2, 4, 3), ints(2, 3, 4), mode) for mode in MODES),
    *(
        resize(numbers(1, 1, 4, 5, dtype=dtype, low=-100, high=100), target, PLANES, mode)
        for dtype in ("f16", "bf16", "i8", "u8")
        for mode in (*MODES, *PILLOW)
        for target in (ints(6, 3), ints(2, 9))
    ),
    *(
        resize(numbers(1, 1, 4, 5, dtype="u8", low=0, high=255), ints(2, 9), PLANES, "linear", antialias=True)
        for _ in (0,)
    ),
    *(
        resize(numbers(1, 1, 4, 5, dtype=dtype, low=-100, high=100), ints(6, 3), PLANES, mode)
        for dtype in ("i32", "i64")
        for mode in MODES
    ),
    *(resize(numbers(1, 1, 4, 5, dtype="f64"), ints(6, 3), PLANES, mode, **F64) for mode in MODES),
    resize(IMAGE, np.array([2, 0.5], "f2"), PLANES, "linear"),
    resize(IMAGE, ints(4, 4, dtype="i32"), ints(2, 3, dtype="i32"), "linear"),
    resize(IMAGE, ints(4, 4, dtype="u32"), ints(2, 3, dtype="u64"), "linear"),
    *(
        resize(numbers(1, 4, 5, 3), target, axes, mode)
        for mode in MODES
        for target, axes in (
            (ints(6, 3), ints(1, 2)),
            (ints(6), ints(2)),
            (ints(6, 2), ints(3, 2)),
            (ints(1, 4, 6, 2), ints(0, 1, 2, 3)),
        )
    ),
    *(resize(numbers(2, 5, 3), ints(6, 2), ints(1, 2), mode) for mode in MODES),
    *(resize(numbers(1, 2, 2, 5, 3), ints(6, 2), ints(3, 4), mode) for mode in (*MODES, *PILLOW)),
    *(
        resize(numbers(1, 4, 5, 3), ints(6, 2), ints(3, 2), mode, cube_coeff=-0.5, _oracle="plugin")
        for mode in PILLOW  # the reference mixes up the axes
    ),
    resize(IMAGE, ints(5, 7), PLANES, "cubic"),
    resize(IMAGE, floats(1, 1), PLANES, "linear"),
    resize(numbers(0, 2, 4, 4), ints(2, 2), PLANES, "linear"),
    resize(IMAGE, ints(0, 3), PLANES, "nearest"),
]


def first(data: Any, target: Any, axes: tuple[int, ...], mode: str, **attributes: Any) -> Sample:
    """Interpolate-1."""
    return case("Interpolate-1", data, target, axes=axes, mode=mode, _constant=(1,), **attributes)


AREA = "OpenVINO has no mode area"
FIRST = [
    *(
        first(IMAGE, target, (2, 3), mode, align_corners=align)
        for mode in ("nearest", "linear", "cubic")
        for align in (True, False)
        for target in (ints(9, 4), ints(3, 7), ints(1, 20))
    ),
    first(IMAGE, ints(8, 3), (2, 3), "linear", antialias=True),
    first(IMAGE, ints(3, 8), (3, 2), "linear", align_corners=False),
    first(IMAGE, ints(8, 3, dtype="i32"), (2, 3), "cubic", antialias=True),
    *(
        first(
            IMAGE,
            ints(8, 6),
            (2, 3),
            mode,
            align_corners=align,
            pads_begin=(0, 0, 1, 2),
            pads_end=(0, 0, 2, 0),
        )
        for mode in ("nearest", "linear", "cubic")
        for align in (True, False)
    ),
    *(
        first(numbers(1, 2, 3, 2, 4), ints(2, 4, 3), (2, 3, 4), mode, align_corners=align)
        for mode in ("nearest", "linear", "cubic")
        for align in (True, False)
    ),
    *(
        first(numbers(2, 3, 4), ints(3, 2, 7), (0, 1, 2), "linear", align_corners=align)
        for align in (True, False)
    ),
    *(
        first(data, target, axes, "linear_onnx", align_corners=align)
        for data, target, axes in (
            (IMAGE, ints(9, 4), (2, 3)),
            (numbers(4, 6), ints(3, 9), (0, 1)),
            (numbers(1, 2, 3, 2, 4), ints(2, 4, 3), (2, 3, 4)),
        )
        for align in (True, False)
    ),
    first(numbers(4, 6), ints(3, 9), (0, 1), "linear", align_corners=False),
    first(numbers(5), ints(8), (0,), "nearest", align_corners=False),
    *(
        first(numbers(1, 1, 4, 5, dtype=dtype, low=-100, high=100), ints(6, 3), (2, 3), mode)
        for dtype in ("f16", "i8", "u8")
        for mode in ("nearest", "linear", "cubic")
    ),
    first(numbers(0, 2, 4, 4), ints(2, 2), (2, 3), "nearest"),
    first(
        np.array([[1, 2, 3, 4, 5, 6], [7, 8, 9, 0, 1, 2]], "f4"),
        ints(1, 4),
        (0, 1),
        "area",
        _oracle="none",
        _differs=AREA,
        _expect=(np.array([[13 / 3, 17 / 3, 7 / 3, 11 / 3]], "f4"),),
    ),
    first(
        np.array([[3, 6]], "f4"),
        ints(3),
        (1,),
        "area",
        align_corners=False,
        _oracle="none",
        _differs=AREA,
        _expect=(np.array([[3, 4.5, 6]], "f4"),),
    ),
    first(
        np.array([1, 2, 3, 4, 255, 255], "u1"),
        ints(3),
        (0,),
        "area",
        _oracle="none",
        _differs=AREA,
        _expect=(np.array([2, 4, 255], "u1"),),
    ),
]
SAMPLES = [*(s for sample in RESIZED for s in both(sample)), *FIRST]
