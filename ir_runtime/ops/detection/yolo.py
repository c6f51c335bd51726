"""Operations of YOLO networks: RegionYolo and ReorgYolo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import InferenceError
from ...ir.computable import refuse_to_compute
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_PLAIN, Input, Op, Output, attr, op
from .._lengths import multiples, normalize_axis, of_rank
from ..kernels.boxes import as_float


@op("RegionYolo-1")
class RegionYolo(Op):
    """Sigmoids of box centres and objectness, and a softmax or sigmoids of class scores.

    Without do_softmax, the number of regions is the length of mask. The default of do_softmax is true, as in the
    specification; in OpenVINO it is false. The output has the type of the data.
    """

    flops_per_element = 1

    data = Input(T_FLOAT, "[N, regions * (coords + 1 + classes), H, W]")
    regions = Output(
        T_FLOAT, "the shape of data, with the axes from axis to end_axis flattened if do_softmax is true"
    )

    axis: int = attr(
        default_with_warning="0", doc="first of the axes to flatten; a negative one counts from the end"
    )
    end_axis: int = attr(default_with_warning="0", doc="last of the axes to flatten")
    coords: int = attr(ge=2, doc="number of coordinates of a box")
    classes: int = attr(default_with_warning="0", ge=0, doc="number of classes")
    num: int = attr(gt=0, doc="number of regions with do_softmax")
    do_softmax: bool = attr(True, doc="whether class scores are a softmax, instead of sigmoids")
    mask: tuple[int, ...] = attr((), doc="indices of anchors, one for each region without do_softmax")
    anchors: tuple[float, ...] = attr((), doc="sizes of boxes; ignored here, for consumers of the output")

    def infer(self, data: Value) -> PartialShape:
        x = data.shape
        if x.rank is None:
            return PartialShape.dynamic() if self.do_softmax else PartialShape([-1, self._channels(), -1, -1])
        of_rank(data, "data", "[N, C, H, W]")
        if not x[1].contains(self._channels()) and not (self.do_softmax and x[1].min >= self._channels()):
            least = "at least " if self.do_softmax else ""
            regions = "num" if self.do_softmax else "numbers of mask"
            refuse_to_compute(
                InferenceError(
                    f"data must have {least}{self._channels()} channels, found {x[1]} in {x}",
                    hint=f"that is {regions} * (coords + 1 + classes), "
                    f"{self._channels() // self._channels_per_region()} * ({self.coords} + 1 + {self.classes})",
                    clause="data has coords + 1 + classes channels for each region",
                )
            )
        if not self.do_softmax:
            return PartialShape([x[0], self._channels(), *x[2:]])
        first = normalize_axis(self.axis, 4, "attribute 'axis'")
        last = normalize_axis(self.end_axis, 4, "attribute 'end_axis'")
        together: Interval = Dimension(1)
        for dim in x[first : last + 1]:
            together = together * dim
        return PartialShape([*x[:first], together, *x[max(last, first) + 1 :]]) if last >= first else x

    def _channels(self) -> int:
        return (self.num if self.do_softmax else len(self.mask)) * self._channels_per_region()

    def _channels_per_region(self) -> int:
        return self.coords + 1 + self.classes

    def evaluate(self, data: Array) -> Array:
        shape = self.infer(Value.constant(data)).static
        entries, _, height, width = data.shape
        channels = self._channels_per_region()
        count = self._channels() // channels
        result = as_float(data).copy()
        numbers = result[:, : count * channels].reshape(entries, count, channels, height, width)  # a view
        ends = self.coords + 1 if self.do_softmax else channels
        with np.errstate(over="ignore"):
            for part in (numbers[:, :, :2], numbers[:, :, self.coords : ends]):
                np.exp(np.negative(part, out=part), out=part)
                np.divide(1, np.add(part, 1, out=part), out=part)
        if self.do_softmax and self.classes:
            scores = numbers[:, :, ends:]
            scores -= scores.max(axis=2, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=2, keepdims=True)
        return result.astype(data.dtype, copy=False).reshape(shape)


@op("ReorgYolo-1")
class ReorgYolo(Op):
    """Move spatial elements that are ``stride`` apart into separate channels.

    As in the original network and in OpenVINO, ``data`` is read as if it had ``stride ** 2`` times fewer channels,
    and ``stride`` times longer sides.
    """

    decisions = (
        "data is read as if it had stride * stride times fewer channels, as in OpenVINO; the page shows a plain move into the channels",
    )

    flops_per_element = 0

    data = Input(T_PLAIN, "[N, C, H, W]; C at least stride ** 2")
    output = Output(T_PLAIN, "[N, C * stride ** 2, H / stride, W / stride]")

    stride: int = attr(
        gt=0, doc="distance of elements that stay together; height and width are divided by it"
    )

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the stride as a list, as OpenVINO does."""
        return {"stride": [self.stride]}

    def infer(self, data: Value) -> PartialShape:
        x = of_rank(data, "data", "[N, C, H, W]")
        if x[1].max is not None and x[1].max < self.stride**2:
            raise InferenceError(
                f"data must have at least {self.stride**2} channels, the square of attribute 'stride', found {x[1]} "
                f"in {x}",
                clause="data has at least stride * stride channels",
            )
        sides = []
        for dim in x[2:]:
            if (side := multiples(dim, self.stride)) is None:
                raise InferenceError(
                    f"height and width of data must be multiples of attribute 'stride', {self.stride}, found {x}",
                    clause="height and width of data are multiples of attribute 'stride'",
                )
            sides.append(side // self.stride)
        return PartialShape([x[0], x[1] * self.stride**2, *sides])

    def evaluate(self, data: Array) -> Array:
        shape = self.infer(Value.constant(data)).static
        entries, depth, height, width = data.shape
        stride = self.stride
        channels = depth // stride**2
        if depth % stride**2 == 0:
            return self.parts(data).reshape(shape)
        # If C is not a multiple of stride ** 2, positions extend into the next channel, as in OpenVINO's reference.
        channel = np.arange(depth)
        offset, source = channel // channels, channel % channels
        y = np.arange(height) * stride + (offset // stride)[:, None]
        x = np.arange(width) * stride + (offset % stride)[:, None]
        rows = (np.arange(entries)[:, None] * channels + source)[..., None] * (height * stride) + y
        places = rows[..., None] * (width * stride) + x[:, None]
        return np.asarray(data.ravel()[places]).reshape(shape)

    def parts(self, data: Array) -> Array:
        """Return a view ``[N, stride, stride, C / stride ** 2, H, W]`` of contiguous data that is a multiple in C."""
        entries, depth, height, width = data.shape
        stride = self.stride
        split = data.reshape(entries, depth // stride**2, height, stride, width, stride)
        return split.transpose(0, 3, 5, 1, 2, 4)
