"""The context of one legacy layer during its replacement: inputs, data and new operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....codes import Code
from ....errors import ValidationError
from ....ir.element import ElementType
from ....ir.graph import PortSpec
from ....ir.shape import PartialShape
from ....ir.tensor import TensorType, Value
from ....ops import Op
from ..replacing import Rebuilt, Replacement, Tensor
from .building import Blob, Building

__all__ = ["Rebuilt", "Site", "Tensor", "computed_type"]

f32, i64 = ElementType.f32, ElementType.i64


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
