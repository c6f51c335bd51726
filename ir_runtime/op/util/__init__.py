"""What nodes are described with. As ``openvino.op.util``."""

from ...api.building.variables import Variable, VariableInfo

__all__ = ["Variable", "VariableInfo"]
