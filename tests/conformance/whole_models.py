"""Cases of whole models: bodies, and variables that keep state between runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openvino
from models import controlled, stateful

import ir_runtime as ov
from ir_runtime.conformance.bounds import bound_of, graph_bound, tolerances
from ir_runtime.conformance.case import SEVERAL, Case, Tolerance
from ir_runtime.conformance.truth import Unstable, truth_of
from ir_runtime.errors import IRError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["body_cases", "state_cases"]

STEPS: dict[Callable[[], openvino.Model], Sequence[Array]] = {
    stateful.total: [np.full((1, 3), i, np.float32) for i in range(4)],
    stateful.cache: [np.full((n, 2), n, np.float32) for n in (3, 1, 1, 2)],
    stateful.previous: [np.full(2, i - 1, np.float32) for i in range(4)],
    stateful.old_versions: [np.full((1, 3), i + 1, np.float32) for i in range(4)],
    stateful.input_before: [np.full(2, i + 5, np.float32) for i in range(3)],
}
"""Models with variables, and the input of each run."""
_BODIES = ("If", "Loop", "TensorIterator")


def state_cases() -> Iterator[Case]:
    """Yield cases of several runs; their values are small integers, so all outputs are exact."""
    for build, steps in STEPS.items():
        xml, weights = _serialize(build())
        request = ov.compile_model(ov.read_model(xml, weights), backend="reference").create_infer_request()
        outputs = [np.array(output) for step in steps for output in request.infer([step]).to_tuple()]
        inputs = [ElementType.from_dtype(step.dtype) for step in steps]
        types = [ElementType.from_dtype(output.dtype) for output in outputs]
        versions = (3, 3) if build is stateful.old_versions else (6, 6)
        for name, version in zip(("ReadValue", "Assign"), versions, strict=True):
            operation = f"{name}-{version}"
            yield Case(
                f"{operation}/{build.__name__}", operation, "state", xml, weights, list(steps), outputs, inputs, types,
                [Tolerance()] * len(types), "exact", (build.__doc__ or "").strip(), steps=len(steps),
            )  # fmt: skip


def body_cases(left_out: Counter[str]) -> Iterator[Case]:
    """Yield cases of networks with branches and loops."""
    for name, (build, runs) in sorted(controlled.CASES.items()):
        model = build()
        xml, weights = _serialize(model)
        operation = _operation(model)
        dynamic = any(not port.get_partial_shape().is_static for port in model.inputs)
        for number, feeds in enumerate(runs, 1):
            try:
                truth = truth_of(ov.read_model(xml, weights), feeds, bound=bound_of)
            except (IRError, Unstable):
                left_out["networks that rounding decides"] += 1
                continue
            types = [ElementType.from_dtype(feed.dtype) for feed in feeds]
            kind = "dynamic" if dynamic else "value"
            folder = f"{operation}/{name.replace('_', '-')}-{number}"
            yield Case(
                folder, operation, kind, xml, weights, feeds, truth.outputs, types, truth.types,
                tolerances(truth, graph_bound(truth)), truth.source  # type: ignore[arg-type]
            )  # fmt: skip


def _operation(model: Any) -> str:
    """Return the operation with bodies of a model."""
    for node in model.get_ordered_ops():
        if node.get_type_name() in _BODIES:
            return f"{node.get_type_name()}-{node.get_type_info().version_id.removeprefix('opset')}"
    return SEVERAL


def _serialize(model: Any) -> tuple[bytes, bytes]:
    """Return the files of a model; names do not depend on models built earlier."""
    _rename(model)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        openvino.serialize(model, path)
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def _rename(model: Any) -> None:
    model.set_friendly_name("model")
    for number, node in enumerate(model.get_ordered_ops()):
        node.set_friendly_name(f"{node.get_type_name().lower()}{number}")
        if node.get_type_name() == "If":
            for branch in (0, 1):
                _rename(node.get_function(branch))
        elif node.get_type_name() in ("Loop", "TensorIterator"):
            _rename(node.get_function() if node.get_type_name() == "Loop" else node.get_body())
