"""Typical client programs of OpenVINO; each returns arrays that must be equal on both packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clients.keras_models import keras_images, keras_sequences
from clients.ocr import text_of_pictures
from clients.quantization import (
    accuracy_control,
    optimum_static_quantization,
    optimum_weights,
    quantization,
    quantization_of_transformers,
    weight_compression,
    weight_compression_with_data,
)
from clients.sentences import pairs, sentences

__all__ = ["PROGRAMS"]

Arrays = dict[str, np.ndarray[Any, Any]]
IDS = np.random.default_rng(0).integers(3, 99, (2, 9))


def feature_extraction(models: Path) -> Arrays:
    """optimum-intel: OVModelForFeatureExtraction."""
    import torch
    from optimum.intel import OVModelForFeatureExtraction

    model = OVModelForFeatureExtraction.from_pretrained(models / "bert", ov_config=PRECISE)
    mask = np.ones_like(IDS)
    mask[0, 6:] = 0
    found = model(input_ids=torch.tensor(IDS), attention_mask=torch.tensor(mask))
    model.reshape(1, 5)
    fixed = model(input_ids=IDS[:1, :5], attention_mask=mask[:1, :5])
    return {"hidden": found.last_hidden_state.numpy(), "fixed": np.asarray(fixed.last_hidden_state)}


def image_classification(models: Path) -> Arrays:
    """optimum-intel: OVModelForImageClassification."""
    import torch
    from optimum.intel import OVModelForImageClassification

    model = OVModelForImageClassification.from_pretrained(models / "vit", ov_config=PRECISE)
    pixels = torch.tensor(np.random.default_rng(1).normal(size=(2, 3, 32, 32)), dtype=torch.float32)
    logits = model(pixel_values=pixels).logits.numpy()
    return {"logits": logits, "classes": logits.argmax(axis=1)}


def text_generation(models: Path, name: str = "llama") -> Arrays:
    """optimum-intel: stateful OVModelForCausalLM, greedy and with beam search."""
    import torch
    from optimum.intel import OVModelForCausalLM

    model = OVModelForCausalLM.from_pretrained(models / name, ov_config=PRECISE)
    ids, mask = torch.tensor(IDS), torch.ones(IDS.shape, dtype=torch.int64)
    settings = {"attention_mask": mask, "max_new_tokens": 20, "min_new_tokens": 20, "pad_token_id": 0}
    greedy = model.generate(ids, do_sample=False, **settings)
    beams = model.generate(ids, num_beams=3, do_sample=False, **settings)
    again = model.generate(ids, do_sample=False, **settings)
    logits = model(input_ids=ids, attention_mask=mask, position_ids=mask.cumsum(1) - 1).logits
    return {
        "greedy tokens": greedy.numpy(),
        "beam tokens": beams.numpy(),
        "tokens again": again.numpy(),
        "logits": logits.numpy(),
    }


def text_generation_gpt2(models: Path) -> Arrays:
    """optimum-intel: like text_generation, with another architecture."""
    return text_generation(models, "gpt2")


def predicted(models: Path, name: str, task: str) -> Any:
    """Return the predictions of an ultralytics model on an image."""
    from ultralytics import YOLO

    image = np.random.default_rng(2).integers(0, 255, (96, 128, 3), dtype=np.uint8)
    model = YOLO(models / f"{name}_openvino_model", task=task)
    (result,) = model.predict(image, imgsz=128, conf=1e-6, max_det=20, verbose=False)
    return result


def boxes(result: Any) -> Arrays:
    """Return the boxes found; there must be some."""
    assert len(result.boxes) > 0
    return {
        "boxes": result.boxes.xyxy.numpy(),
        "scores": result.boxes.conf.numpy(),
        "classes": result.boxes.cls.numpy(),
    }


def detection(models: Path) -> Arrays:
    """ultralytics: detect."""
    return boxes(predicted(models, "yolo11n", "detect"))


def segmentation(models: Path) -> Arrays:
    """ultralytics: segment. Masks are cropped to boxes, so rounding decides about pixels on edges."""
    result = predicted(models, "yolo11n-seg", "segment")
    found, masks = boxes(result), result.masks.data.numpy().copy()
    # Bars above and below the image, which is as wide as the model's.
    bars = (masks.shape[1] - result.orig_shape[0]) / 2
    for mask, (left, top, right, bottom) in zip(masks, found["boxes"], strict=True):
        mask[:, _on_edge(mask.shape[1], left, right)] = 0
        mask[_on_edge(mask.shape[0], top + bars, bottom + bars)] = 0
    assert masks.any()
    return found | {"masks": masks}


def _on_edge(count: int, *edges: float) -> Any:
    """Return for each of `count` pixels whether it starts on an edge, up to rounding."""
    return np.abs(np.subtract.outer(np.arange(count), edges)).min(axis=1) < 1e-3


def pose(models: Path) -> Arrays:
    """ultralytics: pose."""
    result = predicted(models, "yolo11n-pose", "pose")
    return boxes(result) | {"keypoints": result.keypoints.data.numpy()}


def classification(models: Path) -> Arrays:
    """openvino-model-api: a classifier with embedded preprocessing."""
    from model_api.adapters import OpenvinoAdapter, create_core
    from model_api.models import ClassificationModel

    image = np.random.default_rng(3).integers(0, 255, (48, 40, 3), dtype=np.uint8)
    adapter = OpenvinoAdapter(create_core(), str(models / "classifier.xml"), device="CPU")
    settings = {
        "labels": list("abcde"),
        "topk": 3,
        "output_raw_scores": True,
        "scale_values": [60.0, 61.0, 62.0],
    }
    model = ClassificationModel(adapter, settings, preload=True)
    result = model(image)
    return {
        "classes": np.array([label.id for label in result.top_labels]),
        "confidences": np.array([label.confidence for label in result.top_labels], np.float32),
        "raw scores": np.asarray(result.raw_scores),
    }


def anomaly_detection(models: Path) -> Arrays:
    """anomalib: OpenVINOInferencer."""
    from anomalib.deploy import OpenVINOInferencer

    (path,) = (models / "anomalib").rglob("*.xml")
    image = np.random.default_rng(4).random((64, 64, 3), dtype=np.float32)
    found = OpenVINOInferencer(path, device="CPU").predict(image)
    return {"map": np.asarray(found.anomaly_map), "score": np.asarray(found.pred_score)}


PRECISE = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}

PROGRAMS: dict[str, Callable[[Path], Arrays]] = {
    each.__name__: each
    for each in (
        feature_extraction,
        image_classification,
        text_generation,
        text_generation_gpt2,
        detection,
        segmentation,
        pose,
        classification,
        anomaly_detection,
        keras_images,
        keras_sequences,
        sentences,
        pairs,
        text_of_pictures,
        quantization,
        quantization_of_transformers,
        accuracy_control,
        weight_compression,
        weight_compression_with_data,
        optimum_weights,
        optimum_static_quantization,
    )
}
