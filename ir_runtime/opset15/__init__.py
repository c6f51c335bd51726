"""Functions that create the operations of opset15, as ``openvino.opset15`` has them. Written by ``make index``."""

from .. import opset14 as _before
from ..opset14 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
