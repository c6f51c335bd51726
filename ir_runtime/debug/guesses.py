"""Typical mistakes in porting an operation, as changes of one layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, islice, permutations, product
from typing import Any, TypeAlias

import numpy as np

from .._util.escaping import quoted
from ..errors import IRError
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Layer
from ..ir.tensor import Array
from ..ops import registry
from ..ops._define.describe import group
from ..ops.elementwise import Binary, Unary
from .reference import Arrays
from .terms import RECURRENT

__all__ = [
    "Family",
    "Guess",
    "channel_axes",
    "guesses",
    "numbers_of_layer",
    "numbers_of_result",
    "permutations_of_axes",
    "reversed_channels",
]

Changed: TypeAlias = Callable[[Layer, Sequence[Array], Arrays], Arrays]
"""A function from a layer, its inputs and its outputs to the outputs under the mistake."""

EPSILON = 1e-2
"""The largest constant regarded as an epsilon, which keeps a division defined."""
EPSILONS = tuple(float(f"1e-{power}") for power in range(1, 16))
RANK = 5
"""The largest rank whose axes are permuted."""
SMALL = 1 << 16
"""The most elements of constants for which permutations other than image layouts are tried."""
COMBINED = 64
"""The most combinations of enumeration values that are tried."""
ELEMENTS = 4
"""The fewest elements that must share a fitted number."""

_LAYOUTS = ((0, 2, 3, 1), (0, 3, 1, 2), (2, 3, 1, 0), (3, 2, 0, 1), (1, 0, 2, 3))
"""From NCHW to NHWC and back; from OIHW to HWIO and back; in and out."""
_LAYOUT_NAMES: Mapping[tuple[int, ...], str] = {
    (0, 2, 3, 1): " (NHWC)",
    (0, 3, 1, 2): " (NHWC taken for NCHW)",
}
_GATES = {"LSTM": "fico", "GRU": "zrh"}
_ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum")
_REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2")


@dataclass(frozen=True)
class Guess:
    """A mistake without free parameters.

    Args:
        kind: its kind in reports.
        what: the mistake as a clause: ``axes 2 and 3 swapped``.
        change: the resulting change of a layer.
    """

    kind: str
    what: str
    change: Changed


@dataclass(frozen=True)
class Family:
    """Mistakes with a parameter, or one for each channel.

    Args:
        kind: their kind.
        start: the start of the search.
        change: returns the change of a layer for parameters.
        describe: describes the mistake.
        axis: the axis with one parameter per index; ``None`` for a single parameter.
    """

    kind: str
    start: Array
    change: Callable[[Array], Changed]
    describe: Callable[[Array], str]
    axis: int | None = None


def number(value: float) -> str:
    """Format a number in its most plausible form: ``0.5``, ``1/255``, ``0.1768``."""
    short = f"{float(f'{value:.4g}') + 0.0:g}"
    if value and abs(float(short) / value - 1) > 1e-6:
        for divisor in range(3, 1025):
            if abs(value * divisor - 1) < 1e-5:
                return f"1/{divisor}"
    return short


def _output(change: Callable[[Array], Array]) -> Changed:
    """Return a change of the first output of a layer."""
    return lambda layer, inputs, outputs: (change(outputs[0]), *outputs[1:])


def _with_input(index: int, change: Callable[[Array], Array]) -> Changed:
    """Return a change that recomputes a layer with one input changed."""

    def changed(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        arrays = list(inputs)
        arrays[index] = change(inputs[index]).astype(inputs[index].dtype, copy=False)
        return evaluate_layer(layer, arrays)

    return changed


def _with_op(op: Any) -> Changed:
    """Return a change that computes another operation from a layer's inputs."""

    def changed(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        return evaluate_layer(replace(layer, op=op), inputs)

    return changed


def guesses(
    layer: Layer,
    inputs: Sequence[Array],
    output: Array,
    constant: Sequence[bool],
    found: Array | None,
    others: Mapping[str, Callable[[Array], Array | None]],
) -> Iterator[Guess]:
    """Yield mistakes, the most specific first.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        output: its first output.
        constant: whether each input is constant.
        found: the side's output; ``None`` if it is only observed through later layers.
        others: functions that return the side's other tensors by name, in the type of an array.
    """
    if output.dtype.kind != "f" or layer.op is None:
        return
    if found is not None and found.size and not np.any(found):
        yield Guess("all zero", "all zero", _output(np.zeros_like))
    yield from _other_attributes(layer)
    yield from _other_functions(layer, inputs, output)
    yield from _left_out(layer, inputs, output, constant)
    yield from _other_gates(layer)
    yield from _output_movements(output, None if found is None else found.shape)
    yield from _input_movements(inputs, constant)
    yield from _exchanges(inputs, constant)
    for index, array in enumerate(inputs):
        if not constant[index]:
            for name, other in others.items():
                if other(array) is not None:
                    yield Guess(
                        "another input", f"reads {quoted(name)} as input {index}", _reading(index, other)
                    )
    yield from _appended_activations(output)
    if found is not None:
        yield from _clips(output, found)


def _reading(index: int, other: Callable[[Array], Array | None]) -> Changed:
    def read(array: Array) -> Array:
        value = other(array)
        return array if value is None else value

    return _with_input(index, read)


def _other_attributes(layer: Layer) -> Iterator[Guess]:
    """Yield the operation with other enumerations, flags, axes, pads, and common epsilons."""
    op: Any = layer.op
    values: Mapping[str, Any] = op.attributes()
    enumerated = {
        name: others for name, value in values.items() if (others := _alternatives(op, name, value))
    }
    for name in ("eps", "epsilon"):
        for other in EPSILONS if name in values else ():
            if other != values[name]:
                text = f"{name} {number(other)} instead of {number(values[name])}"
                yield from _valid(op, "epsilon", text, {name: other})
    kind = "resize" if layer.type == "Interpolate" else "attribute"
    for changes in islice(_combinations(enumerated), COMBINED):
        text = ", ".join(
            f"{name} {_text(new)} instead of {_text(values[name])}" for name, new in changes.items()
        )
        yield from _valid(op, kind, text, changes)
    yield from _other_pads(op, values)


def _alternatives(op: Any, name: str, value: object) -> list[object]:
    """Return the other values of a flag, an enumeration or an axis."""
    if isinstance(value, bool):
        return [not value]
    if name in ("axis", "seq_axis", "batch_axis"):
        return [axis for axis in range(-RANK, RANK) if axis != value]
    return (
        []
        if isinstance(value, tuple)
        else [choice for choice in op.schema()[name].choices if choice != value]
    )


def _combinations(enumerated: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    """Yield other values of one attribute, then of two, and so on."""
    for count in range(1, len(enumerated) + 1):
        for names in combinations(enumerated, count):
            for values in product(*(enumerated[name] for name in names)):
                yield dict(zip(names, values, strict=True))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _other_pads(op: Any, values: Mapping[str, Any]) -> Iterator[Guess]:
    begin, end = values.get("pads_begin"), values.get("pads_end")
    if isinstance(begin, tuple) and isinstance(end, tuple) and len(begin) == len(end):
        shifts = [s for s in product((-1, 0, 1), repeat=len(begin)) if any(s)] if len(begin) <= 3 else []
        for shift in shifts:
            first = tuple(b + s for b, s in zip(begin, shift, strict=True))
            last = tuple(e - s for e, s in zip(end, shift, strict=True))
            if min((*first, *last)) >= 0:
                text = f"pads {list(first)} and {list(last)} instead of {list(begin)} and {list(end)}"
                yield from _valid(op, "attribute", text, {"pads_begin": first, "pads_end": last})


def _valid(op: Any, kind: str, what: str, changes: Mapping[str, object]) -> Iterator[Guess]:
    """Yield the operation with changed attributes, unless it refuses them."""
    try:
        for name, value in changes.items():
            op.schema()[name].check(value)
        changed = op.replace(**changes)
    except (IRError, ValueError, TypeError):
        return
    yield Guess(kind, what, _with_op(changed))


@cache
def _activations() -> tuple[Any, ...]:
    """Return unary activation functions with default attributes."""
    functions: list[Any] = []
    names = dict.fromkeys(cls.name for cls in registry if group(cls) == "activation")
    for name in (*names, "Tanh", "Erf", "Abs"):
        cls = registry.require(name, 16)
        if sum(not port.optional for port in cls.inputs) == 1 and cls.name not in ("Clamp", "Identity"):
            required = {name: 1.0 for name, attribute in cls.schema().items() if attribute.required}
            functions.append(cls(**required))
    clamp = registry.require("Clamp")
    return (*functions, clamp(min=0.0, max=6.0), clamp(min=0.0, max=1.0), clamp(min=-1.0, max=1.0))


def _describe_operation(op: Any) -> str:
    attributes = op.attributes()
    return (
        f"{op.name}({', '.join(f'{n}={_text(v)}' for n, v in attributes.items())})" if attributes else op.name
    )


def _is_function(layer: Layer, inputs: Sequence[Array], output: Array) -> bool:
    """Return whether a layer is a function of one variable."""
    return isinstance(layer.op, Unary) or (
        group(type(layer.op)) == "activation" and inputs[0].shape == output.shape
    )


def _other_functions(layer: Layer, inputs: Sequence[Array], output: Array) -> Iterator[Guess]:
    """Yield other activation functions and arithmetic operations."""
    if _is_function(layer, inputs, output) and inputs[0].dtype.kind == "f":
        for op in _activations():
            if op.versioned_name() != layer.operation or op.attributes() != layer.op.attributes():  # type: ignore[union-attr]

                def function(_: Layer, arrays: Sequence[Array], __: Arrays, op: Any = op) -> Arrays:
                    return (np.asarray(op.evaluate(arrays[0])),)

                yield Guess("activation", f"{_describe_operation(op)} instead of {layer.type}", function)
    families = (_ARITHMETIC, _REDUCTIONS) if isinstance(layer.op, Binary) or layer.type in _REDUCTIONS else ()
    for names in families:
        for name in names if layer.type in names else ():
            if name != layer.type:
                cls = registry.require(name, 16)
                shared = {n: v for n, v in layer.op.attributes().items() if n in cls.schema()}  # type: ignore[union-attr]
                yield Guess("operation", f"{name} instead of {layer.type}", _with_op(cls(**shared)))


def _left_out(
    layer: Layer, inputs: Sequence[Array], output: Array, constant: Sequence[bool]
) -> Iterator[Guess]:
    """Yield omissions of the layer, whose output is then one of its inputs."""
    for index, array in enumerate(inputs):
        if array.shape == output.shape and array.dtype.kind == "f" and not constant[index]:

            def passed(_: Layer, arrays: Sequence[Array], __: Arrays, index: int = index) -> Arrays:
                return (arrays[index],)

            added = layer.type in ("Add", "Subtract") and len(inputs) == 2 and constant[1 - index]
            what = "bias left out" if added else f"{layer.type} left out"
            if len(inputs) > 1 and not any(constant):
                what = f"only input {index} is returned"
            yield Guess("bias" if added else "left out", what, passed)


def _other_gates(layer: Layer) -> Iterator[Guess]:
    """Yield recurrent layers with the gates of weights and biases in another order."""
    if layer.type not in RECURRENT or layer.type.startswith("RNN"):
        return
    gates, op = _GATES[layer.type[: 4 if layer.type.startswith("LSTM") else 3]], layer.op
    size = vars(op)["hidden_size"]
    for order in permutations(range(len(gates))):
        if order == tuple(range(len(gates))):
            continue

        def exchange(layer: Layer, inputs: Sequence[Array], outputs: Arrays, order: Any = order) -> Arrays:
            arrays = list(inputs)
            for index, array in enumerate(inputs):
                port = type(layer.op).port_of(index)  # type: ignore[union-attr]
                if port is not None and port.name.lower() in ("w", "r", "b"):
                    axis = array.ndim - (1 if port.name.lower() == "b" else 2)
                    rows = [gate * size + row for gate in order for row in range(size)]
                    rows += range(len(rows), array.shape[axis])
                    arrays[index] = np.take(array, rows, axis)
            return evaluate_layer(layer, arrays)

        text = "".join(gates[gate] for gate in order)
        yield Guess("gates", f"gates in the order {text} instead of {gates}", exchange)


def _permutations(
    shape: tuple[int, ...], target_shape: tuple[int, ...] | None
) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Yield permutations of axes, to a target shape if given, or preserving the shape."""
    if not 2 <= len(shape) <= RANK:
        return
    target = target_shape if target_shape is not None and sorted(target_shape) == sorted(shape) else shape
    large = len(shape) > 4
    for order in permutations(range(len(shape))):
        moving = [
            axis for axis, other in enumerate(order) if axis != other and max(shape[axis], shape[other]) > 1
        ]
        if not moving or (large and len(moving) > 2):
            continue
        transposed = tuple(shape[axis] for axis in order)
        axes = (
            f"axes {moving[0]} and {moving[1]} swapped"
            if len(moving) == 2
            else f"axes in the order {list(order)}"
        )
        axes += _LAYOUT_NAMES.get(order, "")
        if transposed == target:
            yield axes, partial(_transpose, order)
        if (target == shape and transposed != shape) or order in _LAYOUTS:
            yield f"laid out in memory with {axes}", partial(_laid_out, order)


def _transpose(order: tuple[int, ...], array: Array) -> Array:
    return np.ascontiguousarray(array.transpose(order))


def _laid_out(order: tuple[int, ...], array: Array) -> Array:
    return _transpose(order, array).reshape(array.shape)


def _shift(axis: int, by: int, fill: str, array: Array) -> Array:
    """Shift an array along an axis by one, filling with zeros, the edge, or wrapping around."""
    moved = np.roll(array, by, axis)
    if fill == "zero":
        place: list[Any] = [slice(None)] * array.ndim
        place[axis] = 0 if by > 0 else -1
        moved[tuple(place)] = 0
    elif fill == "edge":
        place = [slice(None)] * array.ndim
        place[axis] = 0 if by > 0 else -1
        moved[tuple(place)] = array[tuple(place)]
    return moved


def _movements(
    shape: tuple[int, ...], channels: Sequence[int] = ()
) -> Iterator[tuple[str, str, Callable[[Array], Array]]]:
    """Yield reversals along an axis, and shifts by one element; some axes may be the channels of images."""
    for axis, length in enumerate(shape):
        if length > 1:
            for by, fill in product((1, -1), ("zero", "wrap", "edge")):
                what = f"one {'late' if by > 0 else 'early'} along axis {axis}"
                yield "shift", what, partial(_shift, axis, by, fill)
            if axis in channels:
                yield "channels", reversed_channels(axis), partial(np.flip, axis=axis)
            else:
                yield "reversed", f"reversed along axis {axis}", partial(np.flip, axis=axis)


def channel_axes(shape: tuple[int, ...]) -> list[int]:
    """Return the axes that may be the three channels of images."""
    axes = dict.fromkeys([len(shape) - 3, len(shape) - 1]) if len(shape) in (3, 4) else {}
    return [axis for axis in axes if shape[axis] == 3]


def reversed_channels(axis: int) -> str:
    """Describe channels in reverse order."""
    return f"channels in reverse order along axis {axis} (BGR for RGB)"


def permutations_of_axes(shape: tuple[int, ...]) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Yield ways to permute the axes of a tensor that leave its shape."""
    return _permutations(shape, None)


def _output_movements(output: Array, wanted: tuple[int, ...] | None) -> Iterator[Guess]:
    for what, permute in _permutations(output.shape, wanted):
        yield Guess("permuted", what, _output(permute))
    for kind, what, move in _movements(output.shape):
        yield Guess(kind, what, _output(move))


def _input_movements(inputs: Sequence[Array], constant: Sequence[bool]) -> Iterator[Guess]:
    for index, array in enumerate(inputs):
        if array.dtype.kind in "iu" and not constant[index] and array.size:
            for by in (1, -1):

                def shift(numbers: Array, by: int = by) -> Array:
                    return np.clip(numbers.astype(np.int64) + by, 0, None)

                yield Guess("shift", f"input {index} off by {-by}", _with_input(index, shift))
        if array.dtype.kind != "f" or array.size < 2:
            continue
        for what, permute in _permutations(array.shape, None):
            yield Guess("permuted", f"input {index} with {what}", _with_input(index, permute))
        for kind, what, move in _movements(array.shape, channel_axes(array.shape)):
            yield Guess(kind, f"input {index} {what}", _with_input(index, move))


def _exchanges(inputs: Sequence[Array], constant: Sequence[bool]) -> Iterator[Guess]:
    for first, second in combinations(range(len(inputs)), 2):
        if inputs[first].dtype == inputs[second].dtype and not (constant[first] and constant[second]):

            def exchange(
                layer: Layer, arrays: Sequence[Array], _: Arrays, a: int = first, b: int = second
            ) -> Arrays:
                swapped = list(arrays)
                swapped[a], swapped[b] = arrays[b], arrays[a]
                return evaluate_layer(layer, swapped)

            yield Guess("another input", f"inputs {first} and {second} exchanged", exchange)


def _clips(output: Array, observed: Array) -> Iterator[Guess]:
    """Yield clipping to the range of the side's output, if other elements exceed it."""
    if not observed.size or not np.isfinite(observed).all():
        return
    low, high = float(observed.min()), float(observed.max())
    below, above = int((output < low).sum()), int((output > high).sum())
    for is_low, is_high in ((False, True), (True, False), (True, True)):
        if below * is_low + above * is_high < 2 or (is_low and not below) or (is_high and not above):
            continue
        bounds = (low if is_low else -np.inf, high if is_high else np.inf)
        text = [
            *([f"below {number(low)}"] if is_low else []),
            *([f"above {number(high)}"] if is_high else []),
        ]
        yield Guess(
            "clipped",
            f"clipped {' and '.join(text)}",
            _output(partial(np.clip, a_min=bounds[0], a_max=bounds[1])),
        )


def _appended_activations(output: Array) -> Iterator[Guess]:
    for op in _activations():
        yield Guess(
            "activation",
            f"{_describe_operation(op)} applied to the result",
            _output(partial(_evaluate, op)),
        )


def _evaluate(op: Any, array: Array) -> Array:
    return np.asarray(op.evaluate(array)).astype(array.dtype)


def numbers_of_layer(
    layer: Layer, inputs: Sequence[Array], output: Array, constant: Sequence[bool]
) -> Iterator[Family]:
    """Yield parameters of an operation: attributes, constant operands, the slope of an activation."""
    if output.dtype.kind != "f" or layer.op is None:
        return
    yield from _other_numbers(layer)
    yield from _other_scalars(layer, inputs, constant)
    if _is_function(layer, inputs, output) and layer.type != "PReLU":

        def leak(slope: Array) -> Changed:
            return lambda _, arrays, __: (np.where(arrays[0] < 0, arrays[0] * slope, arrays[0]),)

        def leaky(slope: Array) -> str:
            return f"ReLU of slope {number(float(slope))} instead of {layer.type}"

        yield Family("activation", np.array(0.01), leak, leaky)


def numbers_of_result(output: Array) -> Iterator[Family]:
    """Yield factors and offsets of a result, for all elements, then per channel."""
    if output.dtype.kind != "f":
        return

    def scaled(factor: Array) -> Changed:
        return _output(lambda array: array * factor)

    def moved(by: Array) -> Changed:
        return _output(lambda array: array + by)

    yield Family("factor", np.array(1.0), scaled, lambda f: f"times {number(float(f))}")
    if output.size >= ELEMENTS:
        yield Family("constant", np.array(0.0), moved, lambda c: f"plus {number(float(c))}")
    for axis in dict.fromkeys([1, output.ndim - 1, 0]):
        if not 0 <= axis < output.ndim or output.shape[axis] < 2:
            continue
        if output.size // output.shape[axis] >= ELEMENTS:
            shape = [1] * output.ndim
            shape[axis] = output.shape[axis]
            yield Family(
                "bias",
                np.zeros(shape),
                moved,
                partial(_for_each, "a constant added", axis),
                axis,
            )
            yield Family(
                "factor",
                np.ones(shape),
                scaled,
                partial(_for_each, "multiplied by a factor", axis),
                axis,
            )


def _for_each(what: str, axis: int, numbers: Array) -> str:
    span = f"{number(float(numbers.min()))} to {number(float(numbers.max()))}"
    return f"{what} for each index of axis {axis} ({span})"


def _other_numbers(layer: Layer) -> Iterator[Family]:
    """Yield the operation with another value of a real attribute."""
    assert layer.op is not None
    for name, value in layer.op.attributes().items():
        if not isinstance(value, float):
            continue

        def change(by: Array, name: str = name) -> Changed:
            def changed(layer: Layer, inputs: Sequence[Array], _: Arrays) -> Arrays:
                op: Any = layer.op
                return evaluate_layer(replace(layer, op=op.replace(**{name: float(by)})), inputs)

            return changed

        kind = "epsilon" if name in ("eps", "epsilon") else "attribute"
        yield Family(kind, np.array(value), change, _instead(name, value))


def _instead(name: str, value: float) -> Callable[[Array], str]:
    return lambda other: f"{name} {number(float(other))} instead of {number(value)}"


def _other_scalars(layer: Layer, inputs: Sequence[Array], constant: Sequence[bool]) -> Iterator[Family]:
    """Yield the operation with another constant scalar operand."""
    for index, array in enumerate(inputs):
        if not (constant[index] and array.size == 1 and array.dtype.kind == "f"):
            continue
        value = float(array.reshape(-1)[0])

        def change(by: Array, index: int = index) -> Changed:
            return _with_input(index, partial(np.full_like, fill_value=float(by)))

        is_epsilon = 0 < value <= EPSILON and layer.type in ("Add", "Maximum")
        yield Family(
            "epsilon" if is_epsilon else "factor" if layer.type in ("Multiply", "Divide") else "constant",
            np.array(value),
            change,
            _instead("epsilon" if is_epsilon else f"the constant input {index}", value),
        )
