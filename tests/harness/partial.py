"""Samples whose inputs are known in part: some by type and some lengths, some by bounds of the integers in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np

from harness.files import precision
from harness.nets import End, Net
from harness.sample import Sample, text
from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

__all__ = ["Bounded", "Constant", "Given", "PartialSample", "Typed", "length_around", "partial"]

FAR = 1000
"""How much longer than a bound a length without one may be."""
MOST_NUMBERS, LARGEST = 8, 12
"""How many numbers may be known by bounds, and how far from 0 they are: more would be a tensor beyond memory."""


@dataclass(frozen=True)
class Constant:
    """An input that is a constant."""

    value: Value

    def add(self, net: Net) -> End:
        """Put it into a model."""
        return net.constant(self.value.known(), self.value.element.label)

    def instance(self, rng: Random) -> Constant:
        """One of the inputs that this may be."""
        return self

    def __str__(self) -> str:
        return "constant"


@dataclass(frozen=True)
class Typed:
    """An input of which the shape is known in part, and nothing of the contents."""

    value: Value
    """What it is in the sample."""
    shape: PartialShape

    def add(self, net: Net) -> End:
        """Put it into a model."""
        element = self.value.element
        return net.parameter("", _written(self.shape), element.label, out=precision(element))

    def instance(self, rng: Random) -> Constant | Typed:
        """One of the inputs that this may be: the sample's own, or another."""
        if rng.random() < 0.5:
            return Constant(self.value)
        if _holds_lengths(self.value.known()) and rng.random() < 0.5:
            return self._numbers(rng)
        known = self.shape
        if known.rank is None:
            usual = self.value.shape.static
            known = PartialShape(
                rng.choice((usual, (1, *usual), (2, *usual), (0, *usual), usual[1:], ("?",) * len(usual)))
            )
        return replace(self, shape=PartialShape([_number(d, rng) for d in known]))

    def _numbers(self, rng: Random) -> Constant:
        given, least = self.value.known(), 0 if self.value.element.label.startswith("u") else -3
        other = [int(n) + rng.randint(max(-2, least - int(n)), 3) for n in given.flat]
        return Constant(
            Value.constant(np.array(other).astype(given.dtype).reshape(given.shape), self.value.element)
        )

    def __str__(self) -> str:
        return str(self.shape)


@dataclass(frozen=True)
class Bounded:
    """An input of integers, of which bounds are known."""

    element: ElementType
    bounds: tuple[Interval, ...]
    shape: tuple[int, ...]

    def add(self, net: Net) -> End:
        """Put it into a model: lengths of another input, less what makes some of them negative."""
        less = max(0, *(-(b.min or 0) for b in self.bounds))
        lengths = PartialShape([Dimension.of(b + less) for b in self.bounds])
        other = net.parameter("", _written(lengths), out="FP32")
        # i64, from which any type follows by conversion, but i32, which is another way for what is inferred.
        label = self.element.label if self.element.label == "i32" else "i64"
        wide = ElementType.parse(label)
        found = net.op("ShapeOf", other, out=precision(wide), version="opset3", output_type=label)
        if less:
            found = net.op("Subtract", found, net.constant(less, label), out=precision(wide))
        if len(self.shape) != 1:
            target = net.constant(self.shape)
            found = net.op("Reshape", found, target, out=precision(wide), special_zero=False)
        if wide is not self.element:
            found = net.op("Convert", found, out=precision(self.element), destination_type=self.element.label)
        return found

    def instance(self, rng: Random) -> Constant:
        """One of the inputs that this may be."""
        numbers = [_number(b, rng) for b in self.bounds]
        return Constant(
            Value.constant(np.array(numbers).astype(self.element.dtype).reshape(self.shape), self.element)
        )

    def __str__(self) -> str:
        return f"numbers {','.join(map(_brief, self.bounds))}"


Given = Constant | Typed | Bounded
"""What is known of an input."""


@dataclass(frozen=True)
class PartialSample:
    """What is known of each input of a sample."""

    sample: Sample
    inputs: tuple[Given, ...]
    results: tuple[Array, ...]
    """The sample's outputs."""

    def model(self) -> tuple[bytes, bytes]:
        """The layer with such inputs, and the bytes of constants."""
        net = Net()
        sources = [known.add(net) for known in self.inputs]
        outputs = [precision(ElementType.from_dtype(array.dtype)) for array in self.results]
        attributes = {k: text(v) for k, v in self.sample.attributes.items()}
        cls = self.sample.cls
        made = net.layer(cls.name, sources, outputs, version=f"opset{cls.since}", **attributes)
        for end, array in zip(made, self.results, strict=True):
            net.result(end)
            if array.dtype.kind in "iu" and _holds_lengths(array):
                net.result(_of_lengths(net, end))
        return net.xml(), net.weights

    def instance(self, rng: Random) -> PartialSample:
        """One of the cases that this allows."""
        return replace(self, inputs=tuple(known.instance(rng) for known in self.inputs))

    def __str__(self) -> str:
        return f"{self.sample} with {'; '.join(map(str, self.inputs))}"


def partial(sample: Sample, rng: Random) -> PartialSample:
    """A sample of which some is forgotten, chosen at random; what is left is true."""
    known = [_given(value, index in sample.constant, rng) for index, value in enumerate(sample.values())]
    return PartialSample(sample, tuple(known), sample.evaluate())


def _of_lengths(net: Net, numbers: End) -> End:
    """A tensor that is as long as the numbers say, to see what is known of them."""
    wide = net.op("Convert", numbers, out="I64", destination_type="i64")
    flat = net.op("Reshape", wide, net.constant([-1]), out="I64", special_zero=False)
    lengths = net.op("Maximum", flat, net.constant(0), out="I64")
    return net.op("Broadcast", net.constant(0), lengths, out="I64", version="opset3", mode="numpy")


def _given(value: Value, constant: bool, rng: Random) -> Given:
    kind, array = rng.random(), value.known()
    assert array is not None
    if constant or kind < 0.3:
        return Constant(value)
    if kind < 0.65 and _holds_lengths(array):
        least = 0 if array.dtype.kind == "u" else -LARGEST
        bounds = tuple(_bounds_around(int(n), least, rng) for n in array.flat)
        return Bounded(value.element, bounds, array.shape)
    shape = PartialShape([length_around(n, rng) for n in array.shape])
    return Typed(value, PartialShape.dynamic() if rng.random() < 0.1 else shape)


def _holds_lengths(array: Array) -> bool:
    """Whether it holds a few integers, be it as reals, which a tensor may be as long as."""
    if not 0 < array.size <= MOST_NUMBERS or array.dtype.kind not in "iuf" or array.itemsize < 4:
        return False
    wide = array.astype(np.float64)
    small = np.isfinite(wide).all() and np.abs(wide).max() <= LARGEST
    return bool(small and (wide == wide.round()).all())


def length_around(length: int, rng: Random) -> Dimension:
    """What may be known of a length: all, nothing, or bounds."""
    kind = rng.random()
    if kind < 0.55:
        return Dimension(length) if kind < 0.35 else Dimension()
    low = max(length - rng.choice((0, 0, 1, 2)), 0) if kind < 0.9 else 0
    high = None if kind < 0.65 else length + rng.choice((0, 1, 2, 5))
    return Dimension.between(low, high)


def _bounds_around(number: int, least: int, rng: Random) -> Interval:
    kind = rng.random()
    if kind < 0.35:
        return Interval(number, number)
    high = None if kind < 0.5 else number + rng.choice((0, 1, 2, 4))
    return Interval(max(number - rng.choice((0, 0, 1, 2)), least), high)


def _number(bound: Interval, rng: Random) -> int:
    """A number within bounds; mostly one of them, where what is wrong about bounds shows first."""
    low, kind = bound.min or 0, rng.random()
    if kind < 0.4:
        return low
    if bound.max is None:
        return low + rng.choice((1, 2, 5, FAR))
    return bound.max if kind < 0.7 else rng.randint(low, bound.max)


def _brief(bound: Interval) -> str:
    return str(bound.min) if bound.is_static else f"{bound.min}..{'' if bound.max is None else bound.max}"


def _written(shape: PartialShape) -> str:
    return "..." if shape.rank is None else ",".join(map(str, shape))
