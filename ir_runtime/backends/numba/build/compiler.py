"""The compiler of kernels: LLVM optimises and compiles what `translate` writes."""

from __future__ import annotations

import llvmlite.binding as llvm

from ..codegen import ir
from ..codegen.language import Routine
from ..codegen.target import Target
from ..machine_code.host import RUNTIME_SYMBOLS, target_machine
from .translate import CompileError, translate

__all__ = ["machine_code", "optimised"]

# Functions of the C library that LLVM may call by itself.
_LIBRARY = ("mem", "expf", "fma", "rint", "floor", "ceil", "roundeven")


def machine_code(routine: Routine, target: Target) -> bytes:
    """Compile a routine for a target, to an object file that refers only to `RUNTIME_SYMBOLS` and other routines.

    Raises:
        CompileError: if the routine uses what the kernel language lacks, or C functions that the package does not provide.
    """
    machine = target_machine(target.processor)
    module = optimised(translate(routine), machine)
    _check_symbols(routine, module)
    return bytes(machine.emit_object(module))


def optimised(module: ir.Module, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """Return a module after LLVM's passes, for a machine."""
    parsed = llvm.parse_assembly(str(module))
    parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization, options.loop_unrolling = True, False, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    return parsed


def _check_symbols(routine: Routine, module: llvm.ModuleRef) -> None:
    known = {*RUNTIME_SYMBOLS, *(needed.name for needed in routine.dependencies())}
    foreign = [
        function.name
        for function in module.functions
        if function.is_declaration
        and function.name not in known
        and not function.name.startswith(("llvm.", *_LIBRARY))
    ]
    if foreign:
        raise CompileError(f"{routine.name} cannot run by itself: it calls {', '.join(foreign)}")
