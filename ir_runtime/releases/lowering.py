"""Lower a graph to operations that an older release reads, if their results are exactly the same.

Rules (`lowers`) replace a layer with older operations: the previous version of its operation, if the attributes added
since are at their defaults, or a composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ..analysis.infer import Inferred
from ..codes import Code
from ..compiler.evaluate import evaluate_constant, is_foldable
from ..diagnostics import Diagnostic
from ..errors import ValidationError
from ..io.reader.replacing import Rebuilt, Replacement, Tensor, Unused
from ..ir.element import ElementType
from ..ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import Array, Value
from ..limits import current
from ..ops import Op, registry
from .needs import LayerFeatures, Need, body_types, features_of, needs_of
from .release import Release

__all__ = ["Lowered", "Place", "as_former", "lower", "lowers", "rules"]

_PASSES = 10
"""The maximum number of passes. Replacements are lowered in turn, and no chain of versions is longer."""


def lower(
    graph: Graph, inferred: Inferred, release: Release, infer: Callable[[Graph], Inferred]
) -> tuple[Graph, Inferred]:
    """Return an equivalent graph that a release reads, and its inferred types.

    Args:
        graph: the layers.
        inferred: their inferred types.
        release: the target release.
        infer: infers the types of a changed graph.

    Raises:
        ValidationError: if layers cannot be lowered; the error names them, with the reasons.
    """
    names = {layer.name for layer in graph.everywhere()}
    reasons: dict[str, str] = {}
    original = [need for need in needs_of(graph, inferred) if not need.is_met(release)]
    for _ in range(_PASSES):
        features = {id(entry.layer): entry for entry in features_of(graph, inferred)}
        if (lowered := _Pass(release, names, reasons, features).run(graph, inferred)) is graph:
            break
        graph, inferred = lowered, infer(lowered)
    unmet = [need for need in needs_of(graph, inferred) if not need.is_met(release)]
    if unmet:
        raise ValidationError.of(
            [_obstacle(release, n, reasons) for n in _blame_original_layers(unmet, original)]
        )
    return graph, inferred


def _blame_original_layers(unmet: Sequence[Need], original: Sequence[Need]) -> Sequence[Need]:
    """Return unmet needs in terms of the original layers, not of their replacements."""
    left = {(need.layer, need.feature) for need in unmet}
    same = [need for need in original if (need.layer, need.feature) in left]
    replaced = {need.layer for need in unmet} - {need.layer for need in same}
    return [need for need in original if need in same or need.layer in replaced] or unmet


def _obstacle(release: Release, need: Need, reasons: Mapping[str, str]) -> Diagnostic:
    """Return the finding for a layer that cannot be lowered."""
    message = f"OpenVINO {release} does not read {need.text}"
    later = f"save it for {need.first} or later, or " if need.first else ""
    hint = f"{later}change the layer in the original model"
    if need.code is Code.RELEASE_SHAPE:
        hint = f"{later}give its inputs lengths with Model.reshape"
    elif need.code is Code.RELEASE_TYPE:
        message += "; only constants of it can be converted"
    else:
        why = reasons.get(need.layer or "", "no older operations compute exactly the same")
        message += f", and nothing can take its place: {why}"
    return Diagnostic(need.code, message, need.where, hint=hint)


@dataclass(slots=True)
class _Pass:
    """The lowering pass over a graph and its bodies."""

    release: Release
    names: set[str]
    """Layer names already in use."""
    reasons: dict[str, str]
    """Reasons why layers could not be replaced, by layer name."""
    features: Mapping[int, LayerFeatures]
    """Features of layers, by `id` of the layer."""
    rebuilt: dict[int, Rebuilt] = field(default_factory=dict)
    """Replacements of the layers of this graph, by layer id."""

    def run(self, graph: Graph, inferred: Inferred) -> Graph:
        """Return the graph with layers replaced, or `graph` itself if none was."""
        unused = Unused(count(max(graph.layers, default=-1) + 1), self.names)
        layers: list[Layer] = []
        for layer in graph.layers.values():
            lowered = self._lower_bodies(layer, inferred)
            unmet = self._unmet(layer)
            if any("@" in name or name.startswith("opset:") for name in unmet):
                assert isinstance(layer.op, Op)
                layers.append(replace(lowered, version=f"opset{layer.op.since}"))
            elif (unmet or self._reads_unmet(graph, layer)) and (
                new := self._replacement(graph, layer, inferred, unused)
            ):
                self.rebuilt[layer.id] = new
                layers += map(_renumber_ports, new.layers)
            else:
                layers.append(lowered)
        if not self.rebuilt and all(map(_is_same, layers, graph.layers.values())):
            return graph
        return _drop_unused_constants(graph, Graph(layers, self._edges(graph), graph.severed))

    def _unmet(self, layer: Layer) -> Sequence[str]:
        return [name for name in self.features[id(layer)].own if not self.release.reads(name)]

    def _reads_unmet(self, graph: Graph, layer: Layer) -> bool:
        """Return whether a layer reads a constant of an element type unknown to the release."""
        sources = (graph[source.layer] for source in graph.reads(layer))
        return any(source.type == "Constant" and self._unmet(source) for source in sources)

    def _lower_bodies(self, layer: Layer, inferred: Inferred) -> Layer:
        """Return the layer with its bodies lowered."""
        if layer.op is None or not (bodies := layer.bodies()):
            return layer
        changed: dict[str, Body] = {}
        for body in bodies:
            inner = replace(self, rebuilt={})
            lowered = inner.run(body.graph, body_types(inferred, layer, body))
            if lowered is not body.graph:
                changed[body.name] = replace(body, graph=lowered)
        return replace(layer, op=_replace_bodies(layer.op, changed)) if changed else layer

    def _replacement(self, graph: Graph, layer: Layer, inferred: Inferred, unused: Unused) -> Rebuilt | None:
        """Return the replacement of a layer; ``None`` if there is no exact one."""
        sources = graph.sources(layer)
        if not isinstance(layer.op, Op) or not layer.outputs or not sources or None in sources:
            return None
        values = [inferred[source] for source in sources if source is not None]
        place = Place(
            layer,
            tuple(map(_tensor, sources, values, layer.inputs)),
            unused,
            tuple(values),
            tuple(bool(graph.readers(port)) for port in layer.output_ports),
            self.release,
        )
        rule = rules().get(layer.op.versioned_name())
        try:
            outputs = rule(place, layer.op) if rule else None
        except ValidationError as reason:
            self.reasons[layer.name] = reason.message
            outputs, place.drafts = None, []
        if outputs is None:
            outputs = self._fold(graph, layer, inferred, place)
        if outputs is None:
            return None
        rebuilt = place.finish([outputs] if isinstance(outputs, Tensor) else outputs)
        layers = [
            replace(new, rt_info=layer.rt_info) if new.id == layer.id else new for new in rebuilt.layers
        ]
        return rebuilt._replace(layers=layers)

    def _fold(
        self, graph: Graph, layer: Layer, inferred: Inferred, place: Place
    ) -> tuple[Tensor, ...] | None:
        """Return the results of a layer as constants; ``None`` if it cannot be computed now, such as if an input is not constant.

        Args:
            graph: the graph of the layer.
            layer: the layer.
            inferred: the inferred types.
            place: receives the constants.
        """
        left = current().memory
        if not is_foldable(graph, layer, inferred, left):
            return None
        elements = [inferred[port].element for port in layer.output_ports]
        arrays = evaluate_constant(graph, layer, inferred, left)
        return tuple(map(place.constant, arrays, elements))

    def _edges(self, graph: Graph) -> list[Edge]:
        """Return the edges of the new graph."""
        moved = {
            Port(number, index): tensor.port
            for number, new in self.rebuilt.items()
            for index, tensor in enumerate(new.outputs)
            if tensor.port is not None
        }
        edges = [
            Edge(moved.get(source, source), target)
            for source, target in graph.edges
            if target.layer not in self.rebuilt
        ]
        for new in self.rebuilt.values():
            own = {layer.id for layer in new.layers}
            edges += [
                Edge(source if source.layer in own else moved.get(source, source), target)
                for source, target in new.edges
            ]
        return edges


def _tensor(source: Port | None, value: Value, spec: PortSpec) -> Tensor:
    return Tensor(source, value.element, spec)


def _is_same(one: Layer, other: Layer) -> bool:
    return one is other


def _replace_bodies(op: Operation, bodies: Mapping[str, Body]) -> Operation:
    return op.replace(**bodies)


def _renumber_ports(layer: Layer) -> Layer:
    """Number the ports of a layer, which may have more inputs than the layer that it replaces."""
    inputs = tuple(replace(port, id=number) for number, port in enumerate(layer.inputs))
    outputs = tuple(replace(port, id=number) for number, port in enumerate(layer.outputs, len(inputs)))
    return replace(layer, inputs=inputs, outputs=outputs)


def _drop_unused_constants(before: Graph, graph: Graph) -> Graph:
    """Drop constants that only replaced layers read."""

    def is_unused(layer: Layer) -> bool:
        port = Port(layer.id, 0)
        return layer.type == "Constant" and bool(before.readers(port)) and not graph.readers(port)

    layers = [layer for layer in graph.layers.values() if not is_unused(layer)]
    return Graph(layers, graph.edges, graph.severed)


Lowered: TypeAlias = "Tensor | tuple[Tensor, ...]"
"""Replacements for the outputs of a layer; unused trailing outputs may be omitted."""

Rule: TypeAlias = "Callable[[Place, Any], Lowered]"


@dataclass(slots=True)
class Place(Replacement):
    """A layer to be lowered. Rules call `refuse` if older operations would give different results."""

    values: tuple[Value, ...]
    """Inferred values of the inputs."""
    is_read: tuple[bool, ...]
    """Whether each output has a consumer."""
    release: Release

    def numbers(self, index: int) -> Array | None:
        """Return the contents of an input, by its index; ``None`` if unknown before a run."""
        return self.values[index].known()

    def constant_ints(self, index: int, what: str) -> tuple[int, ...]:
        """Return the integers of an input that must be constant.

        Args:
            index: the index of the input.
            what: what the integers are, for the message: ``axes``.

        Raises:
            ValidationError: if the input is not constant.
        """
        numbers = self.values[index].ints()
        if numbers is None:
            self.refuse(f"its {what} are not constant")
        return numbers

    def rank(self, index: int = 0) -> int:
        """Return the rank of an input.

        Raises:
            ValidationError: if it is dynamic.
        """
        rank = self.values[index].shape.rank
        if rank is None:
            self.refuse("the rank of its input is dynamic")
        return rank

    def dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the lengths of the axes of an input.

        Raises:
            ValidationError: if the shape is not static.
        """
        shape = self.values[index].shape
        if not shape.is_static:
            self.refuse("the dims of its input are dynamic")
        return shape.static

    def full(self, value: float, index: int = 0) -> Tensor:
        """Add a constant scalar ``value`` with the element type of the input ``index``."""
        return self.constant(np.float64(value), self.values[index].element)

    def wide(self, x: Tensor) -> Tensor:
        """Convert a tensor with fewer than 32 bits per element to f32, as operations compute such types; return others as is."""
        return self.convert(x, ElementType.f32) if x.element.bits < 32 else x


_RULES: dict[str, Rule] = {}


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule for operation versions such as ``Identity-16``."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def rules() -> Mapping[str, Rule]:
    """Return the rules registered so far, by operation version."""
    return MappingProxyType(_RULES)


def as_former(place: Place, op: Op) -> Lowered:
    """Replace a layer by the previous version of its operation, with the same inputs in the same order.

    Attributes that only the newer version has must be at their defaults, and its additional outputs unused.
    """
    former = [cls for cls in registry.versions(op.name) if cls.since < op.since][-1]
    schema, later = former.schema(), op.schema()
    for name in later.keys() - schema.keys():
        if not _has_no_effect(op, name):
            place.refuse(f"{former.versioned_name()} has no attribute {later[name].xml!r}")
    fields = {name: vars(op)[name] for name in schema}
    if len(place.inputs) > len(former.inputs):
        place.refuse(f"{former.versioned_name()} has no input {op.inputs[len(former.inputs)].name!r}")
    if any(place.is_read[len(former.outputs) :]):
        place.refuse(f"{former.versioned_name()} has no output {op.outputs[len(former.outputs)].name!r}")
    for problem in _problems(former, fields):
        place.refuse(f"{former.versioned_name()} does not allow this: {problem}")
    return place.add(former(**fields), place.inputs, len(former.outputs))


def _has_no_effect(op: Op, name: str) -> bool:
    """Return whether an attribute may be dropped: it is at its default, or concerns only the indices of MaxPool.

    Dilations of ones count as the default. That the indices are not read is checked separately.
    """
    value, default = vars(op)[name], op.schema()[name].default
    is_ones = name == "dilations" and all(number == 1 for number in value)
    return value == default or is_ones or name in _OF_INDICES


_OF_INDICES = ("index_element_type", "axis")
"""Attributes of the indices output of MaxPool, which its previous version lacks."""


def _problems(cls: type[Op], fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        try:
            cls.schema()[name].check(value)
        except ValueError as problem:
            yield f"attribute {cls.schema()[name].xml!r} {problem}"


lowers(
    "AvgPool-14",
    "AvgPool-16",
    "DeformableConvolution-8",
    "MaxPool-8",
    "MaxPool-14",
    "MulticlassNms-9",
    "NonMaxSuppression-9",
    "OneHot-16",
    "PriorBox-8",
    "ROIAlign-9",
    "ScatterNDUpdate-15",
    "Squeeze-15",
    "TopK-11",
)(as_former)


@lowers("SoftMax-8")
def soft_max(place: Place, op: Any) -> Lowered:
    """Return SoftMax-1, whose axis must not be negative."""
    if place.rank() == 0:
        place.refuse("SoftMax-1 takes no scalars")
    return place.op("SoftMax-1", *place.inputs, axis=op.axis % place.rank())


@lowers("Pad-12")
def pad(place: Place, op: Any) -> Lowered:
    """Return Pad-1; refuse negative padding, which crops and which Pad-1 does not support."""
    for index in (1, 2):
        if min(place.constant_ints(index, "numbers of padding"), default=0) < 0:
            place.refuse("Pad-1 has no negative padding")
    return place.op("Pad-1", *place.inputs, pad_mode=op.pad_mode)


@lowers("ScatterElementsUpdate-12")
def scatter_elements_update(place: Place, op: Any) -> Lowered:
    """Return ScatterElementsUpdate-3; refuse reductions, as it only replaces elements."""
    if op.reduction != "none":
        place.refuse(f"ScatterElementsUpdate-3 has no reduction {op.reduction!r}")
    return place.op("ScatterElementsUpdate-3", *place.inputs)


@lowers("EmbeddingBagOffsets-15")
def embedding_bag_offsets(place: Place, op: Any) -> Lowered:
    """Return EmbeddingBagOffsetsSum-3; refuse reductions other than the sum."""
    return _sum_bags(place, op, "EmbeddingBagOffsetsSum-3")


@lowers("EmbeddingBagPacked-15")
def embedding_bag_packed(place: Place, op: Any) -> Lowered:
    """Return EmbeddingBagPackedSum-3; refuse reductions other than the sum."""
    return _sum_bags(place, op, "EmbeddingBagPackedSum-3")


def _sum_bags(place: Place, op: Any, former: str) -> Lowered:
    if op.reduction != "sum":
        place.refuse(f"{former} has no reduction {op.reduction!r}")
    return place.op(former, *place.inputs)


@lowers("DetectionOutput-8")
def detection_output(place: Place, op: Any) -> Lowered:
    """Return DetectionOutput-1, with its attribute ``num_classes`` computed from the lengths of the inputs."""
    priors = place.dims(2)[-1] // (4 if op.normalized else 5)
    classes = place.dims(1)[-1] // max(priors, 1)
    return place.op("DetectionOutput-1", *place.inputs, num_classes=classes, **op.attributes())


@lowers("Interpolate-11")
def interpolate(place: Place, op: Any) -> Lowered:
    """Return Interpolate-4, which takes both sizes and scales: those that the mode does not use are ones.

    Modes of Pillow are refused.
    """
    if op.mode in ("bilinear_pillow", "bicubic_pillow"):
        place.refuse(f"Interpolate-4 has no mode {op.mode!r}")
    data, target, *axes = place.inputs
    count = place.dims(1)[0]
    if op.shape_calculation_mode == "sizes":
        sizes, scales = target, place.constant(np.ones(count), ElementType.f32, "scales")
    else:
        sizes, scales = place.constant(np.ones(count, np.int64), name="sizes"), target
    return place.op("Interpolate-4", data, sizes, scales, *axes, **op.attributes())


@lowers("IsNaN-10")
def is_nan(place: Place, op: Any) -> Lowered:
    """Return whether each element differs from itself, as only NaN does."""
    (x,) = place.inputs
    return place.op("NotEqual-1", x, x)


@lowers("IsFinite-10")
def is_finite(place: Place, op: Any) -> Lowered:
    """Return whether the magnitude of each element is less than infinity, which holds for neither infinities nor NaN."""
    (x,) = place.inputs
    return place.op("Less-1", place.op("Abs-1", x), place.full(np.inf))


@lowers("IsInf-10")
def is_inf(place: Place, op: Any) -> Lowered:
    """Return whether each element equals an infinity to detect."""
    (x,) = place.inputs
    if op.detect_positive and op.detect_negative:
        return place.op("Equal-1", place.op("Abs-1", x), place.full(np.inf))
    if not op.detect_positive and not op.detect_negative:
        return place.op("Less-1", x, x)
    return place.op("Equal-1", x, place.full(np.inf if op.detect_positive else -np.inf))


@lowers("SoftSign-9")
def soft_sign(place: Place, op: Any) -> Lowered:
    """Return x / (1 + abs(x)), computed in f32 for f16 and bf16, so that results are rounded once."""
    (data,) = place.inputs
    x = place.wide(data)
    size = place.op("Abs-1", x)
    result = place.op("Divide-1", x, place.op("Add-1", size, place.constant(1, x.element)))
    return place.convert(result, data.element)


@lowers("Identity-16")
def identity(place: Place, op: Any) -> Lowered:
    """Return a Concat of the single tensor, or for a scalar, which cannot be concatenated, a Convert to its own type."""
    (x,) = place.inputs
    if place.rank() == 0:
        return place.op("Convert-1", x, destination_type=place.values[0].element)
    return place.identity(x)


@lowers("ConvertPromoteTypes-14")
def convert_promote_types(place: Place, op: Any) -> Lowered:
    """Return both inputs, converted to their common type."""
    common = op.infer_types(*place.values)[0].element
    if common is ElementType.dynamic:
        place.refuse("the element types of its inputs are dynamic")
    return tuple(place.op("Convert-1", x, destination_type=common) for x in place.inputs)


@lowers("BitwiseNot-13", "BitwiseAnd-13", "BitwiseOr-13", "BitwiseXor-13")
def bitwise(place: Place, op: Any) -> Lowered:
    """Return the logical operation for booleans; for BitwiseNot of integers, subtract from the integer with all bits set.

    Other bitwise operations on integers are refused.
    """
    element = place.values[0].element
    if element is ElementType.boolean:
        name = op.name.removeprefix("Bitwise")
        how = {} if name == "Not" else {"auto_broadcast": op.auto_broadcast}
        return place.op(f"Logical{name}-1", *place.inputs, **how)
    if op.name != "BitwiseNot" or element is ElementType.dynamic:
        place.refuse("there are logical operations for booleans only")
    ones = -1 if element.signed else (1 << element.bits) - 1
    return place.op("Subtract-1", _scalar(place, ones, element), *place.inputs)


def _scalar(place: Place, value: int, element: ElementType) -> Tensor:
    return place.constant(np.array(value, element.dtype), element)


@lowers("Gather-8")
def gather(place: Place, op: Any) -> Lowered:
    """Return Gather-7, which takes no negative indices.

    Unless the indices are known to be non-negative, the length of the axis is added to negative ones.
    """
    data, indices, axis = place.inputs
    values = place.numbers(1)
    if values is None or bool(values.size and values.min() < 0):
        indices = _wrap_negative(place, place.constant_ints(2, "axis")[0])
    return place.op("Gather-7", data, indices, axis, batch_dims=op.batch_dims)


def _wrap_negative(place: Place, axis: int) -> Tensor:
    """Return the indices of a Gather, with the length of ``axis`` added to negative ones."""
    data, indices, _ = place.inputs
    element = place.values[1].element
    zero = place.constant(0, element)
    length = place.op("ShapeOf-3", data, output_type=ElementType.i64)
    length = place.op("Gather-1", length, place.constant(axis % place.rank()), place.constant(0))
    wrapped = place.op("Add-1", indices, place.convert(length, element))
    return place.op("Select-1", place.op("Less-1", indices, zero), wrapped, indices)


@lowers("GatherND-8")
def gather_nd(place: Place, op: Any) -> Lowered:
    """Return GatherND-5, reshaped to restore the batch dimensions, which it flattens."""
    flat = place.op("GatherND-5", *place.inputs, batch_dims=op.batch_dims)
    if op.batch_dims < 2:
        return flat
    shape = op.infer_types(*place.values)[0].shape
    if not shape.is_static:
        place.refuse("GatherND-5 makes one dim of those of batches, and the others are dynamic")
    return place.reshape(flat, shape.static, keep=False)


@lowers("Slice-8")
def slice_(place: Place, op: Any) -> Lowered:
    """Return a StridedSlice of all axes up to the last sliced one, whose masks exempt axes that are not sliced."""
    rank = max(place.rank(), 1)
    sliced = place.constant_ints(4, "axes") if len(place.inputs) > 4 else range(place.dims(1)[0])
    axes = [axis % rank for axis in sliced]
    steps = place.constant_ints(3, "steps")
    if any(step < 0 for step in steps) and any(place.numbers(index) is None for index in (1, 2)):
        place.refuse("it goes backwards between bounds that are not constant")
    begin, end, stride = (
        _expand_bounds(place, index, axes, fill) for index, fill in ((1, 0), (2, 0), (3, 1))
    )
    mask = tuple(int(axis not in axes) for axis in range(max(axes, default=-1) + 1))
    return place.op("StridedSlice-1", place.inputs[0], begin, end, stride, begin_mask=mask, end_mask=mask)


def _expand_bounds(place: Place, index: int, axes: list[int], fill: int) -> Tensor:
    """Expand the bounds of the sliced axes to all axes up to the last sliced one.

    Args:
        place: the Slice.
        index: the number of the input with the bounds: 1 for begins, 2 for ends, 3 for steps.
        axes: the sliced axes, in the order of the bounds.
        fill: the bound of the other axes.
    """
    if axes == list(range(len(axes))):
        return place.inputs[index]
    element = place.values[index].element
    whole = np.full(max(axes) + 1, fill, element.dtype)
    numbers = place.numbers(index)
    if numbers is not None:
        whole[axes] = numbers
        return place.constant(whole, element)
    at, along = place.constant(axes), place.constant(0)
    return place.op("ScatterElementsUpdate-3", place.constant(whole, element), at, place.inputs[index], along)


@lowers("AdaptiveAvgPool-8")
def adaptive_average(place: Place, op: Any) -> Lowered:
    """Return the mean over all elements for a single window, otherwise average pooling with equal windows.

    Sums may add their terms in another order. Windows of unequal lengths are refused.
    """
    if not place.values[0].element.is_real():
        place.refuse("means of integers would be rounded otherwise")
    sizes = place.constant_ints(1, "output lengths")
    if all(size == 1 for size in sizes):
        axes = place.constant(np.arange(2, 2 + len(sizes)), name="axes")
        return place.op("ReduceMean-1", place.inputs[0], axes, keep_dims=True)
    return place.op("AvgPool-1", place.inputs[0], **_windows(place, sizes), exclude_pad=True)


@lowers("AdaptiveMaxPool-8")
def adaptive_maximum(place: Place, op: Any) -> Lowered:
    """Return max pooling with equal windows; refuse unequal ones, and a layer whose indices are read."""
    if place.is_read[1]:
        place.refuse("MaxPool-1 has no indices")
    sizes = place.constant_ints(1, "output lengths")
    return place.op("MaxPool-1", place.inputs[0], **_windows(place, sizes))


def _windows(place: Place, sizes: Sequence[int]) -> dict[str, Any]:
    """Return the attributes of a pooling operation with equal windows.

    Args:
        place: the layer to be lowered.
        sizes: the number of windows along each spatial axis.
    """
    lengths = place.dims()[2:]
    pairs = list(zip(lengths, sizes, strict=True))
    if any(size == 0 or length % size for length, size in pairs):
        place.refuse(f"{list(lengths)} cannot be divided into {list(sizes)} windows of equal lengths")
    kernel = tuple(length // size for length, size in pairs)
    none = (0,) * len(kernel)
    return {"kernel": kernel, "strides": kernel, "pads_begin": none, "pads_end": none}


@lowers("GroupNormalization-12")
def group_normalization(place: Place, op: Any) -> Lowered:
    """Return the groups normalized by MVN, and then scaled and shifted per channel."""
    rank = place.rank()
    _, channels, *rest = place.values[0].shape
    if not channels.is_static:
        place.refuse("the number of its channels is dynamic")
    data, scale, bias = (place.wide(x) for x in place.inputs)
    lengths = [length.min for length in rest] if all(length.is_static for length in rest) else [-1]
    group = [channels.min // op.num_groups, *lengths] if lengths != [-1] else lengths
    grouped = place.reshape(data, [0, op.num_groups, *group])
    axes = place.constant(np.arange(2, 2 + len(group)), name="axes")
    normal = place.op("MVN-6", grouped, axes, normalize_variance=True, eps=op.epsilon, eps_mode="inside_sqrt")
    shape = place.op("ShapeOf-3", data, output_type=ElementType.i64)
    normal = place.op("Reshape-1", normal, shape, special_zero=False)
    factor, shift = (place.reshape(x, [1, -1, *[1] * (rank - 2)]) for x in (scale, bias))
    result = place.op("Add-1", place.op("Multiply-1", normal, factor), shift)
    return place.convert(result, place.inputs[0].element)


@lowers("ScaledDotProductAttention-13")
def attention(place: Place, op: Any) -> Lowered:
    """Return the product of SoftMax of the scaled and masked scores with the values, computed in f32 for f16 and bf16."""
    last = _rank_of_scores(place, op) - 1
    query, key, value = (place.wide(x) for x in place.inputs[:3])
    scores = place.op("MatMul-1", query, key, transpose_a=False, transpose_b=True)
    scores = place.op("Multiply-1", scores, _factor(place, query))
    if op.causal:
        scores = place.op("Add-1", scores, _causal_mask(place, scores.element))
    elif len(place.inputs) > 3 and place.rank(3) > 0:
        scores = place.op("Add-1", scores, _mask(place, scores.element))
    weights = place.op("SoftMax-1", scores, axis=last)
    result = place.op("MatMul-1", weights, value, transpose_a=False, transpose_b=False)
    return place.convert(result, place.inputs[0].element)


def _rank_of_scores(place: Place, op: Any) -> int:
    rank = op.infer_types(*place.values)[0].shape.rank
    if rank is None:
        place.refuse("the rank of its input is dynamic")
    return int(rank)


def _factor(place: Place, query: Tensor) -> Tensor:
    if len(place.inputs) > 4:
        return place.op("Squeeze-1", place.convert(place.inputs[4], query.element))
    features = place.values[0].shape[-1]
    if not features.is_static or features == 0:
        place.refuse("the number of features of its queries is dynamic")
    return place.constant(1 / math.sqrt(features.min), query.element)


def _causal_mask(place: Place, element: ElementType) -> Tensor:
    """Return a mask to add to scores: minus infinity for keys at later positions than the query, else 0."""
    zero, one = place.constant(0), place.constant(1)
    queries, keys = (
        place.op(
            "Range-4",
            zero,
            place.op("Squeeze-1", place.lengths(place.inputs[index], [place.rank(index) - 2])),
            one,
            output_type=ElementType.i64,
        )
        for index in (0, 1)
    )
    later = place.op("Greater-1", keys, place.reshape(queries, [-1, 1]))
    return place.op("Select-1", later, place.constant(-np.inf, element), place.constant(0, element))


def _mask(place: Place, element: ElementType) -> Tensor:
    mask = place.inputs[3]
    if mask.element is not ElementType.boolean:
        return place.convert(mask, element)
    return place.op("Select-1", mask, place.constant(0, element), place.constant(-np.inf, element))
