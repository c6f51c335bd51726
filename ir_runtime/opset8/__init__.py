"""Functions that create the operations of opset8, as ``openvino.opset8`` has them. Written by ``make index``."""

from .. import opset7 as _before
from ..opset7 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
