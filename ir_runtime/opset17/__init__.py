"""Functions that create the operations of opset17, as ``openvino.opset17`` has them. Written by ``make index``."""

from .. import opset16 as _before
from ..opset16 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
