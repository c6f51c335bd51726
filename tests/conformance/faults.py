"""Faults planted in copies of the reference kernels, one at a time: ``python -m conformance.faults CORPUS.zip``.

Each fault is one changed expression: an axis, a rounding, a default, a tie, an epsilon. Some case of the affected operation
must fail on the changed copy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import ZipFile

import ir_runtime
from ir_runtime.conformance.adapters import adapter
from ir_runtime.conformance.case import Case
from ir_runtime.conformance.judge import judge

__all__ = ["FAULTS", "Fault", "cases_in", "failing", "plant"]

_PACKAGE = Path(ir_runtime.__file__).parent


class Fault(NamedTuple):
    """A changed expression.

    Args:
        kind: ``axis``, ``rounding``, ``default``, ``tie``, ``epsilon`` or ``arithmetic``.
        operation: the operation whose cases must find it.
        file: the file of the kernel, in ``ir_runtime/ops``.
        right: an expression that occurs once in the file.
        wrong: the replacement.
    """

    kind: str
    operation: str
    file: str
    right: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.kind}: {self.right} -> {self.wrong}"


FAULTS = (
    Fault("axis", "SoftMax-8", "activation.py", "return softmax(np.atleast_1d(x), self.axis)", "return softmax(np.atleast_1d(x), 0)"),
    Fault("axis", "GRN-1", "normalization.py", ".divide(data, (1,))", ".divide(data, (0,))"),
    Fault("axis", "CumSum-3", "arithmetic.py", "along = 0 if axis is None else int(axis.reshape(()))", "along = 0"),
    Fault("axis", "OneHot-1", "sequence/one_hot.py", "axis, length = normalize_axis(self.axis, indices.ndim + 1)", "axis, length = normalize_axis(self.axis, indices.ndim + 1) * 0"),
    Fault("axis", "TopK-11", "sort/topk.py", "axis = self.axis % data.ndim", "axis = (self.axis + 1) % data.ndim"),
    Fault("axis", "ReverseSequence-1", "movement/reorder.py", 'normalize_axis(self.seq_axis, rank, "seq_axis")', 'normalize_axis(self.batch_axis, rank, "seq_axis")'),
    Fault("axis", "GroupNormalization-12", "normalization.py", "tuple(range(2, grouped.ndim))", "tuple(range(3, grouped.ndim))"),
    Fault("axis", "MVN-1", "normalization.py", "range(1 if self.across_channels else 2, data.ndim)", "range(2, data.ndim)"),
    Fault("axis", "Gather-8", "movement/gather.py", "index = np.where(index < 0, index + length, index)", "index = np.where(index < 0, 0, index)"),
    Fault("axis", "Reverse-1", "movement/reorder.py", "np.flatnonzero(reversed_axes)", "np.flatnonzero(~reversed_axes)"),
    Fault("rounding", "Round-5", "arithmetic.py", "np.asarray(np.rint(x))", "np.asarray(np.floor(x + x.dtype.type(0.5)))"),
    Fault("rounding", "Round-5", "arithmetic.py", ">= 0.5, towards_zero", "> 0.5, towards_zero"),
    Fault("rounding", "FakeQuantize-1", "quantization.py", "level = np.rint((x - low) / (high - low) * steps)", "level = np.trunc((x - low) / (high - low) * steps)"),
    Fault("rounding", "ReduceMean-1", "kernels/statistics.py", "(summed - rest) // summed", "summed // summed"),
    Fault("rounding", "Clamp-1", "activation.py", "math.ceil(low), math.floor(high)", "math.floor(low), math.ceil(high)"),
    Fault("rounding", "ReduceSum-1", "kernels/statistics.py", "dtype if dtype.kind in \"Ob\" else np.dtype(np.float64)", "dtype if dtype.kind in \"Ob\" else np.dtype(np.float16)"),
    Fault("rounding", "MatMul-1", "kernels/matmul.py", "np.matmul(a.astype(work, copy=False), b.astype(work, copy=False))", "np.matmul(a.astype(np.float16), b.astype(np.float16)).astype(work)"),
    Fault("rounding", "Ceiling-1", "arithmetic.py", "ufunc = np.ceil", "ufunc = np.rint"),
    Fault("default", "Swish-4", "activation.py", "slope = x if beta is None", "slope = 2 * x if beta is None"),
    Fault("default", "CumSum-3", "arithmetic.py", "exclusive: bool = attr(False", "exclusive: bool = attr(True"),
    Fault("default", "ShuffleChannels-1", "movement/reorder.py", "axis: int = attr(1, doc=\"axis of the channels", "axis: int = attr(0, doc=\"axis of the channels"),
    Fault("default", "ReverseSequence-1", "movement/reorder.py", "seq_axis: int = attr(1,", "seq_axis: int = attr(2,"),
    Fault("default", "ReduceSum-1", "reduction.py", "keep_dims: bool = attr(False,", "keep_dims: bool = attr(True,"),
    Fault("default", "Gelu-7", "activation.py", 'attr("erf", doc="exactly', 'attr("tanh", doc="exactly'),
    Fault("default", "Round-5", "arithmetic.py", '"half_to_even", doc', '"half_away_from_zero", doc'),
    Fault("default", "TopK-11", "sort/topk.py", "attr(ElementType.i32, doc", "attr(ElementType.i64, doc"),
    Fault("tie", "TopK-11", "sort/topk.py", 'return np.argsort(keys, axis, kind="stable")', "return np.asarray(data.shape[axis] - 1 - np.argsort(np.flip(keys, axis), axis, kind=\"stable\"))"),
    Fault("tie", "MaxPool-8", "kernels/pooling.py", "better = candidates > largest", "better = candidates >= largest"),
    Fault("tie", "ReduceMax-1", "reduction.py", "ufunc = np.fmax", "ufunc = np.maximum"),
    Fault("tie", "OneHot-16", "sequence/one_hot.py", "indices < 0, indices.astype(np.int64) + depth", "indices <= 0, indices.astype(np.int64) + depth"),
    Fault("tie", "FakeQuantize-1", "quantization.py", "x <= np.where(high < low", "x < np.where(high < low"),
    Fault("epsilon", "NormalizeL2-1", "normalization.py", "np.maximum(squares, self.eps)", "squares + self.eps"),
    Fault("epsilon", "MVN-6", "normalization.py", "else np.sqrt(variance) + self.eps", "else np.sqrt(variance + self.eps)"),
    Fault("epsilon", "MVN-6", "normalization.py", "np.sqrt(variance + self.eps) if inside", "np.sqrt(variance) if inside"),
    Fault("epsilon", "BatchNormInference-5", "normalization.py", "np.sqrt(v + v.dtype.type(self.epsilon))", "(np.sqrt(v) + v.dtype.type(self.epsilon))"),
    Fault("epsilon", "LRN-1", "normalization.py", "self.bias + scale * squares", "scale * squares + 1"),
    Fault("arithmetic", "LRN-1", "normalization.py", "(self.size - 1) // 2", "self.size // 2"),
    Fault("arithmetic", "GRUCell-3", "kernels/recurrent.py", "(1 - update) * new + update * hidden", "update * new + (1 - update) * hidden"),
    Fault("arithmetic", "LSTMSequence-5", "kernels/recurrent.py", "np.where(runs, new, old)", "np.where(runs, new, new)"),
    Fault("arithmetic", "HSigmoid-5", "activation.py", "np.clip(x + 3, 0, 6) / 6", "np.clip(x + 3, 0, 6) / 6.001"),
    Fault("arithmetic", "Gelu-7", "activation.py", "0.044715 * x", "0.0447 * x"),
)  # fmt: skip
"""Forty faults and one; each is found by the cases of its operation."""


def plant(fault: Fault, folder: Path) -> None:
    """Write a copy of the package with a fault; unchanged files are links to the package's own.

    Raises:
        ValueError: if the expression does not occur exactly once.
    """
    target = _PACKAGE / "ops" / fault.file
    source = target.read_text(encoding="utf-8")
    if source.count(fault.right) != 1 or fault.wrong == fault.right:
        raise ValueError(f"{fault}: the file has the expression {source.count(fault.right)} times")
    where = folder / "ir_runtime"
    here = _PACKAGE
    for part in target.relative_to(_PACKAGE).parts:
        where.mkdir(parents=True)
        for entry in here.iterdir():
            if entry.name not in (part, "__pycache__"):
                (where / entry.name).symlink_to(entry)
        where, here = where / part, here / part
    where.write_text(source.replace(fault.right, fault.wrong), encoding="utf-8")


def cases_in(corpus: Path, operation: str) -> Iterator[Case]:
    """Yield the cases of an operation in a corpus, except refusals."""
    with ZipFile(corpus) as archive:
        folders: dict[str, list[str]] = {}
        for name in archive.namelist():
            if name.startswith(f"{operation}/"):
                folders.setdefault(name.rpartition("/")[0], []).append(name)
        for folder, names in folders.items():
            if "/refusal-" not in folder:
                yield Case.parse({name.rpartition("/")[2]: archive.read(name) for name in names})


def failing(corpus: Path, operation: str) -> Sequence[str]:
    """Return the cases of an operation that fail on the reference in this process."""
    run = adapter("reference")
    failed = []
    for case in cases_in(corpus, operation):
        try:
            passed = judge(case, run(case)).passed
        except Exception:
            passed = False
        if not passed:
            failed.append(case.id)
    return failed


@cache
def _failing_without_fault(corpus: Path, operation: str) -> frozenset[str]:
    return frozenset(failing(corpus, operation))


def find(fault: Fault, corpus: Path) -> Sequence[str]:
    """Return the cases that pass on the package but fail on a copy with a fault."""
    with TemporaryDirectory() as folder:
        plant(fault, Path(folder))
        paths = [folder, str(Path(__file__).parents[1])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        # -P: the working folder may have the package, too.
        command = [sys.executable, "-P", "-m", "conformance.faults", "--failing", str(corpus.resolve())]
        done = subprocess.run(
            [*command, fault.operation], env=environment, capture_output=True, text=True, check=True
        )
    failed: list[str] = json.loads(done.stdout)["failed"]
    without = _failing_without_fault(corpus, fault.operation)
    return [case for case in failed if case not in without]


def main(corpus: Path) -> None:
    """Plant each fault, and print the cases that find it."""
    missed = []
    for fault in FAULTS:
        failed = find(fault, corpus)
        print(
            f"{'found ' if failed else 'MISSED'} {fault}: {len(failed)} cases fail, {', '.join(failed[:3])}",
            flush=True,
        )
        missed += [] if failed else [fault]
    print(f"{len(FAULTS) - len(missed)} of {len(FAULTS)} faults are found")


if __name__ == "__main__":
    if sys.argv[1] == "--failing":
        print(json.dumps({"failed": failing(Path(sys.argv[2]), sys.argv[3])}))
    else:
        main(Path(sys.argv[1]))
