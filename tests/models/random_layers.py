"""The layers of random graphs; each fits the tensors that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from harness.sample import Sample, all_samples, text
from hypothesis import strategies as st

from ir_runtime.errors import InferenceError
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import group
from models.random_graphs import Graph, Layer, Tensor, UnsafeError, running, same

f32, i64, i32 = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32)
boolean = np.dtype(bool)
TYPES = (f32, i64, i32, boolean)

# Nothing is rounded here, if whole numbers go in.
EXACT = [
    "Abs",
    "Add",
    "Ceiling",
    "Clamp",
    "Concat",
    "Convert",
    "Equal",
    "Floor",
    "FloorMod",
    "Identity",
    "LogicalNot",
    "Maximum",
    "Minimum",
    "Mod",
    "Multiply",
    "Negative",
    "ReduceL1",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReLU",
    "Round",
    "Select",
    "Sign",
    "SquaredDifference",
    "Subtract",
    "MaxPool",
]
EXACT_GROUPS = ("movement", "shape", "comparison", "logical", "bitwise")
# A little more or less in, and something else comes out.
STEPS = ["Ceiling", "Floor", "FloorMod", "Mod", "Round", "Sign", "Convert", "TopK"]
STEP_GROUPS = ("comparison",)


def _plugin_strays(name: str, sources: Sequence[Tensor]) -> bool:
    """Return whether OpenVINO's plugin differs from its reference and the specification."""
    if name in ("Gather-1", "Gather-7"):  # it takes negative indices for indices out of range
        return bool((sources[1].value < 0).any())
    return name == "GRN-1" and sources[0].value.ndim < 4  # it normalises each number alone


Recipe = Callable[["Builder"], None]
RECIPES: list[Recipe] = []
C = TypeVar("C")


def recipe(make: Recipe) -> Recipe:
    RECIPES.append(make)
    return make


def _steps(cls: type[Op]) -> bool:
    return cls.name in STEPS or group(cls) in STEP_GROUPS


def _plain(sample: Sample) -> bool:
    """Return samples compared with OpenVINO's reference, of types and values that all its parts treat alike."""
    return (
        sample.oracle == "reference"
        and not (sample.differs or sample.wider or sample.types)
        and sample.rtol is sample.atol is None
        and all(x.dtype in TYPES and 0 < x.size < 400 for x in sample.inputs)
        and all(np.isfinite(x).all() and np.abs(x.astype(float)).max() < 1e4 for x in sample.inputs)
    )


SAMPLES: dict[str, list[Sample]] = {}
for _sample in all_samples():
    if _plain(_sample):
        SAMPLES.setdefault(_sample.op, []).append(_sample)


def _declared(inputs: int, groups: Sequence[str]) -> list[type[Op]]:
    """Return operations of some groups with these numbers of inputs and outputs."""
    return [
        c
        for c in registry
        if group(c) in groups
        and len(c.inputs) == inputs
        and len(c.outputs) == 1
        and not any(p.optional or p.variadic for p in c.inputs)
        and c.versioned_name() in SAMPLES
    ]


UNARY = _declared(1, ("activation", "arithmetic", "logical", "comparison"))
BINARY = [c for c in _declared(2, ("arithmetic", "comparison", "logical")) if "auto_broadcast" in c.schema()]
REDUCTIONS = _declared(2, ("reduction",))


class Builder:
    """Adds random layers to a graph."""

    def __init__(self, draw: Any, graph: Graph, depth: int = 0) -> None:
        self.draw, self.graph, self.depth = draw, graph, depth

    def choose(self, choices: Sequence[C]) -> C:
        return choices[self.number(0, len(choices) - 1)]

    def number(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))  # type: ignore[no-any-return]

    def order(self, things: Sequence[C]) -> list[C]:
        """Return a random permutation."""
        return [things[i] for i in self.draw(st.permutations(range(len(things))))]

    def flag(self) -> bool:
        return self.draw(st.booleans())  # type: ignore[no-any-return]

    # ---- tensors

    def constant(self, array: Any) -> Tensor:
        array = np.asarray(array)
        return self.graph.add(Layer("Const", 1, [], same(array)), bool((array == np.rint(array)).all()))[0]

    def ints(self, *numbers: int) -> Tensor:
        return self.constant(np.array(numbers, self.choose([np.int64, np.int32])))

    def parameter(self, array: Array) -> Tensor:
        layer = Layer("Parameter", 1, [], same(array))
        if self.graph.open:
            layer.shape = ",".join(self._open(n) for n in array.shape)
        return self.graph.add(layer, bool((array == np.rint(array)).all()))[0]

    def _open(self, length: int) -> str:
        return self.choose([str(length), "?", f"{max(length - 1, 1)}..{length + 2}", f"..{length + 1}"])

    def given(self, array: Array) -> Tensor:
        """Return a new tensor: an input or a constant; bodies have only the inputs of their layer."""
        return self.constant(array) if self.depth or self.flag() else self.parameter(array)

    def fresh(
        self, dtype: Any, shape: Sequence[int], whole: bool = False, constant: bool | None = None
    ) -> Tensor:
        """Return random values or integers, as a constant or an input."""
        given = self.given if constant is None else self.constant if constant else self.parameter
        rng = np.random.default_rng(self.number(0, 9))
        if np.dtype(dtype) == boolean:
            return given(np.asarray(rng.integers(0, 2, shape)).astype(bool))
        numbers = rng.integers(-4, 5, shape) if whole or dtype != f32 else rng.uniform(-3, 3, shape)
        return given(np.asarray(numbers).astype(dtype))

    def pick(
        self, *dtypes: Any, least: int = 0, most: int = 5, whole: bool = False, shape: Any = None
    ) -> Tensor:
        """Return a tensor of the graph, or a new one, of one of the types and with this rank."""
        dtypes = tuple(map(np.dtype, dtypes or (f32,)))
        found = [
            t
            for t in self.graph.tensors
            if t.value.dtype in dtypes
            and least <= len(t.shape) <= most
            and (t.exact or not whole)
            and t.value.size <= 4000
            and (shape is None or t.shape == shape)
        ]
        place = self.number(0, len(found))
        if place < len(found):
            return found[-1 - place]
        if shape is None:
            rank = self.number(least, max(least, min(most, 4)))
            shape = [self.number(1, 4) for _ in range(rank)]
        if self.depth:
            # What in a body follows from constants alone, the plugin computes wrongly, or not at all.
            inner = [t for t in self.graph.tensors if t.value.dtype in dtypes and (t.exact or not whole)]
            if not inner:
                raise UnsafeError
            return self.reshaped(inner[-1], tuple(shape))
        # An input where there can be one: in place, the plugin overwrites constants or leaves them as they are.
        return self.fresh(self.choose(dtypes), shape, whole, constant=False)

    def reshaped(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Return the values in another shape, repeated or truncated."""
        size = int(np.prod(shape))
        if tensor.shape == tuple(shape):
            return tensor
        if tensor.value.size != size:
            flat = self.op(
                "Reshape-1", [tensor, self.constant(np.array([tensor.value.size]))], special_zero=False
            )
            places = self.constant(np.arange(size) % tensor.value.size)
            tensor = self.op("Gather-8", [flat, places, self.constant(np.array(0))])
        return self.op(
            "Reshape-1", [tensor, self.constant(np.array(shape, np.int64))], special_zero=bool(size == 0)
        )

    # ---- layers

    def op(self, name: str, sources: Sequence[Tensor], **attributes: Any) -> Tensor:
        return self.ops(name, sources, attributes)[0]

    def ops(
        self, name: str, sources: Sequence[Tensor], attributes: Mapping[str, Any], trusted: bool = False
    ) -> list[Tensor]:
        """Add a layer of an operation.

        Raises:
            UnsafeError: if it does not fit or its results are not reliable; nothing is added then.
        """
        kind, _, since = name.rpartition("-")
        cls = next(c for c in registry.versions(kind) if c.since == int(since))
        said = {k: text(v) for k, v in attributes.items()}
        whole = all(t.exact for t in sources)
        exact = whole and (cls.name in EXACT or group(cls) in EXACT_GROUPS)
        if _steps(cls) and not whole:
            raise UnsafeError
        op = cls.parse(said)
        if _plugin_strays(name, sources):
            raise UnsafeError
        try:
            op.infer_types(*(Value.constant(t.value) for t in sources))
        except InferenceError:
            raise UnsafeError from None
        run = running(op, sources, exact, trusted)
        return self.graph.add(Layer(cls.name, cls.since, list(sources), run, said), exact)

    def attributes(self, cls: type[Op]) -> Mapping[str, Any]:
        """Return the attributes of some sample."""
        return self.choose(SAMPLES[cls.versioned_name()]).attributes

    def some_axes(self, rank: int, least: int = 0) -> list[int]:
        axes = self.draw(st.lists(st.integers(0, rank - 1), min_size=least, max_size=rank, unique=True))
        return [a - rank if self.flag() else a for a in axes]

    def step(self, recipes: Sequence[Recipe]) -> None:
        """Apply one recipe; an unsafe layer is skipped."""
        before = len(self.graph.layers)
        try:
            self.choose(recipes)(self)
        except UnsafeError:
            del self.graph.layers[before:]


def _types_of(cls: type[Op]) -> list[Any]:
    allowed = [e.dtype for e in cls.inputs[0].element.allowed]
    return [t for t in TYPES if t in allowed]


@recipe
def unary(b: Builder) -> None:
    cls = b.choose(UNARY)
    types = [t for t in _types_of(cls) if t == f32 or _steps(cls)] or _types_of(cls)
    b.op(cls.versioned_name(), [b.pick(*types, whole=_steps(cls))], **b.attributes(cls))


@recipe
def binary(b: Builder) -> None:
    cls = b.choose(BINARY)
    one = b.pick(*_types_of(cls), whole=_steps(cls))
    dtype = one.value.dtype
    kind = b.number(0, 3)
    if kind == 0:
        two = b.pick(dtype, whole=_steps(cls), shape=one.shape)
    elif kind == 1:
        two = b.reshaped(b.pick(dtype, whole=_steps(cls)), one.shape)
    else:
        shape = [n if b.flag() else 1 for n in one.shape][b.number(0, len(one.shape)) :]
        two = b.fresh(dtype, shape, whole=_steps(cls))
    pair = [one, two] if b.flag() else [two, one]
    least = [t.value.min() for t in pair]
    # The plugin rounds quotients of integers towards zero whatever m_pythondiv says; nobody
    # agrees about division by zero, nor about negative powers.
    quotient = dtype.kind == "i" and cls.name in ("Divide", "Mod", "FloorMod", "Power")
    if quotient and (min(least) < 0 or least[1] < (cls.name != "Power")):
        raise UnsafeError
    b.op(cls.versioned_name(), pair, auto_broadcast="numpy")


@recipe
def reduction(b: Builder) -> None:
    cls = b.choose(REDUCTIONS)
    data = b.pick(*[t for t in _types_of(cls) if t != boolean or "Logical" in cls.name], least=1)
    b.op(cls.versioned_name(), [data, b.ints(*b.some_axes(len(data.shape), 1))], keep_dims=b.flag())


@recipe
def reshape(b: Builder) -> None:
    data = b.pick(*TYPES)
    shape = [n for n in data.shape if n != 1]
    while len(shape) > 1 and b.flag():
        at = b.number(0, len(shape) - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    if b.flag():
        shape.insert(b.number(0, len(shape)), 1)
    if shape and b.flag():
        shape[b.number(0, len(shape) - 1)] = -1
    shape = [0 if b.flag() and i < len(data.shape) and n == data.shape[i] else n for i, n in enumerate(shape)]
    b.op("Reshape-1", [data, b.ints(*shape)], special_zero=True)


@recipe
def squeezing(b: Builder) -> None:
    data = b.pick(*TYPES, most=4)
    ones = [i for i, n in enumerate(data.shape) if n == 1]
    if ones and b.flag():
        axes = b.order(ones)[: b.number(1, len(ones))]
        b.op("Squeeze-1", [data, b.ints(*axes)])
    else:
        b.op("Unsqueeze-1", [data, b.ints(*b.some_axes(len(data.shape) + 1, 1)[:1])])


@recipe
def transpose(b: Builder) -> None:
    data = b.pick(*TYPES)
    b.op("Transpose-1", [data, b.ints(*b.order(range(len(data.shape))))])


@recipe
def join(b: Builder) -> None:
    first = b.pick(*TYPES, least=1)
    axis = b.number(-len(first.shape), len(first.shape) - 1)
    parts = [first]
    for _ in range(b.number(1, 2)):
        shape = list(first.shape)
        shape[axis] = b.number(1, 3)
        parts.append(b.reshaped(b.pick(first.value.dtype), shape))
    b.op("Concat-1", b.order(parts), axis=axis)


@recipe
def split(b: Builder) -> None:
    data = b.pick(*TYPES, least=1)
    axis = b.number(-len(data.shape), len(data.shape) - 1)
    length = data.shape[axis]
    at = b.constant(np.array(axis))
    if b.flag():
        count = b.choose([n for n in range(1, length + 1) if length % n == 0])
        b.ops("Split-1", [data, at], {"num_splits": count})
    elif length > 1:
        part = b.number(1, length - 1)
        lengths = b.choose([(part, length - part), (-1, length - part), (part, -1)])
        b.ops("VariadicSplit-1", [data, at, b.ints(*lengths)], {})


@recipe
def gather(b: Builder) -> None:
    data = b.pick(*TYPES, least=1, most=4)
    axis = b.number(-len(data.shape), len(data.shape) - 1)
    shape = [b.number(1, 3) for _ in range(b.number(0, 2))]
    # Negative indices: OpenVINO's reference and plugin do not agree but for Gather-8.
    places = np.random.default_rng(b.number(0, 9)).integers(-data.shape[axis], data.shape[axis], shape)
    b.op("Gather-8", [data, b.given(np.asarray(places)), b.constant(np.array(axis))])


@recipe
def cut(b: Builder) -> None:
    data = b.pick(*TYPES, least=1)
    axes = b.order(range(len(data.shape)))[: b.number(1, len(data.shape))]
    starts, stops, steps = [], [], []
    for axis in axes:
        length = data.shape[axis]
        low = b.number(0, length - 1)
        high, by = b.number(low + 1, length + 1), b.number(1, 2)
        if b.flag() and not b.graph.open:
            starts.append(min(high, length) - 1)
            stops.append(low - 1 - (length + 5 if low == 0 else 0))
            steps.append(-by)
        else:
            # Both from the same end where lengths are open: from -2 to 2 is up to 2 elements, of
            # which OpenVINO infers that it is 1 at most.
            end = length if high < length and b.flag() else 0
            starts.append(low - end)
            stops.append(high - end)
            steps.append(by)
    b.op("Slice-8", [data, *(b.ints(*numbers) for numbers in (starts, stops, steps, axes))])


@recipe
def stretch(b: Builder) -> None:
    data = b.pick(*TYPES, most=3)
    if b.flag() and data.shape:
        b.op("Tile-1", [data, b.ints(*(b.number(1, 3) for _ in data.shape))])
        return
    shape = [b.number(1, 3) if n == 1 else n for n in data.shape]
    target = [b.number(1, 2) for _ in range(b.number(0, 1))] + shape
    b.op("Broadcast-3", [data, b.ints(*target)], mode=b.choose(["numpy", "bidirectional"]))


@recipe
def pad(b: Builder) -> None:
    data = b.pick(f32, i32, least=1, most=4)
    mode = b.choose(["constant", "edge", "reflect", "symmetric"])
    most = [n - 1 if mode == "reflect" else min(n, 2) for n in data.shape]
    # OpenVINO's reference reads both ends in the type of the first, beyond the second if it is i32.
    kind = b.choose([np.int64, np.int32])
    ends = [b.constant(np.array([b.number(0, m) for m in most], kind)) for _ in range(2)]
    # The plugin takes no notice of a number to pad with that is an input.
    filling = [b.constant(np.array(2, data.value.dtype))] if mode == "constant" and b.flag() else []
    b.op("Pad-12", [data, *ends, *filling], pad_mode=mode)


@recipe
def shape_arithmetic(b: Builder) -> None:
    """Decompose and recompose a shape, as exporters write it."""
    data = b.pick(least=1, most=4)
    shape = b.op("ShapeOf-3", [data], output_type=b.choose(["i64", "i32"]))
    dtype, zero = shape.value.dtype, b.constant(np.array(0))
    at = b.number(0, len(data.shape) - 1)
    length = b.op("Gather-8", [shape, b.ints(at), zero])
    if b.flag():
        target = b.op("Concat-1", [length, b.constant(np.array([-1], dtype))], axis=0)
        b.op("Reshape-1", [data, target], special_zero=False)
        return
    more = b.constant(np.array([b.number(1, 2)], dtype))
    longer = b.op(b.choose(["Add-1", "Multiply-1"]), [length, more])
    if b.flag():
        b.op("Broadcast-3", [b.pick(most=0), b.op("Concat-1", [longer, shape], axis=0)], mode="numpy")
    else:
        one = b.constant(np.array(1, dtype))
        scalar = b.op("Squeeze-1", [longer, zero])
        b.op("Range-4", [b.constant(np.array(0, dtype)), scalar, one], output_type=b.choose(["i64", "f32"]))


@recipe
def product(b: Builder) -> None:
    one = b.pick(least=2, most=4)
    *batch, rows, columns = one.shape
    left, right = b.flag(), b.flag()
    depth, more = (rows if left else columns), b.number(1, 4)
    shape = [n if b.flag() else 1 for n in batch] + ([more, depth] if right else [depth, more])
    two = b.reshaped(b.pick(), shape) if b.flag() else b.fresh(f32, shape)
    b.op("MatMul-1", [one, two], transpose_a=left, transpose_b=right)


@recipe
def window(b: Builder) -> None:
    data = b.pick(least=3, most=5)
    spatial = len(data.shape) - 2
    kernel = [b.number(1, min(n, 3)) for n in data.shape[2:]]
    # No window lies in the padding as a whole: what its mean is, nobody agrees about.
    strides, zeros = [b.number(1, min(k, 2)) for k in kernel], [0] * spatial
    begin, end = ([b.number(0, k - 1) for k in kernel] for _ in range(2))
    placed = {"strides": strides, "pads_begin": begin, "pads_end": end}
    kind = b.number(0, 2)
    if kind == 0:
        # The plugin has no kernel for filters that are inputs and of which lengths are open.
        filters = b.fresh(f32, [b.number(1, 3), data.shape[1], *kernel], constant=True)
        more = {"dilations": [1] * spatial, "auto_pad": b.choose(["explicit", "valid", "same_upper"])}
        b.op("Convolution-1", [data, filters], **placed, **more)
    elif kind == 1:
        rounding = b.choose(["floor", "ceil"]) if begin == end == zeros else "floor"
        exclude = b.flag()
        b.op("AvgPool-1", [data], **placed, kernel=kernel, rounding_type=rounding, **{"exclude-pad": exclude})
    else:
        how = {"dilations": [1] * spatial, "kernel": kernel, "rounding_type": b.choose(["floor", "ceil"])}
        b.ops("MaxPool-8", [data], {**placed, "pads_begin": zeros, "pads_end": zeros, **how})


@recipe
def along_an_axis(b: Builder) -> None:
    data = b.pick(least=1)
    axis = b.number(-len(data.shape), len(data.shape) - 1)
    kind = b.choose(["SoftMax-8", "LogSoftmax-5", "CumSum-3", "MVN-6", "NormalizeL2-1"])
    if kind == "CumSum-3":
        b.op(kind, [data, b.constant(np.array(axis))], exclusive=b.flag(), reverse=b.flag())
    elif kind == "MVN-6":
        how = {"eps": 1e-5, "eps_mode": "inside_sqrt", "normalize_variance": b.flag()}
        b.op(kind, [data, b.ints(axis)], **how)
    elif kind == "NormalizeL2-1":
        b.op(kind, [data, b.ints(axis % len(data.shape))], eps=1e-6, eps_mode="add")
    else:
        b.op(kind, [data], axis=axis)


@recipe
def select(b: Builder) -> None:
    one = b.pick(f32, i64, i32)  # the plugin cannot choose between truth values
    two = b.reshaped(b.pick(one.value.dtype), one.shape)
    shape = [n if b.flag() else 1 for n in one.shape]
    b.op("Select-1", [b.reshaped(b.pick(boolean), shape), one, two], auto_broadcast="numpy")


@recipe
def convert(b: Builder) -> None:
    data = b.pick(*TYPES, whole=True)
    b.op("Convert-1", [data], destination_type=b.choose(["f32", "i64", "i32", "boolean"]))


@recipe
def ranked(b: Builder) -> None:
    data = b.pick(f32, i32, least=1, whole=True)
    axis = b.number(0, len(data.shape) - 1)
    order = np.sort(data.value, axis)
    if (np.diff(order, axis=axis) == 0).any():
        raise UnsafeError  # which of two equal ones is first is up to the implementation
    k = b.constant(np.array(b.number(1, data.shape[axis])))
    how = {"axis": axis, "mode": b.choose(["max", "min"]), "sort": b.choose(["value", "index"])}
    b.ops("TopK-11", [data, k], {**how, "index_element_type": b.choose(["i64", "i32"])})


@recipe
def from_a_sample(b: Builder) -> None:
    """Add any operation on the inputs of a sample; a smooth one on tensors of the graph."""
    sample = b.choose(SAMPLES[b.choose(sorted(SAMPLES))])
    smooth = group(sample.cls) in SMOOTH_GROUPS or sample.cls.name in SMOOTH
    smooth = smooth and sample.cls.name not in NOT_SMOOTH
    sources = []
    for place, array in enumerate(sample.inputs):
        if place in sample.constant:
            sources.append(b.constant(array))
        elif smooth and array.dtype == f32 and b.flag():
            sources.append(b.reshaped(b.pick(), array.shape))
        elif place and array.dtype != f32:
            sources.append(b.constant(array))  # as inputs, axes and lengths leave the rank open
        else:
            sources.append(b.given(array))
    if b.depth and all(t.layer.type == "Const" for t in sources):
        raise UnsafeError
    own = all(t.layer.type in ("Const", "Parameter") for t in sources)
    b.ops(sample.op, sources, sample.attributes, trusted=own)


SMOOTH_GROUPS = ("activation", "convolution", "matrix", "movement", "pooling", "shape", "signals")
SMOOTH = [
    "BatchNormInference",
    "GroupNormalization",
    "MVN",
    "NormalizeL2",
    "LRN",
    "GRN",
    "Interpolate",
    "LSTMCell",
    "GRUCell",
    "RNNCell",
    "LSTMSequence",
    "GRUSequence",
    "RNNSequence",
    "ScaledDotProductAttention",
    "Select",
    "CumSum",
]
# A matrix made of others' numbers may have no inverse.
NOT_SMOOTH = ("Inverse",)
