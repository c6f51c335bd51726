"""The routine that queries the features of an x86 processor, called by `machine_code.identify` to choose a library."""

from __future__ import annotations

from . import ir
from .language import device, instruction, routine, types
from .memory import load_i64, store_i64
from .target import TARGET
from .vectors import I32, I64, Emit, Value

__all__ = ["identify"]

_REGISTERS = ir.StructType([I32] * 4)
# The leaf and the bit that say whether there is `xgetbv`.
_OSXSAVE = 1 << 27


@instruction(types.int64, types.int64, types.int64)
def _cpuid(emit: Emit, leaf: Value, subleaf: Value, out: Value) -> None:
    """Execute ``cpuid`` and store its four result registers as i64."""
    builder = emit.builder
    ask = ir.InlineAsm(_REGISTERS, "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}")
    found = builder.call(ask, [builder.trunc(leaf, I32), builder.trunc(subleaf, I32)])
    for index in range(4):
        word = builder.zext(builder.extract_value(found, index), I64)
        emit.store(word, emit.at(out, 8 * index), 8)


@instruction(returns=types.int64)
def _xcr0(emit: Emit) -> Value:
    """Return XCR0, which lists the registers that the operating system saves."""
    builder = emit.builder
    ask = ir.InlineAsm(ir.StructType([I32] * 2), "xgetbv", "={ax},={dx},{cx}")
    found = builder.call(ask, [ir.Constant(I32, 0)])
    return builder.zext(builder.extract_value(found, 0), I64)


@device
def _ask(place: int, leaf: int, subleaf: int, out: int) -> None:
    _cpuid(leaf, subleaf, out + 32 * place)


@routine(types.int64, is_baseline=True)
def identify(out: int) -> None:
    """Store the words of each available leaf of `LEAVES`, and XCR0."""
    if TARGET.is_x86:
        _ask(0, 0, 0, out)
        _ask(1, 1, 0, out)
        if load_i64(out, 0) >= 7:
            _ask(2, 7, 0, out)
            if load_i64(out, 8) >= 1:
                _ask(3, 7, 1, out)
        _ask(4, 0x80000001, 0, out)
        if load_i64(out, 6) & _OSXSAVE != 0:
            store_i64(out, 20, _xcr0())
