"""Well-known networks with seeded random weights, converted to OpenVINO IR and cached in a folder.

    python tests/models/zoo.py [--out DIR] [--list] [NAME...]

Without names every model is built; those already in the folder are skipped. Nothing is downloaded: only the
architectures come from torchvision and transformers. From other code, `ir_path(name)` gives the path
of the .xml (building it if need be) and `example_inputs(name)` arrays to run it on; neither needs torch once
the model is cached.
To add a network, write a function returning an `nn.Module` under `@model(name, inputs, shape)`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

CACHE = Path(os.environ.get("IR_RUNTIME_ZOO") or Path.home() / ".cache" / "ir_runtime" / "zoo")
Arrays = dict[str, np.ndarray]


class Entry(NamedTuple):
    """How one model is made: its builder, its example inputs, and the shapes it is saved with."""

    build: Callable[[], nn.Module]
    inputs: Callable[[np.random.Generator], Arrays]
    shape: tuple[int, ...] | None  # of every input, -1 being dynamic; None: as the example inputs


MODELS: dict[str, Entry] = {}


def image(rng: np.random.Generator, size: int = 224, name: str = "x") -> Arrays:
    """Draw one RGB picture: noise at several scales, so that regions, channels and pictures differ."""
    pixels = np.zeros((1, 3, size, size))
    for step in (1, 4, 16, 32):
        coarse = rng.standard_normal((1, 3, size // step, size // step))
        pixels += coarse.repeat(step, 2).repeat(step, 3) / 2
    return {name: pixels.astype(np.float32)}


def tokens(rng: np.random.Generator, vocabulary: int, length: int = 128, segments: bool = False) -> Arrays:
    """Draw one sequence of tokens, its last quarter being padding (with `segments`, of two sentences)."""
    position = np.arange(length)[None]
    arrays = {
        "input_ids": rng.integers(vocabulary, size=(1, length)),
        "attention_mask": (position < length - length // 4).astype(np.int64),
    }
    return arrays | ({"token_type_ids": (position >= length // 3).astype(np.int64)} if segments else {})


def model(
    name: str, inputs: Callable[[np.random.Generator], Arrays] = image, shape: tuple[int, ...] | None = None
) -> Callable[[Callable[[], nn.Module]], Callable[[], nn.Module]]:
    """Register the decorated builder as `name`; the keys of `inputs` are the arguments of its `forward`."""

    def register(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        MODELS[name] = Entry(build, inputs, shape)
        return build

    return register


@model("small_cnn", partial(image, size=32, name="input"))
def small_cnn() -> nn.Module:
    """Stack a few layers of the kinds found in picture classifiers, to test with in milliseconds."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, stride=2, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
        nn.Conv2d(16, 32, 1), nn.BatchNorm2d(32), nn.ReLU6(), nn.AvgPool2d(3, 2, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10), nn.Softmax(1),
    )  # fmt: skip


def torchvision_classifier(name: str) -> nn.Module:
    """Build a classifier of torchvision by its name there."""
    from torchvision.models import get_model

    return get_model(name)


for _name in (
    "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "shufflenet_v2_x1_0",
    "squeezenet1_1", "convnext_tiny", "vit_b_16", "swin_t",
):  # fmt: skip
    model(_name)(partial(torchvision_classifier, _name))


@model("bert_base_128", partial(tokens, vocabulary=30522, segments=True))
@model("bert_base", partial(tokens, vocabulary=30522, segments=True), (-1, -1))
def bert_base() -> nn.Module:
    """Build BERT base: 12 layers of 768, giving `last_hidden_state` and `pooler_output`."""
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig())


@model("gpt2", partial(tokens, vocabulary=50257, length=64), (-1, -1))
def gpt2() -> nn.Module:
    """Build GPT-2 small with its language head, without a cache of keys and values."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False))


def example_inputs(name: str, seed: int = 0) -> Arrays:
    """Return random inputs of a model, by the names of its IR's inputs."""
    return MODELS[name].inputs(np.random.default_rng(seed))


def ir_path(name: str, out: Path = CACHE) -> Path:
    """Return the path of a model's .xml in `out`, its .bin beside it, built and saved unless it exists."""
    xml = out / f"{name}.xml"
    if not (xml.exists() and xml.with_suffix(".bin").exists()):
        save(name, xml)
    return xml


def save(name: str, xml: Path) -> None:
    """Build, check and convert a model; its files appear only once they are complete."""
    import openvino as ov

    module = torch_model(name)
    check_outputs(module, name)
    example = torch_inputs(name)
    shapes = [MODELS[name].shape or tuple(value.shape) for value in example.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing, for the greater part
        converted = ov.convert_model(module, example_input=example, input=shapes)
    xml.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=xml.parent) as folder:
        ov.save_model(converted, Path(folder, xml.name), compress_to_fp16=False)
        for suffix in (".bin", ".xml"):
            Path(folder, xml.name).with_suffix(suffix).replace(xml.with_suffix(suffix))


def torch_inputs(name: str, *seeds: int) -> dict[str, Tensor]:
    """Return the example inputs of the given seeds (by default 0) as one batch of tensors."""
    import torch

    arrays = [example_inputs(name, seed) for seed in seeds or (0,)]
    return {key: torch.cat([torch.from_numpy(each[key]) for each in arrays]) for key in arrays[0]}


def torch_model(name: str) -> nn.Module:
    """Build a model, ready for inference, with the same random weights each time."""
    import torch

    repair_torchvision()
    torch.backends.mha.set_fastpath_enabled(False)  # its one fused operator cannot be converted
    module = MODELS[name].build().eval()
    generator = torch.Generator().manual_seed(0)
    randomise(module, generator)
    calibrate(module, torch_inputs(name, 1, 2, 3, 4), generator)
    return module


def repair_torchvision() -> None:
    """Let torchvision be imported where its compiled operators cannot load (a CUDA wheel beside a CPU torch).

    Its own import then stops at registering two operators that do not exist, and takes transformers with it.
    """
    import torch

    try:
        import torchvision
    except ImportError:
        pass
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for op in ("nms", "qnms"):
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401


def randomise(module: nn.Module, generator: Generator) -> None:
    """Redraw every parameter so that none is zero or one and activations neither fade nor explode."""
    for name, parameter in module.named_parameters():
        values = parameter.data
        if values.dim() > 1:
            fan_in = values[0].numel() if values.dim() > 3 else values.shape[-1]
            values.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
        elif name.endswith("bias"):
            values.normal_(0, 0.1, generator=generator)
        else:
            values.uniform_(0.5, 1.5, generator=generator)


def calibrate(module: nn.Module, batch: dict[str, Tensor], generator: Generator) -> None:
    """Set the statistics of every batch norm near those of a batch, as training would."""
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm

    norms = [part for part in module.modules() if isinstance(part, _BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.train().momentum = 1.0
    with torch.no_grad():
        module(**batch)
    for norm in norms:
        mean, var = norm.eval().running_mean, norm.running_var
        mean += 0.1 * var.sqrt() * torch.randn(mean.shape, generator=generator)
        var *= torch.empty_like(var).uniform_(0.8, 1.25, generator=generator)


def check_outputs(module: nn.Module, name: str) -> None:
    """Refuse a model whose outputs would hide mistakes: not finite, constant, or the same for any input."""
    import torch

    with torch.no_grad():
        first, second = (module(**torch_inputs(name, seed)) for seed in (0, 1))
    for a, b in zip(tensors(first), tensors(second), strict=True):
        spread = a.std()
        if not (a.isfinite().all() and spread > 0.01 * a.abs().max() and (a - b).std() > 0.05 * spread):
            raise ValueError(f"{name}: output of spread {spread:.3g}, from {a.min():.3g} to {a.max():.3g}")


def tensors(outputs: Tensor | dict[str, Tensor]) -> list[Tensor]:
    """List the outputs of a module, be they one tensor or several by name."""
    return list(outputs.values()) if isinstance(outputs, dict) else [outputs]


def main(arguments: Iterable[str] | None = None) -> None:
    """Build the models named on the command line."""
    parser = argparse.ArgumentParser(description="Build networks with random weights as OpenVINO IR.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to build (default: all)")
    parser.add_argument("--out", type=Path, default=CACHE, help="folder to save into (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="only list the models and their inputs")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(MODELS):
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    for name in options.names or MODELS:
        if options.list:
            inputs = example_inputs(name).items()
            shapes = (f"{key}{list(MODELS[name].shape or value.shape)}" for key, value in inputs)
            print(f"{name:20} {', '.join(shapes)}")
            continue
        start = time.perf_counter()
        xml = ir_path(name, options.out)
        size = xml.with_suffix(".bin").stat().st_size / 1e6
        print(f"{xml}: {size:.1f} MB, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
