"""The place of one legacy layer in the graph that is built: its inputs, its data, and the operations that replace it."""

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

__all__ = ["Rebuilt", "Site", "Tensor", "widened"]

f32, i64 = ElementType.f32, ElementType.i64


@dataclass(slots=True)
class Site(Replacement):
    """Where a legacy layer, which has no operation, is rebuilt."""

    net: Building
    blobs: Mapping[str, Blob]
    precision: ElementType
    """The element type that the layer declares for its outputs and blobs; f16 is f32."""

    # What the file declares

    def dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an input port; none if it declares none, as ports of scalars do.

        Raises:
            ValidationError: if they are not lengths.
        """
        return self._lengths(self.layer.inputs, index, "input")

    def output_dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an output port as `dims` does."""
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
            ValidationError: if it has another number of them.
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
        """Return the shape in which so many numbers, one or one for each channel, are broadcast to an input.

        Raises:
            ValidationError: if it is another number.
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
        """Return the element type that an output port declares itself."""
        type = self.layer.outputs[index].type if index < len(self.layer.outputs) else None
        if type is None or type.element is ElementType.dynamic:
            return None
        return widened(type.element)

    # What is built

    def blob(self, name: str, shape: Sequence[int], raw: ElementType | None = None) -> Tensor:
        """Add a constant with data of the layer, in f32 unless it is taken ``raw``, as numbers of that type.

        Raises:
            ParseError: if it is not in the ``.bin``, or has another size.
            ValidationError: if the layer has no such data.
        """
        found = self.stored(name)
        value = self.net.stored(found, raw or found.element, tuple(shape), self.layer.where)
        tensor = self.add(value, name=name)[0]
        return tensor if raw else self.convert(tensor, f32)

    def stored(self, name: str) -> Blob:
        """Return where data of the layer is.

        Raises:
            ValidationError: if the layer has none of that name.
        """
        if name not in self.blobs:
            hint = "it says where in the .bin its numbers are"
            self.refuse(f"<{name}> of the layer is missing", Code.BAD_ELEMENT, hint)
        return self.blobs[name]

    def floating(self, tensor: Tensor) -> Tensor:
        """Convert integers and booleans to f32."""
        known = tensor.element is ElementType.dynamic or tensor.element.is_real()
        return tensor if known else self.convert(tensor, f32)

    def indices(self, tensor: Tensor) -> Tensor:
        """Convert indices, lengths or axes, which old files also have as f32, to i64."""
        return tensor if tensor.element in (i64, ElementType.i32) else self.convert(tensor, i64)

    def first_that_fits(self, candidates: Sequence[Op], inputs: Sequence[Tensor]) -> Op:
        """Return the first of some operations that gives the dims that the output declares, else the first of all."""
        values = [Value(TensorType(f32, PartialShape(self.dims(i)))) for i in range(len(inputs))]
        wanted = self.output_dims()
        for op in candidates:
            try:
                found = op.infer_types(*values)[0].shape
            except ValidationError:
                continue
            if found.is_static and found.static == wanted:
                return op
        return candidates[0]


def widened(element: ElementType) -> ElementType:
    """Return the type in which values of a declared type are computed: f32 for f16, as inputs of such files were."""
    return f32 if element is ElementType.f16 else element
