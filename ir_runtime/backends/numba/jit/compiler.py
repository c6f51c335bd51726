"""Making machine code of kernels: LLVM optimises and compiles what numba has translated."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

from ..codegen.language import Routine
from .loader import RUNTIME, target_machine
from .translate import translated

__all__ = ["machine_code"]

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
    module, inner = translated(routine)
    module.link_in(llvm.parse_assembly(_entry(routine, inner)))
    for part in (*module.functions, *module.global_variables):
        if not part.is_declaration and part.name != routine.name:
            part.linkage = "internal"
    machine = target_machine()
    _optimise(module, machine)
    _refuse_foreign(routine, module)
    return bytes(machine.emit_object(module))


def _entry(routine: Routine, inner: str) -> str:
    kinds = [_WORDS[kind] for kind in routine.kinds]
    named = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    return _ENTRY.format(inner=inner, name=routine.name, kinds=", ".join(kinds), named=named)


def _optimise(module: Any, machine: Any) -> None:
    """Run LLVM's passes with numba's settings, once: what the routine calls is inlined, what it does not is dropped."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


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
