"""Declarations of legacy layers, grouped by kind of operation."""

from . import convolution, detection, elementwise, movement, recurrent

__all__ = ["convolution", "detection", "elementwise", "movement", "recurrent"]
