"""Functions that create the operations of opset12, as ``openvino.opset12`` has them. Written by ``make index``."""

from .. import opset11 as _before
from ..opset11 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
