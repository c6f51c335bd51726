"""What each process does with one file. All are forked from a process that has imported both packages."""

from __future__ import annotations

import contextlib
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from harness.oracle import PLUGIN, array_of, core, evaluated, tensor

import ir_runtime as ir
from ir_runtime.cli import main
from ir_runtime.debug import compare
from ir_runtime.debug.reference import Reference

from .inputs import candidates
from .verdict import difference

__all__ = ["compute_in_f64", "evaluate", "explain", "kept", "openvino", "ours", "repeat", "validate"]


def openvino(path: Path, work: Path) -> str:
    """Run a file in OpenVINO's CPU plugin on the first inputs that it takes; keep them and the results.

    Raises:
        RuntimeError: if OpenVINO takes none.
    """
    model = core().read_model(path)
    compiled = core().compile_model(model, "CPU", PLUGIN)
    problem: RuntimeError | None = None
    fitting = [inputs for inputs in candidates(path, model) if _fit(model, inputs)]
    for inputs in fitting or candidates(path, model):
        try:
            results = _infer(compiled, model, inputs)
        except RuntimeError as reason:
            problem = reason
            continue
        _keep(work / "inputs", inputs)
        _keep(work / "openvino", results)
        return ""
    raise problem or RuntimeError("no inputs")


def _fit(model: Any, inputs: list[Any]) -> bool:
    """Return whether shape inference accepts inputs: the plugin does not compare all lengths while it runs."""
    if not model.is_dynamic():
        return True
    try:
        model.clone().reshape({number: array.shape for number, array in enumerate(inputs)})
    except RuntimeError:
        return False
    return True


def repeat(path: Path, work: Path) -> str:
    """Run a file in OpenVINO's CPU plugin once more; keep the results."""
    model = core().read_model(path)
    compiled = core().compile_model(model, "CPU", PLUGIN)
    _keep(work / "repeat", _infer(compiled, model, kept(work / "inputs")))
    return ""


def evaluate(path: Path, work: Path) -> str:
    """Run a file by OpenVINO's own definitions of its operations; keep the results.

    Raises:
        RuntimeError: if it has none for some operation.
    """
    found = evaluated(core().read_model(path), kept(work / "inputs"))
    if found is None:
        raise RuntimeError("not all operations can be evaluated")
    _keep(work / "evaluate", found)
    return ""


def compute_in_f64(path: Path, work: Path) -> str:
    """Run a file by our definitions of its operations, in f64; keep the results in the types of OpenVINO's.

    Raises:
        IRError: if the file is refused.
    """
    reference = Reference(ir.read_model(path), wide=True)
    arrays = reference.run(reference.feeds(kept(work / "inputs")))
    theirs = kept(work / "openvino")
    _keep(work / "f64", [array.astype(other.dtype) for array, other in zip(arrays, theirs, strict=True)])
    return ""


def explain(path: Path, work: Path, side: str) -> str:
    """Compare a side with f64, layer by layer.

    Args:
        path: the file.
        work: the folder with its results.
        side: ``openvino``, or a backend: then the results in the folder must be those that it gives again.

    Raises:
        RuntimeError: unless rounding explains how it differs.
    """
    model, inputs = ir.read_model(path), kept(work / "inputs")
    if side != "openvino":
        compiled = ir.compile_model(model, backend=side)
        again = [np.asarray(array) for array in compiled(inputs).to_tuple()]
        if difference(again, kept(work / side)):
            raise RuntimeError(f"{side} differs from itself in another run")
    report = compare(model, inputs, side)
    if not report.explained:
        raise RuntimeError(report.summary)
    return report.summary


def _infer(compiled: Any, model: Any, inputs: list[Any]) -> list[Any]:
    request = compiled.create_infer_request()
    for i, (array, port) in enumerate(zip(inputs, model.inputs, strict=True)):
        request.set_input_tensor(i, tensor(array, port.get_element_type().to_string()))
    request.infer()
    return [array_of(request.get_output_tensor(i)) for i in range(len(model.outputs))]


def ours(path: Path, work: Path, backend: str) -> str:
    """Run a file on a backend, on the inputs that OpenVINO took; keep the results.

    Raises:
        IRError: if the file is refused.
    """
    model = ir.read_model(path)
    compiled = ir.compile_model(model, backend=backend)
    saved = work / "inputs"
    inputs = kept(saved) if saved.exists() else next(iter(candidates(path, model)))
    found = compiled(inputs)
    _keep(work / backend, [np.asarray(found[port]) for port in compiled.outputs])
    return ""


def validate(path: Path, work: Path) -> str:
    """Validate a file at the command line.

    Raises:
        RuntimeError: with what it printed, unless it ends with 0.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main(["validate", str(path)])
        except SystemExit as end:
            code = end.code
    if code:
        raise RuntimeError(f"exit code {code}: {said.getvalue()}")
    return said.getvalue()


def _keep(path: Path, arrays: list[Any]) -> None:
    path.write_bytes(pickle.dumps(arrays))


def kept(path: Path) -> Any:
    """Load the results that a side has kept."""
    return pickle.loads(path.read_bytes())
