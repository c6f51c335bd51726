"""Functions that create the operations of opset11, as ``openvino.opset11`` has them. Written by ``make index``."""

from .. import opset10 as _before
from ..opset10 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
