"""Store weights that a FakeQuantize quantizes in few bits."""

from __future__ import annotations

import numpy as np

from ...ir.element import ElementType
from ...ir.tensor import Array
from ..building.ends import Constant
from ..evaluating import evaluated
from ..model import Model
from ..nodes import Node, Output
from .passes import ModelPass

__all__ = ["CompressQuantizeWeights"]

# More levels do not fit into a byte; with two, OpenVINO keeps the FakeQuantize, too.
_LEVELS = range(3, 257)
_LEVELS_OF_4_BITS = 16
# Zero points this close to an integer are that integer.
_ROUNDING = 1e-4


class CompressQuantizeWeights(ModelPass):
    """Replaces a FakeQuantize of constants by integers, a Convert to real numbers, a Subtract and a Multiply.

    The integers have 4 bits for up to 16 levels, else 8. The zero point is left out where it is 0.
    """

    def run_on_model(self, model: Model) -> bool:
        """Replace the nodes."""
        changed = False
        for node in model.get_ordered_ops():
            arrays = _constants(node)
            if arrays is not None:
                _replace(node, arrays)
                changed = True
        return changed


def _constants(node: Node) -> list[Array] | None:
    """Return the weights and the limits of a FakeQuantize, if all are constant and the integers fit into a byte."""
    if node.type != "FakeQuantize" or node.get_attributes()["levels"] not in _LEVELS:
        return None
    arrays = [_constant(source) for source in node.input_values()]
    return None if any(array is None for array in arrays) else [a for a in arrays if a is not None]


def _constant(source: Output) -> Array | None:
    """Return the contents of a Constant, also of one that is stored as another type."""
    node = source.node
    if node.type == "Convert" and node.input_value(0).node.type == "Constant":
        return node.input_value(0).node.get_data().astype(source.element_type.dtype)
    return node.get_data() if node.type == "Constant" else None


def _replace(node: Node, arrays: list[Array]) -> None:
    weights, input_low, input_high, low, high = arrays
    levels = node.get_attributes()["levels"]
    first = 0 if low.min() >= 0 else -(levels // 2)
    element = _element(levels, signed=first < 0)
    limits = [np.full(low.shape, limit, low.dtype) for limit in (first, first + levels - 1)]
    types = [source.element_type for source in node.input_values()]
    found = evaluated(node.layer, [weights, input_low, input_high, *limits], types)
    assert found is not None
    integers = np.rint(found[0])
    scale = (high - low) / np.asarray(levels - 1, low.dtype)
    with np.errstate(all="ignore"):
        zero_point = np.where(scale == 0, 0, first - low / scale).astype(low.dtype)
    near = np.abs(zero_point - np.rint(zero_point)) < _ROUNDING
    zero_point = np.where(near, np.rint(zero_point), zero_point)
    real = node.output(0).element_type
    stored = Constant(element, integers.shape, integers)
    value = Node.create("Convert", 1, [stored], {"destination_type": real})
    if zero_point.any():
        value = Node.create("Subtract", 1, [value, zero_point])
    value = Node.create("Multiply", 1, [value, scale])
    value.set_friendly_name(node.friendly_name)
    node.output(0).replace(value.output(0))


def _element(levels: int, signed: bool) -> ElementType:
    """Return the element type of that many integers."""
    if levels <= _LEVELS_OF_4_BITS:
        return ElementType.i4 if signed else ElementType.u4
    return ElementType.i8 if signed else ElementType.u8
