"""The translator of kernels from Python to LLVM IR: numba infers their types and lowers them, and does nothing else.

``numba.njit`` does more: it wraps each function for callers in Python, optimises and loads it, and optimises it again
in each function that calls it. Here, a `Device` is lowered once for each kind of arguments and linked into the routines
that call it, and `machine_code` optimises each routine once, as a whole. The typing and lowering
contexts support numbers, tuples and ranges, but neither arrays nor the functions of ``math`` and NumPy: registering all
that numba supports takes longer than translating the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar, TypeAlias

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import (
    codegen,
    compiler,
    cpu,
    datamodel,
    errors,
    fastmathpass,
    typed_passes,
    types,
    typing,
    untyped_passes,
    utils,
)
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import target_override
from numba.core.typing.npydecl import register_number_classes

from ..codegen.descriptor import Descriptor
from ..codegen.language import Callee, Device, Instruction, Routine
from ..codegen.vectors import Emit
from .arithmetic import ARITHMETIC, EXTREMES
from .calls import DirectCalls, device_lowering
from .functions import KernelLowering
from .ranges import RANGE, RANGES

__all__ = ["translate"]

_Known: TypeAlias = "Device[..., object] | Instruction | Routine"

_LLVM = {"void": ir.VoidType(), "int64": ir.IntType(64), "float32": ir.FloatType()}
# LLVM may contract a * b + c, but not reorder arithmetic: rounding and polynomials rely on the order.
_FASTMATH = cpu.FastMathOptions({"nsz", "contract"})
# Passes for what kernels do not have (closures, overloads, parallel loops), and the one that ends the lives of variables:
# those of kernels are numbers, and hold nothing.
_UNNEEDED = (
    untyped_passes.InlineClosureLikes,
    untyped_passes.InlineInlinables,
    untyped_passes.LiteralUnroll,
    untyped_passes.MakeFunctionToJitFunction,
    typed_passes.DumpParforDiagnostics,
    typed_passes.InlineOverloads,
    typed_passes.IRLegalization,
)


def translate(routine: Routine) -> llvm.ModuleRef:
    """Translate a routine to an LLVM module with all that it calls, not optimised; its function there has its name.

    Raises:
        RuntimeError: if it uses something unsupported, such as lists or ``math``; numba's reason names file and line.
    """
    try:
        with target_override("cpu"), global_compiler_lock:
            found = _lower(routine.function, _types(routine.kinds), getattr(types, routine.returns))
            found.library.finalize()
    except Exception as reason:  # numba has its own errors, and lets others through
        raise RuntimeError(f"{routine.name} cannot be compiled: {reason}") from reason
    module: llvm.ModuleRef = found.library._final_module
    module.get_function(found.fndesc.llvm_func_name).name = routine.name
    return module


@cache
def _type_of(callee: _Known) -> _CalleeType:
    return _CalleeType(callee)


def _types(kinds: Sequence[str]) -> tuple[types.Type, ...]:
    return tuple(getattr(types, kind) for kind in kinds)


def _lower(
    function: Callable[..., object], kinds: Sequence[types.Type], returns: types.Type | None = None
) -> compiler.CompileResult:
    """Lower a function for arguments of these types; the type of the result is inferred unless it is given."""
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_rewrites = True
    flags.error_model, flags.fastmath = "numpy", _FASTMATH
    return compiler.compile_extra(*_contexts(), function, kinds, returns, flags, {}, pipeline_class=_Passes)


@cache
def _contexts() -> tuple[_Typing, _Lowering]:
    """Return numba's typing and lowering contexts."""
    typed = _Typing()
    register_number_classes(typed.insert_global)
    lowering = _Lowering(typed, "cpu")
    lowering.refresh()
    for known in (RANGES, ARITHMETIC):
        lowering.install_registry(known)
    return typed, lowering


class _Passes(compiler.Compiler):
    """Numba's passes without those that kernels do not need."""

    _filtered: ClassVar[list[compiler.PassManager]] = []

    def define_pipelines(self) -> list[compiler.PassManager]:
        """Return the pipelines of the base class, filtered; all functions share them, as they have the same flags."""
        return self._filtered or self._filter()

    def _filter(self) -> list[compiler.PassManager]:
        managers: list[compiler.PassManager] = super().define_pipelines()
        for manager in managers:
            manager.passes = [
                (KernelLowering, reason) if known is typed_passes.NativeLowering else (known, reason)
                for known, reason in manager.passes
                if known not in _UNNEEDED
            ]
            manager.finalize()
        self._filtered.extend(managers)
        return managers


class _Library(codegen.AOTCodeLibrary):
    """Lowered functions and their callees, linked but not optimised."""

    def _optimize_functions(self, ll_module: llvm.ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout  # linking needs it

    def _optimize_final_module(self) -> None:
        pass

    def _get_module_for_linking(self) -> llvm.ModuleRef:
        """Return the module with functions that may be defined again; numba would copy it."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        return self._final_module


class _Codegen(codegen.AOTCPUCodegen):
    _library_class = _Library


class _Typing(typing.Context):
    """Infers types; `Callee` and `Descriptor` are known, and ``range``, ``min`` and ``max`` have types of ours."""

    def init(self) -> None:
        """Implement the interface of the base class."""
        self._resolved: dict[tuple[object, ...], typing.templates.Signature | None] = {}

    def load_additional_registries(self) -> None:
        """Register nothing but the built-in types."""

    def resolve_value_type(self, val: object) -> types.Type:
        """Return the type of a global; fields of a descriptor are constants, like those of a module."""
        if isinstance(val, type) and issubclass(val, Descriptor):
            return types.Module(val)
        if val is range:
            return RANGE
        if val is min or val is max:
            return EXTREMES[val]
        return _type_of(val) if isinstance(val, Callee) else super().resolve_value_type(val)

    def resolve_function_type(
        self, func: object, args: tuple[types.Type, ...], kws: object
    ) -> typing.templates.Signature | None:
        """Return the signature of a call; those of operators are cached, which numba does not do."""
        if kws or isinstance(func, _CalleeType):
            return super().resolve_function_type(func, args, kws)
        if (func, args) not in self._resolved:
            self._resolved[func, args] = super().resolve_function_type(func, args, kws)
        return self._resolved[func, args]


class _Lowering(cpu.CPUContext):
    """Lowers for this processor, with neither numba's runtime nor its implementations of libraries."""

    def init(self) -> None:
        """Implement the interface of the base class."""
        self.is32bit = utils.MACHINE_BITS == 32
        self._internal_codegen = _Codegen("ir_runtime")
        self._calls = DirectCalls(self)
        self._sizes: dict[ir.Type, int] = {}

    @property
    def call_conv(self) -> DirectCalls:
        """Return how functions call each other."""
        return self._calls

    def mangler(self, name: str, types: object, *, abi_tags: object = (), uid: int | None = None) -> str:
        """Return the name of a function in LLVM; numba would spell out its types."""
        return f"{name}.{uid}"

    def pair_first(self, builder: ir.IRBuilder, val: ir.Value, ty: types.Type) -> ir.Value:
        """Return the first of two values; numba would store both to load it."""
        return builder.extract_value(val, 0)

    def pair_second(self, builder: ir.IRBuilder, val: ir.Value, ty: types.Type) -> ir.Value:
        """Return the second of two values."""
        return builder.extract_value(val, 1)

    def get_abi_sizeof(self, ty: ir.Type) -> int:
        """Return the size of a type; llvmlite parses a module to find it, so it is cached."""
        if ty not in self._sizes:
            self._sizes[ty] = super().get_abi_sizeof(ty)
        return self._sizes[ty]

    def load_additional_registries(self) -> None:
        """Register only what kernels use."""
        from numba.cpython import builtins, numbers, tupleobj  # noqa: F401  # registered by importing

    def post_lowering(self, mod: ir.Module, library: object) -> None:
        """Set the fast-math flags; numba would link its runtime, too."""
        fastmathpass.rewrite_module(mod, self.fastmath)


class _CalleeType(types.Callable, types.Dummy):
    """The type of one `Callee`, by which numba resolves and lowers calls of it."""

    def __init__(self, callee: _Known) -> None:
        self.callee = callee
        self._signatures: dict[tuple[types.Type, ...], typing.templates.Signature] = {}
        super().__init__(f"{type(callee).__name__}({callee.function.__qualname__})")

    @property
    def key(self) -> _Known:
        """Types are equal if their keys are."""
        return self.callee

    def get_call_type(
        self, context: _Typing, args: Sequence[types.Type], kws: object
    ) -> typing.templates.Signature:
        """Return the signature of a call; a `Device` is lowered when it is first called with these types."""
        expected = len(self.callee.kinds)
        if not isinstance(self.callee, Device) and len(args) != expected:
            raise errors.TypingError(f"{self.name} expected {expected} arguments, got {len(args)}")
        kinds = tuple(map(types.unliteral, args)) if isinstance(self.callee, Device) else ()
        if kinds not in self._signatures:
            self._signatures[kinds] = _declare(self.callee, kinds)
        return self._signatures[kinds]

    def get_call_signatures(self) -> tuple[list[typing.templates.Signature], bool]:
        """Return the known signatures, for numba's messages."""
        return list(self._signatures.values()), True

    def get_impl_key(self, sig: typing.templates.Signature) -> _Known:
        """Return the key under which `_declare` registered the lowering."""
        return self.callee


datamodel.register_default(_CalleeType)(datamodel.models.OpaqueModel)


def _declare(callee: _Known, kinds: Sequence[types.Type]) -> typing.templates.Signature:
    """Register how a call is lowered, and return its signature."""
    _, lowering = _contexts()
    if isinstance(callee, Device):
        result = _lower(callee.function, kinds)
        lowering.insert_func_defn([(device_lowering(result), callee, result.signature.args)])
        return result.signature
    lower = _instruction_lowering(callee) if isinstance(callee, Instruction) else _routine_lowering(callee)
    signature = typing.signature(getattr(types, callee.returns), *_types(callee.kinds))
    lowering.insert_func_defn([(lower, callee, signature.args)])
    return signature


def _instruction_lowering(known: Instruction) -> Callable[..., ir.Value]:
    """Return the function that lowers a call of an instruction."""

    def generate(
        context: _Lowering, builder: ir.IRBuilder, _: object, values: Sequence[ir.Value]
    ) -> ir.Value:
        found = known.function(Emit(builder), *values)
        return context.get_dummy_value() if known.returns == "void" else found

    return generate


def _routine_lowering(known: Routine) -> Callable[..., ir.Value]:
    """Return the function that lowers a call of a routine: to a call of a symbol, which the loader resolves."""

    def generate(
        context: _Lowering, builder: ir.IRBuilder, _: object, values: Sequence[ir.Value]
    ) -> ir.Value:
        kind = ir.FunctionType(_LLVM[known.returns], [_LLVM[kind] for kind in known.kinds])
        declared = builder.module.globals.get(known.name) or ir.Function(builder.module, kind, known.name)
        found = builder.call(declared, values)
        return context.get_dummy_value() if known.returns == "void" else found

    return generate
