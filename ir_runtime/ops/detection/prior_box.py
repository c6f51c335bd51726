"""Prior boxes (anchors) at every cell of a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._util.arrays import Float
from ...errors import InferenceError, ValidationError
from ...ir.dimension import Interval
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX, Input, Op, Output, attr, op
from .._lengths import lengths_of

# The output depends on the size of the grid only. More boxes are a mistake, and would not fit into memory.
MOST_BOXES = 1 << 28
# The largest side in pixels, and the largest aspect ratio.
MOST_SIDE = 1e9


class Prior(NamedTuple):
    """A box: the offset of its centre from that of the cell, half its sides, and whether it is always clipped."""

    x: Float | int
    y: Float | int
    width: Float
    height: Float
    clip: bool = False


class PriorBoxes(Op):
    """Base of PriorBox and PriorBoxClustered. The output has two rows: boxes, and their variances."""

    flops_per_element = 2

    output_size = Input(T_INDEX, "[2]: height and width of the grid")
    image_size = Input(T_INDEX, "[2]: height and width of the image")
    boxes = Output(
        ElementType.f32,
        "[2, height * width * boxes per cell * 4]: x1, y1, x2, y2 as fractions of the image; their variances",
    )

    offset: float = attr(
        default_with_warning="0", doc="position of the centre in a cell, as a fraction of it"
    )
    variance: tuple[float, ...] = attr(
        (), doc="the variances: one number, or one for each coordinate; 0.1 if empty"
    )

    def verify(self) -> None:
        """Require 0, 1 or 4 variances."""
        if len(self.variance) not in (0, 1, 4):
            raise ValidationError(
                f"attribute 'variance' must be none, 1 or 4 numbers, not {len(self.variance)}",
                clause="attribute 'variance' has 0, 1 or 4 numbers",
            )

    def infer(self, output_size: Value, image_size: Value) -> PartialShape:
        for name, value in (("output_size", output_size), ("image_size", image_size)):
            if not value.shape.compatible(PartialShape([2])):
                raise InferenceError(
                    f"{name} must be of shape [2], a height and a width, found {value.shape}",
                    clause=f"{name} is of shape [2]",
                )
        grid = lengths_of(output_size, "output_size")
        if grid is None:
            return PartialShape([2, -1])
        least = grid[0].min * grid[1].min * self.count()
        if least > MOST_BOXES:
            raise InferenceError(
                f"output_size, a grid of {grid[0]} by {grid[1]}, makes {least} boxes; at most {MOST_BOXES} are allowed",
                clause=f"the grid has at most {MOST_BOXES} boxes",
            )
        numbers: Interval = grid[0] * grid[1] * (self.count() * 4)
        return PartialShape([2, numbers])

    def evaluate(self, output_size: Array, image_size: Array) -> Array:
        height, width = (int(n) for n in output_size.ravel())
        image = image_size.ravel().astype(np.float32)
        self.infer(
            Value.constant(output_size), Value.constant(image_size)
        )  # raises if there are too many boxes
        if not height * width * self.count():
            return np.empty((2, 0), np.float32)  # one side of the grid may be of any length
        y, x = self.centres(height, width, image)
        priors = self.priors(image)
        boxes = np.empty((height, width, len(priors), 4), np.float32)
        for index, prior in enumerate(priors):
            corners = boxes[:, :, index]
            for low, centre, half in (
                (0, x + prior.x, prior.width),
                (1, (y + prior.y)[:, None], prior.height),
            ):
                corners[..., low] = (centre - half) / image[1 - low]
                corners[..., low + 2] = (centre + half) / image[1 - low]
            if prior.clip or self.clips():
                np.clip(corners, 0, 1, out=corners)
        variances = np.array(self.variance or (0.1,), np.float32)
        return np.stack([boxes.ravel(), np.resize(variances, boxes.size)])

    def count(self) -> int:
        """Return the number of boxes per cell."""
        raise NotImplementedError

    def priors(self, image: Array) -> list[Prior]:
        """Return the boxes of each cell, in pixels."""
        raise NotImplementedError

    def centres(self, height: int, width: int, image: Array) -> tuple[Array, Array]:
        """Return the centres of rows and of columns of cells, in pixels."""
        raise NotImplementedError

    def clips(self) -> bool:
        """Return whether boxes are clipped to the image."""
        raise NotImplementedError


class PriorBoxBase(PriorBoxes):
    """Base of the versions of PriorBox.

    OpenVINO counts boxes by one rule and creates them by another. Attributes for which the counts differ are
    refused, since its reference would write out of bounds.
    """

    min_size: tuple[float, ...] = attr((), gt=0, le=MOST_SIDE, doc="sides of square boxes, in pixels")
    max_size: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="each adds a square box whose side is the geometric mean with a min_size"
    )
    aspect_ratio: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="each adds a box with the area of each square; duplicates count once"
    )
    flip: bool = attr(False, doc="whether to add the inverse of each aspect_ratio")
    clip: bool = attr(False, doc="whether to clip boxes to the image")
    step: float = attr(
        0.0, doc="distance of cells in pixels; 0 means the image size divided by the grid size"
    )
    scale_all_sizes: bool = attr(
        True,
        doc="whether every min_size gets boxes of every aspect_ratio; otherwise only the first does, and sizes are "
        "fractions of the image height",
    )
    fixed_ratio: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="aspect ratios of fixed_size, instead of aspect_ratio"
    )
    fixed_size: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="sides of boxes that are repeated within a cell, in pixels"
    )
    density: tuple[float, ...] = attr((), ge=0, doc="repetitions along each axis, for each fixed_size")

    def verify(self) -> None:
        """Require attributes for which the number of created boxes is `count`."""
        super().verify()
        if any(d > 1024 for d in self.density):
            raise ValidationError(
                f"attribute 'density' must be at most 1024, not {max(self.density):g}",
                clause="attribute 'density' is at most 1024",
            )
        if len(self.density) != len(self.fixed_size):
            raise ValidationError(
                f"attributes 'density' and 'fixed_size' differ in length: {len(self.density)} and {len(self.fixed_size)}",
                clause="attributes 'density' and 'fixed_size' are equally long",
            )
        created = len(self.priors(np.ones(2, np.float32)))
        if created != self.count():
            raise ValidationError(
                f"the attributes make {created} boxes at each place, but the output would have room for {self.count()}, "
                f"as there are {self._sizes()}",
                clause="the attributes make as many boxes per cell as the output has room for",
            )

    def _sizes(self) -> str:
        names = ("min_size", "max_size", "fixed_size", "fixed_ratio", "aspect_ratio")
        return ", ".join(f"{len(vars(self)[name])} of {name!r}" for name in names)

    def count(self) -> int:
        ratios = len(self._ratios())
        squares = [int(d) ** 2 - 1 for d in self.density]
        if self.fixed_size:
            number = ratios * len(self.fixed_size)
        elif self.scale_all_sizes:
            number = ratios * len(self.min_size) + len(self.max_size)
        else:
            number = ratios + len(self.min_size) - 1
        return number + sum(squares) * (len(self.fixed_ratio) or ratios)

    def clips(self) -> bool:
        return self.clip

    def centres(self, height: int, width: int, image: Array) -> tuple[Array, Array]:
        of = np.float32
        step = of(self.step)
        if not self.scale_all_sizes:
            step = image[0] / of(height) if step == -1 else step * image[0]
        cells = np.arange(height, dtype=of), np.arange(width, dtype=of)
        if step == 0:
            y, x = ((at + of(0.5)) * (n / of(len(at))) for at, n in zip(cells, image, strict=True))
        else:
            y, x = ((at + of(self.offset)) * step for at in cells)
        return y, x

    def priors(self, image: Array) -> list[Prior]:
        of = np.float32
        boxes = []
        for fixed, density in zip(self.fixed_size, map(int, self.density), strict=True):
            for index, ratio in enumerate(self.fixed_ratio or self._ratios()):
                # OpenVINO truncates the sides of squares, not those of boxes with a ratio.
                is_square = index == 0 and not self.fixed_ratio
                side = of(int(fixed) if is_square else fixed)
                boxes += _spread(of(fixed), density, side, np.sqrt(of(ratio)))
        sizes = np.array(self.min_size, of) * (of(1) if self.scale_all_sizes else image[0])
        for index, size in enumerate(sizes):
            boxes.append(Prior(0, 0, size / 2, size / 2))
            large = []
            if self.scale_all_sizes and index < len(self.max_size):
                side = np.sqrt(size * of(self.max_size[index])) / 2
                large = [Prior(0, 0, side, side)]
            stretched = []
            if self.scale_all_sizes or index == len(sizes) - 1:
                base = size if self.scale_all_sizes else sizes[0]
                roots = np.sqrt(np.array(self._ratios()[1:], of))
                stretched = [Prior(0, 0, base / 2 * root, base / 2 / root) for root in roots]
            boxes += [*large, *stretched] if self.largest_first() else [*stretched, *large]
        return boxes

    def largest_first(self) -> bool:
        """Return whether the boxes of ``max_size`` precede those of ``aspect_ratio``."""
        return True

    def _ratios(self) -> list[float]:
        """Return the distinct aspect ratios, starting with 1."""
        ratios = [1.0]
        for ratio in self.aspect_ratio:
            if all(abs(ratio - other) >= 1e-6 for other in ratios):
                ratios += [ratio, 1 / ratio] if self.flip else [ratio]
        return ratios


def _spread(size: Float, density: int, side: Float, root: Float) -> list[Prior]:
    """Return ``density ** 2`` equal boxes, tiled over a square of side ``size``.

    Args:
        size: the side of the square.
        density: the number of boxes along each axis.
        side: the side of a square box of the same area.
        root: the square root of the aspect ratio.
    """
    shift = np.float32(int(size / density)) if density else np.float32(0)
    first = shift / 2 - int(size) // 2
    offsets = [np.float32(first + i * shift) for i in range(density)]
    return [Prior(x, y, side / 2 * root, side / 2 / root, clip=True) for y in offsets for x in offsets]


@op("PriorBox-1")
class PriorBox1(PriorBoxBase):
    """Boxes of given sizes and aspect ratios, centred in every cell of a grid over an image."""


@op("PriorBox-8")
class PriorBox8(PriorBoxBase):
    """The same as version 1, with a choice of the order of boxes."""

    min_max_aspect_ratios_order: bool = attr(
        True, doc="whether the boxes of max_size precede those of aspect_ratio"
    )

    def largest_first(self) -> bool:
        return self.min_max_aspect_ratios_order


@op("PriorBoxClustered-1")
class PriorBoxClustered(PriorBoxes):
    """Boxes of given widths and heights, centred in every cell of a grid over an image."""

    width: tuple[float, ...] = attr((1.0,), doc="widths of the boxes in pixels")
    height: tuple[float, ...] = attr((1.0,), doc="heights of the boxes in pixels")
    clip: bool = attr(True, doc="whether to clip boxes to the image")
    step: float = attr(0.0, doc="distance of cells in pixels, where step_w or step_h is 0")
    step_w: float = attr(
        0.0, doc="distance of cells along x; if all steps are 0, the image size divided by the grid size"
    )
    step_h: float = attr(0.0, doc="distance of cells along y; see step_w")

    def verify(self) -> None:
        """Require a height for each width."""
        super().verify()
        if len(self.width) != len(self.height):
            raise ValidationError(
                f"attributes 'width' and 'height' differ in length: {len(self.width)} and {len(self.height)}",
                clause="attributes 'width' and 'height' are equally long",
            )

    def count(self) -> int:
        return len(self.width)

    def clips(self) -> bool:
        return self.clip

    def centres(self, height: int, width: int, image: Array) -> tuple[Array, Array]:
        of = np.float32
        steps = of(self.step_h or self.step), of(self.step_w or self.step)
        if not any(steps):
            steps = image[0] / of(height), image[1] / of(width)
        y, x = (
            (np.arange(n, dtype=of) + of(self.offset)) * step
            for n, step in zip((height, width), steps, strict=True)
        )
        return y, x

    def priors(self, image: Array) -> list[Prior]:
        halves = np.array([self.width, self.height], np.float32).T / 2
        return [Prior(0, 0, width, height) for width, height in halves]
