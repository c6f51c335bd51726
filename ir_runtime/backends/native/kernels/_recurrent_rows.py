"""Element-wise instructions of recurrent cells, on rows of f32."""

from __future__ import annotations

from collections.abc import Callable

from ..codegen.language import Instruction, instruction, types
from ..codegen.vectors import Emit, Load, Store, Value

__all__ = [
    "add_rows",
    "add_scaled_rows",
    "copy_rows",
    "interpolate_rows",
    "multiply_rows",
    "update_cell_state",
]


def _row_instruction(count: int, how: Callable[..., Value]) -> Instruction:
    """Return an instruction ``(out, *rows, length, low, high)`` that combines ``count`` rows element by element."""

    def write(emit: Emit, out: Value, *given: Value) -> None:
        rows, (length, low, high) = given[:count], given[count:]
        bounds = emit.splat(low), emit.splat(high)

        def body(offset: Value, load: Load, store: Store) -> None:
            found = how(emit, *(load(emit.at(row, offset)) for row in rows), *bounds)
            store(found, emit.at(out, offset))

        emit.vector_loop(length, body)

    write.__name__ = how.__name__
    return instruction(*[types.int64] * (count + 2), types.float32, types.float32)(write)


def _clamp(emit: Emit, x: Value, low: Value, high: Value) -> Value:
    return emit.minimum(emit.maximum(x, low), high)


def _add(emit: Emit, a: Value, b: Value, low: Value, high: Value) -> Value:
    """Compute ``clamp(a + b)``."""
    return _clamp(emit, emit.add(a, b), low, high)


def _add_scaled(emit: Emit, a: Value, b: Value, c: Value, low: Value, high: Value) -> Value:
    """Compute ``clamp(a + b * c)``."""
    return _clamp(emit, emit.add(a, emit.multiply(b, c)), low, high)


def _multiply(emit: Emit, a: Value, b: Value, low: Value, high: Value) -> Value:
    return emit.multiply(a, b)


def _interpolate(emit: Emit, part: Value, new: Value, old: Value, low: Value, high: Value) -> Value:
    """Compute ``(1 - part) * new + part * old``."""
    one = emit.constant(1)
    return emit.add(emit.multiply(emit.subtract(one, part), new), emit.multiply(part, old))


def _lstm_cell_state(
    emit: Emit, forget: Value, old: Value, take: Value, new: Value, low: Value, high: Value
) -> Value:
    return emit.add(emit.multiply(forget, old), emit.multiply(take, new))


def _identity(emit: Emit, x: Value, low: Value, high: Value) -> Value:
    return x


add_rows, add_scaled_rows = _row_instruction(2, _add), _row_instruction(3, _add_scaled)
multiply_rows, copy_rows = _row_instruction(2, _multiply), _row_instruction(1, _identity)
interpolate_rows, update_cell_state = (
    _row_instruction(3, _interpolate),
    _row_instruction(4, _lstm_cell_state),
)
