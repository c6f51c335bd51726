"""The detection output of SSD: box decoding, then non-maximum suppression per class."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...codes import Code
from ...errors import InferenceError, ValidationError
from ...ir.computable import refuse_to_compute
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Op, Output, attr, op
from .._lengths import of_rank
from ..kernels.boxes import as_float, descending, greedy_nms

Kept = list[tuple[int, Array]]
"""The labels of classes, each with the indices of its remaining boxes, best first."""


class DetectionOutputBase(Op):
    """Base of both versions of DetectionOutput, computed in at least f32.

    Unnormalized priors end at the first image id of -1, as in OpenVINO's plugin.
    """

    flops_per_element = 0
    flops_per_input = {"box_logits": 2, "class_preds": 1}

    box_logits = Input(
        T_FLOAT, "[N, priors * classes * 4], or [N, priors * 4] with share_location: box deltas"
    )
    class_preds = Input(T_FLOAT, "[N, priors * classes]: scores")
    proposals = Input(
        T_FLOAT,
        "[N or 1, 2 or 1, priors * 4 or 5]: priors, each preceded by an image id if not normalized; variances in the "
        "second row, unless they are encoded in the target",
        mixed=True,
    )
    aux_class_preds = Input(
        T_FLOAT, "[N, priors * 2]: the second score of each prior is its objectness", optional=True
    )
    aux_box_preds = Input(
        T_FLOAT, "the shape of box_logits: deltas that refine the priors first", optional=True
    )
    detections = Output(
        T_FLOAT,
        "[1, 1, detections, 7]: batch entry, class, score, x1, y1, x2, y2; a batch entry of -1 marks the end",
    )

    background_label_id: int = attr(0, doc="the class that is not detected; -1 if there is none")
    top_k: int = attr(-1, doc="maximum number of boxes of a class before suppression; -1 means all")
    variance_encoded_in_target: bool = attr(
        False, doc="whether deltas include the variances, so that they are not multiplied by them"
    )
    keep_top_k: tuple[int, ...] = attr(doc="maximum number of boxes of a batch entry; -1 means all")
    code_type: Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"] = attr(
        "caffe.PriorBoxParameter.CORNER",
        doc="whether deltas apply to corners, or to the centre and the logarithms of the sides",
    )
    share_location: bool = attr(True, doc="whether all classes share boxes")
    nms_threshold: float = attr(default_with_warning="0", doc="maximum overlap of boxes of a class")
    confidence_threshold: float = attr(0.0, doc="exclusive minimum of scores")
    clip_after_nms: bool = attr(False, doc="whether to clip the remaining boxes to [0, 1]")
    clip_before_nms: bool = attr(False, doc="whether to clip boxes to [0, 1] before suppression")
    decrease_label_id: bool = attr(
        False,
        doc="whether to use each prior for its best class only, and to number classes without the first",
    )
    normalized: bool = attr(False, doc="whether priors are fractions of the image")
    input_height: int = attr(1, gt=0, doc="height of the image, if not normalized")
    input_width: int = attr(1, gt=0, doc="width of the image, if not normalized")
    objectness_score: float = attr(0.0, doc="minimum objectness of a prior, of aux_class_preds")

    def verify(self) -> None:
        """Require a value of ``keep_top_k``."""
        if not self.keep_top_k:
            raise ValidationError(
                "attribute 'keep_top_k' must be one number, but is empty",
                clause="attribute 'keep_top_k' is not empty",
            )

    def known_classes(self) -> int | None:
        """Return the number of classes that an attribute declares, or ``None``."""
        return None

    def infer(
        self,
        box_logits: Value,
        class_preds: Value,
        proposals: Value,
        aux_class_preds: Value | None = None,
        aux_box_preds: Value | None = None,
    ) -> PartialShape:
        if (aux_class_preds is None) != (aux_box_preds is None):
            raise InferenceError(
                "takes 3 inputs (box_logits, class_preds, proposals) or 5, with aux_class_preds and aux_box_preds, "
                "got 4",
                code=Code.PORT_COUNT,
                clause="aux_class_preds and aux_box_preds are given together, or not at all",
            )
        if self.decrease_label_id and self.background_label_id != 0:
            refuse_to_compute(
                InferenceError(
                    f"attribute 'decrease_label_id' is true, for which 'background_label_id' must be 0, not "
                    f"{self.background_label_id}",
                    code=Code.BAD_ATTRIBUTE,
                    clause="attribute 'background_label_id' is 0 if 'decrease_label_id' is true",
                )
            )
        logits = of_rank(box_logits, "box_logits", "[N, priors * classes * 4]")
        predictions = of_rank(class_preds, "class_preds", "[N, priors * classes]")
        boxes = of_rank(proposals, "proposals", "[N or 1, 2 or 1, priors * 4 or 5]")
        images = logits[0].merge(predictions[0])
        if images is None:
            raise InferenceError(
                f"box_logits {logits} and class_preds {predictions} differ in batch size",
                clause="box_logits and class_preds have the same batch size",
            )
        self._check_proposals(boxes, images)
        lengths = [(boxes[2], self._prior_size(), "proposals")]
        if aux_class_preds is not None and aux_box_preds is not None:
            more = of_rank(aux_class_preds, "aux_class_preds", "[N, priors * 2]")
            if not more[0].compatible(images):
                raise InferenceError(
                    f"aux_class_preds {more} and box_logits {logits} differ in batch size",
                    clause="aux_class_preds has the batch size of box_logits",
                )
            lengths.append((more[1], 2, "aux_class_preds"))
            if not aux_box_preds.shape.compatible(logits):
                raise InferenceError(
                    f"aux_box_preds {aux_box_preds.shape} must be of the shape of box_logits, {logits}",
                    clause="aux_box_preds has the shape of box_logits",
                )
        priors = common_quotient([*lengths, *self._per_prior(logits, predictions)], "priors")
        for name, value in (("box_logits", logits), ("class_preds", predictions)):
            if priors == 0 and not value[1].contains(0):
                raise InferenceError(
                    f"{name} is {value}, but proposals {boxes} holds no priors",
                    clause="proposals has priors if box_logits and class_preds are not empty",
                )
        return PartialShape([1, 1, self._most(images, self._classes(logits, predictions, priors), priors), 7])

    def _check_proposals(self, boxes: PartialShape, images: Dimension) -> None:
        rows = 1 if self.variance_encoded_in_target else 2
        if boxes[1].contains(rows) and (boxes[0].contains(1) or boxes[0].compatible(images)):
            return
        encoded = str(self.variance_encoded_in_target).lower()
        raise InferenceError(
            f"proposals must be of shape [{images} or 1, {rows}, ...], found {boxes}",
            hint=f"attribute 'variance_encoded_in_target' is {encoded}, so there {'is no row' if rows == 1 else 'must be a row'} "
            f"of variances",
            clause="proposals is [batch or 1, 1 or 2, ...], with variances in the second row unless they are encoded in the target",
        )

    def _per_prior(self, logits: PartialShape, predictions: PartialShape) -> list[tuple[Dimension, int, str]]:
        """Return lengths that are multiples of the number of priors: (length, factor, name of the input)."""
        lengths = [(logits[1], 4, "box_logits")] if self.share_location else []
        if (classes := self.known_classes()) is not None:
            lengths.append((predictions[1], classes, "class_preds"))
            if not self.share_location:
                lengths.append((logits[1], classes * 4, "box_logits"))
        return lengths

    def _classes(self, logits: PartialShape, predictions: PartialShape, priors: Dimension) -> Dimension:
        if (classes := self.known_classes()) is not None:
            return Dimension(classes)
        count = priors.__index__() if priors.is_static and priors != 0 else 0
        lengths = [(predictions[1], count, "class_preds")] if count else []
        if count and not self.share_location:
            lengths.append((logits[1], count * 4, "box_logits"))
        return common_quotient(lengths, "classes")

    def _most(self, images: Dimension, classes: Dimension, priors: Dimension) -> Interval:
        if self.keep_top_k[0] > 0:
            return images * self.keep_top_k[0]
        return images * classes * (self.top_k if self.keep_top_k[0] == -1 and self.top_k > 0 else priors)

    def _prior_size(self) -> int:
        return 4 if self.normalized else 5

    def evaluate(
        self,
        box_logits: Array,
        class_preds: Array,
        proposals: Array,
        aux_class_preds: Array | None = None,
        aux_box_preds: Array | None = None,
    ) -> Array:
        inputs = (box_logits, class_preds, proposals, aux_class_preds, aux_box_preds)
        shape = self.infer(*(None if x is None else Value.constant(x) for x in inputs)).static  # type: ignore[arg-type]
        priors, variances = self._priors(as_float(proposals))
        images, count = len(box_logits), priors.shape[1]
        scores = as_float(class_preds).reshape(images, count, class_preds.shape[1] // max(count, 1))
        if aux_class_preds is not None:
            empty = as_float(aux_class_preds).reshape(images, count, 2)[..., 1] < self.objectness_score
            nothing = np.arange(scores.shape[2]) == self.background_label_id
            scores = np.where(empty[..., None], nothing.astype(scores.dtype), scores)
        boxes = priors[:, :, None]
        for deltas in (aux_box_preds, box_logits):
            if deltas is not None:
                of_classes = as_float(deltas).reshape(images, count, -1 if count else 1, 4)
                boxes = self._decode(boxes, of_classes, variances)
        rows = []
        for image in range(images):
            valid = self._valid(proposals[image % len(proposals), 0])
            of_classes = boxes[image, :valid].transpose(1, 0, 2)
            rows += [
                self._rows(image, label, places, scores[image], of_classes)
                for label, places in self._select_boxes(of_classes, scores[image, :valid].T)
            ]
        detections = np.concatenate([np.zeros((0, 7), scores.dtype), *rows])[: shape[2]]
        result = np.zeros(shape, scores.dtype)
        result[0, 0, : len(detections)] = detections
        result[0, 0, len(detections) : len(detections) + 1, 0] = -1
        return result.astype(box_logits.dtype, copy=False)

    def _rows(self, image: int, label: int, places: Array, scores: Array, boxes: Array) -> Array:
        left = boxes[label if len(boxes) > 1 else 0, places]
        if self.clip_after_nms:
            left = np.clip(left, 0, 1)
        class_id = label - 1 if self.decrease_label_id else label
        head = np.array([[image, class_id]], scores.dtype).repeat(len(places), axis=0)
        return np.concatenate([head, scores[places, label, None], left], axis=1)

    def _valid(self, priors: Array) -> int:
        if self.normalized:
            return len(priors) // 4
        ends = np.flatnonzero(priors[::5] == -1)
        return int(ends[0]) if ends.size else len(priors) // 5

    def _priors(self, proposals: Array) -> tuple[Array, Array | None]:
        """Return the prior boxes ``[N or 1, priors, 4]``, and their variances unless encoded in the target."""
        entries, _, length = proposals.shape
        count = length // self._prior_size()
        priors = proposals[:, 0].reshape(entries, count, -1 if count else 1)[..., -4:]
        if self.variance_encoded_in_target:
            return priors, None
        return priors, proposals[:, 1, : count * 4].reshape(entries, count, 1, 4)

    def _decode(self, priors: Array, deltas: Array, variances: Array | None) -> Array:
        if not self.normalized:
            priors = priors / np.array([self.input_width, self.input_height] * 2, priors.dtype)
        if variances is not None:
            deltas = deltas * variances
        if self.code_type.endswith("CORNER"):
            boxes = priors + deltas
        else:
            sides = priors[..., 2:] - priors[..., :2]
            middle = (priors[..., :2] + priors[..., 2:]) / 2
            centre = deltas[..., :2] * sides + middle
            half = np.exp(deltas[..., 2:]) * sides / 2
            boxes = np.concatenate([centre - half, centre + half], axis=-1)
        return np.clip(boxes, 0, 1) if self.clip_before_nms else boxes

    def _select_boxes(self, boxes: Array, scores: Array) -> Kept:
        """Return the boxes of a batch entry that remain after suppression and ``keep_top_k``."""
        selected = (
            self._select_best_classes(boxes, scores)
            if self.decrease_label_id
            else self._select_all(boxes, scores)
        )
        most = self.keep_top_k[0]
        if most < 0 or sum(len(places) for _, places in selected) <= most:
            return selected
        labels = np.concatenate([np.full(len(places), label) for label, places in selected])
        places = np.concatenate([places for _, places in selected])
        best = np.lexsort((places, -scores[labels, places]))[:most]
        return [(label, places[best][labels[best] == label]) for label in np.unique(labels[best]).tolist()]

    def _select_all(self, boxes: Array, scores: Array) -> Kept:
        return [
            (
                label,
                self._suppress(
                    boxes, label, descending(scores[label], self.confidence_threshold, self.top_k)
                ),
            )
            for label in range(len(scores) if scores.size else 0)
            if label != self.background_label_id
        ]

    def _select_best_classes(self, boxes: Array, scores: Array) -> Kept:
        if len(scores) < 2 or not scores.shape[1]:
            return []
        labels = scores[1:].argmax(axis=0) + 1
        best = scores[1:].max(axis=0)
        order = descending(best)
        order = order[(best[order] >= self.confidence_threshold) & (best[order] > -1)]
        order = order if self.top_k < 0 else order[: self.top_k]
        return [
            (label, self._suppress(boxes, label, order[labels[order] == label]))
            for label in np.unique(labels[order]).tolist()
        ]

    def _suppress(self, boxes: Array, label: int, places: Array) -> Array:
        of_class = boxes[label if len(boxes) > 1 else 0]
        selected: Array = places[greedy_nms(of_class[places], self.nms_threshold)]
        return selected


@op("DetectionOutput-1", spec="detection/detectionoutput-1")
class DetectionOutput1(DetectionOutputBase):
    """Decode ``box_logits`` relative to the priors ``proposals``, and select the best boxes of each class."""

    num_classes: int = attr(gt=0, doc="number of classes")

    def known_classes(self) -> int | None:
        return self.num_classes


@op("DetectionOutput-8", spec="detection/detectionoutput-8")
class DetectionOutput8(DetectionOutputBase):
    """The same as version 1, but the number of classes follows from the inputs."""


# The numbers of priors and classes, inferred from the lengths of inputs.

_HINTS = {
    "proposals": "a prior takes 4 numbers with attribute 'normalized' true, 5 with false",
    "class_preds": "class_preds holds a number for each prior and class",
    "box_logits": "box_logits holds 4 numbers for each prior; and for each class, if 'share_location' is false",
    "aux_class_preds": "aux_class_preds holds 2 numbers for each prior",
}


def common_quotient(lengths: list[tuple[Dimension, int, str]], what: str) -> Dimension:
    """Return the common quotient of known lengths by their divisors; raise if there is none.

    Args:
        lengths: (length, divisor, name of the input) of each input.
        what: the counted items, for messages.
    """
    quotient = Dimension()
    for length, divisor, name in lengths:
        if not length.is_static:
            continue
        count, rest = divmod(length.__index__(), divisor)
        if rest:
            raise InferenceError(
                f"the last dim of {name} is {length}, not a multiple of {divisor}, as it holds {divisor} numbers for each of "
                f"the {what}",
                hint=_HINTS[name],
                clause=f"the last dim of {name} is a multiple of the numbers for each of the {what}",
            )
        merged = quotient.merge(Dimension(count))
        if merged is None:
            raise InferenceError(
                f"the last dim of {name} is {length}, {divisor} numbers for each of {count} {what}, but the inputs before "
                f"are for {quotient}",
                hint=_HINTS[name],
                clause=f"{name} is for as many {what} as the inputs before it",
            )
        quotient = merged
    return quotient
