"""Functions in LLVM's language, compiled into this process: tests have some that must work without Python's lock."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

__all__ = ["engine_of"]


def engine_of(text: str) -> Any:
    """Compile a module for this processor; the engine, which must live as long as its functions, has their addresses."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), opt=3, jit=True, codemodel="jitdefault"
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
