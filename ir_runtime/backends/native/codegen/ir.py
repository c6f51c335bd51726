"""A writer of LLVM IR as text: types, values, and a builder with the instructions that kernels use.

Kernel modules need no LLVM: only the build parses and compiles the text.

Floating-point arithmetic has the flags ``nsz contract``: LLVM may fuse ``a * b + c`` but not reassociate, since rounding and
polynomials rely on the order of operations.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

__all__ = ["F16", "F32", "F64", "I1", "I8", "I32", "I64", "POINTER", "UNDEFINED", "VOID", "BFLOAT", "ArrayType", "Block", "Builder", "Constant", "Function", "InlineAsm", "IntType", "Module", "StructType", "Type", "Value", "VectorType"]  # fmt: skip

_FLAGS = "nsz contract "
_SIGNS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


class Type:
    """A type of LLVM; types with the same text are equal.

    Args:
        text: the type in LLVM's syntax.
        suffix: the suffix of the type in names of intrinsics.
        size: the size in bytes; 0 if it is not needed.
    """

    __slots__ = "size", "suffix", "text"

    def __init__(self, text: str, suffix: str = "", size: int = 0) -> None:
        self.text, self.suffix, self.size = text, suffix, size

    def __str__(self) -> str:
        """Return the type in LLVM's syntax."""
        return self.text

    def __eq__(self, other: object) -> bool:
        """Compare by text."""
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        """Hash the text."""
        return hash(self.text)

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point type."""
        return self in (F32, F64, F16, BFLOAT)


class IntType(Type):
    """An integer type of ``width`` bits."""

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}", f"i{width}", -(-width // 8))
        self.width = width


class VectorType(Type):
    """A vector type of ``count`` elements."""

    __slots__ = "count", "element"

    def __init__(self, element: Any, count: int) -> None:
        super().__init__(f"<{count} x {element}>", f"v{count}{element.suffix}")
        self.element, self.count = element, count


class ArrayType(Type):
    """An array type of ``count`` elements."""

    __slots__ = ()

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"[{count} x {element}]")


class StructType(Type):
    """A struct type, for functions with several results."""

    __slots__ = ("members",)

    def __init__(self, members: Sequence[Type]) -> None:
        super().__init__("{" + ", ".join(member.text for member in members) + "}")
        self.members = tuple(members)


VOID, POINTER = Type("void"), Type("ptr", "p0", 8)
F16, F32, F64, BFLOAT = (
    Type("half", "f16", 2),
    Type("float", "f32", 4),
    Type("double", "f64", 8),
    Type("bfloat", "bf16", 2),
)
I1, I8, I16, I32, I64 = (IntType(width) for width in (1, 8, 16, 32, 64))

UNDEFINED = object()
"""The value of an undefined constant."""


class Value:
    """A value: its type, and its text as an operand."""

    __slots__ = "text", "type"

    def __init__(self, kind: Any, text: str) -> None:
        self.type, self.text = kind, text

    def __str__(self) -> str:
        """Return the value as an operand, without its type."""
        return self.text

    @property
    def typed(self) -> str:
        """The value as an operand with its type."""
        return f"{self.type} {self.text}"


class Constant(Value):
    """A constant of any type: a number, a list of numbers for a vector, ``None`` for zeros, or `UNDEFINED`."""

    __slots__ = ("constant",)

    def __init__(self, kind: Type, constant: Any) -> None:
        super().__init__(kind, _literal(kind, constant))
        self.constant = constant


def _literal(kind: Type, value: Any) -> str:
    """Return a constant in LLVM's syntax; floating-point numbers are written as hexadecimal bits."""
    if value is UNDEFINED:
        return "undef"
    if isinstance(kind, IntType):
        return str(int(value or 0))
    if kind.is_float:
        return _real(kind, 0.0 if value is None else float(value))
    if value is None:
        return "null" if kind == POINTER else "zeroinitializer"
    if isinstance(kind, VectorType) and len(value) == kind.count:
        return "<" + ", ".join(f"{kind.element} {_literal(kind.element, item)}" for item in value) + ">"
    raise TypeError(f"{value!r} is no constant of {kind}")


def _real(kind: Type, value: float) -> str:
    with np.errstate(over="ignore"):
        if kind == F16:
            return f"0xH{np.float16(value).view(np.uint16):04X}"
        rounded = float(np.float32(value)) if kind == F32 else value
    return f"0x{struct.pack('>d', rounded).hex()}"


class InlineAsm:
    """Inline assembly, called like a function; LLVM may assume that it has no side effects."""

    def __init__(self, returns: Type, code: str, constraints: str) -> None:
        self.returns, self.text = returns, f'asm "{code}", "{constraints}"'


class Phi(Value):
    """A phi node: a value that depends on the block from which control comes."""

    __slots__ = ("_incoming",)

    def __init__(self, kind: Type, text: str) -> None:
        super().__init__(kind, text)
        self._incoming: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """Set the value if control comes from ``block``."""
        self._incoming.append(f"[{value.text}, %{block.name}]")

    def __str__(self) -> str:
        """Return the operand."""
        return self.text

    @property
    def line(self) -> str:
        """The instruction in LLVM's syntax."""
        return f"{self.text} = phi {self.type} {', '.join(self._incoming)}"


class Switch:
    """A switch instruction, to which cases can be added."""

    def __init__(self, number: Value, default: Block) -> None:
        self._head, self._cases = f"switch {number.typed}, label %{default.name}", [""] * 0

    def add_case(self, number: Value, block: Block) -> None:
        """Go to ``block`` if the value is ``number``."""
        self._cases.append(f"{number.typed}, label %{block.name}")

    @property
    def line(self) -> str:
        """The instruction in LLVM's syntax."""
        return f"{self._head} [ {' '.join(self._cases)} ]"


class Block:
    """A basic block: instructions, the last of which is a terminator."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str | Phi | Switch] = []
        self.is_terminated = False

    def __str__(self) -> str:
        """Return the block in LLVM's syntax."""
        lines = (line if isinstance(line, str) else line.line for line in self.lines)
        return "\n  ".join([f"{self.name}:", *lines])


class Function(Value):
    """A function of a module; without blocks, it is a declaration.

    ``returns`` may be changed after the blocks are written.
    """

    def __init__(
        self, module: Module, name: str, returns: Type, kinds: Sequence[Type], internal: bool = False
    ) -> None:
        super().__init__(POINTER, f'@"{name}"')
        self.module, self.name, self.returns, self.internal = module, name, returns, internal
        self.args = [Value(kind, f"%a{index}") for index, kind in enumerate(kinds)]
        self.blocks: list[Block] = []
        self.slots: list[str] = []
        self._count = 0
        module.functions[name] = self

    def next_name(self) -> str:
        """Return a name for a value or a block that the function does not use yet."""
        self._count += 1
        return f"v{self._count}"

    def append_block(self, name: str) -> Block:
        """Append a new block to the function, and return it."""
        self.blocks.append(Block(f"{name}.{self.next_name()}" if self.blocks else "entry"))
        return self.blocks[-1]

    def definition(self, attributes: str = "") -> str:
        """Return the definition, or the declaration if there are no blocks, in LLVM's syntax."""
        if not self.blocks:
            return f"declare {self.returns} {self.text}({', '.join(str(arg.type) for arg in self.args)})"
        head = f"define {'internal ' if self.internal else ''}{self.returns} {self.text}"
        first, *others = self.blocks
        start = "\n  ".join(["entry:", *self.slots])
        body = "\n".join([start + str(first).removeprefix("entry:"), *map(str, others)])
        return f"{head}({', '.join(arg.typed for arg in self.args)}) {attributes} {{\n{body}\n}}"


class Module:
    """A module: the functions that are compiled together."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self._tables: dict[str, str] = {}

    def declare_table(self, name: str, words: int) -> Value:
        """Declare a table of i64 words that another module defines, and return its address."""
        self._tables[name] = f'@"{name}" = external global [{words} x i64], align 8'
        return Value(POINTER, f'@"{name}"')

    def declare(self, name: str, returns: Type, kinds: Sequence[Type]) -> Function:
        """Return the function called ``name``, which is declared on first use."""
        return self.functions.get(name) or Function(self, name, returns, kinds)

    def text(self, tuning: str = "") -> str:
        """Return the module in LLVM's syntax; ``tuning`` is LLVM's name of the processor to schedule for."""
        functions = [function.definition("#0" if tuning else "") for function in self.functions.values()]
        attributes = [f'attributes #0 = {{ "tune-cpu"="{tuning}" }}'] if tuning else []
        return "\n\n".join([*self._tables.values(), *functions, *attributes]) + "\n"

    def __str__(self) -> str:
        """Return the module in LLVM's syntax."""
        return self.text()


def _binary(code: str) -> Callable[[Builder, Value, Value], Value]:
    def write(self: Builder, a: Value, b: Value) -> Value:
        return self.value(a.type, f"{code} {a.type} {a.text}, {b.text}")

    return write


def _cast(code: str) -> Callable[[Builder, Value, Type], Value]:
    def write(self: Builder, value: Value, kind: Type) -> Value:
        return value if value.type == kind else self.value(kind, f"{code} {value.typed} to {kind}")

    return write


class Builder:
    """A builder that appends instructions to the current block of a function; methods are named like LLVM's instructions."""

    def __init__(self, function: Function) -> None:
        self.function, self.module = function, function.module
        self.block = function.append_block("entry")

    def value(self, kind: Type, text: str) -> Value:
        """Append an instruction with a result of type ``kind``, and return the result."""
        name = f"%{self.function.next_name()}"
        self.block.lines.append(f"{name} = {text}")
        return Value(kind, name)

    add, sub, mul, sdiv, srem = (_binary(code) for code in ("add", "sub", "mul", "sdiv", "srem"))
    and_, or_, xor, shl, lshr, ashr = (_binary(code) for code in ("and", "or", "xor", "shl", "lshr", "ashr"))
    add_nsw = _binary("add nsw")
    fadd, fsub, fmul, fdiv = (
        _binary(f"{code} {_FLAGS.strip()}") for code in ("fadd", "fsub", "fmul", "fdiv")
    )
    trunc, zext, sext, bitcast = (_cast(code) for code in ("trunc", "zext", "sext", "bitcast"))
    fptrunc, fpext, sitofp, uitofp = (_cast(code) for code in ("fptrunc", "fpext", "sitofp", "uitofp"))
    fptosi, fptoui, inttoptr, ptrtoint = (
        _cast(code) for code in ("fptosi", "fptoui", "inttoptr", "ptrtoint")
    )

    def not_(self, value: Value) -> Value:
        """Return the complement of an i1."""
        return self.xor(value, Constant(value.type, 1))

    def fneg(self, value: Value) -> Value:
        """Negate floating-point numbers."""
        return self.value(value.type, f"fneg {value.typed}")

    def icmp_signed(self, sign: str, a: Value, b: Value) -> Value:
        """Compare signed integers."""
        return self._compare("icmp", "s", sign, a, b)

    def icmp_unsigned(self, sign: str, a: Value, b: Value) -> Value:
        """Compare unsigned integers."""
        return self._compare("icmp", "u", sign, a, b)

    def fcmp_ordered(self, sign: str, a: Value, b: Value) -> Value:
        """Compare floating-point numbers; false if one is NaN."""
        return self._compare(f"fcmp {_FLAGS.strip()}", "o", sign, a, b)

    def fcmp_unordered(self, sign: str, a: Value, b: Value) -> Value:
        """Compare floating-point numbers; true if one is NaN. ``sign`` may be ``uno``: whether one is NaN."""
        return self._compare(f"fcmp {_FLAGS.strip()}", "u", sign, a, b)

    def _compare(self, code: str, order: str, sign: str, a: Value, b: Value) -> Value:
        how = _SIGNS.get(sign)
        if how is None:
            how = sign
        elif code != "icmp" or how not in ("eq", "ne"):
            how = order + how
        kind = VectorType(I1, a.type.count) if isinstance(a.type, VectorType) else I1
        return self.value(kind, f"{code} {how} {a.type} {a.text}, {b.text}")

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """Return ``yes`` if the condition holds, else ``no``; lane by lane for a vector of conditions."""
        return self.value(yes.type, f"select {condition.typed}, {yes.typed}, {no.typed}")

    def insert_element(self, vector: Value, number: Value, index: Value) -> Value:
        """Return a vector with one lane replaced."""
        return self.value(vector.type, f"insertelement {vector.typed}, {number.typed}, {index.typed}")

    def extract_element(self, vector: Value, index: Value) -> Value:
        """Return lane ``index`` of a vector."""
        return self.value(vector.type.element, f"extractelement {vector.typed}, {index.typed}")

    def shuffle_vector(self, a: Value, b: Value, order: Value) -> Value:
        """Return the lanes of two concatenated vectors whose indices are in the constant vector ``order``."""
        kind = VectorType(a.type.element, order.type.count)
        return self.value(kind, f"shufflevector {a.typed}, {b.typed}, {order.typed}")

    def insert_value(self, whole: Value, member: Value, index: int) -> Value:
        """Return a struct with one member replaced."""
        return self.value(whole.type, f"insertvalue {whole.typed}, {member.typed}, {index}")

    def extract_value(self, whole: Value, index: int) -> Value:
        """Return member ``index`` of a struct."""
        return self.value(whole.type.members[index], f"extractvalue {whole.typed}, {index}")

    def slot(self, kind: Type, align: int = 0, zeroed: bool = False) -> Value:
        """Allocate stack memory for one value when the function is entered, cleared if ``zeroed``; return its address."""
        place = Value(POINTER, f"%{self.function.next_name()}")
        self.function.slots.append(f"{place} = alloca {kind}{_alignment(align)}")
        if zeroed:
            self.function.slots.append(
                f"store {Constant(kind, None).typed}, {place.typed}{_alignment(align)}"
            )
        return place

    def load(self, pointer: Value, kind: Type, align: int = 0) -> Value:
        """Load a value; ``align`` is the alignment of its address in bytes, by default the size of the type."""
        return self.value(kind, f"load {kind}, {pointer.typed}{_alignment(align)}")

    def store(self, value: Value, pointer: Value, align: int = 0) -> None:
        """Store a value; ``align`` is the alignment of its address in bytes, by default the size of the type."""
        self.block.lines.append(f"store {value.typed}, {pointer.typed}{_alignment(align)}")

    def load_atomic(self, pointer: Value, kind: Type, align: int) -> Value:
        """Load a value, atomically and sequentially consistent."""
        return self.value(kind, f"load atomic {kind}, {pointer.typed} seq_cst, align {align}")

    def store_atomic(self, value: Value, pointer: Value, align: int) -> None:
        """Store a value, atomically and sequentially consistent."""
        self.block.lines.append(f"store atomic {value.typed}, {pointer.typed} seq_cst, align {align}")

    def atomic_add(self, pointer: Value, summand: Value) -> Value:
        """Add to an integer in memory, atomically and sequentially consistent; return its previous value."""
        return self.value(summand.type, f"atomicrmw add {pointer.typed}, {summand.typed} seq_cst")

    def element_pointer(self, pointer: Value, index: Value, kind: Type) -> Value:
        """Return the address of element ``index`` of an array; for a vector of indices, a vector of addresses."""
        returns = VectorType(POINTER, index.type.count) if isinstance(index.type, VectorType) else POINTER
        return self.value(returns, f"getelementptr {kind}, {pointer.typed}, {index.typed}")

    def call(self, function: Function | InlineAsm, arguments: Sequence[Value]) -> Value:
        """Call a function; if it is void, the returned value must not be used."""
        return self._call(function.returns, function.text, arguments)

    def call_pointer(self, pointer: Value, arguments: Sequence[Value], returns: Type = VOID) -> Value:
        """Call the function at an address; by default it is void."""
        return self._call(returns, pointer.text, arguments)

    def _call(self, returns: Type, callee: str, arguments: Sequence[Value]) -> Value:
        flags = _FLAGS if returns in (F32, F64) else ""
        text = f"call {flags}{returns} {callee}({', '.join(value.typed for value in arguments)})"
        if returns != VOID:
            return self.value(returns, text)
        self.block.lines.append(text)
        return Value(VOID, "")

    def phi(self, kind: Type) -> Phi:
        """Append a phi node to the current block, which may only hold other phi nodes so far."""
        phi = Phi(kind, f"%{self.function.next_name()}")
        self.block.lines.append(phi)
        return phi

    def append_basic_block(self, name: str) -> Block:
        """Append a new block to the function, and return it."""
        return self.function.append_block(name)

    def position_at_end(self, block: Block) -> None:
        """Write the following instructions to the end of a block."""
        self.block = block

    def _end(self, line: str | Switch) -> None:
        self.block.lines.append(line)
        self.block.is_terminated = True

    def branch(self, block: Block) -> None:
        """End the block with a jump to another."""
        self._end(f"br label %{block.name}")

    def cbranch(self, condition: Value, yes: Block, no: Block) -> None:
        """End the block with a jump to ``yes`` if the condition holds, else to ``no``."""
        self._end(f"br {condition.typed}, label %{yes.name}, label %{no.name}")

    def switch(self, number: Value, default: Block) -> Switch:
        """End the block with a switch on an i64, which goes to ``default`` if no case is added for it."""
        switch = Switch(number, default)
        self._end(switch)
        return switch

    def ret(self, value: Value) -> None:
        """End the block by returning a value from the function."""
        self._end(f"ret {value.typed}")

    def ret_void(self) -> None:
        """End the block by returning from the function without a value."""
        self._end("ret void")

    def unreachable(self) -> None:
        """End the block with an instruction that is never reached."""
        self._end("unreachable")

    @contextmanager
    def if_then(self, condition: Value) -> Iterator[None]:
        """Execute the code written in the ``with`` block only if a condition holds."""
        then, after = (self.append_basic_block(name) for name in ("then", "after"))
        self.cbranch(condition, then, after)
        with self._branch(then, after):
            yield
        self.position_at_end(after)

    @contextmanager
    def if_else(
        self, condition: Value
    ) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        """Yield two context managers: for the code to execute if a condition holds, and for that if it does not."""
        then, otherwise, after = (self.append_basic_block(name) for name in ("then", "else", "after"))
        self.cbranch(condition, then, otherwise)
        yield self._branch(then, after), self._branch(otherwise, after)
        self.position_at_end(after)

    @contextmanager
    def _branch(self, block: Block, after: Block) -> Iterator[None]:
        self.position_at_end(block)
        yield
        if not self.block.is_terminated:
            self.branch(after)


def _alignment(align: int) -> str:
    return f", align {align}" if align else ""
