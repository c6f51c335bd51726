"""Replacement of layer outputs during a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..executor.step import Patch, Step
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array
from .names import unknown_name

__all__ = ["Replacements", "convert_outputs", "patch_of"]

Replacements: TypeAlias = Mapping[str, Callable[..., object]]
"""Functions by layer name, which map the outputs to replacements, or to None to keep them."""


def patch_of(graph: Graph, replacements: Replacements) -> Patch:
    """Return a patch for the executor that applies the replacement functions.

    Raises:
        InputError: if a layer is unknown.
    """
    names = {layer.name for layer in graph.layers.values()}
    for name in replacements:
        if name not in names:
            raise unknown_name("layer", name, sorted(names))

    def patch(step: Step, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        layer = step.layers[-1]
        if layer.name not in replacements or layer not in graph:
            return outputs
        replaced = replacements[layer.name](*outputs)
        if replaced is None:
            return outputs
        arrays = replaced if isinstance(replaced, tuple | list) and len(outputs) > 1 else [replaced]
        return convert_outputs(layer, arrays, outputs)

    return patch


def convert_outputs(layer: Layer, arrays: Sequence[object], outputs: Sequence[Array]) -> tuple[Array, ...]:
    """Convert the replaced outputs of a layer to its dtypes, and check their number and shapes.

    Raises:
        InputError: if the number or a shape differs.
    """
    if len(arrays) != len(outputs):
        raise InputError(
            f"the patch of layer {layer.name!r} returned {len(arrays)} values, expected {len(outputs)}",
            code=Code.BAD_REQUEST,
        )
    results = [np.asarray(array, output.dtype) for array, output in zip(arrays, outputs, strict=True)]
    for array, output in zip(results, outputs, strict=True):
        if array.shape != output.shape:
            raise InputError(
                f"the patch of layer {layer.name!r} returned the shape {list(array.shape)}, "
                f"expected {list(output.shape)}",
                code=Code.BAD_REQUEST,
            )
    return tuple(results)
