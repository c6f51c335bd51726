"""A sample for each decision of each operation: few values, whose result depends on the decision.

They are registered after the other samples. `Sample.shows` has the first words of the decisions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array
from samples.detection_proposal import single
from samples.recurrent import sequence

NAN, INF = np.nan, np.inf
LOWEST, HIGHEST = -(2**31), 2**31 - 1
PLUGIN: dict[str, Any] = {"_oracle": "plugin"}


def real(*values: Any, dtype: str = "f32") -> Array:
    """A floating-point vector, or a tensor from nested lists."""
    return np.array(values, ElementType.parse(dtype).dtype)


def told(why: str, *outputs: Any) -> dict[str, Any]:
    """The fields of a sample with a stated result."""
    return {"_oracle": "none", "_differs": why, "_expect": tuple(map(np.asarray, outputs))}


def show(starts: str | tuple[str, ...], *samples: Sample) -> list[Sample]:
    """Register samples that exercise decisions."""
    shown = (starts,) if isinstance(starts, str) else starts
    return [replace(sample, shows=shown) for sample in samples]


def unary(op: str, start: str, *values: float, dtype: str = "f32", **more: Any) -> list[Sample]:
    """Samples with one input."""
    return show(start, case(op, real(*values, dtype=dtype), **more))


def binary(op: str, start: str, a: Array, b: Array, **more: Any) -> list[Sample]:
    """Samples with two inputs."""
    return show(start, case(op, a, b, **more))


ARITHMETIC = (
    "Add-1", "Subtract-1", "Multiply-1", "Divide-1", "Mod-1", "FloorMod-1", "Power-1", "Maximum-1", "Minimum-1",
    "SquaredDifference-1",
)  # fmt: skip
COMPARISONS = ("Equal-1", "NotEqual-1", "Less-1", "LessEqual-1", "Greater-1", "GreaterEqual-1")
LOGICAL = ("LogicalAnd-1", "LogicalOr-1", "LogicalXor-1", "Xor-1")
BITS = ("BitwiseAnd-13", "BitwiseOr-13", "BitwiseXor-13")
SHIFTS = ("BitwiseLeftShift-15", "BitwiseRightShift-15")
BY_ROW = "OpenVINO's reference ignores pdpd for some, and reads beyond the tensor"


def by_rows(op: str) -> list[Sample]:
    """Samples whose second input is aligned with the first axis."""
    kind = "boolean" if op in LOGICAL else "i32" if op in (*BITS, *SHIFTS) else "f32"
    a, b = np.array([[4, 2, 9], [8, 7, 3]]), np.array([2, 3])
    a, b = (x % 2 if kind == "boolean" else x for x in (a, b))
    a, b = (x.astype(ElementType.parse(kind).dtype) for x in (a, b))
    plain = case(op, a, b[:, None])
    return binary(op, "auto_broadcast pdpd", a, b, auto_broadcast="pdpd", **told(BY_ROW, *plain.evaluate()))


WRAPPED = {
    "Add-1": (HIGHEST, 1),
    "Subtract-1": (LOWEST, 1),
    "Multiply-1": (HIGHEST, 2),
    "SquaredDifference-1": (1 << 17, 1),
}
ROUNDED = (
    "Sqrt-1", "Erf-1", "Sin-1", "Cos-1", "Tan-1", "Acos-1", "Atan-1", "Sinh-1", "Cosh-1", "Tanh-1", "Asinh-4", "Acosh-4",
    "Log-1", "Asin-1",
)  # fmt: skip
NUMERIC = [
    *(s for op in (*ARITHMETIC, *COMPARISONS, *LOGICAL, *BITS, *SHIFTS) for s in by_rows(op)),
    *(
        s
        for op, (a, b) in WRAPPED.items()
        for s in binary(op, "integers wrap", ints(a, dtype="i32"), ints(b, dtype="i32"))
    ),
    *unary("Abs-1", "the absolute value of the lowest", LOWEST, -1, dtype="i32", **told("no reference", np.int32([LOWEST, 1]))),
    *unary("Negative-1", "the lowest integer", LOWEST, -1, dtype="i32", **told("no reference", np.int32([LOWEST, 1]))),
    *unary("Sign-1", "NaN stays", NAN, -2, 0),
    *unary("Round-5", "half_away", 0.49999997, 0.5, -2.5, mode="half_away_from_zero"),
    *(s for op in ROUNDED for s in unary(op, "integers are computed", 1, *((0,) if op == "Asin-1" else (2, 3) if op not in ("Acos-1",) else ()), dtype="i32")),
    *unary("Sqrt-1", "the root", -1, 4),
    *unary("Log-1", "the logarithm of 0", 0, -1, 1),
    *unary("Asin-1", "beyond", 1.5, -1.5, 1),
    *unary("Acos-1", "beyond", 1.5, -1.5, 1),
    *unary("Acosh-4", "below", 0.5, 1, -2),
    *unary("Atanh-4", "at -1", -1, 1, 1.5, 0),
    *unary("Atanh-4", "integers are", 0, dtype="i32"),
    *unary("Atanh-4", "an integer other", 0, 1, -1, 5, dtype="i32"),
    *binary("Divide-1", "a real number divided", real(1, -1, 0), real(0, 0, 0)),
    *binary("Divide-1", "quotients", ints(-7, 7, -7, dtype="i32"), ints(2, -2, -2, dtype="i32")),
    *binary("Divide-1", "quotients", ints(-7, 7, -7, dtype="i32"), ints(2, -2, -2, dtype="i32"), m_pythondiv=False),
    *binary("Mod-1", "the remainder of real", real(5.5, -5.5, 1e10), real(INF, INF, 3), **told("the plugin multiplies infinity by 0", real(5.5, -5.5, 1))),
    *binary("Mod-1", "the remainder by", real(5.5, 0), real(0, 0)),
    *binary("FloorMod-1", "the remainder by infinity", real(5.5, -5.5), real(INF, INF)),
    *binary("FloorMod-1", "the remainder by a real", real(5.5, 0), real(0, 0)),
    *binary("Power-1", "a negative number", real(-8, 0, NAN, -8), real(1 / 3, 0, 0, 2)),
    *binary("Power-1", "integers are raised", ints(2, 3, -2, dtype="i32"), ints(-1, 2, 3, dtype="i32")),
    *(s for op in ("Maximum-1", "Minimum-1") for s in binary(op, "with a NaN", real(NAN, 1, NAN), real(1, NAN, NAN))),
    *(s for op in ("Maximum-1", "Minimum-1") for s in binary(op, "of zeros", real(0.0, -0.0), real(-0.0, 0.0))),
    *show("the sum of booleans", case("CumSum-3", np.array([False, True, False]), scalar(0), **told("page and plugin have none", np.array([False, True, True])))),
    *show("axes 0 and -1 of a scalar", case("CumSum-3", scalar(2, "f32"), scalar(-1), **told("the plugin crashes", np.float32(2)))),
    *show("NaN is passed over", case("SegmentMax-16", real(1, NAN, NAN, 2), ints(0, 0, 1, 1), fill_mode="ZERO")),
    *(s for op in COMPARISONS for s in binary(op, "NaN is unequal", real(NAN, 1, NAN), real(NAN, NAN, 1))),
    *binary("BitwiseLeftShift-15", "by the width", ints(1, -1, 5, dtype="i32"), ints(32, 40, -1, dtype="i32"), **told("undefined in C++", np.int32([0, 0, 0]))),
    *binary("BitwiseRightShift-15", "by the width", ints(9, -9, -9, dtype="i32"), ints(32, 40, -1, dtype="i32"), **told("undefined in C++", np.int32([0, -1, -1]))),
]  # fmt: skip

ACTIVATIONS = [
    *unary("ReLU-1", "NaN stays", NAN, -1, 2),
    *unary("Clamp-1", "NaN stays", NAN, -1, 2, min=0, max=1),
    *show("NaN becomes 1", case("HardSigmoid-1", real(NAN, 0), scalar(0.2, "f32"), scalar(0.5, "f32"), _constant=(1, 2))),
    *show("slope may be", case("PReLU-1", ints(-2, 3, dtype="i32"), scalar(2, "i32"))),
    *unary("HSwish-4", "negative infinity", -INF, INF, 1),
    *unary("Swish-4", "negative infinity", -INF, INF, 1),
    *unary("Mish-4", "negative infinity", -INF, INF, 1),
    *unary("SoftSign-9", "infinity gives", -INF, INF, 1),
    *unary("Elu-1", "alpha may", -1, 2, alpha=-0.5),
    *show("alpha and lambda", case("Selu-1", real(-1, 2), scalar(1.5, "f32"), scalar(2, "f32"), _constant=(1, 2))),
    *(
        s
        for op, axis in (("SoftMax-1", {"axis": 0}), ("SoftMax-8", {"axis": 0}), ("LogSoftmax-5", {"axis": 0}))
        for s in (
            *show("a scalar is taken", case(op, scalar(3, "f32"), **axis)),
            *show("where all elements", case(op, real(-INF, -INF), **axis)),
        )
    ),
    *show("an axis that is left out", case("SoftMax-1", real([1, 2], [3, 5]), **told("without an axis, OpenVINO takes 0", np.exp(np.float32([[-1, 0], [-2, 0]]) - np.log1p(np.exp(np.float32([[-1], [-2]]))))))),
]  # fmt: skip

SIX = np.arange(1, 7, dtype=np.float32)
REDUCTIONS = (
    "ReduceSum-1", "ReduceMean-1", "ReduceProd-1", "ReduceMin-1", "ReduceMax-1", "ReduceL1-4", "ReduceL2-4",
    "ReduceLogicalAnd-1", "ReduceLogicalOr-1",
)  # fmt: skip
NO_AXES = "OpenVINO takes absolute values; the page says that no axes mean identity"


def reductions(op: str) -> list[Sample]:
    """Reductions along no axes, and of a scalar."""
    data = np.array([True, False]) if "Logical" in op else real(-1, 2)
    how = told(NO_AXES, data) if op in ("ReduceL1-4", "ReduceL2-4") else {}
    return [
        *show("empty axes", case(op, data, ints(), _constant=(1,), **how)),
        *show(
            "axes 0 and -1", case(op, np.array(data[0]) if "Logical" in op else scalar(2, "f32"), ints(-1))
        ),
    ]


REDUCED = [
    *(s for op in REDUCTIONS for s in reductions(op)),
    *show("the mean of no", case("ReduceMean-1", numbers(2, 0), ints(1))),
    *show("the mean of integers", case("ReduceMean-1", ints(-3, 0, dtype="i32"), ints(0), _constant=(1,))),
    *show("the product of f32", case("ReduceProd-1", real(1e30, 1e30, 1e-30), ints(0), **told("OpenVINO multiplies in f32", np.float32(1e30)))),
    *show("NaN is passed over", case("ReduceMin-1", real(2, NAN, 1), ints(0)), case("ReduceMax-1", real(2, NAN, 1), ints(0))),
    *show("the minimum of nothing", case("ReduceMin-1", numbers(2, 0), ints(1))),
    *show("the maximum of nothing", case("ReduceMax-1", numbers(2, 0), ints(1)), case("ReduceMax-1", real(-INF, -INF, -INF), ints(0))),
]  # fmt: skip

TABLE = real([1, 2], [3, 4], [5, 6])
MOVED = [
    *(
        s
        for op in ("Gather-1", "Gather-7", "Gather-8")
        for s in show("an index outside", case(op, TABLE, ints(-1, 3, 0), scalar(0), **(told("OpenVINO has no check", real([5, 6], [0, 0], [1, 2])) if op != "Gather-8" else {})))
    ),
    *show("a negative index", case("GatherElements-6", TABLE, ints(-1, 0).reshape(1, 2), axis=0, **PLUGIN)),
    *show("a sequence of length 0", case("GatherTree-1", np.int32([[[1, 2]], [[3, 4]]]), np.int32([[[0, 0]], [[1, 0]]]), ints(0, dtype="i32"), scalar(9, "i32"), **told("the plugin leaves memory as it was", np.full((2, 1, 2), 9, np.int32)))),
    *show("of several updates", case("ScatterUpdate-3", SIX, ints(1, 1), real(8, 9), scalar(0))),
    *show("of several updates", case("ScatterElementsUpdate-3", SIX, ints(1, 1), real(8, 9), scalar(0))),
    *show("of several updates", case("ScatterElementsUpdate-12", SIX, ints(1, 1), real(8, 9), scalar(0))),
    *show("where data is NaN", case("ScatterElementsUpdate-12", real(NAN, 1), ints(0, 1), real(8, 9), scalar(0), reduction="max")),
    *show("of several updates", case("ScatterNDUpdate-4", SIX, ints(1, 1).reshape(2, 1), real(8, 9)), case("ScatterNDUpdate-15", SIX, ints(1, 1).reshape(2, 1), real(8, 9))),
    *show("a negative index", case("ScatterNDUpdate-4", SIX, ints(-1).reshape(1, 1), real(8))),
    *show("an update of NaN", case("ScatterNDUpdate-15", real(1, 2), ints(0, 1).reshape(2, 1), real(NAN, 9), reduction="max")),
    *show("NaN is unequal", case("Unique-10", real(2, NAN, 2, NAN), sorted=False)),
    *show("a negative pad", case("Pad-1", SIX, ints(-1), ints(1), scalar(0, "f32"), pad_mode="constant")),
    *show("backwards, a start", case("Slice-8", SIX, ints(-9), ints(-100), ints(-1), ints(0))),
    *show("backwards, a start", case("SliceScatter-15", SIX, real(9), ints(-9), ints(-100), ints(-1), ints(0), **told("OpenVINO replaces nothing", real(9, 2, 3, 4, 5, 6)))),
    *show("an end mask", case("StridedSlice-1", SIX, ints(3), ints(2), ints(-1), begin_mask=(0,), end_mask=(1,))),
    *show("a slice whose end", case("StridedSlice-1", SIX, ints(2), ints(2), ints(1), begin_mask=(0,), end_mask=(0,))),
    *show("mode pdpd", case("Broadcast-3", real([1], [2]), ints(1, 3), mode="pdpd", _constant=(1,))),
    *show("mode explicit", case("Broadcast-1", real(1, 2), ints(3, 2), mode="explicit")),
    *show("beside a length of 0", case("Reshape-1", numbers(0, 2), ints(0, -1), special_zero=False)),
    *show("an axis that is named", case("Unsqueeze-1", numbers(2), ints(0, 0))),
    *show("all three inputs", case("Select-1", np.array([[True], [False]]), real(1, 2), real([[5], [6]]))),
    *show("NaN is not zero", case("NonZero-3", real(NAN, 0, 1))),
    *show("a scalar has", case("NonZero-3", scalar(5, "f32"))),
    *show("bounds are neither", *(case("Bucketize-3", real(NAN, 1), real(0, 1), with_right_bound=x, output_type="i64") for x in (True, False))),
    *show("where bounds do not", case("Bucketize-3", real(0, 2, 4), real(3, 1, 2), output_type="i64")),
    *show("classes out of range", case("OneHot-1", ints(2, -1, 3, 0), scalar(3), scalar(1), scalar(0), axis=-1)),
]  # fmt: skip

CONVERTED = {
    "NaN, and a number": (real(NAN, 1e10, -1e10), "i32"),
    "numbers too large": (real(1e10, -1e10), "f16"),
    "bf16 is rounded": (real(1.00390625, 1.01171875), "bf16"),
}
TO_EVEN = "the reference rounds even numbers down"
TYPES = [
    *(
        s
        for start, (data, to) in CONVERTED.items()
        for how in ({} if to != "bf16" else told(TO_EVEN, real(1, 1.015625, dtype="bf16")),)
        for s in show(start, case("Convert-1", data, destination_type=to, **how), case("ConvertLike-1", data, np.zeros(1, ElementType.parse(to).dtype), **how))
    ),
]  # fmt: skip

IMAGE = real([[[1, -2, NAN, 4], [0, 3, 3, -4]]])
WINDOWS: dict[str, Any] = {
    "strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2), "rounding_type": "floor",
    "auto_pad": "explicit",
}  # fmt: skip
DILATED = WINDOWS | {"dilations": (1, 1), "index_element_type": "i64", "axis": 0}
WHOLE = np.int8([[[[1, 2], [2, 1]]]])
EMPTY_WINDOW = {"kernel": (1, 1), "strides": (1, 1), "pads_begin": (1, 0), "pads_end": (0, 0)}
POOLED = [
    *show("NaN is never", case("MaxPool-1", IMAGE, **WINDOWS)),
    *show("a window without", case("MaxPool-1", real([[[-INF, -INF], [-INF, 1]]]), **(WINDOWS | {"kernel": (1, 2)}))),
    *(s for op in ("MaxPool-8", "MaxPool-14") for s in (
        *show("NaN is never", case(op, IMAGE, **DILATED)),
        *show("of equal", case(op, real([[[3, 1], [3, 3]]]), **DILATED)),
    )),
    *(s for op in ("AvgPool-1", "AvgPool-14", "AvgPool-16") for s in (
        *show("integers are rounded", case(op, WHOLE, **WINDOWS, exclude__pad=False, **told("reference of 8 bits only", np.int8([[[[2]]]])))),
        *show("the mean of a window", case(op, real([[[1, 2]]]), **(WINDOWS | EMPTY_WINDOW | {"auto_pad": "explicit"}), exclude__pad=False, **(told("OpenVINO crashes", real([[[0, 0], [1, 2]]])) if op == "AvgPool-16" else {}))),
    )),
    *show("integers are rounded", case("AdaptiveAvgPool-8", WHOLE[0], ints(1), _constant=(1,), **told("the reference truncates", np.int8([[[2], [2]]])))),
    *show("of equal", case("AdaptiveMaxPool-8", real([[3, 1, 3, 3]]), ints(1), index_element_type="i32")),
    *show("sums of integers", case("Convolution-1", np.int8([[[[100, 100]]]]), np.int8([[[[1, 1]]]]), **{k: WINDOWS[k] for k in ("strides", "pads_begin", "pads_end", "auto_pad")}, dilations=(1, 1), **told("the plugin saturates", np.int8([[[[-56]]]])))),
    *show("sums of integers", case("GroupConvolution-1", np.int8([[[[100, 100]]]]), np.int8([[[[[1, 1]]]]]), **{k: WINDOWS[k] for k in ("strides", "pads_begin", "pads_end", "auto_pad")}, dilations=(1, 1), **told("the plugin saturates", np.int8([[[[-56]]]])))),
]  # fmt: skip

HUGE = real([3e38, 1e30, 0, -3e38])
NORMALIZED = [
    *show("over no axes", case("NormalizeL2-1", real(-2, 0, 3), ints(), eps=1e-6, eps_mode="add", **told("OpenVINO keeps the sign", real(1, 0, 1)))),
    *show("sums do not overflow", case("MVN-6", HUGE, ints(1), eps=1e-6, normalize_variance=False, eps_mode="inside_sqrt", **told("sums of f32 overflow", (HUGE.astype("f8") - HUGE.astype("f8").mean()).astype("f4")))),
    *show("sums do not overflow", case("MVN-1", HUGE, reduction_axes=(1,), eps=1e-6, normalize_variance=False, **told("sums of f32 overflow", (HUGE.astype("f8") - HUGE.astype("f8").mean()).astype("f4")))),
    *show("the window is", case("LRN-1", real([1, 2, 3, 4]), ints(1), alpha=1.0, beta=1.0, bias=1.0, size=4, _constant=(1,))),
    *show("bias is not", case("LRN-1", real([1, 2, 3, 4]), ints(1), alpha=1.0, beta=1.0, bias=1.5, size=3, _constant=(1,), **told("the plugin rounds bias", real([1, 2, 3, 4]) / (1.5 + real([5, 14, 29, 25]) / 3)))),
    *show("NaN stays", case("FakeQuantize-1", real(NAN, 1, 9), *(scalar(n, "f32") for n in (0, 4, 0, 4)), levels=5)),
    *show("auto_broadcast pdpd", case("FakeQuantize-1", real([1, 2], [3, 4]), real(0, 0), real(2, 4), real(0, 0), real(2, 4), levels=3, auto_broadcast="pdpd", **told("OpenVINO takes pdpd for numpy", real([1, 2], [4, 4])))),
    *show("NaN becomes", case("FakeConvert-13", real(NAN, 1.1), scalar(1, "f32"), destination_type="f8e4m3")),
]  # fmt: skip

PRODUCTS = [
    *show("sums and products", case("MatMul-1", np.int8([[100, 100]]), np.int8([[1], [1]]), **told("the plugin saturates", np.int8([[-56]])))),
    *show("rows beyond", case("GroupedMatMul-17", real([1, 2], [3, 4]), real([[1, 1]]), ints(1), **told("OpenVINO infers shapes only", real([3], [0])))),
    *show("without keys", case("ScaledDotProductAttention-13", numbers(1, 2, 3), numbers(1, 0, 3), numbers(1, 0, 4), causal=False, **told("the plugin leaves memory as it was", np.zeros((1, 2, 4), "f4")))),
    *show("the axis of queries", case("ScaledDotProductAttention-13", numbers(1, 2, 3), numbers(1, 2, 3), numbers(1, 2, 3), real([[0, -1]]), causal=False)),
]  # fmt: skip

MADE = [
    *show("the number at i", case("Range-4", scalar(0, "f32"), scalar(2, "f32"), scalar(0.1, "f32"), output_type="f32")),
    *show("the number at i", case("Range-1", scalar(0, "f32"), scalar(2, "f32"), scalar(0.1, "f32"))),
    *show("a diagonal outside", case("Eye-9", scalar(2), scalar(3), scalar(-7), output_type="f32")),
    *(s for op in ("LSTMSequence-5", "GRUSequence-5", "RNNSequence-5") for s in show("beyond the length", sequence(op, (0, 2), time=3, inputs=1, hidden=1))),
]  # fmt: skip

POINTS = real([[[0.5, 0], [-0.5, 0]]])
LEFT = real([[0, 0, 4, 4], [0, 0, 2, 4]])
EQUAL = real([[0.5, 0.9]])
EVERY_NMS = (
    "NonMaxSuppression-1",
    "NonMaxSuppression-3",
    "NonMaxSuppression-4",
    "NonMaxSuppression-5",
    "NonMaxSuppression-9",
)
WIDE = {"_wider": "OpenVINO declares a number of rows; it returns as many as there are boxes left"}


def suppressed(op: str, score_threshold: float, iou_threshold: float, boxes: Array) -> Sample:
    """Two boxes of one class."""
    limits = (scalar(5), scalar(iou_threshold, "f32"), scalar(score_threshold, "f32"))
    how = PLUGIN if op.endswith(("-5", "-9", "-13")) else PLUGIN | WIDE
    return case(op, boxes, EQUAL, *limits, _constant=(2, 3, 4), **how)


TURNED = real([[2, 2, 4, 4, 0], [1, 2, 2, 4, 0]])
CHOSEN = [
    *(s for op in ("TopK-1", "TopK-3", "TopK-11") for s in show("of equal elements", case(op, real(3, 1, 3, 3), scalar(2), axis=0, mode="max", sort="value"))),
    *(s for op in EVERY_NMS for s in (
        *show("a box is kept", suppressed(op, 0.5, 0.9, LEFT)),
        *show("an overlap equal", suppressed(op, 0.0, 0.5, LEFT)),
    )),
    *show("a box is kept", suppressed("NMSRotated-13", 0.5, 0.9, TURNED)),
    *show("an overlap equal", suppressed("NMSRotated-13", 0.0, 0.5, TURNED)),
    *show("NaN is put", case("SearchSorted-15", real(1, 2), real(NAN, 2, 9))),
    *show("of equal scores", case("ExperimentalDetectronTopKROIs-6", real([1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]), real(5, 7, 7), max_rois=2)),
    *show("nearest takes", case("GridSample-9", real([[[1, 2, 3]]]), real([[[0.5, 0], [-0.5, 0]]]), align_corners=True, mode="nearest", padding_mode="border")),
    *(s for op in ("ROIAlign-3", "ROIAlign-9") for s in show("the maximum of a bin", case(op, real([[[-1, -2], [-3, -4]]]), real([0, 0, 2, 2]), ints(0), pooled_h=1, pooled_w=1, sampling_ratio=1, spatial_scale=1.0, mode="max", **({"aligned_mode": "asymmetric"} if op == "ROIAlign-9" else {})))),
    *show("regions end", case("ROIPooling-1", real([[[1, 2], [3, 4]]]), real([0, 0, 0, 1, 1], [-1, 0, 0, 1, 1], [0, 0, 0, 1, 1]), pooled_h=1, pooled_w=1, spatial_scale=1.0, method="max", **PLUGIN)),
    *show("boxes below min_size", single(min_size=20.0)),
    *show("data is read", case("ReorgYolo-1", np.arange(16, dtype="f4").reshape(1, 4, 2, 2), stride=2)),
]  # fmt: skip

# What inference alone is not shown by others: two inputs stretch each other.
STRETCHED = [
    *(case(op, np.array([[True], [False]]), np.array([[True, False, True]])) for op in LOGICAL),
]

SAMPLES = [
    *NUMERIC, *ACTIVATIONS, *REDUCED, *MOVED, *TYPES, *POOLED, *NORMALIZED, *PRODUCTS, *MADE, *CHOSEN, *STRETCHED,
]  # fmt: skip
