"""Well-known networks with seeded random weights, converted to OpenVINO IR and cached in a folder.

    python tests/models/zoo.py [--out DIR] [--batch N] [--jobs N] [--onnx] [--list] [NAME...]

Without names every model is built; those already in the folder are skipped. Nothing is downloaded: only the
architectures come from torchvision and transformers. From other code, `ir_path(name)` gives the path
of the .xml (building it if need be) and `example_inputs(name)` arrays to run it on; neither needs torch once
the model is cached.
To add a network, write a function returning an `nn.Module` under `@model(name, inputs, shape)` in `architectures`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # when run as a script
from models.architectures import MODELS, ZOO, Arrays

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

CACHE = Path(os.environ.get("IR_RUNTIME_ZOO") or Path.home() / ".cache" / "ir_runtime" / "zoo")


def example_inputs(name: str, seed: int = 0, batch: int = 1) -> Arrays:
    """Return random inputs of a model by the names of its IR's inputs, for `batch` samples starting at `seed`."""
    drawn = [MODELS[name].inputs(np.random.default_rng(seed + place)) for place in range(batch)]
    return {key: np.concatenate([each[key] for each in drawn]) for key in drawn[0]} if batch > 1 else drawn[0]


def ir_path(name: str, out: Path = CACHE, batch: int = 1) -> Path:
    """Return the path of a model's .xml in `out`, next to its .bin; build and save it if it is missing."""
    xml = out / (f"{name}.xml" if batch == 1 else f"{name}_b{batch}.xml")
    if not (xml.exists() and xml.with_suffix(".bin").exists()):
        save(name, xml, batch)
    return xml


def onnx_path(name: str, out: Path = CACHE, batch: int = 1) -> Path:
    """Return the path of a model as ONNX in `out`, with embedded weights; export it if it is missing."""
    path = ir_path(name, out, batch).with_suffix(".onnx")
    if not path.exists():
        export(name, path, batch)
    return path


def export(name: str, path: Path, batch: int = 1) -> None:
    """Build a model and export it as ONNX; the file is written atomically."""
    import torch

    example = torch_inputs(name, *range(batch))
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        warnings.simplefilter("ignore")  # of tracing, and that this way of exporting is the older one
        made = Path(folder, path.name)
        torch.onnx.export(
            torch_model(name), (), made, kwargs=example, input_names=list(example), dynamo=False
        )
        made.replace(path)


def save(name: str, xml: Path, batch: int = 1) -> None:
    """Build, check and convert a model; its files are written atomically."""
    import openvino as ov

    module = torch_model(name)
    check_outputs(module, name)
    example = torch_inputs(name, *range(batch))
    shapes = [MODELS[name].shape_of(key, tuple(value.shape)) for key, value in example.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing, for the greater part
        converted = ov.convert_model(module, example_input=example, input=shapes)
    MODELS[name].finish(converted)
    xml.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=xml.parent) as folder:
        ov.save_model(converted, Path(folder, xml.name), compress_to_fp16=False)
        for suffix in (".bin", ".xml"):
            Path(folder, xml.name).with_suffix(suffix).replace(xml.with_suffix(suffix))


def torch_inputs(name: str, *seeds: int) -> dict[str, Tensor]:
    """Return the example inputs of the given seeds (by default 0), and the past, as one batch of tensors."""
    import torch

    arrays = [example_inputs(name, seed) | MODELS[name].past() for seed in seeds or (0,)]
    return {key: torch.cat([torch.from_numpy(each[key]) for each in arrays]) for key in arrays[0]}


def torch_model(name: str) -> nn.Module:
    """Build a model for inference, with reproducible random weights."""
    import torch

    torch.backends.mha.set_fastpath_enabled(False)  # its one fused operator cannot be converted
    module = MODELS[name].build().eval()
    generator = torch.Generator().manual_seed(0)
    randomise(module, generator)
    calibrate(module, torch_inputs(name, 1, 2, 3, 4), generator)
    return module


def randomise(module: nn.Module, generator: Generator) -> None:
    """Redraw every parameter, such that none is zero or one and activations neither vanish nor explode."""
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
    """Set the statistics of every batch norm close to those of a batch, as training would."""
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
    """Reject a model whose outputs would hide mistakes: not finite, constant, or the same for any input."""
    import torch

    with torch.no_grad():
        first, second = (module(**torch_inputs(name, seed)) for seed in (0, 1))
    for a, b in zip(tensors(first), tensors(second), strict=True):
        a, b = a.double(), b.double()
        spread = a.std()
        differ = a.shape != b.shape or (a - b).std() > 0.05 * spread
        if not (a.isfinite().all() and spread > 0.01 * a.abs().max() and differ):
            raise ValueError(f"{name}: output of spread {spread:.3g}, from {a.min():.3g} to {a.max():.3g}")


def tensors(outputs: Any) -> list[Tensor]:
    """Return the outputs of a module as a list, whatever their container."""
    if isinstance(outputs, dict):
        return list(outputs.values())
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def main(arguments: Iterable[str] | None = None) -> None:
    """Build the models named on the command line."""
    parser = argparse.ArgumentParser(description="Build networks with random weights as OpenVINO IR.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to build (default: all)")
    parser.add_argument("--out", type=Path, default=CACHE, help="folder to save into (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="inputs at once (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="models built at a time (default: %(default)s)")
    parser.add_argument("--onnx", action="store_true", help="export as ONNX, too")
    parser.add_argument("--list", action="store_true", help="only list the models and their inputs")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(MODELS):
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    names = options.names or ZOO
    if options.list:
        print(*map(inputs_of, names), sep="\n")
        return
    make = partial(made, out=options.out, batch=options.batch, onnx=options.onnx)
    if options.jobs == 1:
        for name in names:
            print(make(name), flush=True)
        return
    # Threads that spin for others take the cores from the other processes.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for line in pool.map(make, names):
            print(line, flush=True)


def inputs_of(name: str) -> str:
    """Describe the inputs of a model in a line."""
    inputs = example_inputs(name).items()
    shapes = (f"{key}{list(MODELS[name].shape_of(key, value.shape))}" for key, value in inputs)
    return f"{name:20} {', '.join(shapes)}"


def made(name: str, out: Path, batch: int, onnx: bool) -> str:
    """Build a model unless it exists, and describe it in a line."""
    start = time.perf_counter()
    xml = ir_path(name, out, batch)
    if onnx:
        onnx_path(name, out, batch)
    size = xml.with_suffix(".bin").stat().st_size / 1e6
    return f"{xml}: {size:.1f} MB, {time.perf_counter() - start:.1f} s"


if __name__ == "__main__":
    main()
