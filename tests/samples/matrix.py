"""Samples of matrix operations: ranks, batches, transposition, types."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

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


def einsum(equation: str, *shapes: tuple[int, ...], dtype: str = "f32", **fields: Any) -> Sample:
    data = [numbers(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    return case("Einsum-7", *data, equation=equation, **fields)


EINSUM = [
    einsum("i,i->", (3,), (3,)),
    einsum("ij,jk->ik", (2, 3), (3, 4)),
    einsum("ij,jk", (2, 3), (3, 4)),
    einsum("ij,j->i", (2, 3), (3,)),
    einsum("kii->k", (2, 3, 3)),
    einsum("kii->ki", (2, 3, 3)),
    einsum("ijkj->ij", (2, 4, 5, 4)),
    einsum("ijk->kij", (1, 3, 3)),
    einsum("AbC", (1, 2, 3)),
    einsum("ba", (2, 3)),
    einsum("i,j->ij", (2,), (3,)),
    einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    einsum("bhid,bhjd->bhij", (1, 2, 3, 4), (1, 2, 5, 4)),
    einsum("a...->...", (3, 3)),
    einsum("a...,...->a...", (3, 3), (1,)),
    einsum("a...b,b...->a...", (9, 1, 4, 3), (3, 11, 7, 1)),
    einsum("ab...,ac...,ade->...bc", (2, 3, 4), (2, 7, 1), (2, 4, 7)),
    einsum("...ij,...jk->ik...", (5, 2, 3), (3, 4)),
    einsum("...ij->...ji", (4, 5, 2, 3)),
    einsum("...a,ba", (2, 3, 4), (5, 4)),
    einsum("i...->i", (2, 3, 4)),
    einsum("ij,jk->...ik", (2, 3), (3, 4)),
    einsum("ab,bcd,bc->ca", (2, 5), (5, 3, 6), (5, 3)),
    einsum("aac,abd,ddde->cbe", (2, 2, 3), (2, 5, 4), (4, 4, 4, 2)),
    einsum("ij,ij->ij", (2, 3), (1, 3)),
    einsum("ij,jk->ik", (2, 1), (3, 4)),
    einsum("...", (2, 3)),
    einsum(",->", (), ()),
    einsum("->", ()),
    einsum("", ()),
    einsum(",i->i", (), (3,)),
    einsum("ij->", (0, 3)),
    einsum("ij,jk->ik", (2, 0), (0, 3)),
    einsum("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)),
    einsum("abcd,cde->aeb", (2, 3, 4, 5), (4, 5, 6)),
    einsum("dhk,bld->blhk", (5, 3, 4), (2, 6, 5)),
    einsum("bnchw,bqnc->bqnhw", (2, 3, 8, 2, 2), (2, 5, 3, 8)),
    einsum("j,ij->i", (3,), (2, 3)),
    einsum("ij,jk->ik", (2, 3), (3, 4), dtype="f64", **F64),
    *(
        einsum("ij,jk,k->ik", (2, 3), (3, 4), (4,), dtype=dtype)
        for dtype in ("f16", "bf16", "i64", "i32", "i8", "u8")
    ),
]


def square(*shape: int, dtype: str = "f32") -> Array:
    """Well-conditioned square matrices."""
    data = numbers(*shape, low=-1, high=1) + 2 * np.eye(shape[-1], dtype="f4")
    return data.astype(ElementType.parse(dtype).dtype)


INVERSE = [
    case("Inverse-14", np.array([[1, 2], [3, 4]], "f4")),
    case("Inverse-14", square(1, 1)),
    case("Inverse-14", square(3, 3)),
    case("Inverse-14", square(3, 3), adjoint=False),
    case("Inverse-14", square(2, 4, 4), adjoint=True),
    case("Inverse-14", square(5, 4, 3, 2, 2)),
    case("Inverse-14", np.array([[0, 1], [2, 0]], "f4")),
    case("Inverse-14", numbers(0, 2, 2)),
    case("Inverse-14", numbers(2, 0, 0)),
    case("Inverse-14", square(2, 3, 3, dtype="f64"), _rtol=1e-5, _differs="the page wants f32 for all types"),
    case("Inverse-14", square(2, 3, 3, dtype="f16")),
    case("Inverse-14", square(2, 3, 3, dtype="bf16")),
]


def grouped(a: Array, b: Array, ends: Array | None = None) -> Sample:
    """A grouped product computed row by row, unlike any backend."""
    differs = "OpenVINO implements it neither in its reference nor in the plugin"
    if ends is None:
        expect = np.stack([x.astype("f8") @ y.astype("f8").T for x, y in zip(a, b, strict=True)])
    else:
        expect = np.zeros((len(a), b.shape[1]))
        for row in range(len(a)):
            if (group := np.searchsorted(ends, row, side="right")) < len(ends):
                expect[row] = a[row].astype("f8") @ b[group].astype("f8").T
    inputs = (a, b) if ends is None else (a, b, ends)
    return case(
        "GroupedMatMul-17", *inputs, _oracle="none", _differs=differs, _expect=(expect.astype(a.dtype),)
    )


GROUPED = [
    grouped(numbers(3, 4), numbers(2, 5, 4), ints(1, 3)),
    grouped(numbers(3, 4), numbers(2, 5, 4), ints(1, 3, dtype="i32")),
    grouped(numbers(7, 4), numbers(4, 5, 4), ints(2, 2, 5, 7)),
    grouped(numbers(7, 4), numbers(3, 5, 4), ints(0, 0, 6)),
    grouped(numbers(0, 4), numbers(2, 5, 4), ints(0, 0)),
    grouped(numbers(3, 4), numbers(0, 5, 4), ints()),
    grouped(numbers(3, 0), numbers(1, 5, 0), ints(3)),
    grouped(numbers(2, 3, 4), numbers(2, 5, 4)),
    grouped(numbers(1, 1, 4), numbers(1, 1, 4)),
    *(
        grouped(numbers(3, 4, dtype=dtype), numbers(2, 5, 4, dtype=dtype), ints(1, 3))
        for dtype in ("f64", "f16", "bf16", "i32", "i8")
    ),
]

SAMPLES = [*MATMUL, *EINSUM, *INVERSE, *GROUPED]
