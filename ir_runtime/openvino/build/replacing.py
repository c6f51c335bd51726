"""Replacement of nodes and outputs, as in ``openvino.utils``."""

from __future__ import annotations

from collections.abc import Sequence

from ...codes import Code
from ...errors import InputError
from ..node import Node, Output, as_outputs

__all__ = ["replace_node", "replace_output_update_name"]


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
    given = as_outputs(replacement) if isinstance(replacement, Node) else list(replacement)
    if outputs_order is not None:
        given = [given[index] for index in outputs_order]
    outputs = target.outputs()
    if len(given) != len(outputs):
        message = f"{target.friendly_name!r} has {len(outputs)} outputs, got {len(given)} to replace them"
        raise InputError(message, code=Code.BAD_REQUEST)
    for output, other in zip(outputs, given, strict=True):
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
