"""Functions that create the operations of opset5, as ``openvino.opset5`` has them."""

from .openvino.build.opsets import attach

__getattr__, __dir__, __all__ = attach(__name__)
