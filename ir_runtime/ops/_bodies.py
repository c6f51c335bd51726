"""Inference of operations with bodies: the inputs and outputs of a body, and the fixed point of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ..codes import Code
from ..errors import ExecutionError, InferenceError
from ..ir.dimension import Dimension
from ..ir.element import ElementType
from ..ir.graph import Body, Port
from ..ir.port_map import Cut
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value
from ._define.operation import EVERY, Element
from ._lengths import normalize_axis

__all__ = [
    "T_OUTER",
    "Visit",
    "check_one",
    "check_ties",
    "common_parts",
    "feeds_of",
    "outputs_of",
    "infer_iterations",
    "iterated",
    "only",
    "out_of_range",
]

T_OUTER = Element("T", EVERY, "any type, on each port", shared=False)

_Tensor = TypeVar("_Tensor")

Visit: TypeAlias = Callable[[Body, Mapping[int, Any]], Mapping[int, Any]]
"""A function that infers or runs a body: it maps values of Parameters to values of Results, both by layer id."""

# The types of loop-carried values widen until they reach a fixed point, which takes a few rounds.
_MAX_ROUNDS = 12


def check_one(value: Value, name: str) -> None:
    """Require a tensor of one element and any rank."""
    if not value.count.contains(1):
        raise InferenceError(
            f"{name} must be one number or boolean, not of shape {value.shape}",
            clause=f"{name} is one number or boolean",
        )


def only(array: Array, name: str) -> float:
    """Return the only element of ``array``; raise if it has more or none."""
    if array.size != 1:
        shape = PartialShape(array.shape)
        raise ExecutionError(
            f"{name} must be one number or boolean, not of shape {shape}",
            clause=f"{name} is one number or boolean",
        )
    element: float = array.item()
    return element


def feeds_of(body: Body, every: Sequence[_Tensor]) -> dict[int, _Tensor]:
    """Return the values of the Parameters that take a whole input, by id, given all inputs of the layer."""
    return {i.parameter: every[i.port] for i in body.inputs if i.cut is None and i.port < len(every)}


def outputs_of(body: Body, results: Mapping[int, _Tensor], count: int) -> list[_Tensor]:
    """Return the ``count`` outputs of the layer, given the values of the Results of a body by id."""
    by_port = {o.port: o.result for o in body.outputs}
    missing = set(range(count)) - by_port.keys()
    if missing:
        raise InferenceError(
            f"the port map of {body.name} has no <output> for output {min(missing)} of the layer, counted from 0",
            code=Code.PORT_COUNT,
            clause="the port map has an <output> for each output of the layer",
        )
    return [results[by_port[port]] for port in range(count)]


def check_ties(body: Body) -> None:
    """Require that slices are nonempty and adjacent, and that each Parameter that is read receives a value.

    The specification only mentions slices whose length is the stride. OpenVINO infers other strides, but its plugin
    refuses to run them. By the specification, slices of an output are concatenated whatever their lengths; the plugin
    requires the declared length.
    """
    for port, cut in ((entry.port, entry.cut) for entry in body.inputs if entry.cut):
        if cut.part_size < 1 or cut.stride == 0:
            wrong = "stride 0" if cut.stride == 0 else f"part_size {cut.part_size}"
            raise InferenceError(
                f"port_map splits input {port}, counted from 0, with {wrong}, which gives no parts",
                clause="part_size of a sliced input is at least 1, and its stride is not 0",
            )
        if abs(cut.stride) != cut.part_size:
            raise InferenceError(
                f"port_map splits input {port}, counted from 0, with part_size {cut.part_size} and stride {cut.stride}; "
                f"parts must follow one another, so the stride must be {cut.part_size} or -{cut.part_size}",
                clause="stride of a sliced input is part_size or -part_size",
            )
    fed = {entry.parameter for entry in body.inputs} | {body.iteration}
    round = {edge.parameter for edge in body.back_edges}
    for id, layer in body.parameters.items():
        if id not in fed and (id in round or body.graph.readers(Port(id, 0))):
            raise InferenceError(
                f"layer {id} {layer.name!r} of {body.name}, a Parameter, has no value: the port map has no <input> "
                f"for it",
                code=Code.UNCONNECTED,
                clause="each Parameter of the body that is read has an <input> or a back edge in the port map",
            )


def out_of_range(port: int, axis: int, length: int, where: slice, iteration: int) -> str:
    """Return the error message for a slice that exceeds its input.

    Args:
        port: the index of the input.
        axis: the sliced axis.
        length: the length of that axis.
        where: the slice, as positions along the axis.
        iteration: the iteration that reads it, from 0.
    """
    return (
        f"iteration {iteration} takes elements {where.start} to {where.stop - 1} along axis {axis} of input {port}, "
        f"counted from 0, but that axis has length {length}"
    )


def common_parts(body: Body, shapes: Sequence[PartialShape]) -> Dimension:
    """Return the common number of slices of all sliced inputs, possibly unknown; 1 if no input is sliced."""
    counts_by_port = [(i.port, _parts(i.port, shapes[i.port], i.cut)) for i in body.inputs if i.cut]
    static = [(port, count) for port, count in counts_by_port if count.is_static]
    if len({count for _, count in static}) > 1:
        counts = ", ".join(f"input {port} into {count}" for port, count in static)
        raise InferenceError(
            f"inputs must be split into the same number of parts, but port_map splits {counts}",
            clause="all sliced inputs have the same number of parts",
        )
    return static[0][1] if static else Dimension() if counts_by_port else Dimension(1)


def _parts(port: int, shape: PartialShape, cut: Cut) -> Dimension:
    """Return the number of slices of an input, possibly unknown.

    Raises:
        InferenceError: if slices do not divide the elements to split, or exceed the input.
    """
    if shape.rank is None:
        return Dimension()
    axis = normalize_axis(cut.axis, shape.rank)
    if shape[axis].is_dynamic:
        return Dimension()
    length = shape[axis].get_length()
    count, rest = cut.divide(length)
    if rest:
        raise InferenceError(
            f"input {port}, counted from 0, has {count * cut.part_size + rest} elements to split along axis {axis}, "
            f"which parts of {cut.part_size} do not divide",
            clause="part_size divides the elements to split",
        )
    for iteration in (0, count - 1)[:count]:
        where = cut.part(length, iteration)
        if where.start < 0 or where.stop > length:
            raise InferenceError(
                out_of_range(port, axis, length, where, iteration),
                clause="the parts of a sliced input are inside it",
            )
    return Dimension(count)


def infer_iterations(
    body: Body, every: Sequence[Value], visit: Visit, elements: Mapping[int, ElementType]
) -> Mapping[int, Value]:
    """Infer the Results of a loop body, valid for every iteration.

    Args:
        body: the loop body.
        every: all inputs of the layer.
        visit: infers the body.
        elements: the element types of Parameters that convert their input, by id.
    """
    feeds = {p: Value(v.type) if _is_loop_carried(body, p) else v for p, v in feeds_of(body, every).items()}
    for entry in body.inputs:
        if entry.cut:
            feeds[entry.parameter] = Value(_part_type(every[entry.port], entry.cut))
    for parameter in feeds.keys() & elements.keys():
        feeds[parameter] = _convert_value(feeds[parameter], elements[parameter])
    if body.iteration is not None and (op := body.parameters[body.iteration].op) is not None:
        feeds[body.iteration] = Value.unknown(vars(op)["element_type"], vars(op)["shape"])
    return _infer_fixed_point(body, feeds, visit)


def iterated(
    body: Body, results: Mapping[int, Value], trips: Dimension, count: int
) -> tuple[TensorType, ...]:
    """Return the types of the ``count`` outputs of a loop after ``trips`` iterations, given the values of its Results by id."""
    cuts = {o.port: o.cut for o in body.outputs}
    last = [value.type for value in outputs_of(body, results, count)]
    return tuple(_output_type(cuts[port], type, trips) for port, type in enumerate(last))


def _is_loop_carried(body: Body, parameter: int) -> bool:
    return any(edge.parameter == parameter for edge in body.back_edges)


def _infer_fixed_point(body: Body, feeds: dict[int, Value], visit: Visit) -> Mapping[int, Value]:
    """Infer the body repeatedly until the types of loop-carried values reach a fixed point.

    Nesting multiplies the number of inferences, so loop-carried shapes of deeply nested loops start fully dynamic.
    """
    if getattr(visit, "is_deep", False):
        feeds |= {edge.parameter: _forget_shape(feeds[edge.parameter]) for edge in body.back_edges}
    for round in range(_MAX_ROUNDS):
        results = visit(body, feeds)
        wider = {}
        for edge in body.back_edges:
            before, after = feeds[edge.parameter].type, results[edge.result].type
            if not _is_convertible(after.element, before.element):
                raise InferenceError(
                    f"the back edge from layer {edge.result} to layer {edge.parameter} of the body gives "
                    f"{after.element.label}, but the latter is fed {before.element.label} at first",
                    clause="a back edge gives the element type that the Parameter is fed, or a number that converts to it",
                )
            if _stays(before.shape, after.shape):
                continue
            after = TensorType(before.element, after.shape)  # the Parameter keeps its type
            wider[edge.parameter] = Value(_widen(before, after, forget=round > 1))
        if not wider:
            return results
        feeds |= wider
    return results


def _is_convertible(source: ElementType, target: ElementType) -> bool:
    """Return whether a loop can convert between element types: both have whole bytes, or one is dynamic."""
    return source is target or ElementType.dynamic in (source, target) or min(source.bits, target.bits) >= 8


def _convert_value(value: Value, element: ElementType) -> Value:
    """Convert a value to the element type of a Parameter."""
    if value.element is element:
        return value
    if not _is_convertible(value.element, element):
        raise InferenceError(
            f"a Parameter of the body declares {element.label}, to which the {value.element.label} that it is fed cannot be converted",
            clause="a Parameter of the body is fed its element type, or a number that converts to it",
        )
    return Value(TensorType(element, value.shape))


def _forget_shape(value: Value) -> Value:
    return Value(TensorType(value.element, PartialShape.dynamic()))


def _stays(before: PartialShape, after: PartialShape) -> bool:
    """Return whether a loop-carried shape is unchanged, including its symbols."""
    if before.rank is None or not after.refines(before):
        return before.rank is None
    return all(b.symbol is None or b.symbol is a.symbol for b, a in zip(before, after, strict=True))


def _widen(before: TensorType, after: TensorType, forget: bool) -> TensorType:
    joined = before.join(after)
    if not forget or joined.shape.rank is None:
        return joined
    pairs = zip(before.shape, joined.shape, strict=True)
    dims = [j if (b.min, b.max) == (j.min, j.max) else Dimension() for b, j in pairs]
    return TensorType(joined.element, PartialShape(dims))


def _part_type(value: Value, cut: Cut) -> TensorType:
    if value.shape.rank is None:
        return value.type
    axis = normalize_axis(cut.axis, value.shape.rank)
    return TensorType(value.element, value.shape.replace({axis: cut.part_size}))


def _output_type(cut: Cut | None, type: TensorType, trips: Dimension) -> TensorType:
    if cut is None or type.shape.rank is None:
        return type
    axis = normalize_axis(cut.axis, type.shape.rank)
    # The file tells the length of a slice, even if the body does not.
    part = type.shape[axis].merge(Dimension(cut.part_size)) or type.shape[axis]
    return TensorType(type.element, type.shape.replace({axis: part * trips}))
