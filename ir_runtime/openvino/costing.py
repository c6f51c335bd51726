"""`cost`, which counts the operations, parameters and memory of a model."""

from __future__ import annotations

from ..analysis.cost import Cost, count
from ..codes import Code
from ..io.reader.source import SourceLike
from ..limits import within
from .model import Model, PortShapes
from .reading import check, read_model
from .shapes import ShapeLike

__all__ = ["cost"]


def cost(model: SourceLike | Model, shapes: ShapeLike | PortShapes | None = None) -> Cost:
    """Count the arithmetic operations, parameters and memory of one run of a model, without running it.

    The weights may be missing. Shapes that depend on them are taken from the file, marked by
    `LayerCount.is_declared`. With other ``shapes`` for the inputs, such layers are not counted.

    >>> import ir_runtime
    >>> found = ir_runtime.cost("examples/digits/digits.xml")
    >>> found.parameters, found.macs
    (46106, 1231136·batch)
    >>> found.at(batch=2), ir_runtime.cost("examples/digits/digits.xml", [2, 1, 8, 8]).flops
    (4956980, 4956980)

    Args:
        model: a path, bytes, an open file, or a model.
        shapes: other shapes for the inputs, as for `Model.reshape`.

    Returns:
        The counts per layer and per operation, as integers or as formulas of dynamic dims such as ``2·seq·768·768``.

    Raises:
        InputError: if the file cannot be opened.
        ParseError: if it is not an IR.
        ValidationError: if the model is invalid, or the shapes are.
    """
    net = model.clone() if isinstance(model, Model) else read_model(model, strict=False)
    check(net, strict=False, allowed=frozenset({Code.WEIGHTS_MISSING}))
    if shapes is not None:
        net.reshape(shapes)
    with within(net.limits):
        has_data = not net.report.count(code=Code.WEIGHTS_MISSING)  # contents are needed for formulas
        is_open = has_data and any(port.partial_shape.is_dynamic for port in net.inputs)
        constraints = net.constraints(confirm=False) if is_open else None
        return count(net._graph, net._values, net._parameter_types, constraints)
