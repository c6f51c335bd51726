"""The graph built from legacy layers, and the context in which one of them is replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ....codes import Code
from ....diagnostics import Location
from ....errors import ParseError, ValidationError
from ....ir.array import Packed
from ....ir.element import ElementType
from ....ir.graph import Body, Layer, PortSpec
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops import Op, registry
from ..layers import ConstantReader, report_problem
from ..replacing import Rebuilt, Replacement, Tensor, Unused

__all__ = [
    "END",
    "Blob",
    "Building",
    "Means",
    "Rebuilt",
    "Site",
    "Tensor",
    "computed_type",
]


# The state of the graph built from legacy layers.


class Blob(NamedTuple):
    """The location and element type of a layer's data in the ``.bin``."""

    element: ElementType
    offset: int
    size: int
    line: int

    @property
    def length(self) -> int:
        """The number of elements."""
        return self.size * 8 // self.element.bits if self.element.bits else 0


class Means(NamedTuple):
    """The mean that ``<pre-process>`` subtracts from each channel of an input: a number or an image."""

    channels: tuple[float | Blob, ...]


@dataclass(slots=True)
class Building(Unused):
    """The context shared by all layers of the graph being built."""

    constants: ConstantReader
    read_body: Callable[[Layer], Body]
    """Reads and upgrades the body of a TensorIterator."""
    means: dict[int, Means] = field(default_factory=dict)
    """The means to subtract from inputs, by input id."""

    def stored(self, blob: Blob, element: ElementType, shape: Sequence[int], where: Location) -> Op:
        """Return a Constant with data from the ``.bin``; without a value if weights are missing, which is reported.

        Raises:
            ParseError: if the data extends beyond the ``.bin``, or is too small for the shape.
            LimitError: if its size exceeds the limits.
        """
        cls = registry.require("Constant")
        place = {"offset": blob.offset, "size": blob.size, "value": None}
        op = cls(element_type=element, shape=PartialShape(shape), **place)
        try:
            return self.constants.read(op, replace(where, line=blob.line))
        except ParseError as problem:
            if problem.code != Code.WEIGHTS_MISSING:
                raise
            report_problem(self.constants.report, problem, problem.where or where)
            return op

    def signs(self, blob: Blob, shape: Sequence[int], where: Location) -> Op:
        """Return an i8 Constant with bits of the ``.bin``, the lowest of each byte first: -1 for 0, and 1 for 1.

        Raises:
            ParseError: if the bits extend beyond the ``.bin``, or are too few for the shape.
            LimitError: if its size exceeds the limits.
        """
        count = int(np.prod(shape, dtype=object))
        packed = self.stored(blob, ElementType.u8, ((count + 7) // 8,), where)
        self.constants.sizes.add(ElementType.boolean, count, self.constants.limits, where)
        raw: Array | Packed | None = vars(packed)["value"]
        assert not isinstance(raw, Packed)
        value = None if raw is None else _unpack_signs(raw, count).reshape(shape)
        return packed.replace(element_type=ElementType.i8, shape=PartialShape(shape), value=value)


def _unpack_signs(raw: Array, count: int) -> Array:
    """Return the first ``count`` bits, the lowest of each byte first: -1 for 0, and 1 for 1."""
    bits = np.unpackbits(np.ascontiguousarray(raw), bitorder="little")[:count]
    return bits.astype(np.int8) * 2 - 1


# The context of one legacy layer during its replacement: inputs, data and new operations.

f32, i64 = ElementType.f32, ElementType.i64

END = 2**31 - 1
"""The end of an axis of any length."""


@dataclass(slots=True)
class Site(Replacement):
    """The replacement of a legacy layer: its declarations in the file, and helpers to build operations."""

    net: Building
    blobs: Mapping[str, Blob]
    precision: ElementType
    """The element type that the layer declares for its outputs and blobs, with f32 in place of f16."""

    # What the file declares

    def dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the declared dims of an input; empty if it declares none, as for scalars.

        Raises:
            ValidationError: if there is no such input, or a dim is dynamic.
        """
        return self._lengths(self.layer.inputs, index, "input")

    def output_dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the declared dims of an output, like `dims`."""
        return self._lengths(self.layer.outputs, index, "output")

    def _lengths(self, ports: Sequence[PortSpec], index: int, side: str) -> tuple[int, ...]:
        if index >= len(ports):
            self.refuse(
                f"the layer has {len(ports)} {side} ports, expected at least {index + 1}", Code.PORT_COUNT
            )
        type = ports[index].type
        shape = PartialShape.dynamic() if type is None else type.shape
        if shape.rank is None:
            return ()
        if not shape.is_static:
            self.refuse(f"{side} port {ports[index].id} declares dims {shape}, expected lengths")
        return shape.static

    def ranked(self, least: int, most: int | None = None, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an input, and check their number.

        Raises:
            ValidationError: if there are fewer than ``least``, or more than ``most``.
        """
        dims = self.dims(index)
        if len(dims) < least or (most is not None and len(dims) > most):
            expected = f"{least}" if most == least else f"at least {least}"
            self.refuse(
                f"input port {self.layer.inputs[index].id} declares {len(dims)} dims, expected {expected}"
            )
        return dims

    def ranked_output(self, rank: int, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an output, and check their number.

        Raises:
            ValidationError: if the output has another rank.
        """
        dims = self.output_dims(index)
        if len(dims) != rank:
            port = self.layer.outputs[index].id
            self.refuse(f"output port {port} declares {len(dims)} dims, expected {rank}")
        return dims

    def channels(self, index: int = 0) -> int:
        """Return the length of the channel axis of an input: axis 1, or the only axis."""
        dims = self.ranked(1, index=index)
        return dims[min(1, len(dims) - 1)]

    def along_channels(self, count: int, index: int = 0) -> tuple[int, ...]:
        """Return the shape in which ``count`` values, one or one per channel, broadcast to an input.

        Raises:
            ValidationError: if ``count`` is another number.
        """
        dims = self.dims(index)
        if count not in (1, self.channels(index)):
            self.refuse(
                f"its blobs hold {count} values, expected 1 or {self.channels(index)}, one for each channel",
                Code.WEIGHTS_RANGE,
            )
        return (count,) if len(dims) < 2 else (1, count, *(1 for _ in dims[2:]))

    def axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """Return a possibly negative axis as a non-negative one.

        Raises:
            ValidationError: if there is no such axis.
        """
        if not -rank <= axis < rank:
            self.refuse(f"attribute {what!r} is {axis}, but the input has {rank} dims", Code.BAD_ATTRIBUTE)
        return axis % rank

    def declared(self, index: int = 0) -> ElementType | None:
        """Return the element type that an output declares, with f32 in place of f16; ``None`` if it declares none."""
        type = self.layer.outputs[index].type if index < len(self.layer.outputs) else None
        if type is None or type.element is ElementType.dynamic:
            return None
        return computed_type(type.element)

    # Operations to build

    def blob(self, name: str, shape: Sequence[int], raw: ElementType | None = None) -> Tensor:
        """Add a Constant with a blob of the layer, converted to f32 unless ``raw`` gives its element type.

        Raises:
            ParseError: if the blob extends beyond the ``.bin``, or is too small for the shape.
            ValidationError: if the layer has no such blob.
        """
        blob = self.stored(name)
        value = self.net.stored(blob, raw or blob.element, tuple(shape), self.layer.where)
        tensor = self.add(value, name=name)[0]
        return tensor if raw else self.convert(tensor, f32)

    def stored(self, name: str) -> Blob:
        """Return a blob of the layer by name.

        Raises:
            ValidationError: if the layer has no such blob.
        """
        if name not in self.blobs:
            hint = "it gives the offset and size of its data in the .bin"
            self.refuse(f"<{name}> of the layer is missing", Code.BAD_ELEMENT, hint)
        return self.blobs[name]

    def floating(self, tensor: Tensor) -> Tensor:
        """Return a tensor with integers and booleans converted to f32."""
        is_real = tensor.element is ElementType.dynamic or tensor.element.is_real()
        return tensor if is_real else self.convert(tensor, f32)

    def indices(self, tensor: Tensor) -> Tensor:
        """Return indices, lengths or axes as integers; old files may have them in f32."""
        return tensor if tensor.element in (i64, ElementType.i32) else self.convert(tensor, i64)

    def first_that_fits(self, candidates: Sequence[Op], inputs: Sequence[Tensor]) -> Op:
        """Return the first operation whose inferred output has the declared dims, or the first candidate if none has."""
        values = [Value(TensorType(f32, PartialShape(self.dims(i)))) for i in range(len(inputs))]
        declared = self.output_dims()
        for op in candidates:
            try:
                shape = op.infer_types(*values)[0].shape
            except ValidationError:
                continue
            if shape.is_static and shape.static == declared:
                return op
        return candidates[0]


def computed_type(element: ElementType) -> ElementType:
    """Return the element type in which values of a declared type are computed: f32 for f16."""
    return f32 if element is ElementType.f16 else element
