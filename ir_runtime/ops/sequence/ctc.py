"""Connectionist temporal classification (CTC): greedy decoding and the loss."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.formula import Count
from ...ir.operation import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX_64, Input, Op, Output, attr, check_index_types, op
from .._lengths import check_at_most, check_below, fit_axes
from ..kernels.matmul import accumulator_dtype
from ..kernels.special import log_softmax


@op("CTCGreedyDecoder-1", spec="sequence/ctc-greedy-decoder-1")
class CTCGreedyDecoder(Op):
    """The most likely class of each step of ``data``, without repetitions and blanks; the last class is the blank."""

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T_FLOAT, "scores, [time, batch, classes]", unchecked=True)
    sequence_mask = Input(
        T_FLOAT,
        "[time, batch]: nonzero up to the end of a sequence, 0 after it",
        mixed=True,
        unchecked=True,
    )
    classes = Output(T_FLOAT, "[batch, time, 1, 1], padded with -1")

    ctc_merge_repeated: bool = attr(True, doc="whether to merge equal classes of consecutive steps")

    def infer(self, data: Value, sequence_mask: Value) -> PartialShape:
        lengths: dict[str, Dimension] = {}
        fit_axes("data", ("time", "batch", "classes"), data.shape, lengths)
        fit_axes("sequence_mask", ("time", "batch"), sequence_mask.shape, lengths)
        _some_classes(lengths, "data")
        return PartialShape([lengths.get("batch", -1), lengths.get("time", -1), 1, 1])

    def evaluate(self, data: Array, sequence_mask: Array) -> Array:
        runs = np.logical_and.accumulate(sequence_mask.T != 0, axis=1)
        blank = data.shape[-1] - 1
        classes, _ = collapse(best_path(data).T, runs, blank, self.ctc_merge_repeated)
        return classes.astype(data.dtype)[..., None, None]


@op("CTCGreedyDecoderSeqLen-6", spec="sequence/ctc-greedy-decoder-seq-len-6")
class CTCGreedyDecoderSeqLen(Op):
    """The most likely class of each step of ``data``, without repetitions and blanks, and the resulting lengths."""

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T_FLOAT, "scores, [batch, time, classes]")
    sequence_length = Input(T_INDEX_64, "number of steps of each sequence, [batch]")
    blank_index = Input(
        T_INDEX_64, "the blank class, a scalar or [1]; the last class if absent", optional=True
    )
    classes = Output("classes_index_type", "[batch, time], padded with -1")
    lengths = Output("sequence_length_type", "number of decoded classes of each sequence, [batch]")

    merge_repeated: bool = attr(True, doc="whether to merge equal classes of consecutive steps")
    classes_index_type: ElementType = attr(ElementType.i32, doc="element type of the classes, i64 or i32")
    sequence_length_type: ElementType = attr(ElementType.i32, doc="element type of the lengths, i64 or i32")

    def verify(self) -> None:
        """Require that the outputs are i64 or i32."""
        check_index_types(
            classes_index_type=self.classes_index_type, sequence_length_type=self.sequence_length_type
        )

    def infer(
        self, data: Value, sequence_length: Value, blank_index: Value | None = None
    ) -> tuple[PartialShape, PartialShape]:
        lengths: dict[str, Dimension] = {}
        fit_axes("data", ("batch", "time", "classes"), data.shape, lengths)
        fit_axes("sequence_length", ("batch",), sequence_length.shape, lengths)
        _some_classes(lengths, "data")
        _one_number(blank_index)
        check_at_most(
            sequence_length, "sequence_length", lengths.get("time", Dimension()), "the time of data"
        )
        batch = lengths.get("batch", Dimension())
        return PartialShape([batch, lengths.get("time", -1)]), PartialShape([batch])

    def evaluate(
        self, data: Array, sequence_length: Array, blank_index: Array | None = None
    ) -> tuple[Array, Array]:
        _, time, classes = data.shape
        check_at_most(Value.constant(sequence_length), "sequence_length", Dimension(time), "the time of data")
        blank = classes - 1 if blank_index is None else int(blank_index.item())
        runs = np.arange(time) < sequence_length[:, None]
        labels, lengths = collapse(best_path(data), runs, blank, self.merge_repeated)
        return labels.astype(self.classes_index_type.dtype), lengths.astype(self.sequence_length_type.dtype)


@op("CTCLoss-4", spec="sequence/ctc-loss-4")
class CTCLoss(Op):
    """CTC loss: the negative log-likelihood of ``labels`` given ``logits``, summed over all paths."""

    flops_per_element = 0

    logits = Input(T_FLOAT, "scores, [batch, time, classes]")
    logit_length = Input(T_INDEX_64, "number of steps of each sequence, [batch]")
    labels = Input(T_INDEX_64, "target classes, [batch, time]")
    label_length = Input(T_INDEX_64, "number of labels of each sequence, [batch]")
    blank_index = Input(T_INDEX_64, "the blank class, a scalar; the last class if absent", optional=True)
    losses = Output(T_FLOAT, "the loss of each sequence, [batch]; infinite if no path exists")

    preprocess_collapse_repeated: bool = attr(False, doc="whether to merge equal consecutive labels first")
    ctc_merge_repeated: bool = attr(True, doc="whether to merge equal classes of consecutive steps of a path")
    unique: bool = attr(False, doc="whether to use only the first occurrence of each label")

    def infer(
        self,
        logits: Value,
        logit_length: Value,
        labels: Value,
        label_length: Value,
        blank_index: Value | None = None,
    ) -> PartialShape:
        lengths: dict[str, Dimension] = {}
        fit_axes("logits", ("batch", "time", "classes"), logits.shape, lengths)
        fit_axes("logit_length", ("batch",), logit_length.shape, lengths)
        fit_axes("labels", ("batch", "time"), labels.shape, lengths)
        fit_axes("label_length", ("batch",), label_length.shape, lengths)
        _some_classes(lengths, "logits")
        _one_number(blank_index)
        time, classes = (lengths.get(axis, Dimension()) for axis in ("time", "classes"))
        check_at_most(logit_length, "logit_length", time, "the time of logits")
        check_at_most(label_length, "label_length", time, "the time of logits")
        _check_fewer(label_length, logit_length)
        if blank_index is not None:
            check_below(blank_index, "blank_index", classes, "classes")
        counts, label_values = label_length.ints(), labels.known()
        for row, count in (
            zip(label_values, counts, strict=True) if label_values is not None and counts is not None else ()
        ):
            check_below(Value.constant(row[:count]), "labels", classes, "classes")
        return PartialShape([lengths.get("batch", -1)])

    def evaluate(
        self,
        logits: Array,
        logit_length: Array,
        labels: Array,
        label_length: Array,
        blank_index: Array | None = None,
    ) -> Array:
        inputs = [logits, logit_length, labels, label_length]
        inputs += [] if blank_index is None else [blank_index]
        self.infer(*map(Value.constant, inputs))  # raises if a length or a label is out of range
        classes = logits.shape[2]
        blank = classes - 1 if blank_index is None else int(blank_index.item())
        targets = [row[:count] for row, count in zip(labels, label_length, strict=True)]
        targets = [self._target(target) for target in targets]
        return loss(logits, logit_length, targets, blank, self.ctc_merge_repeated)

    def _target(self, labels: Array) -> Array:
        if self.unique:
            return np.asarray(labels[np.sort(np.unique(labels, return_index=True)[1])])
        if self.preprocess_collapse_repeated:
            return np.asarray(labels[np.diff(labels, prepend=-1) != 0])
        return labels

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the softmax and of the sums over all paths."""
        batch, time, _ = operands.inputs[0]
        return 5 * operands.data + 6 * batch * time * (2 * operands.inputs[2][1] + 1)


def _some_classes(lengths: dict[str, Dimension], name: str) -> None:
    if lengths.get("classes", Dimension()) == 0:
        raise InferenceError(
            f"{name} has 0 classes, its last dimension; 1 or more are expected",
            clause=f"{name} has at least one class",
        )


def _one_number(blank_index: Value | None) -> None:
    if blank_index is not None and not (
        blank_index.shape.rank in (None, 0, 1) and blank_index.count.contains(1)
    ):
        raise InferenceError(
            f"blank_index must be one number, found {blank_index.shape}", clause="blank_index is one number"
        )


def _check_fewer(label_length: Value, logit_length: Value) -> None:
    for labels, steps in zip(label_length.ints() or (), logit_length.ints() or (), strict=False):
        if labels > steps:
            raise InferenceError(
                f"label_length holds {labels} where logit_length holds {steps}; at most as many labels as steps are "
                f"expected",
                clause="label_length is at most logit_length",
            )


# The algorithms of CTC.


def best_path(scores: Array) -> Array:
    """Return the argmax along the last axis; NaN is skipped, unless it is the first element."""
    is_nan = np.isnan(scores)
    if not is_nan.any():
        return np.asarray(scores.argmax(-1))
    numbers = np.where(is_nan, scores.dtype.type(-np.inf), scores)
    return np.asarray(np.where(is_nan[..., 0], 0, numbers.argmax(-1)))


def collapse(path: Array, runs: Array, blank: int, merge_repeated: bool) -> tuple[Array, Array]:
    """Remove blanks, and optionally repetitions, from paths.

    Args:
        path: classes ``[batch, time]``.
        runs: a mask ``[batch, time]`` of the steps of each sequence.
        blank: the blank class.
        merge_repeated: whether to merge equal classes of consecutive steps.

    Returns:
        The remaining classes ``[batch, time]``, padded with -1, and their numbers ``[batch]``.
    """
    keep = runs & (path != blank)
    if merge_repeated:
        keep[:, 1:] &= path[:, 1:] != path[:, :-1]
    lengths = np.count_nonzero(keep, axis=1)
    classes = np.full(path.shape, -1)
    classes[np.arange(path.shape[1]) < lengths[:, None]] = path[keep]
    return classes, lengths


def loss(logits: Array, lengths: Array, targets: list[Array], blank: int, merge_repeated: bool) -> Array:
    """Return the negative log-likelihood of the targets, given ``logits[batch, time, classes]``.

    A path visits the labels of its target in order, with optional blanks before, between and after them. At each step,
    it stays or advances. With ``merge_repeated``, a blank is required between equal labels; without it, a path never
    stays at a label.
    """
    batch, time, _ = logits.shape
    sizes = np.array([len(target) for target in targets], np.int64)
    places = np.full((batch, 2 * sizes.max(initial=0) + 1), blank)
    for entry, target in enumerate(targets):
        places[entry, 1 : 2 * len(target) : 2] = target
    labels = np.arange(places.shape[1]) % 2 == 1
    leaps = np.broadcast_to(labels, places.shape)[:, 2:]
    if merge_repeated:
        leaps = leaps & (places[:, 2:] != places[:, :-2])
    chances = log_softmax(logits.astype(accumulator_dtype(logits.dtype), copy=False), -1)
    paths = np.full(places.shape, -np.inf, chances.dtype)
    paths[:, 0] = 0  # start at the first blank
    for now in range(time):
        scores = paths.copy() if merge_repeated else np.where(labels, -np.inf, paths)
        scores[:, 1:] = np.logaddexp(scores[:, 1:], paths[:, :-1])
        scores[:, 2:] = np.logaddexp(scores[:, 2:], np.where(leaps, paths[:, :-2], -np.inf))
        scores += np.take_along_axis(chances[:, now], places, axis=1)
        paths = np.where(lengths[:, None] > now, scores, paths)
    ends = np.stack([2 * sizes, np.maximum(2 * sizes - 1, 0)], axis=1)
    last = np.take_along_axis(paths, ends, axis=1)
    scores = np.where(sizes > 0, np.logaddexp(last[:, 0], last[:, 1]), last[:, 0])
    return np.asarray(0 - scores).astype(logits.dtype)
