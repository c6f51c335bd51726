"""How far low precision is from the exact results: ours by PERFORMANCE, and OpenVINO's as it comes, both against f64.

    python tests/bench/precision_errors.py [--dir DIR] [--seeds N] [MODEL...]

``rms`` is the root of the mean square of the differences, ``largest`` the largest difference, over the floating-point outputs of all
inputs, both relative to the largest number of an output. The ratios of ours to OpenVINO's come last; the ratio of the
largest difference is decided by one number of an output, and moves with the inputs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import openvino as vino
from models import zoo
from shared import geometric_mean

import ir_runtime as ir
from ir_runtime import debug

NETWORKS = (
    "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "squeezenet1_1",
    "shufflenet_v2_x1_0", "vit_b_16", "swin_t", "convnext_tiny", "unet_256", "lstm", "bert_base", "gpt2", "small_cnn",
    "unet", "unet_3d", "llama", "t5_encoder", "t5_decoder", "whisper_encoder", "whisper_decoder", "bilstm", "spectrum",
)  # fmt: skip
"""Networks whose outputs are numbers; where they select, as detectors do, a difference says little."""
HEAD = (
    f"{'model':20}{'rms':>10}{'OpenVINO':>10}{'largest':>10}{'OpenVINO':>10}{'rms ratio':>10}{'largest':>9}"
)


def differences(found: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> np.ndarray:
    """Return all differences, relative to the largest element of each output."""
    parts = [
        (np.asarray(one, np.float64) - other).ravel() / (np.abs(other).max() or 1)
        for one, other in zip(found, exact, strict=True)
        if other.dtype.kind == "f" and other.size
    ]
    return np.concatenate(parts)


def errors(path: Path, feeds: Sequence[Mapping[str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences of ours and of OpenVINO's for all inputs."""
    model = ir.read_model(path)
    fastest = {"EXECUTION_MODE_HINT": "PERFORMANCE"}
    ours = ir.compile_model(model, "CPU", fastest, backend="native")
    theirs = vino.Core().compile_model(str(path), "CPU", fastest)
    here, there = [], []
    for feed in feeds:  # each by a request of its own, whose variables are as at the start
        exact = debug.oracle(model, feed).outputs
        here.append(differences(list(ours.create_infer_request().infer(feed).values()), exact))
        there.append(differences(list(theirs.create_infer_request().infer(feed).values()), exact))
    return np.concatenate(here), np.concatenate(there)


def row(name: str, ours: np.ndarray, theirs: np.ndarray) -> tuple[str, float, float]:
    """Return a network's line, and its two ratios."""
    rms = [float(np.sqrt(np.mean(found**2))) for found in (ours, theirs)]
    largest = [float(np.abs(found).max()) for found in (ours, theirs)]
    ratios = rms[0] / rms[1], largest[0] / largest[1]
    cells = "".join(f"{value:10.1e}" for value in (*rms, *largest))
    return f"{name:20}{cells}{ratios[0]:10.2f}{ratios[1]:9.2f}", *ratios


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help="networks of the zoo")
    default = Path(os.environ.get("IR_RUNTIME_ZOO", zoo.CACHE))
    parser.add_argument("--dir", type=Path, default=default, help="where they are (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="inputs of each (default: %(default)s)")
    options = parser.parse_args()
    print(HEAD)
    ratios = []
    for name in options.names or NETWORKS:
        feeds = [zoo.example_inputs(name, seed) for seed in range(options.seeds)]
        line, *both = row(name, *errors(zoo.ir_path(name, options.dir), feeds))
        ratios.append(both)
        print(line, flush=True)
    means = [geometric_mean(column) for column in zip(*ratios, strict=True)]
    print(
        f"\n{len(ratios)} networks, geometric means of ours / OpenVINO: rms {means[0]:.2f}, largest {means[1]:.2f}"
    )


if __name__ == "__main__":
    main()
