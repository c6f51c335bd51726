"""Samples of comparisons, with NaN and infinities, and of IsNaN, IsInf and IsFinite."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType

NAN, INF = np.nan, np.inf
LEFT = np.array([1, NAN, NAN, -0.0, INF, -INF, 2, 5], np.float32)
RIGHT = np.array([NAN, 1, NAN, 0.0, INF, INF, 2, 4], np.float32)

SPECIAL = np.array([[0, -0.0, 1, -1], [NAN, INF, -INF, 65504]], np.float32)
WITHOUT_PDPD = {"Greater-1": np.greater, "GreaterEqual-1": np.greater_equal}


def pdpd(name: str, a: np.ndarray, b: np.ndarray) -> Sample:
    if name not in WITHOUT_PDPD:
        return case(name, a, b, auto_broadcast="pdpd")
    expected = WITHOUT_PDPD[name](a, b.reshape(b.shape + (1,) * (a.ndim - b.ndim)))
    how = {
        "_oracle": "none",
        "_differs": "OpenVINO's reference ignores pdpd here, and reads beyond the tensor",
    }
    return case(name, a, b, auto_broadcast="pdpd", _expect=(expected,), **how)


PAIRS = [
    sample
    for name in ("Equal-1", "NotEqual-1", "Greater-1", "GreaterEqual-1", "Less-1", "LessEqual-1")
    for sample in (
        case(name, LEFT, RIGHT),
        case(name, LEFT.astype(np.float16), RIGHT.astype(np.float16), auto_broadcast="none"),
        case(name, numbers(2, 3, dtype="bf16"), numbers(2, 3, dtype="bf16")),
        case(name, numbers(2, 3, dtype="f64"), numbers(2, 3, dtype="f64", seed=1), _oracle="plugin"),
        case(name, numbers(2, 3, 4, dtype="i64"), numbers(3, 1, dtype="i64", seed=1)),
        pdpd(name, numbers(2, 3, 4, dtype="i32"), numbers(2, 3, dtype="i32", seed=1)),
        pdpd(name, numbers(2, 3, 4, dtype="f32"), numbers(1, 3, 1, dtype="f32", seed=1)),
        case(name, numbers(5, dtype="u8", high=200), scalar(100, "u8")),
        case(name, numbers(4, dtype="u64"), numbers(3, 4, dtype="u64", seed=1)),
        case(name, numbers(6, dtype="boolean"), numbers(6, dtype="boolean", seed=1)),
        case(name, numbers(), numbers()),
        case(name, numbers(0, 3, dtype="i32"), numbers(2, 1, 3, dtype="i32")),
        case(name, numbers(2, 1, 2, 1, 3, dtype="u16"), numbers(2, 1, 2, 1, dtype="u16")),
        case(name, ints(2**53 + 1, -(2**62)), ints(2**53, -(2**62) + 1)),
    )
]

QUESTIONS = [
    sample
    for name in ("IsFinite-10", "IsInf-10", "IsNaN-10")
    for sample in (
        case(name, SPECIAL),
        case(name, SPECIAL.astype(np.float16)),
        case(name, SPECIAL.astype(ElementType.bf16.dtype), _oracle="plugin"),
        case(
            name,
            SPECIAL.astype(np.float64),
            _oracle="none",
            _expect=(getattr(np, name[:-3].lower())(SPECIAL),),
            _differs="the plugin computes f64 as f32, in which infinities become finite",
        ),
        case(name, np.array(NAN, np.float32)),
        case(name, numbers()),
        case(name, numbers(2, 0)),
        case(name, np.broadcast_to(SPECIAL, (2, 1, 3, 2, 4)).copy()),
        case(name, SPECIAL[1]),
    )
] + [
    case("IsInf-10", SPECIAL.astype(t), detect_negative=negative, detect_positive=positive)
    for t in (np.float32, np.float16)
    for negative in (False, True)
    for positive in (False, True)
]

SAMPLES = PAIRS + QUESTIONS
