"""GatherElements, GatherND and GatherTree: gathering by tensors of indices."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_ANY, T_INDEX, T_INDEX_64, Input, Op, Output, T, attr, op
from .._lengths import broadcast_dims, check_scalar, check_vector, normalize_axis
from ._indices import check_inside, check_tuples, flat_positions, positions


@op("GatherElements-6")
class GatherElements(Op):
    """Elements of ``data`` at the positions in ``indices`` along ``axis``.

    Negative indices count from the end. The page has none, and the reference refuses them; converters
    from ONNX write them, and the plugin takes them.
    """

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to take from")
    indices = Input(T_INDEX_64, "shaped as data but along axis")
    gathered = Output(T_ANY, "of the shape of indices")

    axis: int = attr(
        default_with_warning="0", doc="axis that the indices count along; a negative one counts from the end"
    )

    symbolic = True

    def infer(self, data: Value, indices: Value) -> PartialShape:
        for name, shape in (("data", data.shape), ("indices", indices.shape)):
            if shape.rank == 0:
                raise InferenceError(
                    f"{name} is a scalar; at least one axis is expected",
                    clause=f"{name} has at least one axis",
                )
        if data.shape.rank is None:
            return indices.shape
        axis = normalize_axis(self.axis, data.shape.rank)
        expected = data.shape.replace({axis: -1})
        merged = indices.shape.merge(expected)
        check_inside(indices.known(), data.shape[axis], axis)
        if merged is None:
            raise InferenceError(
                f"indices has shape {indices.shape}; data {data.shape} asks for {expected}, which may differ "
                f"from it along axis {axis} only",
                clause="indices has the shape of data, but for the axis",
            )
        return merged

    def evaluate(self, data: Array, indices: Array) -> Array:
        axis = self.axis % data.ndim
        return np.take_along_axis(data, positions(indices, data.shape[axis], axis), axis)


class GatherNDBase(Op):
    """Base of the versions of GatherND. Negative indices count from the end."""

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "tensor to take from")
    indices = Input(T_INDEX, "tuples along the last axis, each naming an element or a slice of data")
    gathered = Output(T_ANY, "the slices, arranged as the tuples were")

    batch_dims: int = attr(0, ge=0, doc="how many leading axes data and indices have in common")

    symbolic = True

    def infer(self, data: Value, indices: Value) -> PartialShape:
        batch = self.batch_dims
        for name, value in (("data", data), ("indices", indices)):
            if value.shape.rank is not None and value.shape.rank <= batch:
                raise InferenceError(
                    f"{name} has shape {value.shape}, with batch_dims {batch}; at least {batch + 1} axes are expected",
                    clause=f"{name} has more axes than batch_dims",
                )
        if data.shape.rank is None or indices.shape.rank is None or indices.shape[-1].is_dynamic:
            return PartialShape.dynamic()
        selected = batch + int(indices.shape[-1])
        if selected > data.shape.rank:
            raise InferenceError(
                f"indices {indices.shape} has length {selected - batch} along its last axis, and so names {selected - batch} axes of "
                f"data {data.shape}{f' after the first {batch} of batch_dims' if batch else ''}, which has rank {data.shape.rank}",
                clause="the last axis of indices names at most all axes of data after the batch",
            )
        check_tuples(indices.known(), data.shape[batch:selected], batch)
        common = []
        for x, y in zip(data.shape[:batch], indices.shape[:batch], strict=True):
            if (dim := broadcast_dims(x, y)) is None:
                raise InferenceError(
                    f"data {data.shape} and indices {indices.shape} differ in the axes of the batch, which "
                    f"batch_dims {batch} says they share: {x} meets {y}",
                    clause="data and indices have equal lengths along the axes of the batch",
                )
            common.append(dim)
        return PartialShape([*self.arrange(common), *indices.shape[batch:-1], *data.shape[selected:]])

    def arrange(self, batch: list[Dimension]) -> list[Dimension]:
        """Return the batch axes of the output."""
        return batch

    def evaluate(self, data: Array, indices: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(indices)).static
        split, selected = self.batch_dims, self.batch_dims + indices.shape[-1]
        batch = np.broadcast_shapes(data.shape[:split], indices.shape[:split])
        entries, tuples = math.prod(batch), math.prod(indices.shape[split:-1])
        places = flat_positions(indices, data.shape[split:selected], split)
        places = np.broadcast_to(places, batch + indices.shape[split:-1]).reshape(entries, tuples)
        slices = np.broadcast_to(data, batch + data.shape[split:])
        slices = slices.reshape(entries, math.prod(data.shape[split:selected]), *data.shape[selected:])
        return np.asarray(slices[np.arange(entries)[:, None], places].reshape(shape))


@op("GatherND-5")
class GatherND5(GatherNDBase):
    """Slices of ``data`` at the index tuples in ``indices``; batch axes are merged."""

    def arrange(self, batch: list[Dimension]) -> list[Dimension]:
        return [Dimension.of(math.prod(batch[1:], start=batch[0]))] if batch else []


@op("GatherND-8")
class GatherND8(GatherNDBase):
    """Slices of ``data`` at the index tuples in ``indices``.

    The page lets axes of the batch broadcast. OpenVINO 2026.4 still asks for equal ones.
    """


@op("GatherTree-1")
class GatherTree(Op):
    """Tokens of each beam, traced from its last step back through its parents."""

    flops_per_element = 0

    step_ids = Input(T, "[time, batch, beam]: the token chosen at each step")
    parent_ids = Input(T, "[time, batch, beam]: the beam that a step continues")
    max_seq_len = Input(T, "[batch]: how many steps there are")
    end_token = Input(T, "scalar: the token that ends a sequence, and fills the rest")
    final_ids = Output(T, "[time, batch, beam]: whole sequences")

    def infer(self, step_ids: Value, parent_ids: Value, max_seq_len: Value, end_token: Value) -> PartialShape:
        check_scalar(end_token, "end_token")
        check_vector(max_seq_len, "max_seq_len")
        shape = step_ids.shape.merge(parent_ids.shape)
        if shape is None or shape.rank not in (None, 3):
            raise InferenceError(
                f"step_ids has shape {step_ids.shape}, parent_ids {parent_ids.shape}; both must be "
                f"[time, batch, beam], of equal lengths",
                clause="step_ids and parent_ids are [time, batch, beam], of equal lengths",
            )
        if shape.rank is None:
            return shape
        if (batch := shape[1].merge(max_seq_len.count)) is None:
            raise InferenceError(
                f"max_seq_len has length {max_seq_len.count}, but step_ids {shape} has a batch of {shape[1]}",
                clause="max_seq_len has a number for each batch entry",
            )
        return shape.replace({1: batch})

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a message about invalid parents that a sequence reaches."""
        _, parent_ids, max_seq_len, _ = inputs
        parents, lengths = parent_ids.known(), max_seq_len.known()
        if parents is None or lengths is None:
            return
        steps = np.arange(len(parents))[:, None, None]
        beams = parents.shape[2]
        wrong = parents[(steps > 0) & (steps < lengths[:, None]) & ((parents < 0) | (parents >= beams))]
        if wrong.size:
            yield _no_beam(wrong[0], beams)

    def evaluate(self, step_ids: Array, parent_ids: Array, max_seq_len: Array, end_token: Array) -> Array:
        final = np.full_like(step_ids, end_token)
        steps, batch, beams = step_ids.shape
        lengths = max_seq_len.astype(np.int64)[:, None]
        entry = np.arange(batch)[:, None]
        beam = np.broadcast_to(np.arange(beams), (batch, beams))
        for step in reversed(range(steps)):
            reached = np.broadcast_to(step < lengths, beam.shape)
            wrong = reached & ((beam < 0) | (beam >= beams))
            if wrong.any():
                raise InferenceError(_no_beam(beam[wrong][0], beams), clause="parent_ids are beams")
            source = np.where(reached, beam, 0)
            final[step] = np.where(reached, step_ids[step][entry, source], end_token)
            beam = np.where(reached, parent_ids[step].astype(np.int64)[entry, source], beam)
        ended = np.logical_or.accumulate(final == end_token, axis=0)
        return np.where(ended, end_token, final)


def _no_beam(parent: int, beams: int) -> str:
    return f"parent_ids holds {parent}, but beams are 0 to {beams - 1}"
