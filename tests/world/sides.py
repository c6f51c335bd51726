"""The work of each subprocess on one file. All are forked from a process that has imported both packages."""

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
    """Run a file on OpenVINO's CPU plugin with the first inputs that it accepts; save them and the results.

    Raises:
        RuntimeError: if OpenVINO accepts none.
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
    """Return whether shape inference accepts inputs, as the plugin does not check all dims at run time."""
    if not model.is_dynamic():
        return True
    try:
        model.clone().reshape({number: array.shape for number, array in enumerate(inputs)})
    except RuntimeError:
        return False
    return True


def repeat(path: Path, work: Path) -> str:
    """Run a file on OpenVINO's CPU plugin again; save the results."""
    model = core().read_model(path)
    compiled = core().compile_model(model, "CPU", PLUGIN)
    _keep(work / "repeat", _infer(compiled, model, kept(work / "inputs")))
    return ""


def evaluate(path: Path, work: Path) -> str:
    """Run a file with OpenVINO's reference; save the results.

    Raises:
        RuntimeError: if it lacks an operation.
    """
    found = evaluated(core().read_model(path), kept(work / "inputs"))
    if found is None:
        raise RuntimeError("not all operations can be evaluated")
    _keep(work / "evaluate", found)
    return ""


def compute_in_f64(path: Path, work: Path) -> str:
    """Run a file with our reference in f64; save the results in OpenVINO's types.

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
        side: ``openvino``, or a backend, which must reproduce the results in the folder.

    Raises:
        RuntimeError: unless rounding explains the differences.
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
    """Run a file on a backend with the inputs that OpenVINO accepted; save the results.

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
    """Validate a file on the command line.

    Raises:
        RuntimeError: with the output, unless the exit code is 0.
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
    """Load the saved results of a side."""
    return pickle.loads(path.read_bytes())
