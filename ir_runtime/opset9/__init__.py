"""Functions that create the operations of opset9, as ``openvino.opset9`` has them. Written by ``make index``."""

from .. import opset8 as _before
from ..opset8 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
