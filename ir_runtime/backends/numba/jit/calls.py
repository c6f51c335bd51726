"""How functions of kernels call each other: they return their result, and cannot raise.

Numba's own convention returns a status and stores the result, so that a caller can pass on an exception; LLVM takes long to
find that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from llvmlite import ir
from numba.core import callconv, compiler, errors, types

__all__ = ["DirectCalls", "device_lowering"]

_NEVER, _UNKNOWN = ir.Constant(ir.IntType(1), 0), None
_DONE = callconv.Status(
    code=_UNKNOWN,
    is_ok=_UNKNOWN,
    is_none=_UNKNOWN,
    is_error=_NEVER,
    is_stop_iteration=_UNKNOWN,
    is_python_exc=_UNKNOWN,
    is_user_exc=_UNKNOWN,
    excinfoptr=_UNKNOWN,
)


class DirectCalls(callconv.BaseCallConv):
    """Arguments are passed as numba flattens them, and the result is returned."""

    def _make_call_helper(self, builder: ir.IRBuilder) -> None:
        """Return nothing: helpers hold exceptions."""

    def get_function_type(self, restype: types.Type, argtypes: Sequence[types.Type]) -> ir.FunctionType:
        """Return the type of a function in LLVM."""
        returns = ir.VoidType() if restype == types.void else self.context.get_return_type(restype)
        return ir.FunctionType(returns, self._get_arg_packer(argtypes).argument_types)

    def decorate_function(
        self, fn: ir.Function, args: Sequence[str], fe_argtypes: Sequence[types.Type], noalias: bool = False
    ) -> None:
        """Leave the arguments without names."""

    def get_arguments(self, func: ir.Function) -> Sequence[ir.Value]:
        """Return the arguments of a function."""
        found: Sequence[ir.Value] = func.args
        return found

    def return_value(self, builder: ir.IRBuilder, retval: ir.Value) -> None:
        """Return a value, or nothing from a function that has no result."""
        if isinstance(builder.function.function_type.return_type, ir.VoidType):
            builder.ret_void()
        else:
            builder.ret(retval)

    def return_user_exc(
        self, builder: ir.IRBuilder, exc: type[BaseException], *_: object, **__: object
    ) -> NoReturn:
        """Refuse to compile what may raise."""
        raise errors.UnsupportedError(f"it may raise {exc.__name__}, which kernels cannot")

    set_static_user_exc = return_dynamic_user_exc = return_user_exc

    def return_status_propagate(self, builder: ir.IRBuilder, status: callconv.Status) -> None:
        """Mark a place that is never reached."""
        builder.unreachable()

    def call_function(
        self,
        builder: ir.IRBuilder,
        callee: ir.Function,
        resty: types.Type,
        argtys: Sequence[types.Type],
        args: Sequence[ir.Value],
    ) -> tuple[callconv.Status, ir.Value]:
        """Call a function, and return that it did not fail, and its result."""
        found = builder.call(callee, self._get_arg_packer(argtys).as_arguments(builder, args))
        if resty == types.void:
            return _DONE, self.context.get_dummy_value()
        return _DONE, self.context.get_returned_value(builder, resty, found)


def device_lowering(lowered: compiler.CompileResult) -> Callable[..., ir.Value]:
    """Return the function that lowers a call of a lowered function."""
    known = lowered.fndesc

    def generate(context: object, builder: ir.IRBuilder, _: object, values: Sequence[ir.Value]) -> ir.Value:
        function = context.declare_function(builder.module, known)  # type: ignore[attr-defined]
        _, found = context.call_conv.call_function(  # type: ignore[attr-defined]
            builder, function, known.restype, known.argtypes, values
        )
        return found

    generate.libs = (lowered.library,)  # type: ignore[attr-defined]  # which numba links
    return generate
