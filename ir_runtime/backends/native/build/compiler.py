"""The back end of the kernel compiler: LLVM optimises and compiles the IR that `translate` writes."""

from __future__ import annotations

import llvmlite.binding as llvm

from ..codegen.language import Routine
from ..codegen.targets import Target
from ..machine_code import TABLE, WORDS
from .translate import CompileError, translate

__all__ = [
    "compile_module",
    "compile_routine",
    "compile_text",
    "data_module",
    "optimise",
    "target_machine",
    "text_of",
]

# Functions of the C library to which LLVM may insert calls.
_LIBRARY = "memcpy", "memmove", "memset"
# Without it, LLVM splits some pairwise dot products into two instructions for a shorter latency, which tiles of sums hide anyway.
_WHOLE_PAIRS = "+fast-dpwssd"
_BASELINES = {"x86_64": "x86-64", "aarch64": "generic"}


def compile_routine(routine: Routine, target: Target, triple: str) -> bytes:
    """Compile a routine for a target; return an object file whose only undefined symbols are the host table and routines.

    Raises:
        CompileError: if the routine uses unsupported features of Python, or calls C functions that not every process has.
    """
    return compile_text(routine, text_of(routine, target), target, triple)


def text_of(routine: Routine, target: Target) -> str:
    """Translate a routine to LLVM IR, as text."""
    return translate(routine).text("" if routine.is_baseline else target.tuning)


def compile_text(routine: Routine, text: str, target: Target, triple: str) -> bytes:
    """Compile ``text``, the LLVM IR of a routine, to an object file; see `compile_routine`."""
    machine = target_machine(target, triple, routine.is_baseline)
    module = optimise(text, machine)
    _check_symbols(routine, module)
    return bytes(machine.emit_object(module))


def compile_module(text: str, target: Target, triple: str) -> bytes:
    """Compile a module of data, in LLVM IR, to an object file for every processor of the family."""
    machine = target_machine(target, triple, True)
    return bytes(machine.emit_object(_parse(text, machine)))


def target_machine(target: Target, triple: str, is_baseline: bool = False) -> llvm.TargetMachine:
    """Return an LLVM target machine for a target, or for its processor family if ``is_baseline``; code is position-independent."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    cpu, features = target.cpu, [f"+{feature}" for feature in sorted(target.features)]
    if is_baseline:
        cpu, features = _BASELINES[target.family], []
    elif {"avx512vnni", "avxvnni"} & target.features:
        features.append(_WHOLE_PAIRS)
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=",".join(features), opt=3, reloc="pic", codemodel="default"
    )


def optimise(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """Parse LLVM IR, and run the optimisation passes of LLVM on the module."""
    parsed = _parse(text, machine)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization, options.loop_unrolling = True, False, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    return parsed


def _parse(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    parsed = llvm.parse_assembly(text)
    parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
    parsed.verify()
    return parsed


def data_module(constants: dict[str, bytes]) -> str:
    """Return a module that defines the host table and constants, as LLVM IR text."""
    lines = [f"@{TABLE} = global [{len(WORDS)} x i64] zeroinitializer, align 8"]
    for name, value in constants.items():
        digits = "".join(f"\\{byte:02X}" for byte in value)
        lines.append(f'@{name} = constant [{len(value)} x i8] c"{digits}"')
    return "\n".join(lines)


def _check_symbols(routine: Routine, module: llvm.ModuleRef) -> None:
    known = {*_LIBRARY, *(needed.name for needed in routine.dependencies())}
    foreign = [
        function.name
        for function in module.functions
        if function.is_declaration and function.name not in known and not function.name.startswith("llvm.")
    ]
    if foreign:
        raise CompileError(f"{routine.name} cannot run by itself: it calls {', '.join(foreign)}")
