"""Compress weights quantized by FakeQuantize or FakeConvert to low-bit types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...ir.element import ElementType
from ...ir.evaluation import evaluate_layer
from ...ir.tensor import Array
from ..build.ends import Constant
from ..model import Model
from ..node import Node, Output
from .passes import ModelPass, bodies_of

__all__ = ["CompressQuantizeWeights"]

# More levels do not fit into a byte; for two, OpenVINO also keeps the FakeQuantize.
_LEVELS = range(3, 257)
_LEVELS_OF_4_BITS = 16
# Zero points this close to an integer are rounded.
_ROUNDING = 1e-4


class CompressQuantizeWeights(ModelPass):
    """Replaces FakeQuantize or FakeConvert of constants by stored integers, Convert, Subtract and Multiply.

    Bodies of branches and loops are included. FakeQuantize with up to 16 levels gives 4-bit integers, with
    more levels 8-bit ones; FakeConvert gives its own 8-bit type. The Subtract is omitted if the zero point or
    shift is 0.

    Those of a FakeQuantize are integers of 4 bits for up to 16 levels, else of 8; those of a FakeConvert have its type
    of 8 bits. The Subtract is left out where the zero point, or the shift, is 0.
    """

    def run_on_model(self, model: Model) -> bool:
        """Replace the nodes."""
        changed = False
        for node in model.get_ordered_ops():
            for body in bodies_of(node):
                changed = self.run_on_model(body) or changed
            replace = _replacement(node)
            arrays = _constants(node) if replace else None
            if replace and arrays:
                replace(node, arrays)
                changed = True
        return changed


def _replacement(node: Node) -> Callable[[Node, list[Array]], None] | None:
    """Return the function that can replace a node with constant inputs, if any."""
    if node.type == "FakeConvert":
        return _replace_convert
    return (
        _replace_quantize
        if node.type == "FakeQuantize" and node.get_attributes()["levels"] in _LEVELS
        else None
    )


def _constants(node: Node) -> list[Array] | None:
    """Return the contents of all inputs, if they are constant."""
    arrays = [_constant(source) for source in node.input_values()]
    return None if any(array is None for array in arrays) else [a for a in arrays if a is not None]


def _constant(source: Output) -> Array | None:
    """Return the contents of a Constant, also through conversion from another type."""
    node = source.node
    if node.type == "Convert" and node.input_value(0).node.type == "Constant":
        return node.input_value(0).node.elements.astype(source.element_type.dtype)
    return node.elements if node.type == "Constant" else None


def _replace_quantize(node: Node, arrays: list[Array]) -> None:
    weights, input_low, input_high, low, high = arrays
    levels = node.get_attributes()["levels"]
    first = 0 if low.min() >= 0 else -(levels // 2)
    limits = [np.full(low.shape, limit, low.dtype) for limit in (first, first + levels - 1)]
    types = [source.element_type for source in node.input_values()]
    integers = np.rint(evaluate_layer(node.layer, [weights, input_low, input_high, *limits], types)[0])
    scale = (high - low) / np.asarray(levels - 1, low.dtype)
    with np.errstate(all="ignore"):
        zero_point = np.where(scale == 0, 0, first - low / scale).astype(low.dtype)
    near = np.abs(zero_point - np.rint(zero_point)) < _ROUNDING
    zero_point = np.where(near, np.rint(zero_point), zero_point)
    stored = Constant(_element(levels, signed=first < 0), integers.shape, integers)
    _dequantize(node, stored, zero_point, scale)


def _replace_convert(node: Node, arrays: list[Array]) -> None:
    weights, scale, *shifts = arrays
    shift = shifts[0] if shifts else np.zeros((), scale.dtype)
    scaled = _compute("Multiply", [weights, scale])
    if shift.any():
        scaled = _compute("Subtract", [scaled, shift])
    stored = _compute("Convert", [scaled], node.get_attributes())
    inverse = _compute("Power", [scale, np.asarray(-1, scale.dtype)])
    _dequantize(node, stored, -shift, inverse)


def _dequantize(node: Node, stored: Constant, zero_point: Array, scale: Array | Constant) -> None:
    """Replace a node by ``(stored - zero_point) * scale``."""
    real = node.output(0).element_type
    value = Node.create("Convert", 1, [stored], {"destination_type": real})
    if zero_point.any():
        value = Node.create("Subtract", 1, [value, zero_point])
    value = Node.create("Multiply", 1, [value, scale])
    value.set_friendly_name(node.friendly_name)
    node.output(0).replace(value.output(0))


def _compute(
    type: str, sources: list[Array | Constant], attributes: Mapping[str, object] | None = None
) -> Constant:
    """Evaluate an operation of opset1 on constants."""
    node = Node.create(type, 1, sources, dict(attributes or {}))
    arrays = [source.node.get_data() for source in node.input_values()]
    result = evaluate_layer(node.layer, arrays, [source.element_type for source in node.input_values()])[0]
    return Constant(node.output(0).element_type, result.shape, result)


def _element(levels: int, signed: bool) -> ElementType:
    """Return the integer type with this many levels."""
    if levels <= _LEVELS_OF_4_BITS:
        return ElementType.i4 if signed else ElementType.u4
    return ElementType.i8 if signed else ElementType.u8
