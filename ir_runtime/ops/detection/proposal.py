"""Region proposals of Faster R-CNN, from anchors that the operation generates."""

from __future__ import annotations

import numpy as np

from ...codes import Code
from ...errors import InferenceError
from ...ir.computable import refuse_to_compute
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Op, Output, attr, op
from .._lengths import of_rank
from ..kernels.boxes import as_float, decode_deltas, descending, greedy_nms


class ProposalBase(Op):
    """Base of the versions of Proposal, with the 14 attributes of the specification.

    Boxes below min_size keep a score of 0, and come last, as in OpenVINO. For the framework tensorflow
    OpenVINO's plugin also swaps the height and width of the image; the reference, and this implementation, do
    not.
    """

    flops_per_element = 0
    flops_per_input = {"bbox_deltas": 2, "class_probs": 1}

    class_probs = Input(T_FLOAT, "[N, 2 * anchors, H, W]: scores of background, then of foreground")
    bbox_deltas = Input(
        T_FLOAT, "[N, 4 * anchors, H, W]: steps of the centre, logarithms of factors of sides", mixed=True
    )
    image_shape = Input(
        T_FLOAT, "[3 or 4]: height and width of the image, one scale for both or two", mixed=True
    )
    rois = Output(
        T_FLOAT, "[N * post_nms_topn, 5]: batch entry, x1, y1, x2, y2; batch entry -1 comes after the last"
    )

    base_size: int = attr(gt=0, doc="side of the square that ratio and scale are applied to")
    pre_nms_topn: int = attr(gt=0, doc="how many boxes are compared at most")
    post_nms_topn: int = attr(gt=0, doc="how many boxes are left at most")
    nms_thresh: float = attr(default_with_warning="0", doc="the overlap that is still allowed")
    feat_stride: int = attr(default_with_warning="1", gt=0, doc="distance of places in pixels")
    min_size: int = attr(
        default_with_warning="1", ge=0, doc="sides below this, times the scale, make a score 0"
    )
    ratio: tuple[float, ...] = attr(gt=0, doc="heights by widths of anchors")
    scale: tuple[float, ...] = attr(doc="sizes of anchors by base_size")
    clip_before_nms: bool = attr(True, doc="whether boxes are clipped to the image before they are compared")
    clip_after_nms: bool = attr(False, doc="whether boxes that are left are clipped to the image")
    normalize: bool = attr(False, doc="whether boxes are given in parts of the image")
    box_size_scale: float = attr(1.0, doc="what logarithms are divided by")
    box_coordinate_scale: float = attr(1.0, doc="what steps are divided by")
    framework: str = attr(
        "", doc="tensorflow: y comes before x, anchors are around 0, and coordinates are not of pixels"
    )

    def shape(self, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> Dimension:
        """Return the number of rows."""
        probs = of_rank(class_probs, "class_probs", "[N, 2 * anchors, H, W]")
        deltas = of_rank(bbox_deltas, "bbox_deltas", "[N, 4 * anchors, H, W]")
        if not of_rank(image_shape, "image_shape", "[3 or 4]")[0].compatible(Dimension(3, 4)):
            raise InferenceError(
                f"image_shape must be of shape [3] or [4], found {image_shape.shape}",
                clause="image_shape has 3 or 4 numbers",
            )
        expected = PartialShape([probs[0], probs[1] * 2, *probs[2:]])
        images = probs[0].merge(deltas[0])
        if images is None or not deltas.compatible(expected):
            raise InferenceError(
                f"bbox_deltas must be of shape {expected}, as class_probs {probs} with twice the channels, found "
                f"{deltas}",
                clause="bbox_deltas has the shape of class_probs, with twice the channels",
            )
        anchors = len(self.ratio) * len(self.scale)
        if not probs[1].contains(2 * anchors):
            refuse_to_compute(
                InferenceError(
                    f"class_probs {probs} must have {2 * anchors} channels, 2 for each of {anchors} anchors, found "
                    f"{probs[1]}",
                    hint=f"there is an anchor for each of {len(self.ratio)} 'ratio' and each of {len(self.scale)} 'scale'",
                    clause="class_probs has 2 channels for each anchor",
                )
            )
        if self.framework not in ("", "tensorflow"):
            refuse_to_compute(
                InferenceError(
                    f"attribute 'framework' must be '' or 'tensorflow', not {self.framework!r}",
                    code=Code.BAD_ATTRIBUTE,
                    clause="attribute 'framework' is empty or tensorflow",
                )
            )
        return Dimension.of(images * self.post_nms_topn)

    def propose(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        """Return the boxes with their batch entries, and their scores."""
        deltas, scores = as_float(bbox_deltas), as_float(class_probs)
        images, channels, height, width = scores.shape
        image = as_float(image_shape).ravel()
        size = image[[1, 0, 1, 0]]
        smallest = self.min_size * np.array([image[-1], image[2]], image.dtype)
        anchors = self._anchors(height, width, size).astype(scores.dtype)
        deltas = deltas.reshape(images, channels // 2, 4, height, width).transpose(0, 3, 4, 1, 2)
        scores = scores[:, channels // 2 :].transpose(0, 2, 3, 1).reshape(images, -1)
        by = np.array([self.box_coordinate_scale] * 2 + [self.box_size_scale] * 2, scores.dtype)
        extra = self._extra()
        boxes = decode_deltas(anchors, deltas / by, extra).reshape(images, -1, 4)
        boxes[..., 2:] += scores.dtype.type(extra)
        if self.clip_before_nms:
            boxes = np.clip(boxes, 0, size - scores.dtype.type(extra))
        large = (boxes[..., 2:] - boxes[..., :2] + scores.dtype.type(extra) >= smallest).all(axis=-1)
        scores = scores * large
        rois = np.zeros((images, self.post_nms_topn, 5), scores.dtype)
        probs = np.zeros((images, self.post_nms_topn), scores.dtype)
        for entry in range(images):
            order = descending(scores[entry], most=self.pre_nms_topn)
            left = order[greedy_nms(boxes[entry, order], self.nms_thresh, self.post_nms_topn, extra=extra)]
            selected = boxes[entry, left]
            if self.clip_after_nms:
                selected = np.clip(selected, 0, size)
            rois[entry, : len(left), 0] = entry
            rois[entry, : len(left), 1:] = selected / size if self.normalize else selected
            rois[entry, len(left) : len(left) + 1, 0] = -1
            probs[entry, : len(left)] = scores[entry, left]
        return (
            rois.reshape(-1, 5).astype(class_probs.dtype, copy=False),
            probs.ravel().astype(class_probs.dtype, copy=False),
        )

    def _extra(self) -> float:
        return 0 if self.framework else 1

    def _anchors(self, height: int, width: int, size: Array) -> Array:
        """Return the anchors of every cell: [H, W, anchors, 4]."""
        of, extra = np.float32, np.float32(self._extra())
        ratios, scales = np.array(self.ratio, of)[:, None], np.array(self.scale, of)
        widths = np.sqrt(of(self.base_size) ** 2 / ratios)
        if not self.framework:
            widths = np.floor(widths + of(0.5))  # to the nearest, halves up
        heights = widths * ratios
        if not self.framework:
            heights = np.floor(heights + of(0.5))
        half = np.stack([(sides * scales - extra) / 2 for sides in (widths, heights)], -1).reshape(-1, 2)
        centre = of(0) if self.framework else (of(self.base_size) - extra) / 2
        anchors = np.concatenate([centre - half, centre + half], -1)
        y, x = (np.arange(n, dtype=of) * of(self.feat_stride) for n in (height, width))
        grid = np.empty((height, width, 1, 4), of)
        first, second = (x, y[:, None]) if not self.framework else (y[:, None], x)
        grid[..., 0, ::2], grid[..., 0, 1::2] = first[..., None], second[..., None]
        return np.asarray(np.clip(grid + anchors, 0, size) if self.framework else grid + anchors)


@op("Proposal-1")
class Proposal1(ProposalBase):
    """Apply ``bbox_deltas`` to anchors at every position, and select the best boxes that do not overlap."""

    def infer(self, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> PartialShape:
        return PartialShape([self.shape(class_probs, bbox_deltas, image_shape), 5])

    def evaluate(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> Array:
        return self.propose(class_probs, bbox_deltas, image_shape)[0]


@op("Proposal-4")
class Proposal4(ProposalBase):
    """As version 1; also returns the scores of the boxes."""

    probs = Output(T_FLOAT, "[N * post_nms_topn]: scores, 0 after the last")

    def infer(
        self, class_probs: Value, bbox_deltas: Value, image_shape: Value
    ) -> tuple[PartialShape, PartialShape]:
        rows = self.shape(class_probs, bbox_deltas, image_shape)
        return PartialShape([rows, 5]), PartialShape([rows])

    def evaluate(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        return self.propose(class_probs, bbox_deltas, image_shape)
