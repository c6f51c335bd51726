"""Sliding windows, the base of convolution and pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from ..errors import ValidationError
from ..ir.dimension import Dimension
from ..ir.shape import PartialShape
from ._define.operation import InferenceError, Op, attr

__all__ = ["DilatedWindow", "Pads", "SlidingWindow", "data_dims"]

Pads = tuple[tuple[int, int], ...]


class SlidingWindow(Op):
    """Base of operations that slide a kernel over spatial axes: strides, padding, and the number of windows.

    The specification of convolutions allows strides and dilations of 0, which are meaningless; they are refused, as in
    OpenVINO.
    """

    strides: tuple[int, ...] = attr(gt=0, doc="step of the window along each spatial axis")
    pads_begin: tuple[int, ...] = attr(
        ge=0, doc="padding before each spatial axis; ignored unless auto_pad is explicit"
    )
    pads_end: tuple[int, ...] = attr(
        ge=0, doc="padding after each spatial axis; ignored unless auto_pad is explicit"
    )
    auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = attr(
        "explicit",
        doc="explicit: pads_begin and pads_end; valid: no padding; same_upper, same_lower: padding that makes the output "
        "length that of the input divided by the stride, rounded up, with the odd element at the end or start",
    )

    axis_defaults: ClassVar[Mapping[str, str]] = {"pads_begin": "0", "pads_end": "0"}
    """OpenVINO's defaults, per spatial axis, of required attributes that a file omits."""

    @classmethod
    def omitted_defaults(cls, data: Mapping[str, str]) -> dict[str, str]:
        """Return the defaults of omitted attributes, repeated per axis if another attribute gives the number of axes."""
        lists = (
            data[name] for name in ("strides", "dilations", "kernel", *cls.axis_defaults) if data.get(name)
        )
        axes = next((text.count(",") + 1 for text in lists), 0)
        absent = [name for name in cls.axis_defaults if axes and not data.get(name)]
        return {
            **super().omitted_defaults(data),
            **{name: ",".join([cls.axis_defaults[name]] * axes) for name in absent},
        }

    def verify(self) -> None:
        """Require one element per spatial axis in each attribute."""
        self._per_axis("dilations", self.spread())
        if self.auto_pad == "explicit":
            self._per_axis("pads_begin", self.pads_begin)
            self._per_axis("pads_end", self.pads_end)

    def _per_axis(self, name: str, numbers: Sequence[int]) -> None:
        if len(numbers) != len(self.strides):
            raise ValidationError(
                f"attributes 'strides' {list(self.strides)} and {name!r} {list(numbers)} differ in length; each "
                f"must have one number for each spatial axis",
                clause=f"attributes 'strides' and {name!r} are equally long",
            )

    def spread(self) -> tuple[int, ...]:
        """Return the dilation along each spatial axis."""
        return (1,) * len(self.strides)

    def rounding(self) -> str:
        """Return the rounding of the number of windows: ``floor``, ``ceil`` or ``ceil_torch``."""
        return "floor"

    def extent(self, axis: int, kernel: int) -> int:
        """Return the number of elements that the dilated kernel spans along a spatial axis."""
        return (kernel - 1) * self.spread()[axis] + 1

    def pads(self, lengths: Sequence[int], kernel: Sequence[int]) -> Pads:
        """Return the padding before and after each spatial axis, given static lengths."""
        return tuple(self._pads(axis, n, k) for axis, (n, k) in enumerate(zip(lengths, kernel, strict=True)))

    def _pads(self, axis: int, length: int, kernel: int) -> tuple[int, int]:
        if self.auto_pad == "valid" or (self.auto_pad != "explicit" and length == 0):
            return 0, 0
        if self.auto_pad == "explicit":
            return self.pads_begin[axis], self.pads_end[axis]
        stride = self.strides[axis]
        total = max((-(-length // stride) - 1) * stride + self.extent(axis, kernel) - length, 0)
        small, large = total // 2, total - total // 2
        return (small, large) if self.auto_pad == "same_upper" else (large, small)

    def kernel_of(self, inputs: Sequence[PartialShape]) -> Sequence[Dimension]:
        """Return the spatial lengths of the kernel; by default, those of the filters, the second input."""
        rank = len(self.strides)
        filters = inputs[1]
        return [Dimension()] * rank if filters.rank is None or filters.rank < rank else filters[-rank:]

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the padding of each spatial axis, or 0 if it depends on an unknown length."""
        if self.auto_pad == "valid":
            none = [0] * len(self.strides)
            return {"pads_begin": none, "pads_end": none}
        if self.auto_pad == "explicit" or inputs[0].rank != len(self.strides) + 2:
            return {}
        lengths, kernel = inputs[0][2:], self.kernel_of(inputs)
        pads = [
            self._pads(axis, n.min, k.min) if n.is_static and k.is_static else (0, 0)
            for axis, (n, k) in enumerate(zip(lengths, kernel, strict=True))
        ]
        return {"pads_begin": [begin for begin, _ in pads], "pads_end": [end for _, end in pads]}

    def windows(self, lengths: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """Return the number of windows along each spatial axis, given static lengths.

        Raises:
            InferenceError: if no window fits.
        """
        return tuple(
            self._windows(axis, n, k) for axis, (n, k) in enumerate(zip(lengths, kernel, strict=True))
        )

    def _windows(self, axis: int, length: int, kernel: int) -> int:
        same = self.auto_pad.startswith("same")
        if same and length == 0:
            return 0
        begin, end = pads = self._pads(axis, length, kernel)
        stride, extent = self.strides[axis], self.extent(axis, kernel)
        room = length + begin + end - extent
        if room < 0:
            raise self._too_short(axis, extent, length, pads)
        if self.rounding() == "floor":
            return room // stride + 1
        count = -(-room // stride) + 1
        if self.rounding() == "ceil_torch" and (count - 1) * stride >= length + begin:
            count -= 1  # the last window would start in the padding
        return count

    def _too_short(self, axis: int, extent: int, length: int, pads: tuple[int, int]) -> InferenceError:
        padded = length + sum(pads)
        around = f", with padding {padded}" if any(pads) else ""
        gaps = ", with dilation," if self.spread()[axis] > 1 else ""
        return InferenceError(
            f"dim {axis + 2} of data is {length}{around}, but the kernel covers{gaps} {extent} elements there",
            hint=f"{extent - padded} more of padding, or a kernel that covers at most {padded}, would fit",
            clause="windows are not larger than data with pads",
        )

    def slide(self, lengths: Sequence[Dimension], kernel: Sequence[Dimension]) -> list[Dimension]:
        """Return the number of windows along each spatial axis, given lengths that may be dynamic."""
        return [self._fit(axis, n, k) for axis, (n, k) in enumerate(zip(lengths, kernel, strict=True))]

    def _fit(self, axis: int, length: Dimension, kernel: Dimension) -> Dimension:
        if kernel == 0:
            raise InferenceError(
                f"filters have a kernel of length 0 along spatial axis {axis}; at least 1 is expected",
                clause="filters have a kernel of length at least 1 along each spatial axis",
            )
        least = max(kernel.min, 1)
        if length.is_static and kernel.is_static:
            return Dimension(self._windows(axis, length.min, least))
        if self.auto_pad.startswith("same"):
            return self._same(length, self.strides[axis])
        extent, around = self.extent(axis, least), self._pads(axis, 0, least)
        pads = sum(around)
        if length.max is not None and length.max + pads < extent:
            raise self._too_short(axis, extent, length.max, around)
        if kernel.is_static and self.strides[axis] == 1 and pads == extent - 1:
            return Dimension.between(max(length.min, 1), length.max, length.symbol)
        # More data means more windows, a longer kernel fewer; at least one fits.
        low = 1
        if kernel.max is not None:
            shortest = max(length.min, self.extent(axis, kernel.max) - pads)
            low = self._windows(axis, shortest, kernel.max)
        high = None if length.max is None else self._windows(axis, length.max, least)
        return Dimension.between(low, high)

    def _same(self, length: Dimension, stride: int) -> Dimension:
        if stride == 1 and self.rounding() != "ceil":
            return length
        high = None if length.max is None else -(-length.max // stride) + (self.rounding() == "ceil")
        return Dimension.between(-(-length.min // stride), high)


class DilatedWindow(SlidingWindow):
    """Base of operations with dilations."""

    dilations: tuple[int, ...] = attr(gt=0, doc="distance between kernel elements along each spatial axis")

    def spread(self) -> tuple[int, ...]:
        """Return the dilation along each spatial axis."""
        return self.dilations


def data_dims(shape: PartialShape, spatial: int) -> PartialShape:
    """Return the shape of the data, ``[N, C, spatial...]``, after checking its number of spatial axes."""
    if shape.rank is None:
        return PartialShape.dynamic(spatial + 2)
    if not 3 <= shape.rank <= 5:
        raise InferenceError(
            f"data must have rank 3, 4 or 5, [N, C, spatial...], found {shape}",
            clause="data has rank 3, 4 or 5, [N, C, spatial...]",
        )
    if shape.rank != spatial + 2:
        raise InferenceError(
            f"data must have rank {spatial + 2}, N, C and one axis for each of 'strides', found {shape}",
            hint="strides, pads and similar attributes have one number for each spatial axis",
            clause="data has one axis for each of 'strides', and N and C",
        )
    return shape
