"""Keras with its OpenVINO backend: layers become operations of a model, compiled for each shape of the data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["keras_images", "keras_sequences"]

Arrays = dict[str, np.ndarray[Any, Any]]


def _keras() -> Any:
    os.environ["KERAS_BACKEND"] = "openvino"
    import keras

    assert keras.backend.backend() == "openvino"
    return keras


def _with_random_weights(model: Any) -> Any:
    """Assign random weights to a model; variances are not negative."""
    draw = np.random.default_rng(6)
    weights = [draw.normal(0, 0.3, weight.shape).astype(np.float32) for weight in model.weights]
    pairs = zip(model.weights, weights, strict=True)
    model.set_weights([np.abs(w) if "variance" in variable.path else w for variable, w in pairs])
    return model


def keras_images(models: Path) -> Arrays:
    """Predict with convolutions, pooling, normalization and branches, before and after saving the model."""
    keras = _keras()
    layers = keras.layers
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(layers.Rescaling(1 / 255)(inputs))
    x = layers.MaxPooling2D(padding="same")(layers.BatchNormalization()(x))
    wide = layers.SeparableConv2D(8, 3, padding="same", activation="gelu")(x)
    x = layers.concatenate([layers.add([x, wide]), layers.DepthwiseConv2D(3, padding="same")(x)])
    x = layers.UpSampling2D(interpolation="bilinear")(layers.LayerNormalization()(x))
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same")(x)
    outputs = layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling2D()(x))
    model = _with_random_weights(keras.Model(inputs, outputs))
    images = np.random.default_rng(7).integers(0, 255, (3, 32, 32, 3)).astype(np.float32)
    predicted = model.predict(images, batch_size=2, verbose=0)
    again = keras.models.model_from_json(model.to_json())
    again.set_weights(model.get_weights())
    return {"predicted": predicted, "again": again.predict(images, verbose=0)}


def keras_sequences(models: Path) -> Arrays:
    """Predict with embeddings, recurrent layers and attention; and compute with operations."""
    keras = _keras()
    layers, ops = keras.layers, keras.ops
    words = keras.Input((12,), dtype="int32")
    x = layers.Embedding(50, 16)(words)
    x = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(x)
    x = layers.add([x, layers.MultiHeadAttention(2, 8)(x, x)])
    outputs = [layers.GRU(4)(x), layers.SimpleRNN(4)(x), layers.Conv1D(4, 3, padding="causal")(x)]
    model = _with_random_weights(keras.Model(words, outputs))
    draw = np.random.default_rng(8)
    found = model.predict(draw.integers(0, 50, (2, 12)), verbose=0)
    matrix = draw.normal(size=(4, 4)).astype(np.float32)
    total = ops.fori_loop(0, 5, lambda n, x: x + ops.cast(n, "float32"), ops.convert_to_tensor(matrix))
    computed = {
        "sorted": ops.sort(matrix, axis=0),
        "places": ops.argsort(matrix),
        "product": ops.einsum("ij,jk->ik", matrix, matrix),
        "loop": total,
        "inverse": ops.inv(ops.convert_to_tensor(matrix)),
        "largest": ops.top_k(matrix, 2)[0],
        "scattered": ops.scatter(np.array([[1], [3]]), np.float32([5, 6]), (6,)),
    }
    layers_found = {f"layer {number}": np.asarray(array) for number, array in enumerate(found)}
    return layers_found | {name: ops.convert_to_numpy(value) for name, value in computed.items()}
