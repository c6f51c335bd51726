"""The compiler of kernels: LLVM optimises and compiles what numba has translated."""

from __future__ import annotations

import os

import llvmlite.binding as llvm

from ....errors import InputError
from ..codegen.language import Routine
from .host import RUNTIME_SYMBOLS, target_machine

__all__ = ["machine_code"]

# The file of numba's settings.
_SETTINGS = ".numba_config.yaml"
# Functions of the C library that LLVM may call by itself.
_LIBRARY = ("mem", "expf", "fma", "rint", "floor", "ceil", "roundeven")


def machine_code(routine: Routine) -> bytes:
    """Compile a routine to an object file that refers only to `RUNTIME_SYMBOLS` and other routines.

    Raises:
        InputError: if numba would take settings from the working directory.
        RuntimeError: if the routine needs numba, or the interpreter, when it runs.
    """
    _check_settings()
    from .translate import translate

    module = translate(routine)
    for part in (*module.functions, *module.global_variables):
        if not part.is_declaration and part.name != routine.name:
            part.linkage = "internal"
    machine = target_machine()
    _optimise(module, machine)
    _check_symbols(routine, module)
    return bytes(machine.emit_object(module))


def _check_settings() -> None:
    """Check that no file beside a model decides how kernels are compiled, which are then cached for all models.

    numba reads it when it is imported, and again whenever it compiles.
    """
    if os.path.lexists(_SETTINGS):
        raise InputError(
            f"kernels cannot be compiled here: {_SETTINGS} in the working directory would change them",
            hint="run ir-runtime kernels in another folder",
        )


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Run LLVM's passes with numba's settings, once per routine, after linking: calls are inlined, dead code is removed."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization, options.loop_unrolling = True, False, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


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
        raise RuntimeError(f"{routine.name} cannot run by itself: it calls {', '.join(foreign)}")
