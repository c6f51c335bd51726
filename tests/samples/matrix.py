"""Matrix products: ranks, batches, transposition, types."""

from __future__ import annotations

import numpy as np
from harness.sample import case, numbers

from ir_runtime.ir.element import ElementType

# The plugin computes f64 as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_atol": 1e-5, "_differs": "the plugin computes f64 as f32"}

MATMUL = [
    case("MatMul-1", numbers(2, 3), numbers(3, 4)),
    case("MatMul-1", numbers(3, 2), numbers(4, 3), transpose_a=True, transpose_b=True),
    case("MatMul-1", numbers(3, 2), numbers(3, 4), transpose_a=True),
    case("MatMul-1", numbers(2, 3), numbers(4, 3), transpose_b=True, transpose_a=False),
    case("MatMul-1", numbers(3), numbers(3)),
    case("MatMul-1", numbers(3), numbers(3), transpose_a=True, transpose_b=True),
    case("MatMul-1", numbers(3), numbers(3, 4)),
    case("MatMul-1", numbers(3), numbers(4, 3), transpose_b=True, transpose_a=True),
    case("MatMul-1", numbers(2, 3), numbers(3)),
    case("MatMul-1", numbers(2, 3), numbers(2), transpose_a=True, transpose_b=True),
    case("MatMul-1", numbers(3), numbers(5, 3, 4)),
    case("MatMul-1", numbers(5, 2, 3), numbers(3)),
    case("MatMul-1", numbers(5, 2, 3), numbers(3, 4)),
    case("MatMul-1", numbers(2, 3), numbers(2, 5, 3, 4)),
    case("MatMul-1", numbers(2, 1, 2, 3), numbers(5, 4, 3), transpose_b=True),
    case("MatMul-1", numbers(1, 5, 1, 2, 3), numbers(2, 1, 4, 3, 2)),
    case("MatMul-1", numbers(1, 1, 1), numbers(1, 1)),
    case("MatMul-1", numbers(2, 0), numbers(0, 3)),
    case("MatMul-1", numbers(0, 2, 3), numbers(3, 3)),
    case("MatMul-1", numbers(2, 3), numbers(3, 0)),
    case("MatMul-1", numbers(0), numbers(0)),
    case("MatMul-1", np.array([[np.nan, 1, np.inf], [0, 2, 3]], "f4"), numbers(3, 2)),
    case("MatMul-1", numbers(2, 3, 4, dtype="f64"), numbers(4, 3, dtype="f64"), **F64),
    case("MatMul-1", numbers(2, 3, 7, dtype="f16"), numbers(7, 3, dtype="f16")),
    case("MatMul-1", numbers(2, 3, 7, dtype="bf16"), numbers(7, 3, dtype="bf16")),
    *(
        case("MatMul-1", numbers(2, 3, 7, dtype=dtype), numbers(7, 3, dtype=dtype))
        for dtype in ("i64", "i32", "u64", "u32", "i16", "u16", "i8", "u8")
    ),
    case("MatMul-1", np.full((1, 2), 2**30, "i4"), np.full((2, 1), 3, "i4")),
    case("MatMul-1", np.full((1, 2), 2**62, "i8"), np.full((2, 1), 3, "i8")),
    *(
        case(
            "MatMul-1",
            np.full((1, 2), 100, ElementType.parse(dtype).dtype),
            np.full((2, 1), 3, ElementType.parse(dtype).dtype),
            _oracle="none",
            _differs="the plugin saturates, the reference's arithmetic wraps around",
            _expect=(np.full((1, 1), 88, ElementType.parse(dtype).dtype),),
        )
        for dtype in ("i8", "u8")
    ),
]

SAMPLES = [*MATMUL]
