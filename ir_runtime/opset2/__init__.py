"""Functions that create the operations of opset2, as ``openvino.opset2`` has them. Written by ``make index``."""

from .. import opset1 as _before
from ..opset1 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
