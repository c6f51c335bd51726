"""Golden outputs: record the outputs of a model, and check later whether rounding explains any difference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from .._util.files import make_folders
from .._util.records import Record
from .._version import __version__
from ..cli.outputs import save
from ..codes import Code
from ..debug import Comparison, compare
from ..debug.recorded_side import read_arrays
from ..debug.reference import Reference
from ..debug.sides import side_of
from ..errors import InputError
from ..ir.tensor import Array
from ..openvino.model import Model
from ..openvino.reading import read_model

__all__ = ["Golden", "GoldenError", "check", "record"]

_META = "golden.json"


class GoldenError(AssertionError):
    """Outputs differ from the recorded ones by more than rounding explains.

    >>> issubclass(GoldenError, AssertionError)
    True
    """


@dataclass(frozen=True)
class Golden:
    """Recorded outputs of a model, with the runtime that computed them.

    >>> Golden([np.ones(2)], "numpy", "ir_runtime 1.0", "aa").runtime
    'ir_runtime 1.0'

    Args:
        outputs: the outputs of the model, in order.
        side: the engine or backend that computed them, such as ``openvino`` or ``numpy``.
        runtime: the distribution of that engine and its version.
        inputs: a digest of the inputs.
    """

    outputs: Sequence[Array]
    side: str
    runtime: str
    inputs: str

    @classmethod
    def compute(cls, model: Model, inputs: object, side: str) -> Golden:
        """Run a model on inputs with a side, such as ``openvino`` or ``numpy``, and return its outputs as golden outputs."""
        reference = Reference(model)
        feeds = reference.feeds(inputs)
        outputs = side_of(side).observe(model, reference, feeds, ())
        return cls(outputs.outputs, side, _runtime(side), _digest(feeds))

    @classmethod
    def load(cls, path: Path) -> Golden:
        """Read a file that `save` wrote.

        Raises:
            InputError: if it is not such a file.
        """
        arrays = read_arrays(str(path))
        meta = arrays.pop(_META, None)
        if meta is None:
            raise InputError(f"{str(path)!r} has no recorded outputs", hint="record them again")
        return cls([arrays[index] for index in range(len(arrays))], **json.loads(str(meta)))

    def save(self, path: Path) -> None:
        """Write an ``.npz`` file: the outputs by index, and the metadata as JSON."""
        meta: Record = {"side": self.side, "runtime": self.runtime, "inputs": self.inputs}
        arrays = {str(index): np.asarray(array) for index, array in enumerate(self.outputs)}
        with make_folders(path):
            save(path, {**arrays, _META: np.array(json.dumps(meta))})

    def equals(self, other: Golden) -> bool:
        """Return whether all outputs are bit-identical."""
        return len(self.outputs) == len(other.outputs) and all(
            ours.shape == theirs.shape
            and ours.dtype.itemsize == theirs.dtype.itemsize
            and np.ascontiguousarray(ours).tobytes() == np.ascontiguousarray(theirs).tobytes()
            for ours, theirs in zip(self.outputs, other.outputs, strict=True)
        )


def record(path: str | Path, model: Model | str | Path, inputs: object, side: str = "openvino") -> Golden:
    """Run a model and write its outputs to a file.

    Args:
        path: the ``.npz`` to write; its folders are created.
        model: the model, or its path.
        inputs: as for a compiled model.
        side: the engine: ``openvino``, ``openvino:bf16``, ``onnxruntime:model.onnx``, or a backend of this
            package.

    Raises:
        InputError: if an input or the engine is invalid.
    """
    golden = Golden.compute(_read(model), inputs, side)
    golden.save(Path(path))
    return golden


def check(path: str | Path, model: Model | str | Path, inputs: object, side: str = "openvino") -> str:
    """Run a model, and compare its outputs with the recorded ones.

    Equal outputs pass. Other outputs pass if rounding explains how both they and the recorded ones differ from f64.

    Args:
        path: the file that `record` wrote.
        model: the model, or its path.
        inputs: as for a compiled model.
        side: the engine, as for `record`.

    Returns:
        One line about the result.

    Raises:
        GoldenError: if rounding does not explain the outputs. The message names the layer where the error
            begins.
        InputError: if the file, an input or the engine is invalid.
    """
    model = _read(model)
    golden, today = Golden.load(Path(path)), Golden.compute(model, inputs, side)
    if golden.inputs != today.inputs:
        raise GoldenError(f"{str(path)!r} was recorded on other inputs: record it again")
    if golden.equals(today):
        return f"equal to {golden.runtime}, bit for bit"
    report = compare(model, inputs, side)
    before = compare(model, inputs, _restore_types(golden.outputs, today.outputs))
    if report.explained and before.explained:
        return f"differs from {golden.runtime}; {report.summary}"
    raise GoldenError(_explain(golden, today, before, report))


def _explain(golden: Golden, today: Golden, before: Comparison, report: Comparison) -> str:
    """Return the message of a failed check: which outputs are consistent with the model, and where the others diverge."""
    head = f"the outputs of {today.runtime} differ from those recorded with {golden.runtime}"
    if report.explained:
        return (
            f"{head}. The new ones are consistent with the model; the recorded ones are not: record them again.\n"
            f"recorded outputs:\n{before}"
        )
    blame = (
        "the recorded ones are consistent with the model"
        if before.explained
        else "neither are consistent with it"
    )
    return f"{head}; {blame}.\n{report}"


def _read(model: Model | str | Path) -> Model:
    return model if isinstance(model, Model) else read_model(str(model))


def _restore_types(arrays: Sequence[Array], like: Sequence[Array]) -> Mapping[int, Array]:
    """View arrays of raw bytes, which files hold for types that NumPy lacks, as the type of today's output."""
    if len(arrays) != len(like):
        raise GoldenError(
            f"{len(arrays)} outputs were recorded, the model has {len(like)}: record them again"
        )
    return {
        index: array.view(now.dtype) if array.dtype.kind == "V" and array.itemsize == now.itemsize else array
        for index, (array, now) in enumerate(zip(arrays, like, strict=True))
    }


def _digest(feeds: Sequence[Array]) -> str:
    digest = blake2b(digest_size=16)
    for feed in feeds:
        digest.update(repr((feed.dtype.name, feed.shape)).encode())
        digest.update(
            np.ascontiguousarray(feed).tobytes() if feed.dtype != object else repr(feed.tolist()).encode()
        )
    return digest.hexdigest()


def _runtime(side: str) -> str:
    """Return the distribution of an engine, with its version."""
    name = side.partition(":")[0]
    if name not in ("openvino", "onnxruntime"):
        return f"ir_runtime {__version__}"
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        raise InputError(
            f"{name} is not installed", code=Code.BAD_REQUEST, hint=f"pip install {name}"
        ) from None
