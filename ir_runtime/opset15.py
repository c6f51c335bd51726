"""Functions that create the operations of opset15, as ``openvino.opset15`` has them."""

from .openvino.build.opsets import attach

__getattr__, __dir__, __all__ = attach(__name__)
