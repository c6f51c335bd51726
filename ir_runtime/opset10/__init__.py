"""Functions that create the operations of opset10, as ``openvino.opset10`` has them. Written by ``make index``."""

from .. import opset9 as _before
from ..opset9 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
