"""LLVM IR as text: constants have exact bits, and LLVM accepts the builder's output."""

from __future__ import annotations

import ctypes
import math
import struct

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from harness.routines import engine_of

from ir_runtime.backends.native.codegen import ir


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 1.5, 0.1, -1e-45, 3.4e38, 1e39, math.inf, -math.inf, math.nan, 2**-149]
)
def test_constants_have_the_bits_of_numpy(number: float) -> None:
    module, out = ir.Module(), np.zeros(16, np.uint8)
    builder = ir.Builder(ir.Function(module, "store", ir.VOID, [ir.I64]))
    address = builder.function.args[0]
    for place, kind in ((0, ir.F32), (4, ir.F16), (8, ir.F64)):
        at = builder.add(address, ir.Constant(ir.I64, place))
        builder.store(ir.Constant(kind, number), builder.inttoptr(at, ir.POINTER))
    builder.ret_void()
    engine = engine_of(str(module))
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(engine.get_function_address("store"))(out.ctypes.data)
    with np.errstate(over="ignore"):
        wanted = np.float32(number).tobytes(), np.float16(number).tobytes(), struct.pack("<d", number)
    assert (out[:4].tobytes(), out[4:6].tobytes(), out[8:].tobytes()) == wanted


def test_constants_without_a_number_are_zero() -> None:
    vector = ir.VectorType(ir.F32, 4)
    texts = [str(ir.Constant(kind, None)) for kind in (ir.I1, ir.F64, ir.POINTER, vector)]
    assert texts == ["0", "0x0000000000000000", "null", "zeroinitializer"]
    assert str(ir.Constant(vector, ir.UNDEFINED)) == "undef"
    with pytest.raises(TypeError, match="is no constant of <4 x float>"):
        ir.Constant(vector, [1.0])


def test_types_are_equal_by_what_they_are() -> None:
    assert ir.VectorType(ir.IntType(32), 8) == ir.VectorType(ir.I32, 8)
    assert len({ir.IntType(32), ir.I32, ir.F32}) == 2
    assert ir.VectorType(ir.BFLOAT, 32).suffix == "v32bf16"


def test_a_cast_to_the_same_type_is_nothing() -> None:
    builder = ir.Builder(ir.Function(ir.Module(), "f", ir.VOID, [ir.I64]))
    (value,) = builder.function.args
    assert builder.zext(value, ir.IntType(64)) is value
    assert builder.block.lines == []
