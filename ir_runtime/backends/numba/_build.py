"""Making machine code of kernels, with numba and LLVM: the one place that imports numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import compiler, cpu, target_extension
from numba.core.registry import cpu_target

from ._language import Device, Instruction, Routine
from ._machine import RUNTIME, target_machine
from ._vectors import Emit

__all__ = ["machine_code", "type_of"]

# The parts of numba that are not typed.
_compiler: Any = compiler
_cpu: Any = cpu
_override: Any = target_extension.target_override

# What LLVM may do to arithmetic: not change its order, on which roundings and polynomials rely.
_LENIENT = {"nsz", "contract"}
_OPTIONS: Any = {"fastmath": _LENIENT, "error_model": "numpy"}
# Functions of C's library that LLVM may call by itself.
_LIBRARY = ("mem", "expf", "fma", "rint", "floor", "ceil", "roundeven")

_ENTRY = """
declare i32 @"{inner}"(ptr, ptr, {kinds})
define void @"{name}"({named}) {{
  %given = alloca ptr
  %raised = alloca ptr
  %status = call i32 @"{inner}"(ptr %given, ptr %raised, {named})
  ret void
}}
"""
_WORDS = {"int64": "i64", "float32": "float"}


def machine_code(routine: Routine) -> bytes:
    """An object file with a routine under its name; it needs no more than `RUNTIME` and other routines.

    Raises:
        RuntimeError: if something in it needs numba, or the interpreter, when it runs.
    """
    kinds = tuple(getattr(numba.types, kind) for kind in routine.kinds)
    typing, target = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    target.refresh()
    with _override("cpu"):
        found = _compiler.compile_extra(
            typing, target, routine.function, kinds, numba.types.void, _flags(), {}
        )
    module = llvm.parse_assembly(found.library.get_llvm_str())
    module.link_in(llvm.parse_assembly(_entry(routine, found.fndesc.llvm_func_name)))
    for part in (*module.functions, *module.global_variables):
        if not part.is_declaration and part.name != routine.name:
            part.linkage = "internal"
    machine = target_machine()
    _tidy(module, machine)
    _refuse_foreign(routine, module)
    return bytes(machine.emit_object(module))


def _flags() -> Any:
    """No entry for callers in Python."""
    flags = _compiler.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model, flags.fastmath = "numpy", _cpu.FastMathOptions(_LENIENT)
    return flags


def _entry(routine: Routine, inner: str) -> str:
    kinds = [_WORDS[kind] for kind in routine.kinds]
    named = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    return _ENTRY.format(inner=inner, name=routine.name, kinds=", ".join(kinds), named=named)


def _tidy(module: Any, machine: Any) -> None:
    """Drop what nobody calls: what numba adds for callers in Python."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3)))


def _refuse_foreign(routine: Routine, module: Any) -> None:
    known = {*RUNTIME, *(needed.name for needed in routine.needs())}
    foreign = [
        function.name
        for function in module.functions
        if function.is_declaration
        and function.name not in known
        and not function.name.startswith(("llvm.", *_LIBRARY))
    ]
    if foreign:
        raise RuntimeError(f"{routine.name} cannot run by itself: it calls {', '.join(foreign)}")


def type_of(known: Any) -> Any:
    """What numba takes an object of the language for."""
    made = _made(known)
    if isinstance(known, Device):
        return made._numba_type_
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(made)


@cache
def _made(known: Any) -> Any:
    """Numba's own object; numba itself does not hold on to it."""
    if isinstance(known, Device):
        return numba.njit(inline="never", nogil=True, **_OPTIONS)(known.function)
    generate = _call_of(known) if isinstance(known, Routine) else _writing(known)
    gives = getattr(numba.types, known.gives if isinstance(known, Instruction) else "void")
    kinds = [getattr(numba.types, kind) for kind in known.kinds]
    name = known.function.__name__

    def typing(context: Any, *arguments: Any) -> Any:
        return gives(*kinds), generate

    return numba.extending.intrinsic(_named(typing, name, len(kinds)))


def _writing(known: Instruction) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = known.function(Emit(builder), *values)
        return context.get_dummy_value() if known.gives == "void" else found

    return generate


def _call_of(known: Routine) -> Callable[..., Any]:
    words = [ir.FloatType() if kind == "float32" else ir.IntType(64) for kind in known.kinds]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), words)
        declared = builder.module.globals.get(known.name) or ir.Function(builder.module, kind, known.name)
        builder.call(declared, values)
        return context.get_dummy_value()

    return generate


def _named(typing: Callable[..., Any], name: str, count: int) -> Callable[..., Any]:
    """Numba looks at the number of arguments, so tell it as many as there are."""
    names = ["context", *(f"argument{i}" for i in range(count))]
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    typing.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    typing.__name__ = typing.__qualname__ = name
    return typing
