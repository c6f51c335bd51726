"""Generation of ranges, identity matrices and random numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from ..errors import InferenceError, ValidationError
from ..ir.dimension import Dimension, Interval
from ..ir.element import ElementType
from ..ir.element import ElementType as E
from ..ir.shape import PartialShape
from ..ir.signature import FLOATS
from ..ir.tensor import Array, Value
from ._define.operation import (
    NUMBERS,
    T_FLOAT,
    T_INDEX_64,
    Element,
    Input,
    Op,
    Output,
    T,
    attr,
    check_index_types,
    op,
)
from ._lengths import check_one_number, check_scalar, length_of, lengths_of, of_rank
from .conversion import convert
from .kernels.random import mersenne_twister, mersenne_twister_of_sequence, philox

# Ranges: evenly spaced numbers.

Number: TypeAlias = int | float | Interval


class RangeBase(Op):
    """Base of the versions of Range.

    Element i is ``start + i * step``, computed in f32, or in f64 for f64 outputs, as in OpenVINO's reference. The
    specification and the plugin accumulate ``step`` instead.
    """

    decisions = (
        "the number at i is start + i * step, as in OpenVINO's reference; the page and the plugin add step again and again",
    )

    flops_per_element = 2

    def count(self, start: Value, stop: Value, step: Value, element: ElementType) -> PartialShape:
        """Return the shape of the range, whose length is dynamic if an input is unknown."""
        ends = [
            _number(name, value, element)
            for name, value in (("start", start), ("stop", stop), ("step", step))
        ]
        first, last, by = ends
        if isinstance(by, Interval) or by is None or first is None or last is None:
            return PartialShape.dynamic(1)
        return PartialShape([_count_steps(first, last, by)])

    def numbers(self, start: Array, stop: Array, step: Array, element: ElementType) -> Array:
        """Return the elements of the range."""
        first, last, by = map(Value.constant, (start, stop, step))
        (count,) = self.count(first, last, by, element)
        index = np.arange(count.__index__())
        if element.integral:
            whole = convert(start, element) + index.astype(element.dtype) * convert(step, element)
            return np.asarray(whole, element.dtype)
        work = np.float64 if element is ElementType.f64 else np.float32
        numbers = start.astype(work) + index.astype(work) * step.astype(work)
        return np.asarray(numbers.astype(element.dtype))


def _number(name: str, value: Value, element: ElementType) -> Number | None:
    """Return the contents of a scalar input, truncated if the output is integral; ``None`` if unknown."""
    check_scalar(value, name)
    contents = value.known()
    if contents is None:
        numbers = value.numbers()
        return numbers[0] if numbers else None
    number: int | float = contents.astype(np.float64).item() if value.element.real else int(contents)
    if not math.isfinite(number):
        raise InferenceError(f"{name} is {number}; a finite number is expected", clause=f"{name} is finite")
    if element.integral:
        number = math.trunc(number)
    if name == "step" and number == 0:
        raise InferenceError(
            f"step is 0{_explain_truncation(contents, element)}; a number above or below is expected",
            hint="an attribute 'output_type' of floating-point numbers keeps the fraction"
            if contents != 0
            else "",
            clause="step is not 0",
        )
    return number


def _explain_truncation(contents: Array, element: ElementType) -> str:
    return f", as {contents.astype(np.float64).item():g} is cut to {element.label}" if contents != 0 else ""


def _count_steps(first: Number, last: Number, by: int | float) -> Dimension:
    if by < 0:
        first, last, by = last, first, -by
    if not isinstance(first, Interval) and not isinstance(last, Interval):
        return Dimension(max(_ceil_quotient(last - first, by), 0))
    if isinstance(first, float) or isinstance(last, float) or isinstance(by, float):
        return Dimension()
    span = last - first
    assert isinstance(span, Interval)
    return Dimension.of(span if by == 1 else span.map(lambda n: _ceil_quotient(max(n, 0), by)))


def _ceil_quotient(span: int | float, by: int | float) -> int:
    if isinstance(span, int) and isinstance(by, int):
        return -(-span // by)
    return math.ceil(span / by)


@op("Range-1")
class Range1(RangeBase):
    """Evenly spaced numbers from ``start``, inclusive, to ``stop``, exclusive."""

    start = Input(T, "first number, a scalar")
    stop = Input(T, "exclusive end, a scalar")
    step = Input(T, "spacing, a nonzero scalar; negative to count down")
    output = Output(T, "the numbers, 1-D")

    def infer(self, start: Value, stop: Value, step: Value) -> PartialShape:
        return self.count(start, stop, step, start.element)

    def evaluate(self, start: Array, stop: Array, step: Array) -> Array:
        return self.numbers(start, stop, step, ElementType.from_dtype(start.dtype))


@op("Range-4")
class Range4(RangeBase):
    """The same as version 1 with inputs of any numeric types, which are truncated first for integer outputs."""

    start = Input(Element("T1", NUMBERS, "any numeric type"), "first number, a scalar")
    stop = Input(Element("T2", NUMBERS, "any numeric type"), "exclusive end, a scalar")
    step = Input(
        Element("T3", NUMBERS, "any numeric type"), "spacing, a nonzero scalar; negative to count down"
    )
    output = Output("output_type", "the numbers, 1-D")

    output_type: ElementType = attr(doc="element type of the output, a numeric one")

    def verify(self) -> None:
        """Require a numeric type."""
        if self.output_type not in NUMBERS:
            raise ValidationError(
                f"attribute 'output_type' must be a numeric type, not {self.output_type.label}",
                clause="attribute 'output_type' is a numeric type",
            )

    def infer(self, start: Value, stop: Value, step: Value) -> PartialShape:
        return self.count(start, stop, step, self.output_type)

    def evaluate(self, start: Array, stop: Array, step: Array) -> Array:
        return self.numbers(start, stop, step, self.output_type)


# Identity matrices: ones on one diagonal.

INDEX = (ElementType.i64, ElementType.i32)


@op("Eye-9")
class Eye(Op):
    """Matrices, or batches of them, with ones on one diagonal and zeros elsewhere."""

    decisions = ("a diagonal outside of the matrix leaves zeros, as in OpenVINO; the page does not say",)

    flops_per_element = 0

    num_rows = Input(Element("T_ROWS", INDEX, "i64 or i32"), "number of rows, one number")
    num_columns = Input(Element("T_COLUMNS", INDEX, "i64 or i32"), "number of columns, one number")
    diagonal_index = Input(
        Element("T_DIAGONAL", INDEX, "i64 or i32"),
        "the diagonal, one number: 0 for the main diagonal, positive for those above it, negative for those below",
    )
    batch_shape = Input(
        Element("T_BATCH", INDEX, "i64 or i32"),
        "lengths of the batch axes, 1-D; no batch axes if absent",
        optional=True,
    )
    output = Output("output_type", "the batch axes, then rows and columns")

    output_type: ElementType = attr(doc="element type of the output, a numeric one")

    def verify(self) -> None:
        """Require a numeric type."""
        if self.output_type not in NUMBERS:
            raise ValidationError(
                f"attribute 'output_type' must be a numeric type, not {self.output_type.label}",
                clause="attribute 'output_type' is a numeric type",
            )

    def infer(
        self, num_rows: Value, num_columns: Value, diagonal_index: Value, batch_shape: Value | None = None
    ) -> PartialShape:
        check_one_number(diagonal_index, "diagonal_index")
        sides = [length_of(num_rows, "num_rows"), length_of(num_columns, "num_columns")]
        if batch_shape is None:
            return PartialShape(sides)
        batch = lengths_of(batch_shape, "batch_shape")
        return PartialShape.dynamic() if batch is None else PartialShape([*batch, *sides])

    def evaluate(
        self, num_rows: Array, num_columns: Array, diagonal_index: Array, batch_shape: Array | None = None
    ) -> Array:
        sides = (num_rows.item(), num_columns.item())
        batch = () if batch_shape is None else tuple(batch_shape.tolist())
        # A diagonal outside the matrix is empty; NumPy would index with it.
        diagonal = int(np.clip(diagonal_index.item(), -sides[0], sides[1]))
        matrix = np.eye(*sides, diagonal, dtype=self.output_type.dtype)
        return np.array(np.broadcast_to(matrix, (*batch, *sides))) if batch else matrix


# Random numbers of every element type, from random 32-bit integers.

# Seeds have 64 bits. OpenVINO writes and reads seeds of at least 2 ** 63 as negative integers.
LOWEST, HIGHEST = -(2**63), 2**64 - 1
FRACTION_BITS = {E.f64: 52, E.f32: 23, E.f16: 10, E.bf16: 7}

# The number of Philox blocks that OpenVINO's plugin skips per drawn number, as TensorFlow does.
SKIPPED = 256

Advance: TypeAlias = Callable[[int], int]
"""Advances the random sequence of an operation by a number of blocks, and returns its previous position."""

Spread: TypeAlias = tuple[Array, Array]
"""The inclusive minimum and the exclusive maximum, as scalars."""


class RandomOp(Op):
    """Base of random operations. Two seeds make results reproducible; if both are 0, each run differs."""

    flops_per_element = 2

    global_seed: int = attr(
        0, ge=LOWEST, le=HIGHEST, doc="first seed; if both seeds are 0, each run draws different numbers"
    )
    op_seed: int = attr(0, ge=LOWEST, le=HIGHEST, doc="second seed")

    pure = False

    def seed(self) -> int:
        """Return the first seed, or a random one if both seeds are 0."""
        return (
            self.global_seed % 2**64
            if self.global_seed or self.op_seed
            else int.from_bytes(os.urandom(8), "little")
        )

    def origin(self, shape: tuple[int, ...], advance: Advance | None = None) -> tuple[int, int, int]:
        """Return the key, stream and first block of Philox to draw a tensor; ``advance`` continues the sequence."""
        start = 0 if advance is None else advance(math.prod(shape) * SKIPPED)
        return self.seed(), self.op_seed % 2**64, start

    def as_tensorflow(
        self, element: E, shape: tuple[int, ...], spread: Spread, advance: Advance | None = None
    ) -> Array:
        """Draw uniform numbers as TensorFlow does, with Philox; ``advance`` continues the sequence."""
        key, stream, start = self.origin(shape, advance)
        words = philox(key, stream, _words(element, shape), start)
        if element.integral:
            whole = words if element is E.i32 else _pairs(words, low_first=True)
            return _integers(whole, spread).reshape(shape)
        # Computed in the type itself, so each step rounds. OpenVINO's reference rounds bf16 differently.
        fractions = _fractions(words, element, FRACTION_BITS[element]).astype(element.dtype, copy=False)
        return _stretch(fractions, spread).reshape(shape)

    def as_plugin(self, shape: tuple[int, ...]) -> Array:
        """Draw f32 numbers in [0, 1] as OpenVINO's CPU plugin does for Multinomial, with MT19937."""
        words = mersenne_twister_of_sequence((self.seed(), self.op_seed % 2**64), math.prod(shape))
        return (words.astype(np.float32) / np.float32(2**32 - 1)).reshape(shape)

    def as_pytorch(self, element: E, shape: tuple[int, ...], spread: Spread) -> Array:
        """Draw uniform numbers as PyTorch does, with MT19937 seeded with the first seed alone."""
        short = element is E.i64 and max(map(int, spread)) < 2**32
        words = mersenne_twister(self.seed(), math.prod(shape) if short else _words(element, shape))
        if element.integral:
            whole = words if short or element is E.i32 else _pairs(words)
            return _integers(whole, spread).reshape(shape)
        fractions = _fractions(words, element, FRACTION_BITS[element] + 1)
        # Unlike in `as_tensorflow`, f16 and bf16 are computed in f32 and rounded once.
        return _stretch(fractions, spread).astype(element.dtype).reshape(shape)


def _words(element: E, shape: tuple[int, ...]) -> int:
    """Return the number of random 32-bit integers that a tensor takes."""
    return math.prod(shape) * (2 if element.bits == 64 else 1)


def _pairs(words: Array, low_first: bool = False) -> Array:
    """Combine pairs of 32-bit integers into 64-bit integers."""
    first, second = words.reshape(-1, 2).T.astype(np.uint64)
    low, high = (first, second) if low_first else (second, first)
    return high << np.uint64(32) | low


def _fractions(words: Array, element: E, bits: int) -> Array:
    """Return numbers in [0, 1) from the lowest ``bits`` random bits, in f64 for f64 and otherwise in f32."""
    whole, real = (_pairs(words), np.float64) if element is E.f64 else (words, np.float32)
    low = whole & whole.dtype.type(2**bits - 1)
    fractions: Array = low.view(f"i{low.itemsize}").astype(real)  # signed integers convert faster
    fractions *= real(2.0**-bits)
    return fractions


def _stretch(fractions: Array, spread: Spread) -> Array:
    low, high = spread
    return np.asarray(fractions * (high - low) + low, fractions.dtype)


def _integers(whole: Array, spread: Spread) -> Array:
    """Map random integers to the range ``spread`` (low, and high exclusive) by their remainder, which slightly favours small results."""
    low, high = map(int, spread)
    modulus, unsigned = 2 ** (8 * spread[0].itemsize), np.dtype(f"u{spread[0].itemsize}")
    rest = whole.astype(unsigned) % unsigned.type(high - low)
    return np.asarray(rest + unsigned.type(low % modulus)).astype(spread[0].dtype)


# Uniformly distributed random numbers.

TYPES = (*FLOATS, E.i64, E.i32)
T_LIMIT = Element("T", TYPES, "the output_type")


@op("RandomUniform-8")
class RandomUniform(RandomOp):
    """Uniformly distributed random numbers from ``minval``, inclusive, to ``maxval``, exclusive.

    With seeds, every compilation of a model draws the same sequence. Aligned to TensorFlow, each run continues it;
    aligned to PyTorch, each run starts again, as in OpenVINO.
    """

    shape = Input(T_INDEX_64, "lengths of the axes, 1-D")
    minval = Input(T_LIMIT, "inclusive minimum, a scalar or [1]")
    maxval = Input(T_LIMIT, "exclusive maximum, a scalar or [1]; rounding may reach it")
    output = Output("output_type", "random numbers of the given shape")

    output_type: E = attr(doc="element type of the output: f64, f32, f16, bf16, i64 or i32")
    alignment: Literal["tensorflow", "pytorch"] = attr(
        "tensorflow",
        doc="the framework to match: Philox for tensorflow, a Mersenne Twister seeded with global_seed for pytorch",
    )

    def verify(self) -> None:
        """Require a supported element type."""
        if self.output_type not in TYPES:
            raise ValidationError(
                f"attribute 'output_type' must be one of {', '.join(element.label for element in TYPES)}, not {self.output_type.label}",
                clause="attribute 'output_type' is a numeric type",
            )

    def infer(self, shape: Value, minval: Value, maxval: Value) -> PartialShape:
        for name, limit in (("minval", minval), ("maxval", maxval)):
            check_one_number(limit, name)
            if limit.element not in (self.output_type, E.dynamic):
                raise InferenceError(
                    f"{name} is {limit.element.label}; {self.output_type.label}, the attribute 'output_type', is expected",
                    clause=f"{name} is of the type that attribute 'output_type' names",
                )
        low, high = minval.known(), maxval.known()
        if low is not None and high is not None and not low.item() < high.item():
            raise InferenceError(
                f"minval is {low.item()}; a number below maxval, {high.item()}, is expected",
                clause="minval is less than maxval",
            )
        # For at most n lengths, OpenVINO infers exactly n axes, although there may be fewer.
        return PartialShape(lengths_of(shape, "shape"))

    def evaluate(
        self, shape: Array, minval: Array, maxval: Array, *, advance: Advance | None = None
    ) -> Array:
        lengths = self.infer(*map(Value.constant, (shape, minval, maxval))).static
        spread = minval.reshape(()), maxval.reshape(())
        if self.alignment == "pytorch":
            return self.as_pytorch(self.output_type, lengths, spread)
        return self.as_tensorflow(self.output_type, lengths, spread, advance)


# Multinomial sampling: random classes with given probabilities.


@op("Multinomial-13")
class Multinomial(RandomOp):
    """Random indices of classes with the probabilities ``probs``, reproducible by seeds.

    As in OpenVINO's CPU plugin, probabilities are computed in f32, and MT19937 is seeded with both seeds. With seeds,
    every run draws the same indices.
    """

    flops_per_input = {"probs": 1}

    probs = Input(T_FLOAT, "[batch, classes], nonnegative; the sum need not be 1")
    num_samples = Input(T_INDEX_64, "number of samples of each batch entry, one number")
    output = Output("convert_type", "[batch, num_samples]")

    convert_type: E = attr(doc="element type of the output, i64 or i32")
    with_replacement: bool = attr(doc="whether a class may be drawn more than once")
    log_probs: bool = attr(doc="whether probs are logarithms of probabilities")

    def verify(self) -> None:
        """Require that the output is i64 or i32."""
        check_index_types(convert_type=self.convert_type)

    def infer(self, probs: Value, num_samples: Value) -> PartialShape:
        count = length_of(num_samples, "num_samples")
        batch, classes = of_rank(probs, "probs", "[batch, classes]")
        if classes == 0 and count.min:
            raise InferenceError(
                f"probs {probs.shape} has no classes to draw from, but num_samples is {count}",
                clause="probs has classes to draw from, unless num_samples is 0",
            )
        if not self.with_replacement and classes.max is not None and count.min > classes.max:
            raise InferenceError(
                f"num_samples is {count}, but probs {probs.shape} has {classes} classes, each of which can be drawn "
                f"once",
                hint="attribute 'with_replacement' true lets a class be drawn again",
                clause="num_samples is at most the number of classes, without replacement",
            )
        return PartialShape([batch, count])

    def evaluate(self, probs: Array, num_samples: Array) -> Array:
        shape = self.infer(Value.constant(probs), Value.constant(num_samples)).static
        if 0 in shape:
            return np.zeros(shape, self.convert_type.dtype)
        weights = probs.astype(np.float32)
        chances = np.exp(weights) if self.log_probs else weights
        reached = np.add.accumulate(chances, 1)
        reached = reached / reached[:, -1:]
        drawn = self.as_plugin(shape)
        pick = _sample_with_replacement if self.with_replacement else _sample_without_replacement
        return pick(reached, drawn).astype(self.convert_type.dtype)


def _sample_with_replacement(reached: Array, drawn: Array) -> Array:
    """Return the first class whose cumulative probability reaches each drawn number."""
    rows = zip(reached.astype(np.float64), drawn.astype(np.float64), strict=True)
    classes = np.stack([np.searchsorted(chances, numbers) for chances, numbers in rows])
    return np.where(classes < reached.shape[1], classes, 0)


def _sample_without_replacement(reached: Array, drawn: Array) -> Array:
    """Return classes as `_sample_with_replacement` does, but remove each class once it is drawn."""
    classes = np.zeros(drawn.shape, np.int64)
    before = np.zeros_like(reached[:, :1])
    entries, places = np.arange(len(reached)), np.arange(reached.shape[1])
    for i, numbers in enumerate(drawn.T):
        classes[:, i] = chosen = (numbers[:, None] <= reached).argmax(1)
        bounds = np.concatenate([before, reached], 1)
        chance = (bounds[entries, chosen + 1] - bounds[entries, chosen])[:, None]
        rest = np.where(places >= chosen[:, None], reached - chance, reached)
        reached = rest / (reached.dtype.type(1) - chance)
    return classes
