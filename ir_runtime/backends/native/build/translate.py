"""The front end of the kernel compiler: translates the syntax trees of Python functions to LLVM IR.

The kernel language is a subset of Python: numbers, tuples, variables with the type of their first assignment, fields of
records (`Descriptor`), ``if``, ``while``, ``for`` over ``range``, `Units` and `Chunks`, ``min`` and ``max`` of two numbers,
and calls of a `Callee`. Names that the function does not assign, and attributes of the objects that they refer to, are
looked up in its closure and module at compile time. Of a conditional with a constant condition, only one branch is compiled.

A `Device` is compiled once for each combination of argument types; LLVM decides whether to inline it.

A number is either a compile-time constant (a Python number or an `np.float32`) or an LLVM value of type i1, i32, i64, f32 or
f64. Operands of different types are promoted as in NumPy: an f32 and an i64 to f64.

Integers wrap around. Quotients are rounded down. Division by 0 gives 0, as does a quotient that overflows i64.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..codegen import ir
from ..codegen.descriptor import Descriptor
from ..codegen.ir import F32, F64, I1, I32, I64
from ..codegen.language import Chunks, Device, Instruction, Routine, Scratch, Units
from ..codegen.vectors import Emit
from .source import CompileError, Source, source_of

__all__ = ["CompileError", "is_number", "Number", "Operations", "translate"]

Number: TypeAlias = "ir.Value | bool | int | float | np.float32"

# Integer and floating-point types, from narrow to wide.
_INTEGERS, _REALS = (I1, I32, I64), (F32, F64)

_COMPARED: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge), ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
}  # fmt: skip
_KNOWN: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_OF_INTEGERS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.LShift: "shl", ast.RShift: "ashr", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
_OF_REALS: dict[type[ast.operator], str] = {
    ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv",
}  # fmt: skip


def is_number(x: object) -> bool:
    """Return whether an object is a number of the kernel language."""
    return isinstance(x, (ir.Value, bool, int, float, np.float32))


def _kind(x: Number) -> ir.Type:
    """Return the LLVM type of a number."""
    if isinstance(x, ir.Value):
        kind: ir.Type = x.type
        return kind
    if isinstance(x, bool):
        return I1
    if isinstance(x, int):
        return I64
    return F32 if isinstance(x, np.float32) else F64


def _common(a: ir.Type, b: ir.Type) -> ir.Type:
    """Return the type that two types are promoted to."""
    if a == b:
        return a
    for kinds in (_INTEGERS, _REALS):
        if a in kinds and b in kinds:
            return max(a, b, key=kinds.index)
    return F64


class Operations:
    """Operations on numbers: constants are folded, other operations are emitted by a builder.

    Raises:
        TypeError: in all methods, if there is no such operation or conversion.
    """

    def __init__(self, builder: ir.Builder) -> None:
        self._builder = builder

    def value(self, x: Number, kind: ir.Type | None = None) -> ir.Value:
        """Return a number as an LLVM value, converted to ``kind`` unless that is ``None``."""
        kind = kind or _kind(x)
        if not isinstance(x, ir.Value):
            return _constant(kind, x)
        if x.type == kind:
            return x
        convert = self._conversion(x.type, kind)
        if convert is None:
            raise TypeError(f"a number of type {x.type} is no {kind}")
        return convert(x, kind)

    def _conversion(self, a: ir.Type, b: ir.Type) -> Callable[[ir.Value, ir.Type], ir.Value] | None:
        builder = self._builder
        if a in _INTEGERS and b in _INTEGERS and _INTEGERS.index(a) < _INTEGERS.index(b):
            return builder.zext if a == I1 else builder.sext
        if a in (I32, I64) and b in _REALS:
            return builder.sitofp
        if a in _REALS and b in _REALS:
            return builder.fpext if a == F32 else builder.fptrunc
        return None

    def common(self, a: Number, b: Number) -> ir.Type:
        """Return the type that two numbers are promoted to."""
        return _common(_kind(a), _kind(b))

    def alike(self, a: Number, b: Number) -> tuple[ir.Value, ir.Value]:
        """Return two numbers as LLVM values, promoted to their common type."""
        kind = self.common(a, b)
        return self.value(a, kind), self.value(b, kind)

    def truth(self, x: Number) -> ir.Value:
        """Return whether a number is not 0, as an i1."""
        value = self.value(x)
        if value.type == I1:
            return value
        if value.type not in _INTEGERS:
            raise TypeError(f"a number of type {value.type} is no condition")
        return self._builder.icmp_signed("!=", value, ir.Constant(value.type, 0))

    def binary(self, sign: ast.operator, a: Number, b: Number) -> Number:
        """Return the result of a binary operation."""
        if type(sign) not in _KNOWN:
            raise TypeError(f"{type(sign).__name__} is not supported")
        if not isinstance(a, ir.Value) and not isinstance(b, ir.Value):
            known: Number = _KNOWN[type(sign)](a, b)
            return known
        a, b = self.alike(a, b)
        if a.type == I1 and not isinstance(sign, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            a, b = self.value(a, I64), self.value(b, I64)
        if a.type in _REALS:
            name = _OF_REALS.get(type(sign))
        elif isinstance(sign, ast.FloorDiv):
            return self._quotient(a, b)
        elif isinstance(sign, ast.Mod):
            return self._remainder(a, b)
        else:
            name = _OF_INTEGERS.get(type(sign))
        if name is None:
            raise TypeError(f"{type(sign).__name__} of {a.type} is not supported")
        result: ir.Value = getattr(self._builder, name)(a, b)
        return result

    def compare(self, sign: ast.cmpop, a: Number, b: Number) -> Number:
        """Return the result of a comparison; NaN is unequal to everything."""
        if type(sign) not in _COMPARED:
            raise TypeError(f"{type(sign).__name__} is not supported")
        text, known = _COMPARED[type(sign)]
        if not isinstance(a, ir.Value) and not isinstance(b, ir.Value):
            return known(a, b)
        a, b = self.alike(a, b)
        if a.type in _INTEGERS:
            return self._builder.icmp_signed(text, a, b)
        if isinstance(sign, ast.NotEq):
            return self._builder.fcmp_unordered(text, a, b)
        return self._builder.fcmp_ordered(text, a, b)

    def extreme(self, sign: ast.cmpop, a: Number, b: Number) -> Number:
        """Return ``b`` if it compares to ``a`` by ``sign``, else ``a``: Python's ``min`` (``<``) and ``max`` (``>``)."""
        if not isinstance(a, ir.Value) and not isinstance(b, ir.Value):
            return b if self.compare(sign, b, a) else a
        a, b = self.alike(a, b)
        return self._builder.select(self.value(self.compare(sign, b, a)), b, a)

    def negative(self, x: Number) -> Number:
        """Return ``-x``."""
        if not isinstance(x, ir.Value):
            return -x
        if x.type in _REALS:
            return self._builder.fneg(x)
        value = self.value(x, I64) if x.type == I1 else x
        return self._builder.sub(ir.Constant(value.type, 0), value)

    def _quotient(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return the quotient of integers, rounded down; 0 where it is undefined."""
        builder, zero = self._builder, ir.Constant(a.type, 0)
        if power := _power_of_two(b):
            return builder.ashr(a, ir.Constant(a.type, power.bit_length() - 1))
        impossible, b = self._possible(a, b)
        quotient, rest = builder.sdiv(a, b), builder.srem(a, b)
        rounded = builder.sub(quotient, builder.zext(self._is_above(rest, b), a.type))
        return rounded if impossible is None else builder.select(impossible, zero, rounded)

    def _remainder(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return the remainder that belongs to a quotient rounded down; it has the sign of the divisor."""
        builder, zero = self._builder, ir.Constant(a.type, 0)
        if power := _power_of_two(b):
            return builder.and_(a, ir.Constant(a.type, power - 1))
        _, b = self._possible(a, b)
        rest = builder.srem(a, b)
        return builder.add(rest, builder.select(self._is_above(rest, b), b, zero))

    def _possible(self, a: ir.Value, b: ir.Value) -> tuple[ir.Value | None, ir.Value]:
        """Return an i1 that tells whether the quotient is undefined (``None`` if it never is), and a divisor without traps."""
        if isinstance(b, ir.Constant) and b.constant not in (0, -1):
            return None, b
        builder, kind = self._builder, a.type
        least = ir.Constant(kind, -(1 << (kind.width - 1)))
        overflows = builder.and_(
            builder.icmp_signed("==", a, least), builder.icmp_signed("==", b, ir.Constant(kind, -1))
        )
        impossible = builder.or_(builder.icmp_signed("==", b, ir.Constant(kind, 0)), overflows)
        return impossible, builder.select(impossible, ir.Constant(kind, 1), b)

    def _is_above(self, rest: ir.Value, b: ir.Value) -> ir.Value:
        """Return whether the quotient with remainder ``rest`` and divisor ``b``, rounded towards zero, is greater than the exact one."""
        builder, zero = self._builder, ir.Constant(rest.type, 0)
        differs = builder.icmp_signed("<", builder.xor(rest, b), zero)
        return builder.and_(builder.icmp_signed("!=", rest, zero), differs)


def _constant(kind: ir.Type, x: Number) -> ir.Constant:
    if isinstance(kind, ir.IntType):
        if not isinstance(x, (bool, int)):
            raise TypeError(f"{x!r} is no integer")
        if x not in (range(2) if kind == I1 else range(-(1 << (kind.width - 1)), 1 << (kind.width - 1))):
            raise TypeError(f"{x!r} does not fit {kind}")
    return ir.Constant(kind, x)


def _power_of_two(divisor: ir.Value) -> int:
    """Return the divisor if it is a constant power of two, else 0."""
    known = divisor.constant if isinstance(divisor, ir.Constant) else 0
    return known if known > 0 and known.bit_count() == 1 else 0


_KINDS: Mapping[str, ir.Type] = {"void": ir.VOID, "int64": ir.I64, "float32": ir.F32}
_FIELDS: Mapping[object, ir.Type] = {np.dtype(np.int64): ir.I64, np.dtype(np.float32): ir.F32}
_AT = Descriptor.at.__func__  # type: ignore[attr-defined]
_EXTREMES: dict[object, ast.cmpop] = {min: ast.Lt(), max: ast.Gt()}

Operand: TypeAlias = Any
"""A number, a tuple of operands, or a compile-time object."""
_Slot: TypeAlias = "tuple[_Slot, ...] | _Variable"
_Shape: TypeAlias = "tuple[_Shape, ...] | ir.Type"


class _Record(ir.Value):
    """The address of a record; it is also a number."""

    __slots__ = ("layout",)

    def __init__(self, address: ir.Value, layout: type[Descriptor]) -> None:
        super().__init__(address.type, address.text)
        self.layout = layout


@dataclass(frozen=True)
class _Variable:
    """The stack slot of a variable, which LLVM promotes to a register.

    ``layout`` is the layout of the record whose address the variable holds, or ``None``.
    """

    kind: ir.Type
    pointer: ir.Value
    layout: type[Descriptor] | None = None


@dataclass
class _Loop:
    """The blocks that ``continue`` and ``break`` jump to."""

    following: ir.Block
    after: ir.Block
    ends: list[set[str]]
    """The sets of variables that are defined at each exit of the loop; empty if there is no exit."""


def translate(routine: Routine) -> ir.Module:
    """Translate a routine and the devices that it calls to a module; the LLVM function has the name of the routine.

    Raises:
        CompileError: if it uses an unsupported feature.
    """
    program = _Program()
    kinds = [_KINDS[kind] for kind in routine.kinds]
    function = ir.Function(program.module, routine.name, _KINDS[routine.returns], kinds)
    source = source_of(routine.function)
    words = len(source.parameters) - 1 if routine.reads_words else 0
    writer = _FunctionWriter(program, source, function, function.args, words)
    writer.write_routine(function.returns, routine.failure)
    return program.module


@dataclass(frozen=True)
class _DeviceFunction:
    """The LLVM function of a device.

    Args:
        function: the LLVM function, which returns a single number, or a struct of several.
        returns: the type of the device's result, or ``None`` if it returns nothing.
        may_fail: whether the last returned number is an i1 that tells whether scratch memory was exhausted.
    """

    function: ir.Function
    returns: _Shape | None
    may_fail: bool


class _Program:
    """An LLVM module and the functions of the devices in it."""

    def __init__(self) -> None:
        self.module = ir.Module()
        self._functions: dict[tuple[Device[..., object], _Shape], _DeviceFunction] = {}
        self._begun: set[Device[..., object]] = set()

    def function(self, device: Device[..., object], shape: tuple[_Shape, ...]) -> _DeviceFunction:
        """Return the LLVM function of a device for the given argument types, translating it on first use."""
        if (device, shape) not in self._functions:
            source = source_of(device.function)
            if device in self._begun:
                source.fail(source.tree, "a kernel cannot call itself")
            self._begun.add(device)
            name = f"{source.name}.{len(self._functions)}"
            function = ir.Function(self.module, name, ir.VOID, list(_flat(shape)), internal=True)
            arguments = _nest(shape, iter(function.args))
            writer = _FunctionWriter(self, source, function, arguments)
            self._functions[device, shape] = writer.write_device()
            self._begun.remove(device)
        return self._functions[device, shape]


class _FunctionWriter:
    """Translates a single Python function into the body of an LLVM function.

    Args:
        program: the program that the function belongs to.
        source: the Python function.
        function: the LLVM function.
        arguments: the values of the first parameters.
        words: the number of remaining parameters, which are loaded from the address in the first argument.
    """

    def __init__(
        self,
        program: _Program,
        source: Source,
        function: ir.Function,
        arguments: Sequence[Operand],
        words: int = 0,
    ) -> None:
        self._program, self._source, self._function = program, source, function
        self._builder = ir.Builder(function)
        self._numbers = Operations(self._builder)
        self._slots: dict[str, _Slot] = {}
        self._defined = set(
            source.parameters
        )  # variables that are assigned on every path to the current position
        self._loops: list[_Loop] = []
        self._result: _Slot | None = None
        self._scratch: list[tuple[ir.Value, Scratch]] = []
        self._failed: ir.Value | None = None
        self._end = self._builder.append_basic_block("end")
        self._assigned = {
            node.id
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        } | set(source.parameters)
        emit = Emit(self._builder)
        loaded = [emit.load(emit.at(arguments[0], 8 * index), ir.I64) for index in range(words)]
        for parameter, argument in zip(source.tree.args.args, [*arguments, *loaded], strict=True):
            layout = self._layout(parameter)
            record = argument if layout is None else _Record(argument, layout)
            self._slots[parameter.arg] = self._store(None, record)

    def write_device(self) -> _DeviceFunction:
        """Write the function of a device; its result type is inferred from its return statements."""
        result = self._body()
        shape = None if result is None else _shape(result)
        members = [] if result is None else list(_flat(result))
        if self._failed is not None:
            members.append(self._builder.load(self._failed, ir.I1))
        if isinstance(shape, tuple) or len(members) > 1:
            kind = ir.StructType([member.type for member in members])
            whole: ir.Value = ir.Constant(kind, ir.UNDEFINED)
            for index, value in enumerate(members):
                whole = self._builder.insert_value(whole, value, index)
            members = [whole]
        if members:
            self._function.returns = members[0].type
            self._builder.ret(members[0])
        else:
            self._builder.ret_void()
        return _DeviceFunction(self._function, shape, self._failed is not None)

    def write_routine(self, returns: ir.Type, failure: Device[..., Any] | None) -> None:
        """Write the function of a routine with a declared result type; it calls ``failure`` if scratch memory is exhausted."""
        builder, tree, result = self._builder, self._source.tree, self._body()
        if self._failed is not None:
            if failure is None:
                self._source.fail(tree, "only tasks can have scratch memory")
            with builder.if_then(builder.load(self._failed, ir.I1)):
                self._call_device(failure, self._function.args)
        if returns == ir.VOID and result is None:
            builder.ret_void()
        elif returns == ir.VOID or not is_number(result):
            self._source.fail(tree, f"it must return {returns}, and returns {_describe(result)}")
        else:
            with self._explain_errors(tree):
                builder.ret(self._numbers.value(result, returns))

    def _body(self) -> Operand:
        """Write the body except for the return; return the returned operand, or ``None``."""
        self._block(self._source.tree.body)
        builder = self._builder
        if not builder.block.is_terminated:
            if self._result is not None:
                self._source.fail(self._source.tree, "it may end without returning a value")
            builder.branch(self._end)
        builder.position_at_end(self._end)
        for slot, callee in self._scratch:
            self._release(slot, callee)
        return None if self._result is None else self._load(self._result)

    def _layout(self, parameter: ast.arg) -> type[Descriptor] | None:
        """Return the record type that annotates a parameter, or ``None``."""
        if not isinstance(parameter.annotation, ast.Name):
            return None
        try:
            kind = self._source.resolve(parameter.annotation.id)
        except KeyError:
            return None
        return kind if isinstance(kind, type) and issubclass(kind, Descriptor) else None

    @contextmanager
    def _explain_errors(self, node: ast.AST) -> Iterator[None]:
        """Turn errors in the block into a `CompileError` with the position of a node."""
        try:
            yield
        except CompileError:
            raise
        except (ArithmeticError, AttributeError, TypeError, ValueError) as reason:
            self._source.fail(node, str(reason))

    # Variables

    def _load(self, slot: _Slot) -> Operand:
        if isinstance(slot, tuple):
            return tuple(self._load(part) for part in slot)
        value = self._builder.load(slot.pointer, slot.kind)
        return value if slot.layout is None else _Record(value, slot.layout)

    def _store(self, slot: _Slot | None, value: Operand) -> _Slot:
        """Store an operand in a variable, created if ``slot`` is ``None``; return its slot."""
        if isinstance(value, tuple):
            parts = (None,) * len(value) if slot is None else slot
            if not isinstance(parts, tuple) or len(parts) != len(value):
                raise TypeError("a variable keeps its type: it cannot hold this tuple")
            return tuple(self._store(part, item) for part, item in zip(parts, value, strict=True))
        if not is_number(value) or isinstance(slot, tuple):
            raise TypeError(f"variables hold numbers and tuples of them, not {_describe(value)}")
        number = self._numbers.value(value, None if slot is None else slot.kind)
        if slot is None:
            layout = value.layout if isinstance(value, _Record) else None
            slot = _Variable(number.type, self._builder.slot(number.type), layout)
        self._builder.store(number, slot.pointer)
        return slot

    def _assign(self, target: ast.expr, value: Operand) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                self._source.fail(target, f"expected {len(target.elts)} values, got {_describe(value)}")
            for part, item in zip(target.elts, value, strict=True):
                self._assign(part, item)
        elif isinstance(target, ast.Name):
            with self._explain_errors(target):
                self._slots[target.id] = self._store(self._slots.get(target.id), value)
            self._defined.add(target.id)
        else:
            self._source.fail(target, "only variables can be assigned")

    # Statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if self._builder.block.is_terminated:
                return
            write = _STATEMENTS.get(type(statement))
            if write is None:
                self._source.fail(statement, f"{type(statement).__name__} is not supported in kernels")
            write(self, statement)

    def _expression_statement(self, statement: ast.Expr) -> None:
        if not isinstance(statement.value, ast.Constant):  # a docstring
            self._evaluate(statement.value)

    def _pass(self, statement: ast.Pass) -> None:
        pass

    def _assign_statement(self, statement: ast.Assign) -> None:
        value = self._evaluate(statement.value)
        for target in statement.targets:
            self._assign(target, value)

    def _annotated_statement(self, statement: ast.AnnAssign) -> None:
        if statement.value is None:
            self._source.fail(statement, "a variable must be assigned a value")
        self._assign(statement.target, self._evaluate(statement.value))

    def _augmented_statement(self, statement: ast.AugAssign) -> None:
        before, more = self._evaluate(statement.target), self._evaluate(statement.value)
        with self._explain_errors(statement):
            value = self._numbers.binary(statement.op, self._number(before), self._number(more))
        self._assign(statement.target, value)

    def _return_statement(self, statement: ast.Return) -> None:
        if statement.value is not None:
            with self._explain_errors(statement):
                self._result = self._store(self._result, self._evaluate(statement.value))
        self._builder.branch(self._end)

    def _break(self, statement: ast.Break) -> None:
        self._loops[-1].ends.append(self._defined)
        self._builder.branch(self._loops[-1].after)

    def _continue(self, statement: ast.Continue) -> None:
        self._builder.branch(self._loops[-1].following)

    def _if(self, statement: ast.If) -> None:
        test = self._condition(statement.test)
        if isinstance(test, bool):
            self._block(statement.body if test else statement.orelse)
            return
        builder = self._builder
        branches = [(builder.append_basic_block("then"), statement.body)]
        after = builder.append_basic_block("after")
        if statement.orelse:
            branches.append((builder.append_basic_block("else"), statement.orelse))
        builder.cbranch(test, branches[0][0], branches[1][0] if statement.orelse else after)
        before = self._defined
        ends = [] if statement.orelse else [before]
        for block, body in branches:
            builder.position_at_end(block)
            self._defined = set(before)
            self._block(body)
            if not builder.block.is_terminated:
                ends.append(self._defined)
                builder.branch(after)
        self._join(after, ends)

    def _join(self, block: ir.Block, ends: Sequence[set[str]]) -> None:
        """Continue in a block that several paths reach; only variables that all of them define stay defined."""
        self._builder.position_at_end(block)
        if ends:
            self._defined = set.intersection(*ends)
        else:
            self._builder.unreachable()

    def _while(self, statement: ast.While) -> None:
        if statement.orelse:
            self._source.fail(statement, "else of a loop is not supported in kernels")
        self._loop(lambda: self._condition(statement.test), lambda: self._block(statement.body))

    def _for(self, statement: ast.For) -> None:
        call = statement.iter
        loop = self._evaluate(call.func) if isinstance(call, ast.Call) and not statement.orelse else None
        if isinstance(call, ast.Call) and isinstance(loop, Units | Chunks):
            self._for_units(statement, call, loop)
            return
        if not isinstance(call, ast.Call) or loop is not range:
            self._source.fail(
                statement.iter, "for is only supported over range, units and chunks, without else"
            )
        start, stop, step = self._range(call)
        builder, zero = self._builder, ir.Constant(ir.I64, 0)
        counter = builder.slot(ir.I64)
        builder.store(start, counter)

        def test() -> ir.Value:
            now = builder.load(counter, ir.I64)
            if isinstance(step, ir.Constant) and step.constant != 0:
                return builder.icmp_signed("<" if step.constant > 0 else ">", now, stop)
            rises = builder.and_(builder.icmp_signed(">", step, zero), builder.icmp_signed("<", now, stop))
            falls = builder.and_(builder.icmp_signed("<", step, zero), builder.icmp_signed(">", now, stop))
            return builder.or_(rises, falls)

        def body() -> None:
            self._assign(statement.target, builder.load(counter, ir.I64))
            self._block(statement.body)

        def advance() -> None:
            builder.store(builder.add_nsw(builder.load(counter, ir.I64), step), counter)

        self._loop(test, body, advance)

    def _for_units(self, statement: ast.For, call: ast.Call, loop: Units | Chunks) -> None:
        """Translate a loop over units or chunks."""
        arguments = self._arguments(call)
        with self._explain_errors(call):
            if len(arguments) != (2 if isinstance(loop, Units) else 3):
                raise TypeError("expected a place, a number of units or elements and, for chunks, a size")
            place, count, *rest = (self._numbers.value(self._number(x), ir.I64) for x in arguments)
            units, size = count, rest[0] if rest else ir.Constant(ir.I64, 1)
            if isinstance(loop, Chunks):
                whole = self._numbers.binary(ast.Sub(), self._numbers.binary(ast.Add(), count, size), 1)
                units = self._numbers.value(self._numbers.binary(ast.FloorDiv(), whole, size))
        take = loop.take if isinstance(loop, Units) else loop.units.take
        builder = self._builder
        unit = builder.slot(ir.I64)

        def test() -> ir.Value:
            arguments = [place, units]
            if isinstance(take, Device):
                builder.store(self._call_device(take, arguments), unit)
            else:
                builder.store(self._call_declared(take, arguments), unit)
            return builder.icmp_signed("<", builder.load(unit, ir.I64), units)

        def body() -> None:
            value: Operand = builder.load(unit, ir.I64)
            if isinstance(loop, Chunks):
                start = builder.mul(value, size)
                value = start, self._numbers.extreme(ast.Lt(), builder.add(start, size), count)
            self._assign(statement.target, value)
            self._block(statement.body)

        self._loop(test, body)

    def _range(self, call: ast.Call) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Return the start, stop and step of a range."""
        numbers = self._arguments(call)
        values = [self._numbers.value(number) for number in numbers if is_number(number)]
        if not 1 <= len(values) == len(numbers) <= 3 or any(value.type != ir.I64 for value in values):
            self._source.fail(call, "range expected one to three integers")
        if len(values) == 1:
            values.insert(0, ir.Constant(ir.I64, 0))
        start, stop = values[:2]
        return start, stop, values[2] if len(values) == 3 else ir.Constant(ir.I64, 1)

    def _loop(
        self,
        test: Callable[[], ir.Value | bool],
        body: Callable[[], None],
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        builder = self._builder
        head, inside, following, after = map(builder.append_basic_block, ("head", "body", "next", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        condition = test()
        if isinstance(condition, ir.Value):
            builder.cbranch(condition, inside, after)
        else:
            builder.branch(inside if condition else after)
        builder.position_at_end(inside)
        before = self._defined
        loop = _Loop(following, after, [] if condition is True else [before])
        self._loops.append(loop)
        self._defined = set(before)
        body()
        self._loops.pop()
        if not builder.block.is_terminated:
            builder.branch(following)
        builder.position_at_end(following)
        advance()
        builder.branch(head)
        self._join(after, loop.ends)

    # Expressions

    def _evaluate(self, node: ast.expr) -> Operand:
        evaluate = _EXPRESSIONS.get(type(node))
        if evaluate is None:
            self._source.fail(node, f"{type(node).__name__} is not supported in kernels")
        with self._explain_errors(node):
            return evaluate(self, node)

    def _number(self, operand: Operand) -> Number:
        if not is_number(operand):
            raise TypeError(f"expected a number, got {_describe(operand)}")
        number: Number = operand
        return number

    def _condition(self, node: ast.expr) -> ir.Value | bool:
        """Return the value of a condition: a bool if it is constant, else an i1."""
        operand = self._evaluate(node)
        with self._explain_errors(node):
            return (
                self._numbers.truth(operand) if isinstance(operand, ir.Value) else bool(self._number(operand))
            )

    def _constant(self, node: ast.Constant) -> Operand:
        if not isinstance(node.value, (bool, int, float)):
            raise TypeError(f"{_describe(node.value)} is not supported in kernels")
        return node.value

    def _tuple(self, node: ast.Tuple) -> Operand:
        return tuple(map(self._evaluate, node.elts))

    def _name(self, node: ast.Name) -> Operand:
        if node.id in self._defined:
            return self._load(self._slots[node.id])
        if node.id in self._assigned:
            self._source.fail(node, "the variable may be read before it is assigned")
        try:
            return self._source.resolve(node.id)
        except KeyError:
            self._source.fail(node, "there is no such name")

    def _attribute(self, node: ast.Attribute) -> Operand:
        owner = self._evaluate(node.value)
        if isinstance(owner, _Record):
            return self._field(owner, node.attr)
        if is_number(owner) or isinstance(owner, tuple):
            raise TypeError("numbers and tuples have no attributes in kernels")
        return getattr(owner, node.attr)

    def _field(self, record: _Record, name: str) -> ir.Value:
        """Return the value of a field of a record; for a nested record or an array, its address."""
        fields = record.layout.dtype.fields
        if fields is None or name not in fields:
            raise TypeError(f"{record.layout.__name__} has no field {name!r}")
        dtype, offset = fields[name][:2]
        emit = Emit(self._builder)
        value = emit.at(record, offset)
        if dtype in _FIELDS:
            value = emit.load(value, _FIELDS[dtype])
        layout = record.layout.layouts.get(name)
        return value if layout is None else _Record(value, layout)

    def _binary(self, node: ast.BinOp) -> Operand:
        a, b = self._evaluate(node.left), self._evaluate(node.right)
        return self._numbers.binary(node.op, self._number(a), self._number(b))

    def _unary(self, node: ast.UnaryOp) -> Operand:
        operand = self._number(self._evaluate(node.operand))
        if isinstance(node.op, ast.USub):
            return self._numbers.negative(operand)
        if not isinstance(node.op, ast.Not):
            raise TypeError(f"{type(node.op).__name__} is not supported in kernels")
        if not isinstance(operand, ir.Value):
            return not operand
        return self._builder.not_(self._numbers.truth(operand))

    def _compare(self, node: ast.Compare) -> Operand:
        left, result = self._number(self._evaluate(node.left)), None
        for sign, operand in zip(node.ops, node.comparators, strict=True):
            right = self._number(self._evaluate(operand))
            holds = self._numbers.compare(sign, left, right)
            result = holds if result is None else self._numbers.binary(ast.BitAnd(), result, holds)
            left = right
        return result

    def _conditional(self, node: ast.IfExp) -> Operand:
        test = self._condition(node.test)
        return self._choose(test, lambda: self._evaluate(node.body), lambda: self._evaluate(node.orelse))

    def _logical(self, node: ast.BoolOp) -> Operand:
        """Evaluate ``and`` or ``or`` with short-circuiting."""
        result: Operand = self._condition(node.values[0])
        for operand in node.values[1:]:

            def others(operand: ast.expr = operand) -> Operand:
                return self._condition(operand)

            if isinstance(node.op, ast.And):
                result = self._choose(result, others, lambda: False)
            else:
                result = self._choose(result, lambda: True, others)
        return result

    def _choose(
        self, test: ir.Value | bool, yes: Callable[[], Operand], no: Callable[[], Operand]
    ) -> Operand:
        """Return the value of a conditional expression, of which only the chosen operand is evaluated."""
        if not isinstance(test, ir.Value):
            return yes() if test else no()
        builder = self._builder
        then, otherwise, after = map(builder.append_basic_block, ("then", "else", "after"))
        builder.cbranch(test, then, otherwise)
        builder.position_at_end(then)
        first, end_of_then = yes(), builder.block
        builder.position_at_end(otherwise)
        second, end_of_else = no(), builder.block
        pairs = self._alike((first, second), (end_of_then, end_of_else))
        for end in (end_of_then, end_of_else):
            builder.position_at_end(end)
            builder.branch(after)
        builder.position_at_end(after)
        return self._merge(pairs, end_of_then, end_of_else)

    def _alike(self, operands: tuple[Operand, Operand], ends: tuple[ir.Block, ir.Block]) -> Operand:
        """Convert two operands, and their members if they are tuples, to common types.

        Returns pairs of values, nested as the operands. The code for each operand is written at the end of its block in ``ends``.
        """
        first, second = operands
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(self._alike(pair, ends) for pair in zip(first, second, strict=True))
        kind = self._numbers.common(self._number(first), self._number(second))
        values = []
        for operand, end in zip(operands, ends, strict=True):
            self._builder.position_at_end(end)
            values.append(self._numbers.value(operand, kind))
        return values

    def _merge(self, pairs: Operand, then: ir.Block, otherwise: ir.Block) -> Operand:
        if isinstance(pairs, tuple):
            return tuple(self._merge(pair, then, otherwise) for pair in pairs)
        merged = self._builder.phi(pairs[0].type)
        for value, end in zip(pairs, (then, otherwise), strict=True):
            merged.add_incoming(value, end)
        return merged

    # Calls

    def _arguments(self, node: ast.Call) -> list[Operand]:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            self._source.fail(node, "calls have positional arguments only")
        return [self._evaluate(argument) for argument in node.args]

    def _call(self, node: ast.Call) -> Operand:
        callee, arguments = self._evaluate(node.func), self._arguments(node)
        if isinstance(callee, Device):
            return self._call_device(callee, arguments)
        if isinstance(callee, Scratch):
            return self._call_scratch(callee, arguments)
        if isinstance(callee, (Instruction, Routine)):
            return self._call_declared(callee, arguments)
        if getattr(callee, "__func__", None) is _AT and len(arguments) in (1, 2):
            layout: type[Descriptor] = callee.__self__
            address, *index = (self._numbers.value(self._number(argument), ir.I64) for argument in arguments)
            if index:
                size = ir.Constant(ir.I64, layout.dtype.itemsize)
                address = self._builder.add(address, self._builder.mul(index[0], size))
            return _Record(address, layout)
        if callee in _EXTREMES:
            if len(arguments) != 2:
                raise TypeError(f"{callee.__name__} expected two numbers")
            return self._numbers.extreme(_EXTREMES[callee], *map(self._number, arguments))
        if callee is np.float32 and len(arguments) == 1:
            number = self._number(arguments[0])
            return self._numbers.value(number, ir.F32) if isinstance(number, ir.Value) else np.float32(number)
        raise TypeError(f"kernels cannot call {_describe(callee)}")

    def _call_device(self, callee: Device[..., object], arguments: Sequence[Operand]) -> Operand:
        expected = len(source_of(callee.function).parameters)
        if len(arguments) != expected:
            raise TypeError(
                f"{callee.function.__qualname__} expected {expected} arguments, got {len(arguments)}"
            )
        operands = tuple(map(self._value, arguments))
        device = self._program.function(callee, tuple(map(_shape, operands)))
        returned = self._builder.call(device.function, list(_flat(operands)))
        members = [returned]
        if isinstance(returned.type, ir.StructType):
            members = [
                self._builder.extract_value(returned, index) for index in range(len(returned.type.members))
            ]
        if device.may_fail:
            self._return_if(members[-1])
        return None if device.returns is None else _nest(device.returns, iter(members))

    def _return_if(self, failed: ir.Value) -> None:
        """Return from the function if ``failed``, an i1, is set: scratch memory is exhausted."""
        builder = self._builder
        if self._failed is None:
            self._failed = builder.slot(ir.I1, zeroed=True)
        failure, following = map(builder.append_basic_block, ("failure", "following"))
        builder.cbranch(failed, failure, following)
        builder.position_at_end(failure)
        builder.store(ir.Constant(ir.I1, 1), self._failed)
        builder.branch(self._end)
        builder.position_at_end(following)

    def _call_scratch(self, callee: Scratch, arguments: Sequence[Operand]) -> Operand:
        """Allocate scratch memory; in a loop, first release what the same call allocated in the previous iteration."""
        builder, slot = self._builder, self._builder.slot(ir.I64, zeroed=True)
        if self._loops:
            self._release(slot, callee)
        self._scratch.append((slot, callee))
        address = self._call_declared(callee.allocate, arguments)
        builder.store(address, slot)
        self._return_if(builder.icmp_signed("==", address, ir.Constant(ir.I64, 0)))
        return address

    def _release(self, slot: ir.Value, callee: Scratch) -> None:
        builder = self._builder
        address = builder.load(slot, ir.I64)
        with builder.if_then(builder.icmp_signed("!=", address, ir.Constant(ir.I64, 0))):
            self._call_declared(callee.release, [address])

    def _value(self, operand: Operand) -> Operand:
        """Convert all numbers of an operand to LLVM values."""
        if isinstance(operand, tuple):
            return tuple(map(self._value, operand))
        return self._numbers.value(self._number(operand))

    def _call_declared(self, callee: Instruction | Routine, arguments: Sequence[Operand]) -> Operand:
        if len(arguments) != len(callee.kinds):
            name = callee.function.__qualname__
            raise TypeError(f"{name} expected {len(callee.kinds)} arguments, got {len(arguments)}")
        kinds, returns = [_KINDS[kind] for kind in callee.kinds], _KINDS[callee.returns]
        values = [
            self._numbers.value(self._number(argument), kind)
            for argument, kind in zip(arguments, kinds, strict=True)
        ]
        if isinstance(callee, Instruction):
            result = callee.function(Emit(self._builder), *values)
        else:
            result = self._builder.call(self._program.module.declare(callee.name, returns, kinds), values)
        return None if returns == ir.VOID else result


_STATEMENTS: dict[type[ast.stmt], Callable[[_FunctionWriter, Any], None]] = {
    ast.Expr: _FunctionWriter._expression_statement, ast.Pass: _FunctionWriter._pass,
    ast.Assign: _FunctionWriter._assign_statement, ast.AnnAssign: _FunctionWriter._annotated_statement,
    ast.AugAssign: _FunctionWriter._augmented_statement, ast.Return: _FunctionWriter._return_statement,
    ast.Break: _FunctionWriter._break, ast.Continue: _FunctionWriter._continue, ast.If: _FunctionWriter._if,
    ast.While: _FunctionWriter._while, ast.For: _FunctionWriter._for,
}  # fmt: skip
_EXPRESSIONS: dict[type[ast.expr], Callable[[_FunctionWriter, Any], Operand]] = {
    ast.Constant: _FunctionWriter._constant, ast.Tuple: _FunctionWriter._tuple, ast.Name: _FunctionWriter._name,
    ast.Attribute: _FunctionWriter._attribute, ast.BinOp: _FunctionWriter._binary,
    ast.UnaryOp: _FunctionWriter._unary, ast.Compare: _FunctionWriter._compare,
    ast.IfExp: _FunctionWriter._conditional, ast.BoolOp: _FunctionWriter._logical, ast.Call: _FunctionWriter._call,
}  # fmt: skip


def _shape(operand: Operand) -> _Shape:
    """Return the type of an operand; for a tuple, the tuple of its members' types."""
    return tuple(map(_shape, operand)) if isinstance(operand, tuple) else operand.type


def _flat(operand: Operand) -> Iterator[Any]:
    """Yield the leaves of nested tuples."""
    if isinstance(operand, tuple):
        for item in operand:
            yield from _flat(item)
    else:
        yield operand


def _nest(shape: _Shape, values: Iterator[ir.Value]) -> Any:
    """Arrange values in nested tuples of the given structure."""
    return tuple(_nest(part, values) for part in shape) if isinstance(shape, tuple) else next(values)


def _describe(operand: Operand) -> str:
    """Describe an operand for a message."""
    if isinstance(operand, ir.Value):
        return f"a number of type {operand.type}"
    if isinstance(operand, tuple):
        return f"a tuple of {len(operand)}"
    if operand is None:
        return "nothing"
    return getattr(operand, "__qualname__", None) or repr(operand)
