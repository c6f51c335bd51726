"""The graph under construction from legacy layers, and the context of one of them during its replacement."""

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


# The state of a graph under construction from legacy layers.


class Blob(NamedTuple):
    """Data of a layer in the ``.bin``."""

    element: ElementType
    offset: int
    size: int
    line: int

    @property
    def length(self) -> int:
        """The number of elements."""
        return self.size * 8 // self.element.bits if self.element.bits else 0


class Means(NamedTuple):
    """The means that ``<pre-process>`` subtracts from the channels of an input: numbers or images."""

    channels: tuple[float | Blob, ...]


@dataclass(slots=True)
class Building(Unused):
    """The graph under construction."""

    constants: ConstantReader
    read_body: Callable[[Layer], Body]
    """Reads and upgrades the body of a TensorIterator."""
    means: dict[int, Means] = field(default_factory=dict)
    """Means by the ids of the inputs that they are subtracted from."""

    def stored(self, blob: Blob, element: ElementType, shape: Sequence[int], where: Location) -> Op:
        """Return a constant with data from the ``.bin``; report missing weights and leave out the value.

        Raises:
            ParseError: if it is not in the ``.bin``, or too small for the shape.
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
        """Return bits of the ``.bin``, lowest of each byte first, as -1 and 1 in i8.

        Raises:
            ParseError: if they are not in the ``.bin``, or too few for the shape.
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
    """Return the first bits as -1 and 1."""
    bits = np.unpackbits(np.ascontiguousarray(raw), bitorder="little")[:count]
    return bits.astype(np.int8) * 2 - 1


# The context of one legacy layer during its replacement: inputs, data and new operations.

f32, i64 = ElementType.f32, ElementType.i64

END = 2**31 - 1
"""The end of an axis of any length."""


@dataclass(slots=True)
class Site(Replacement):
    """The replacement of a legacy layer."""

    net: Building
    blobs: Mapping[str, Blob]
    precision: ElementType
    """The element type that the layer declares for its outputs and blobs; f16 is f32."""

    # What the file declares

    def dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an input port; empty if it declares none, as for scalars.

        Raises:
            ValidationError: if they are not lengths.
        """
        return self._lengths(self.layer.inputs, index, "input")

    def output_dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an output port, like `dims`."""
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
        """Return the dims of an input.

        Raises:
            ValidationError: if it has fewer than ``least``, or more than ``most``.
        """
        dims = self.dims(index)
        if len(dims) < least or (most is not None and len(dims) > most):
            expected = f"{least}" if most == least else f"at least {least}"
            self.refuse(
                f"input port {self.layer.inputs[index].id} declares {len(dims)} dims, expected {expected}"
            )
        return dims

    def ranked_output(self, rank: int, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an output.

        Raises:
            ValidationError: if it has another rank.
        """
        dims = self.output_dims(index)
        if len(dims) != rank:
            port = self.layer.outputs[index].id
            self.refuse(f"output port {port} declares {len(dims)} dims, expected {rank}")
        return dims

    def channels(self, index: int = 0) -> int:
        """Return the length of axis 1, or of the only axis, of an input."""
        dims = self.ranked(1, index=index)
        return dims[min(1, len(dims) - 1)]

    def along_channels(self, count: int, index: int = 0) -> tuple[int, ...]:
        """Return a shape that broadcasts one number, or one per channel, to an input.

        Raises:
            ValidationError: if ``count`` is neither.
        """
        dims = self.dims(index)
        if count not in (1, self.channels(index)):
            self.refuse(
                f"its blobs hold {count} numbers, expected 1 or {self.channels(index)}, one for each channel",
                Code.WEIGHTS_RANGE,
            )
        return (count,) if len(dims) < 2 else (1, count, *(1 for _ in dims[2:]))

    def axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """Return an axis counted from the front.

        Raises:
            ValidationError: if there is no such axis.
        """
        if not -rank <= axis < rank:
            self.refuse(f"attribute {what!r} is {axis}, but the input has {rank} dims", Code.BAD_ATTRIBUTE)
        return axis % rank

    def declared(self, index: int = 0) -> ElementType | None:
        """Return the element type declared by an output port."""
        type = self.layer.outputs[index].type if index < len(self.layer.outputs) else None
        if type is None or type.element is ElementType.dynamic:
            return None
        return computed_type(type.element)

    # What is built

    def blob(self, name: str, shape: Sequence[int], raw: ElementType | None = None) -> Tensor:
        """Add a constant with data of the layer, converted to f32 unless ``raw`` gives its element type.

        Raises:
            ParseError: if it is not in the ``.bin``, or has another size.
            ValidationError: if the layer has no such data.
        """
        blob = self.stored(name)
        value = self.net.stored(blob, raw or blob.element, tuple(shape), self.layer.where)
        tensor = self.add(value, name=name)[0]
        return tensor if raw else self.convert(tensor, f32)

    def stored(self, name: str) -> Blob:
        """Return the range of a layer's data in the ``.bin``.

        Raises:
            ValidationError: if the layer has no data of that name.
        """
        if name not in self.blobs:
            hint = "it says where in the .bin its numbers are"
            self.refuse(f"<{name}> of the layer is missing", Code.BAD_ELEMENT, hint)
        return self.blobs[name]

    def floating(self, tensor: Tensor) -> Tensor:
        """Convert integers and booleans to f32."""
        is_real = tensor.element is ElementType.dynamic or tensor.element.is_real()
        return tensor if is_real else self.convert(tensor, f32)

    def indices(self, tensor: Tensor) -> Tensor:
        """Convert indices, lengths or axes to i64; old files may have them in f32."""
        return tensor if tensor.element in (i64, ElementType.i32) else self.convert(tensor, i64)

    def first_that_fits(self, candidates: Sequence[Op], inputs: Sequence[Tensor]) -> Op:
        """Return the first operation that gives the declared output dims, or else the first of all."""
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
    """Return the element type used for values of a declared type: f32 for f16, as in such files."""
    return f32 if element is ElementType.f16 else element
