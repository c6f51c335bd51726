"""Classifiers quantized to 8 bits like NNCF's post-training quantization: FakeQuantize before every product and residual Add."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from models.architectures.classifiers import torchvision_classifier
from models.architectures.registry import image, model

if TYPE_CHECKING:
    from openvino import Model

_PRODUCTS = ("Convolution", "GroupConvolution", "MatMul")
# Layers that hand levels on, so that the quantizer stands before them.
_TRANSPARENT = ("MaxPool", "Reshape", "Transpose")
_UNSIGNED = ("Clamp", "Relu")


def quantize(converted: Model) -> None:
    """Insert quantizers with limits from one run; store weights as i8 with per-channel scales."""
    from openvino._offline_transformations import compress_quantize_weights_transformation

    activations = list(dict.fromkeys(_activations(converted)))
    for source, high in zip(activations, _highest(converted, activations), strict=True):
        _quantize_activation(source, high)
    for layer in converted.get_ops():
        if layer.get_type_name() in _PRODUCTS:
            _quantize_weights(layer)
    compress_quantize_weights_transformation(converted)


def _activations(converted: Model) -> Iterator[Any]:
    """Return the outputs read by products, means and residual additions."""
    for layer in converted.get_ordered_ops():
        kind, inputs = layer.get_type_name(), layer.input_values()
        if kind in (*_PRODUCTS, "ReduceMean"):
            yield _before_transparent(inputs[0])
        elif kind == "Add" and not any(_is_constant(source) for source in inputs):
            yield from map(_before_transparent, inputs)


def _is_constant(source: Any) -> bool:
    node = source.get_node()
    return node.get_type_name() == "Constant" or (
        node.get_type_name() == "Convert" and _is_constant(node.input_value(0))
    )


def _before_transparent(source: Any) -> Any:
    node = source.get_node()
    return _before_transparent(node.input_value(0)) if node.get_type_name() in _TRANSPARENT else source


def _highest(converted: Model, sources: list[Any]) -> list[float]:
    """Return the largest magnitude of each output in one run."""
    import openvino as ov

    observed = ov.Model(sources, converted.get_parameters(), "observed")
    given = list(image(np.random.default_rng(1)).values())
    found = ov.Core().compile_model(observed, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)
    return [float(np.abs(found[place]).max()) for place in range(len(sources))]


def _quantize_activation(source: Any, high: float) -> None:
    from openvino import opset13 as op

    readers = list(source.get_target_inputs())
    unsigned = source.get_node().get_type_name() in _UNSIGNED
    limits = (0.0, high) if unsigned else (-high, high * 127 / 128)
    low, high_ = (op.constant(np.full((1, 1, 1, 1), limit, np.float32)) for limit in limits)
    if len(source.get_partial_shape()) < 4:
        low, high_ = (op.constant(np.float32(limit)) for limit in limits)
    quantizer = op.fake_quantize(source, low, high_, low, high_, 256)
    for reader in readers:
        reader.replace_source_output(quantizer.output(0))


def _quantize_weights(layer: Any) -> None:
    from openvino import opset13 as op

    source = layer.input_value(1)
    weights = np.array(source.get_node().get_data())
    kept = 2 if layer.get_type_name() == "GroupConvolution" else 1
    high = np.abs(weights).max(tuple(range(kept, weights.ndim)), keepdims=True)
    low, high_ = op.constant(-high), op.constant(high)
    quantizer = op.fake_quantize(source, low, high_, low, high_, 255)
    layer.input(1).replace_source_output(quantizer.output(0))


for _name in ("mobilenet_v2", "resnet18"):
    model(f"{_name}_int8", finish=quantize)(partial(torchvision_classifier, _name))
