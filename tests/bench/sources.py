"""The networks of the table, with inputs: zoo files, built if necessary, and those of tests/models/kinds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from shared import TESTS, Options, fresh

TUNED = [
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "efficientnet_b0",
    "densenet121",
    "squeezenet1_1",
    "shufflenet_v2_x1_0",
    "vit_b_16",
    "swin_t",
    "convnext_tiny",
    "bert_base_128",
    "gpt2_128",
    "yolo_640",
    "unet_256",
    "lstm",
    "mobilenet_v2_int8",
    "resnet18_int8",
]
"""Networks of the zoo that kernels were tuned by."""
MEASURED = [
    "small_cnn",
    "unet",
    "unet_3d",
    "yolo",
    "ssdlite",
    "faster_rcnn",
    "bert_base",
    "gpt2",
    "llama",
    "t5_encoder",
    "t5_decoder",
    "whisper_encoder",
    "whisper_decoder",
    "bilstm",
    "spectrum",
]
"""Networks of the zoo that were only measured."""
TUNED_KINDS = [
    "embedding_bags",
    "graph_network",
    "style_transfer",
    "atrous_pyramid",
    "volumes",
    "wavenet",
    "espcn",
    "tabular",
]
"""Networks of tests/models/kinds that kernels were tuned by."""
MEASURED_KINDS = [
    "autoencoder",
    "segformer",
    "perceptron",
    "gru_tagger",
    "audio_front_end",
    "looped_transformer",
    "early_exit",
    "bert_small_int8",
    "bert_small_int4",
    "gqa_f32_prefill",
    "gqa_f32_step",
    "gqa_int8_prefill",
    "gqa_int8_step",
    "gqa_int4_prefill",
    "gqa_int4_step",
    "moe_step",
]
"""Networks of tests/models/kinds that were only measured."""
KINDS = [*TUNED_KINDS, *MEASURED_KINDS]
NETWORKS = [*TUNED, *MEASURED, *KINDS]
"""Every row of the table, in order."""
ONE_AT_A_TIME = {"yolo_640"}
"""Networks that take no batch."""


def is_tuned(name: str) -> bool:
    """Return whether kernels were tuned on the network."""
    return name in TUNED or name in TUNED_KINDS


def source(name: str, batch: int, folder: Path, options: Options) -> tuple[Path, Path]:
    """Return the paths of the model and its inputs, built in the folder if necessary.

    Raises:
        RuntimeError: if the model cannot be built.
    """
    inputs = folder / "inputs.npz"
    if name in KINDS:
        return fresh(_save_kind, name, batch, folder / f"{name}.xml", inputs), inputs
    path = _made(
        name, options.dir / (f"{name}.xml" if batch == 1 else f"{name}_b{batch}.xml"), batch, options
    )
    _save_inputs(name, batch, inputs)
    return path, inputs


def _save_kind(name: str, batch: int, path: Path, inputs: Path) -> Path:
    sys.path.insert(0, str(TESTS))
    import numpy as np
    import openvino as ov
    from models.kinds import KINDS as BUILDERS
    from models.kinds import inputs_of

    model = BUILDERS[name](batch)
    np.savez(inputs, **inputs_of(model))
    ov.save_model(model, path, compress_to_fp16=False)
    return path


def _save_inputs(name: str, batch: int, path: Path) -> None:
    sys.path.insert(0, str(TESTS))
    import numpy as np
    from models.zoo import example_inputs

    np.savez(path, **example_inputs(name, 0, batch))


def _made(name: str, path: Path, batch: int, options: Options) -> Path:
    """Build a network of the zoo unless it exists."""
    wanted = [path, path.with_suffix(".onnx")] if options.onnx and batch == 1 else [path]
    if all(file.exists() for file in wanted):
        return path
    more = ["--onnx"] if len(wanted) > 1 else []
    command = [sys.executable, TESTS / "models" / "zoo.py", name, "--out", path.parent, "--batch", str(batch)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    if not path.exists():
        raise RuntimeError(f"it could not be built: {(done.stderr.strip().splitlines() or [''])[-1]}")
    return path
