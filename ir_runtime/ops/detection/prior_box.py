"""Prior boxes (anchors) at every point of a grid."""

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

# The shape depends on the grid alone; more boxes are a mistake, and would not fit into memory.
MOST_BOXES = 1 << 28
# In pixels, or as a ratio.
MOST_SIDE = 1e9


class Prior(NamedTuple):
    """A box: its offset from the centre of its cell, half its sides, and whether it is clipped."""

    x: Float | int
    y: Float | int
    width: Float
    height: Float
    clip: bool = False


class PriorBoxes(Op):
    """Base of these operations, with two rows: boxes, and their variances."""

    flops_per_element = 2

    output_size = Input(T_INDEX, "[2]: height and width of the grid")
    image_size = Input(T_INDEX, "[2]: height and width of the image")
    boxes = Output(
        ElementType.f32,
        "[2, height * width * boxes a place * 4]: x1, y1, x2, y2 in parts of the image; variances",
    )

    offset: float = attr(default_with_warning="0", doc="where in a place, counted in places, the centre is")
    variance: tuple[float, ...] = attr(
        (), doc="the second row: one number, or one for each coordinate; 0.1 if none"
    )

    def verify(self) -> None:
        """Require a valid number of variances."""
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
        self.infer(Value.constant(output_size), Value.constant(image_size))  # raises if there are too many
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
        """Return the boxes of a cell."""
        raise NotImplementedError

    def centres(self, height: int, width: int, image: Array) -> tuple[Array, Array]:
        """Return the centres of cells in pixels: y and x."""
        raise NotImplementedError

    def clips(self) -> bool:
        """Return whether boxes are clipped to the image."""
        raise NotImplementedError


class PriorBoxBase(PriorBoxes):
    """Base of the versions of PriorBox, with the 10 attributes of the specification.

    OpenVINO counts boxes by one rule and creates them by another; attributes for which these differ are
    refused, as the reference would write out of bounds.
    """

    min_size: tuple[float, ...] = attr((), gt=0, le=MOST_SIDE, doc="sides of square boxes, in pixels")
    max_size: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="each makes one square box, of a side between it and a min_size"
    )
    aspect_ratio: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="each makes one box of the area of each square; doubles count once"
    )
    flip: bool = attr(False, doc="whether to have the inverse of each aspect_ratio, too")
    clip: bool = attr(False, doc="whether boxes stay in the image")
    step: float = attr(0.0, doc="distance of places in pixels; 0 means image by grid")
    scale_all_sizes: bool = attr(
        True,
        doc="whether every min_size has boxes of every aspect_ratio; if not, the first, and sizes are in image heights",
    )
    fixed_ratio: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="aspect ratios of fixed_size, instead of aspect_ratio"
    )
    fixed_size: tuple[float, ...] = attr(
        (), gt=0, le=MOST_SIDE, doc="sides of boxes that come several times, in pixels"
    )
    density: tuple[float, ...] = attr((), ge=0, doc="how often along each axis, for each fixed_size")

    def verify(self) -> None:
        """Require attributes for which both counts agree."""
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
                clause="the attributes make as many boxes at each place as the output has room for",
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
        places = np.arange(height, dtype=of), np.arange(width, dtype=of)
        if step == 0:
            y, x = ((at + of(0.5)) * (n / of(len(at))) for at, n in zip(places, image, strict=True))
        else:
            y, x = ((at + of(self.offset)) * step for at in places)
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
        """Return whether boxes of max_size precede those of aspect ratios."""
        return True

    def _ratios(self) -> list[float]:
        """Return the distinct aspect ratios, starting with 1."""
        ratios = [1.0]
        for ratio in self.aspect_ratio:
            if all(abs(ratio - other) >= 1e-6 for other in ratios):
                ratios += [ratio, 1 / ratio] if self.flip else [ratio]
        return ratios


def _spread(size: Float, density: int, side: Float, root: Float) -> list[Prior]:
    """Return boxes of one side and ratio, tiled in a square of a size; ``root`` is that of the ratio."""
    shift = np.float32(int(size / density)) if density else np.float32(0)
    first = shift / 2 - int(size) // 2
    offsets = [np.float32(first + i * shift) for i in range(density)]
    return [Prior(x, y, side / 2 * root, side / 2 / root, clip=True) for y in offsets for x in offsets]


@op("PriorBox-1")
class PriorBox1(PriorBoxBase):
    """Boxes of given sizes and aspect ratios at every place of a grid laid over an image."""


@op("PriorBox-8")
class PriorBox8(PriorBoxBase):
    """As version 1, with a choice of the order of boxes."""

    min_max_aspect_ratios_order: bool = attr(
        True, doc="whether boxes from max_size come before those from aspect_ratio"
    )

    def largest_first(self) -> bool:
        return self.min_max_aspect_ratios_order


@op("PriorBoxClustered-1")
class PriorBoxClustered(PriorBoxes):
    """Boxes of given widths and heights at every place of a grid laid over an image."""

    width: tuple[float, ...] = attr((1.0,), doc="widths of boxes in pixels")
    height: tuple[float, ...] = attr((1.0,), doc="heights of the same boxes")
    clip: bool = attr(True, doc="whether boxes stay in the image")
    step: float = attr(0.0, doc="distance of places in pixels, where step_w or step_h is 0")
    step_w: float = attr(0.0, doc="distance of places along x; if it and step_h are 0, image by grid")
    step_h: float = attr(0.0, doc="distance of places along y")

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
