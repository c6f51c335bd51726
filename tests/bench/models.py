"""Whole networks against OpenVINO, by `ir-runtime bench`: a process for each line of the table.

Both at f32, or what is fastest here against OpenVINO as it comes, by mode; the table says what each multiplies in. Ratios are ours divided by OpenVINO's: of the fastest runs, of the medians, of the time from the file to a
model that is ready, and of the peak memory. ``spread`` is our median divided by our fastest run; ``roofline`` the part
of what the peaks of this machine allow at f32, which bf16 and int8 may exceed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from roofline import least_ms
from shared import (
    TESTS,
    Options,
    Part,
    Row,
    attempted,
    geometric_mean,
    milliseconds,
    program,
    ratio,
    selected,
    small,
)

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
"""Networks that the kernels were tuned by."""
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
"""Networks that were only measured."""
ONE_AT_A_TIME = {"yolo_640"}
"""Networks that take no batch."""
PATIENCE = 120
"""Seconds after which onnx.reference is stopped."""


def measure(options: Options) -> Iterator[Row]:
    """A row for each network, batch, backend and mode."""
    for batch in options.batches:
        for name in selected([*TUNED, *MEASURED], options):
            if batch > 1 and name in ONE_AT_A_TIME:
                continue
            path = options.dir / (f"{name}.xml" if batch == 1 else f"{name}_b{batch}.xml")
            made = _make(name, path, batch, options)
            with TemporaryDirectory() as folder:
                inputs = _inputs(name, batch, Path(folder))
                reference = _onnx(path, inputs) if options.onnx and batch == 1 and not made else None
                for backend, mode in product(options.backends, options.modes):
                    row = {
                        "model": name,
                        "tuned": name in TUNED,
                        "backend": backend,
                        "mode": mode,
                        "batch": batch,
                        "onnx": reference,
                    }
                    if made:
                        yield row | {"error": made}
                    else:
                        yield attempted(row, lambda: _figures(path, inputs, backend, mode, options))  # noqa: B023


def _make(name: str, path: Path, batch: int, options: Options) -> str:
    """Build the network unless it is there; what went wrong, if anything."""
    wanted = [path, path.with_suffix(".onnx")] if options.onnx and batch == 1 else [path]
    if all(file.exists() for file in wanted):
        return ""
    more = ["--onnx"] if len(wanted) > 1 else []
    command = [sys.executable, TESTS / "models" / "zoo.py", name, "--out", path.parent, "--batch", str(batch)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    said = (done.stderr.strip().splitlines() or [""])[-1]
    return "" if path.exists() else f"it could not be built: {said}"


def _inputs(name: str, batch: int, folder: Path) -> Path:
    sys.path.insert(0, str(TESTS))
    import numpy as np
    from models.zoo import example_inputs

    path = folder / "inputs.npz"
    np.savez(path, **example_inputs(name, 0, batch))
    return path


def _figures(path: Path, inputs: Path, backend: str, mode: str, options: Options) -> Row:
    command = [sys.executable, "-m", "ir_runtime", "bench", path, "-i", inputs, "--backend", backend]
    command += ["--mode", mode, "--json"]
    how = ["-t", options.seconds, "-nthreads", options.threads, "--starts", options.starts]
    clock = ["--cpu-time"] if options.cpu_time else []
    line = list(map(str, [*command, *how, *clock, "--against", "openvino"]))
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0])
    found = json.loads(done.stdout)
    ours, theirs = found["sides"]
    least = least_ms(path, inputs, backend, options.threads)
    return {
        "products": f"{ours['precision']}, {theirs['precision']}",
        "ours": ours["latency_ms"]["min"],
        "openvino": theirs["latency_ms"]["min"],
        "ratio": found["ratio"]["min"],
        "medians": found["ratio"]["median"],
        "spread": ours["latency_ms"]["median"] / ours["latency_ms"]["min"],
        "roofline": least and least / ours["latency_ms"]["min"],
        "load": found["ratio"]["load"],
        "first": found["ratio"]["first"],
        "memory": found["ratio"]["peak"],
        "difference": float(found["agreement"]["difference"]),
        "all": found,
    }


def _onnx(path: Path, inputs: Path) -> float | None:
    """Milliseconds that one run of onnx.reference takes; ``None`` where it cannot run it, or not in time."""
    script = Path(__file__).with_name("onnx_reference.py")
    command = [sys.executable, script, path.with_suffix(".onnx"), inputs]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else float(done.stdout)


def summary(rows: list[Row]) -> Iterable[str]:
    """Geometric means for each mode, batch and backend, and the worst of each."""
    for kind in dict.fromkeys((row["mode"], row["batch"], row["backend"]) for row in rows):
        mode, batch, backend = kind
        mine = [row for row in rows if (row["mode"], row["batch"], row["backend"]) == kind]
        slowest, furthest = (max(mine, key=lambda row: row[key]) for key in ("ratio", "difference"))
        means = {
            key: geometric_mean(row[key] for row in mine) for key in ("ratio", "medians", "load", "memory")
        }
        yield f"\n{backend}, {mode}, batch {batch}, {len(mine)} networks, geometric means of ours / OpenVINO:"
        yield (
            f"  latency {means['ratio']:.2f} (medians {means['medians']:.2f}), read and compile {means['load']:.2f}, "
            f"peak memory {means['memory']:.2f}"
        )
        yield (
            f"  slowest {slowest['ratio']:.2f} ({slowest['model']}), "
            f"largest relative difference {furthest['difference']:.0e} ({furthest['model']})"
        )


PART = Part(
    "Networks: ms of the fastest run, and ratios to OpenVINO",
    {
        "model": str,
        "tuned": lambda tuned: "tuned" if tuned else "measured",
        "backend": str,
        "mode": str,
        "products": str,
        "batch": str,
        "ours": milliseconds,
        "openvino": milliseconds,
        "ratio": ratio,
        "medians": ratio,
        "spread": ratio,
        "roofline": "{:.0%}".format,
        "load": ratio,
        "memory": ratio,
        "difference": small,
        "onnx": milliseconds,
    },
    measure,
    summary,
)

if __name__ == "__main__":
    program(PART)()
