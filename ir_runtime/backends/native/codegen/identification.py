"""The routine that reads the features of an x86 processor, by which `machine_code.identify` chooses a kernel library."""

from __future__ import annotations

from . import ir
from .language import device, instruction, routine, types
from .memory import load_i64, store_i64
from .target import TARGET
from .vectors import I32, I64, Emit, Value

__all__ = ["identify"]

_REGISTERS = ir.StructType([I32] * 4)
# The bit of leaf 1 that says whether `xgetbv` is enabled.
_OSXSAVE = 1 << 27


@instruction(types.int64, types.int64, types.int64)
def _cpuid(emit: Emit, leaf: Value, subleaf: Value, out: Value) -> None:
    """Execute ``cpuid`` and store its four result registers, each as i64."""
    builder = emit.builder
    cpuid = ir.InlineAsm(_REGISTERS, "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}")
    registers = builder.call(cpuid, [builder.trunc(leaf, I32), builder.trunc(subleaf, I32)])
    for index in range(4):
        word = builder.zext(builder.extract_value(registers, index), I64)
        emit.store(word, emit.at(out, 8 * index), 8)


@instruction(returns=types.int64)
def _xcr0(emit: Emit) -> Value:
    """Return the low half of XCR0, whose bits are the register sets that the operating system saves."""
    builder = emit.builder
    xgetbv = ir.InlineAsm(ir.StructType([I32] * 2), "xgetbv", "={ax},={dx},{cx}")
    registers = builder.call(xgetbv, [ir.Constant(I32, 0)])
    return builder.zext(builder.extract_value(registers, 0), I64)


@device
def _store_leaf(place: int, leaf: int, subleaf: int, out: int) -> None:
    _cpuid(leaf, subleaf, out + 32 * place)


@routine(types.int64, is_baseline=True)
def identify(out: int) -> None:
    """Store four words for each available leaf of ``cpuid`` among 0, 1, 7, 7.1 and 0x80000001, then XCR0.

    On AArch64, store nothing.
    """
    if TARGET.is_x86:
        _store_leaf(0, 0, 0, out)
        _store_leaf(1, 1, 0, out)
        if load_i64(out, 0) >= 7:
            _store_leaf(2, 7, 0, out)
            if load_i64(out, 8) >= 1:
                _store_leaf(3, 7, 1, out)
        _store_leaf(4, 0x80000001, 0, out)
        if load_i64(out, 6) & _OSXSAVE != 0:
            store_i64(out, 20, _xcr0())
