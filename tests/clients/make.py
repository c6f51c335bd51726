"""Make small models with random weights for the clients, converted by OpenVINO."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import transformers as tf

from clients import ocr, sentences

__all__ = ["make"]

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def make(folder: Path) -> None:
    """Make the missing models."""
    folder.mkdir(parents=True, exist_ok=True)
    bert = tf.BertConfig(vocab_size=100, max_position_embeddings=64, **_SMALL)
    vit = tf.ViTConfig(image_size=32, patch_size=8, num_labels=7, **_SMALL)
    llama = tf.LlamaConfig(
        vocab_size=120, num_key_value_heads=2, max_position_embeddings=128, eos_token_id=None, **_SMALL
    )
    gpt2 = tf.GPT2Config(vocab_size=120, n_positions=128, n_embd=32, n_layer=2, n_head=4, eos_token_id=None)
    _optimum(folder / "bert", tf.BertModel(bert), "feature-extraction")
    _optimum(folder / "vit", tf.ViTForImageClassification(vit), "image-classification")
    _optimum(folder / "llama", tf.LlamaForCausalLM(llama), "text-generation-with-past")
    _optimum(folder / "gpt2", tf.GPT2LMHeadModel(gpt2), "text-generation-with-past")
    for name in ("yolo11n", "yolo11n-seg", "yolo11n-pose"):
        _ultralytics(folder / f"{name}_openvino_model", f"{name}.yaml")
    _classifier(folder / "classifier.xml")
    _anomalib(folder / "anomalib")
    sentences.make(folder)
    ocr.make(folder)


def _optimum(folder: Path, model: torch.nn.Module, task: str) -> None:
    if (folder / "openvino_model.xml").exists():
        return
    from optimum.exporters.openvino import main_export

    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    source = folder.with_name(f"{folder.name}_torch")
    model.save_pretrained(source)
    main_export(
        str(source), output=str(folder), task=task, library_name="transformers", convert_tokenizer=False
    )


def _ultralytics(folder: Path, architecture: str) -> None:
    if folder.exists():
        return
    os.environ["YOLO_CONFIG_DIR"] = str(folder.parent)
    from ultralytics import YOLO

    torch.manual_seed(0)
    model = YOLO(architecture)
    exported = model.export(format="openvino", imgsz=128)
    Path(exported).rename(folder)


def _classifier(path: Path) -> None:
    if path.exists():
        return
    import openvino

    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(8, 5),
    )  # fmt: skip
    converted = openvino.convert_model(
        layers.eval(), input=[1, 3, 32, 32], example_input=torch.zeros(1, 3, 32, 32)
    )
    converted.input(0).get_tensor().set_names({"image"})
    openvino.save_model(converted, path, compress_to_fp16=False)


def _anomalib(folder: Path) -> None:
    if folder.exists():
        return
    from anomalib.models import ReverseDistillation

    torch.manual_seed(0)
    model = ReverseDistillation(backbone="resnet18", pre_trained=False, visualizer=False, evaluator=False)
    model.to_openvino(export_root=folder, input_size=(64, 64), compression_type=None)


if __name__ == "__main__":
    import sys

    make(Path(sys.argv[1]))
