"""Graph-editing and validation helpers of ``openvino.utils``.

>>> import numpy as np, ir_runtime as ov
>>> from ir_runtime import opset13 as ops, utils
>>> x = ops.parameter([2], np.float32, "x")
>>> inner = ops.relu(x)
>>> model = ov.Model([ops.exp(inner)], [x])
>>> utils.replace_node(inner, ops.abs(x))
>>> [node.get_type_name() for node in model.get_ordered_ops()]
['Parameter', 'Abs', 'Exp', 'Result']
>>> found = model.get_ordered_ops()[2]
>>> utils.replace_output_update_name(found.output(0), found.input_value(0))
True
>>> [node.get_type_name() for node in model.get_ordered_ops()]
['Parameter', 'Abs', 'Result']
"""

from __future__ import annotations

from collections.abc import Sequence

from .._util.absent import explain_absent
from ..codes import Code
from ..errors import InputError
from ..openvino.node import Node, Output, as_outputs
from . import data_helpers, decorators, input_validation, node_factory, types

__all__ = [
    "data_helpers",
    "decorators",
    "input_validation",
    "node_factory",
    "replace_node",
    "replace_output_update_name",
    "types",
]


def replace_node(
    target: Node, replacement: Node | Sequence[Output], outputs_order: Sequence[int] | None = None
) -> None:
    """Connect all consumers of a node to its replacement.

    Args:
        target: the node to replace.
        replacement: a node with as many outputs, or an output for each output of ``target``.
        outputs_order: for each output of ``target``, the index of the replacing output; in order by default.

    Raises:
        InputError: if the numbers of outputs differ.
    """
    replacements = as_outputs(replacement) if isinstance(replacement, Node) else list(replacement)
    if outputs_order is not None:
        replacements = [replacements[index] for index in outputs_order]
    outputs = target.outputs()
    if len(replacements) != len(outputs):
        message = (
            f"{target.friendly_name!r} has {len(outputs)} outputs, got {len(replacements)} to replace them"
        )
        raise InputError(message, code=Code.BAD_REQUEST)
    for output, other in zip(outputs, replacements, strict=True):
        output.replace(other)


def replace_output_update_name(output: Output, target_output: Output) -> bool:
    """Connect all consumers of an output to ``target_output``, whose node is renamed if a Result reads ``output``.

    Returns:
        True.
    """
    results = [target for target in output.target_inputs if target.get_node().type == "Result"]
    if results:
        target_output.node.set_friendly_name(output.node.friendly_name)
    output.replace(target_output)
    return True


explain_absent(__name__)
