"""The declarations of legacy layers, grouped by the operations that replace them."""

from . import convolution, detection, elementwise, movement, recurrent

__all__ = ["convolution", "detection", "elementwise", "movement", "recurrent"]
