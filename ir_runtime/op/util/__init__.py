"""What nodes are described with: variables, and how bodies are tied to ports. As ``openvino.op.util``."""

from ...absent import answers
from ...api.building.descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    SliceInputDescription,
)
from ...api.building.variables import Variable, VariableInfo

__all__ = [
    "BodyOutputDescription",
    "ConcatOutputDescription",
    "InvariantInputDescription",
    "MergedInputDescription",
    "SliceInputDescription",
    "Variable",
    "VariableInfo",
]

__getattr__ = answers(__name__)
