"""Translating kernels from Python to LLVM IR: numba infers their types and lowers them, and does nothing else.

``numba.njit`` does more: it wraps each function for callers in Python, optimises and loads it, and optimises it again
in each function that calls it. Here a `Device` is lowered once for each kind of arguments and linked into the routines
that call it, and `machine_code` optimises each routine once, as a whole. The contexts in which numba works know
numbers, tuples and ranges, but neither arrays nor the functions of ``math`` and NumPy: registering all that numba
knows takes longer than translating the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

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

from ..codegen.language import Device, Instruction, Routine
from ..codegen.vectors import Emit

__all__ = ["translated", "type_of"]

# What LLVM may do to arithmetic: not change its order, on which roundings and polynomials rely.
_LENIENT = cpu.FastMathOptions({"nsz", "contract"})
# Passes for closures and overloads, which kernels do not have.
_UNNEEDED = (untyped_passes.InlineClosureLikes, typed_passes.InlineOverloads)


def translated(routine: Routine) -> tuple[Any, str]:
    """Translate a routine: an LLVM module with all that it calls, not optimised, and the name of its function there.

    Raises:
        RuntimeError: if it uses what kernels cannot, such as lists or ``math``; numba's reason names file and line.
    """
    try:
        with target_override("cpu"), global_compiler_lock:
            found = _lowered(routine.function, _types(routine.kinds), types.void)
            found.library.finalize()
    except Exception as reason:  # numba has errors of its own, and lets others through
        raise RuntimeError(f"{routine.name} cannot be compiled: {reason}") from reason
    return found.library._final_module, found.fndesc.llvm_func_name


@cache
def type_of(known: Device | Instruction | Routine) -> Any:
    """The type that numba gives an object that kernels call."""
    return _Callee(known)


def _types(kinds: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(types, kind) for kind in kinds)


def _lowered(function: Callable[..., Any], kinds: Sequence[Any], gives: Any = None) -> Any:
    """Lower a function for arguments of these types; what it returns is inferred unless ``gives`` says it."""
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_rewrites = True
    flags.error_model, flags.fastmath = "numpy", _LENIENT
    return compiler.compile_extra(*_contexts(), function, kinds, gives, flags, {}, pipeline_class=_Passes)


@cache
def _contexts() -> tuple[Any, Any]:
    """The contexts in which numba infers types, and lowers."""
    typed = _Typing()
    register_number_classes(typed.insert_global)
    lowering = _Lowering(typed, "cpu")
    lowering.refresh()
    return typed, lowering


class _Passes(compiler.Compiler):
    """Numba's passes, but for those that find nothing to do."""

    def define_pipelines(self) -> list[Any]:
        """As the base class has it."""
        managers: list[Any] = super().define_pipelines()
        for manager in managers:
            manager.passes = [known for known in manager.passes if known[0] not in _UNNEEDED]
            manager.finalize()
        return managers


class _Library(codegen.AOTCodeLibrary):
    """Functions as they were lowered, and what they call; numba would optimise them here."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout  # what numba does first; linking needs it

    def _optimize_final_module(self) -> None:
        pass


class _Codegen(codegen.AOTCPUCodegen):
    _library_class = _Library


class _Typing(typing.Context):
    """Infers types; ``min`` and ``max`` are functions of this module."""

    def init(self) -> None:
        """Called by the base class."""
        self._resolved: dict[Any, Any] = {}

    def load_additional_registries(self) -> None:
        """Nothing but what is built in."""

    def resolve_value_type(self, val: Any) -> Any:
        """The type of a global name's value."""
        if val is min:
            return type_of(_LEAST)
        return type_of(_GREATEST) if val is max else super().resolve_value_type(val)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The types of a call; those of operators are remembered, which numba resolves anew every time."""
        if kws or isinstance(func, _Callee):
            return super().resolve_function_type(func, args, kws)
        if (func, args) not in self._resolved:
            self._resolved[func, args] = super().resolve_function_type(func, args, kws)
        return self._resolved[func, args]


class _Lowering(cpu.CPUContext):
    """Lowers for this processor, with neither numba's runtime nor its implementations of libraries."""

    def init(self) -> None:
        """Called by the base class."""
        self.is32bit = utils.MACHINE_BITS == 32
        self._internal_codegen = _Codegen("ir_runtime")

    def load_additional_registries(self) -> None:
        """Only what kernels are made of."""
        from numba.cpython import builtins, numbers, rangeobj, tupleobj  # noqa: F401  # they register themselves

    def post_lowering(self, mod: Any, library: Any) -> None:
        """Mark arithmetic; numba would link its runtime, too."""
        fastmathpass.rewrite_module(mod, self.fastmath)


class _Callee(types.Callable, types.Dummy):
    """The type of one `Device`, `Instruction` or `Routine`, by which numba resolves and lowers calls of it."""

    def __init__(self, known: Device | Instruction | Routine) -> None:
        self.known = known
        self._signatures: dict[tuple[Any, ...], Any] = {}
        super().__init__(f"{type(known).__name__}({known.function.__qualname__})")

    @property
    def key(self) -> Any:
        """What types are compared by."""
        return self.known

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Any) -> Any:
        """The types of a call; a `Device` is lowered when it is first called with such arguments."""
        expected = len(self.known.kinds)
        if not isinstance(self.known, Device) and len(args) != expected:
            raise errors.TypingError(f"{self.name} takes {expected} arguments, got {len(args)}")
        given = tuple(map(types.unliteral, args)) if isinstance(self.known, Device) else ()
        if given not in self._signatures:
            self._signatures[given] = _declared(self.known, given)
        return self._signatures[given]

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """For numba's messages."""
        return list(self._signatures.values()), True

    def get_impl_key(self, sig: Any) -> Any:
        """By what `_declared` registered how calls are lowered."""
        return self.known


datamodel.register_default(_Callee)(datamodel.models.OpaqueModel)


def _declared(known: Device | Instruction | Routine, given: Sequence[Any]) -> Any:
    """Register how a call is lowered; gives its types."""
    _, lowering = _contexts()
    if isinstance(known, Device):
        result = _lowered(known.function, given)
        lowering.insert_user_function(known, result.fndesc, [result.library])
        return result.signature
    gives = getattr(types, known.gives) if isinstance(known, Instruction) else types.void
    found = typing.signature(gives, *_types(known.kinds))
    write = _writing(known) if isinstance(known, Instruction) else _call_of(known)
    lowering.insert_func_defn([(write, known, found.args)])
    return found


def _writing(known: Instruction) -> Callable[..., Any]:
    """What numba calls to lower a call of an instruction."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = known.function(Emit(builder), *values)
        return context.get_dummy_value() if known.gives == "void" else found

    return generate


def _call_of(known: Routine) -> Callable[..., Any]:
    """What numba calls to lower a call of a routine: a call of a symbol, which `Machine` resolves."""
    words = [ir.FloatType() if kind == "float32" else ir.IntType(64) for kind in known.kinds]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), words)
        declared = builder.module.globals.get(known.name) or ir.Function(builder.module, kind, known.name)
        builder.call(declared, values)
        return context.get_dummy_value()

    return generate


@Device
def _LEAST(a: Any, b: Any) -> Any:
    return b if b < a else a


@Device
def _GREATEST(a: Any, b: Any) -> Any:
    return b if b > a else a
