"""ONNX operations that correspond to OpenVINO's: equal inputs, attributes and outputs.

Differences of form are bridged: inputs that are attributes in ONNX, and vice versa.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ir_runtime.ir.tensor import Array
from ir_runtime.ops import Op

__all__ = ["OPSET", "TYPES", "NoOperation", "Node", "node_of"]

OPSET = 21
"""The opset of ONNX that the table is for."""
TYPES: Mapping[str, str] = {
    "f32": "FLOAT", "f16": "FLOAT16", "bf16": "BFLOAT16", "f64": "DOUBLE",
    "i64": "INT64", "i32": "INT32", "i16": "INT16", "i8": "INT8",
    "u64": "UINT64", "u32": "UINT32", "u16": "UINT16", "u8": "UINT8",
    "boolean": "BOOL", "string": "STRING", "f8e4m3": "FLOAT8E4M3FN",
    "f8e5m2": "FLOAT8E5M2", "i4": "INT4", "u4": "UINT4",
}  # fmt: skip
"""Element types of ONNX, by the names that its `TensorProto` has for them."""


class NoOperation(Exception):  # noqa: N818 - an answer
    """Raised if no ONNX operation corresponds to a layer."""


@dataclass(frozen=True)
class Node:
    """An ONNX node.

    Args:
        kind: its operation.
        inputs: its inputs.
        attributes: its attributes, with booleans as integers, and our element types.
    """

    kind: str
    inputs: Sequence[Array]
    attributes: Mapping[str, Any] = field(default_factory=dict)


_Rule: TypeAlias = Callable[..., Node | None]
"""Takes a layer's operation and its inputs; returns nothing if no node corresponds."""


def node_of(op: Op, inputs: Sequence[Array]) -> Node:
    """Return the node that corresponds to a layer.

    Raises:
        NoOperation: if there is none.
    """
    rule = _RULES.get(op.name)
    node = None if rule is None else rule(op, *inputs)
    if node is None:
        raise NoOperation("no operation corresponds")
    return node


def _same(kind: str) -> _Rule:
    return lambda op, *inputs: Node(kind, inputs)


def _binary(kind: str, **attributes: Any) -> _Rule:
    def rule(op: Any, a: Array, b: Array) -> Node | None:
        is_alike = op.auto_broadcast == "numpy" or a.shape == b.shape
        return Node(kind, [a, b], attributes) if is_alike else None

    return rule


def _reduction(kind: str) -> _Rule:
    return lambda op, data, axes: Node(
        kind, [data, _longs(axes)], {"keepdims": int(op.keep_dims), "noop_with_empty_axes": 1}
    )


def _floor_mod(op: Any, a: Array, b: Array) -> Node | None:
    return _binary("Mod")(op, a, b) if a.dtype.kind in "iu" else None


def _longs(array: Array) -> Array:
    return np.atleast_1d(array).astype(np.int64)


def _padded_window(op: Any) -> dict[str, Any]:
    """Return the attributes for strides and pads."""
    if op.auto_pad not in ("explicit", "valid", "notset"):
        return {"auto_pad": op.auto_pad.upper(), "strides": op.strides}
    pads = [*op.pads_begin, *op.pads_end] if op.auto_pad != "valid" else [0] * 2 * len(op.strides)
    return {"strides": op.strides, "pads": pads}


def _pooling(kind: str) -> _Rule:
    def rule(op: Any, data: Array) -> Node | None:
        if op.rounding_type == "ceil_torch":
            return None
        attributes = {
            **_padded_window(op),
            "kernel_shape": op.kernel,
            "ceil_mode": int(op.rounding_type == "ceil"),
        }
        if kind == "AveragePool":
            return Node(kind, [data], {**attributes, "count_include_pad": int(not op.exclude_pad)})
        return Node(kind, [data], attributes) if op.since == 1 else None

    return rule


def _convolution(op: Any, data: Array, filters: Array) -> Node:
    group = 1
    if op.name == "GroupConvolution":
        group, filters = filters.shape[0], filters.reshape(-1, *filters.shape[2:])
    attributes = {**_padded_window(op), "dilations": op.dilations, "group": group}
    return Node("Conv", [data, filters], attributes)


def _lrn(op: Any, data: Array, axes: Array) -> Node | None:
    if axes.reshape(-1).tolist() != [1]:
        return None
    return Node("LRN", [data], {name: getattr(op, name) for name in ("alpha", "beta", "bias", "size")})


def _gather(op: Any, data: Array, indices: Array, axis: Array) -> Node | None:
    if getattr(op, "batch_dims", 0):
        return None
    return Node("Gather", [data, indices], {"axis": int(axis.reshape(()))})


def _topk(op: Any, data: Array, k: Array) -> Node | None:
    if op.sort == "index":
        return None
    attributes = {"axis": op.axis, "largest": int(op.mode == "max"), "sorted": int(op.sort == "value")}
    return Node("TopK", [data, _longs(k)], attributes)


def _one_hot(op: Any, indices: Array, depth: Array, on: Array, off: Array) -> Node:
    return Node("OneHot", [indices, depth, np.stack([off, on]).reshape(2)], {"axis": op.axis})


def _pad(op: Any, data: Array, begin: Array, end: Array, *value: Array) -> Node | None:
    if op.pad_mode == "symmetric":
        return None
    pads = np.concatenate([_longs(begin), _longs(end)])
    return Node("Pad", [data, pads, *value], {"mode": op.pad_mode})


def _strided_slice(op: Any, data: Array, begin: Array, end: Array, *strides: Array) -> Node | None:
    masks = (op.begin_mask, op.end_mask, op.new_axis_mask, op.shrink_axis_mask, op.ellipsis_mask)
    if any(map(any, masks)):
        return None
    axes = np.arange(begin.size)
    return Node("Slice", [data, begin, end, axes.astype(begin.dtype), *strides])


def _slice(op: Any, data: Array, start: Array, stop: Array, step: Array, *axes: Array) -> Node:
    places = axes or (np.arange(start.size, dtype=start.dtype),)
    return Node("Slice", [data, start, stop, *places, step])


def _cumulative(op: Any, data: Array, *axis: Array) -> Node:
    along = axis[0] if axis else np.array(0, np.int64)
    return Node("CumSum", [data, along], {"exclusive": int(op.exclusive), "reverse": int(op.reverse)})


def _clip(op: Any, data: Array) -> Node | None:
    if data.dtype.kind != "f":
        return None
    return Node("Clip", [data, np.array(op.min, data.dtype), np.array(op.max, data.dtype)])


def _is_infinite(op: Any, data: Array) -> Node:
    ways = {"detect_negative": int(op.detect_negative), "detect_positive": int(op.detect_positive)}
    return Node("IsInf", [data], ways)


def _round(op: Any, data: Array) -> Node | None:
    return Node("Round", [data]) if op.mode == "half_to_even" else None


def _matmul(op: Any, a: Array, b: Array) -> Node | None:
    return None if op.transpose_a or op.transpose_b else Node("MatMul", [a, b])


def _with_numbers(kind: str, *names: str) -> _Rule:
    """Return a rule for an operation with inputs that are attributes in ONNX."""
    return lambda op, data, *numbers: Node(
        kind, [data], {name: float(x.reshape(())) for name, x in zip(names, numbers, strict=True)}
    )


def _with_attributes(kind: str, **names: str) -> _Rule:
    """Return a rule for an operation with renamed attributes."""
    return lambda op, *inputs: Node(
        kind, inputs, {theirs: _plain(getattr(op, ours)) for theirs, ours in names.items()}
    )


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _updates(kind: str, *, has_axis: bool) -> _Rule:
    def rule(op: Any, data: Array, indices: Array, updates: Array, *axis: Array) -> Node | None:
        ours = str(getattr(op, "reduction", "none"))
        reduction = {"sum": "add", "prod": "mul"}.get(ours, ours)
        if reduction not in ("none", "add", "mul", "min", "max") or not getattr(op, "use_init_val", True):
            return None
        attributes: dict[str, Any] = {"reduction": reduction}
        if has_axis:
            attributes["axis"] = int(axis[0].reshape(()))
        return Node(kind, [data, indices.astype(np.int64), updates], attributes)

    return rule


def _expand(op: Any, data: Array, shape: Array, *axes: Array) -> Node | None:
    return Node("Expand", [data, _longs(shape)]) if op.mode in ("numpy", "bidirectional") else None


def _reshape(op: Any, data: Array, shape: Array) -> Node:
    return Node("Reshape", [data, _longs(shape)], {"allowzero": int(not op.special_zero)})


def _with_axes(kind: str) -> _Rule:
    return lambda op, data, *axes: Node(kind, [data, *map(_longs, axes)])


def _transpose(op: Any, data: Array, order: Array) -> Node:
    return Node("Transpose", [data], {"perm": order.tolist()} if order.size else {})


def _cast(op: Any, data: Array) -> Node:
    return Node("Cast", [data], {"to": op.destination_type})


_ALIKE = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp Floor HSwish:HardSwish IsNaN Log LogicalNot:Not Mish Negative:Neg"
    " Ceiling:Ceil PReLU:PRelu Relu ReLU:Relu Sigmoid Sign Sin Sinh SoftPlus:Softplus SoftSign:Softsign Sqrt Tan Tanh"
    " Select:Where BitwiseNot GatherElements Range"
)
_BINARY = (
    "Add Subtract:Sub Multiply:Mul Divide:Div Power:Pow Maximum:Max Minimum:Min Equal Greater GreaterEqual:GreaterOrEqual Less"
    " LessEqual:LessOrEqual LogicalAnd:And LogicalOr:Or LogicalXor:Xor Xor BitwiseAnd BitwiseOr BitwiseXor"
)
_REDUCED = "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"


def _pairs(text: str) -> list[tuple[str, str]]:
    """Return pairs of our name and ONNX's."""
    return [(name.partition(":")[0], name.rpartition(":")[2]) for name in text.split()]


_RULES: Mapping[str, _Rule] = {
    **{name: _same(kind) for name, kind in _pairs(_ALIKE)},
    **{name: _binary(kind) for name, kind in _pairs(_BINARY)},
    **{name: _reduction(kind) for name, kind in _pairs(_REDUCED)},
    "Mod": _binary("Mod", fmod=1),
    "FloorMod": _floor_mod,
    "BitwiseLeftShift": _binary("BitShift", direction="LEFT"),
    "BitwiseRightShift": _binary("BitShift", direction="RIGHT"),
    "MaxPool": _pooling("MaxPool"),
    "AvgPool": _pooling("AveragePool"),
    "Convolution": _convolution,
    "GroupConvolution": _convolution,
    "LRN": _lrn,
    "Gather": _gather,
    "TopK": _topk,
    "OneHot": _one_hot,
    "Pad": _pad,
    "StridedSlice": _strided_slice,
    "Slice": _slice,
    "CumSum": _cumulative,
    "Clamp": _clip,
    "IsInf": _is_infinite,
    "Round": _round,
    "MatMul": _matmul,
    "HardSigmoid": _with_numbers("HardSigmoid", "alpha", "beta"),
    "Selu": _with_numbers("Selu", "alpha", "gamma"),
    "Elu": _with_attributes("Elu", alpha="alpha"),
    "SoftMax": _with_attributes("Softmax", axis="axis"),
    "LogSoftmax": _with_attributes("LogSoftmax", axis="axis"),
    "Concat": _with_attributes("Concat", axis="axis"),
    "GatherND": _with_attributes("GatherND", batch_dims="batch_dims"),
    "Einsum": _with_attributes("Einsum", equation="equation"),
    "ScatterElementsUpdate": _updates("ScatterElements", has_axis=True),
    "ScatterNDUpdate": _updates("ScatterND", has_axis=False),
    "Broadcast": _expand,
    "Reshape": _reshape,
    "Squeeze": _with_axes("Squeeze"),
    "Unsqueeze": _with_axes("Unsqueeze"),
    "Tile": _with_axes("Tile"),
    "Transpose": _transpose,
    "Convert": _cast,
}
