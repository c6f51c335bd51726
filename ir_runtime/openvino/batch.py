"""The batch size of a model: the dimension named N in the layouts of its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import SupportsIndex

from ..codes import Code
from ..errors import InputError
from ..ir import dimension as lengths
from .layout_helpers import batch_idx, get_layout, has_batch
from .model import Model
from .node import Output
from .shapes import Dimension

__all__ = ["get_batch", "set_batch"]


def get_batch(model: Model) -> Dimension:
    """Return the batch size of a model, which all inputs with a batch dimension must share.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([4, 3], np.float32, name="x")
    >>> x.set_layout(ov.Layout("NC"))
    >>> ov.get_batch(ov.Model([opset1.relu(x)], [x]))
    <Dimension: 4>

    Raises:
        InputError: if no layout names a batch, or two inputs have different batch sizes.
    """
    batch = lengths.Dimension()
    for port, index in _find_batches(model):
        merged = batch.merge(port._type.shape[index])
        if merged is None:
            raise InputError(
                f"inputs have batches of different lengths: {_list_layouts(model)}",
                code=Code.BAD_REQUEST,
                hint="N in a layout must be the batch; see ir_runtime.layout_helpers.set_layout",
            )
        batch = merged
    return Dimension.copy_of(batch)


def set_batch(
    model: Model, batch_size: SupportsIndex | Dimension = -1, *, dimension: Dimension | None = None
) -> None:
    """Reshape a model to another batch size, -1 for a dynamic one.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([4, 3], np.float32, name="x")
    >>> x.set_layout(ov.Layout("NC"))
    >>> model = ov.Model([opset1.relu(x)], [x])
    >>> ov.set_batch(model, 2)
    >>> model.output().shape
    <Shape: [2,3]>

    Args:
        model: the model. The layouts of its inputs must name N.
        batch_size: the batch size, an integer or a `Dimension`.
        dimension: OpenVINO's other name of ``batch_size``.

    Raises:
        InputError: as for `get_batch`.
        ValidationError: if the new shape is invalid for a layer; the model is then unchanged.
    """
    size = batch_size if dimension is None else dimension
    length = size if isinstance(size, lengths.Dimension) else Dimension(_integer(size))
    get_batch(model)
    model.reshape({port: port._type.shape.replace({at: length}) for port, at in _find_batches(model)})


def _integer(size: SupportsIndex) -> SupportsIndex:
    if isinstance(size, str) or not hasattr(size, "__index__"):
        raise TypeError(f"a batch must be an integer or a Dimension, got {size!r}")
    return size


def _find_batches(model: Model) -> Iterator[tuple[Output, int]]:
    """Yield each input of known rank whose layout names a batch, with the index of that dimension.

    Raises:
        InputError: if no layout names a batch.
    """
    if not isinstance(model, Model):
        raise TypeError(f"expected a model, got {type(model).__name__}; ir_runtime.read_model returns one")
    ports = [port for port in model.inputs if _names_batch(port)]
    if not ports:
        raise InputError(
            f"no input has a layout that names a batch: {_list_layouts(model)}",
            code=Code.BAD_REQUEST,
            hint='give one its layout: model.get_parameters()[0].set_layout(ir_runtime.Layout("NCHW"))',
        )
    for port in ports:
        yield port, batch_idx(get_layout(port)) % len(port._type.shape)


def _names_batch(port: Output) -> bool:
    return has_batch(get_layout(port)) and port._type.shape.rank is not None


def _list_layouts(model: Model) -> str:
    ports = [
        f"{port.label!r} has shape {port._type.shape} and layout {get_layout(port)}" for port in model.inputs
    ]
    return "; ".join(ports)
