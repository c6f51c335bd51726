"""Functions that create the operations of opset1, as ``openvino.opset1`` has them. Written by ``make index``."""

from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _own.__all__
