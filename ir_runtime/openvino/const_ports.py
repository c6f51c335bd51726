"""`ConstOutput`, an input or output of a compiled model."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.graph import Port
from ..ir.tensor import TensorType
from .any_value import Entries
from .callers import warn
from .node import Node, Output
from .ports import describe_port

__all__ = ["ConstOutput", "show_ports"]


class ConstOutput(Output):
    """An input or output of a compiled model. As OpenVINO's ``ConstOutput``.

    Its type and names are those at the time of compilation.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> ov.compile_model(ov.Model([opset1.relu(x)], [x])).input()
    <ConstOutput: names[x] shape[2,3] type: f32>
    """

    def __init__(self, node: Node, index: int, port: Port, type: TensorType, names: tuple[str, ...]) -> None:
        super().__init__(node, index)
        self._port, self._fixed_type, self._fixed_names = port, type, names

    @property
    def _type(self) -> TensorType:
        return self._fixed_type

    @property
    def _names(self) -> tuple[str, ...]:
        return self._fixed_names

    def _replace_rt_info(self, entries: Entries) -> None:
        warn(
            "runtime information set by a port of a compiled model is not part of any model, and OpenVINO 2027 will "
            "refuse it: set that of the output of a node",
            DeprecationWarning,
        )
        super()._replace_rt_info(entries)

    def __lt__(self, other: object) -> bool:
        """Order ports by their position in the model."""
        return self._port < other._port if isinstance(other, ConstOutput) else NotImplemented


def show_ports(inputs: Iterable[Output], outputs: Iterable[Output]) -> str:
    """Format inputs and outputs for ``repr``, as OpenVINO does."""
    shown = (
        ",\n".join(describe_port(port, ConstOutput.__name__) for port in ports) for ports in (inputs, outputs)
    )
    return "inputs[\n{}\n]\noutputs[\n{}\n]".format(*shown)
