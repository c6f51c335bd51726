"""Save and summarize the outputs of a run, name their classes, and check for NaN and Inf."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from .._util.escaping import file_names, member_name
from .._util.files import create, folder_target, replace_files, replace_in_folder, resolve_target, write_npy
from ..errors import InputError
from ..ir.blocks import blocks
from ..ir.element import ElementType
from ..ir.tensor import Array
from .render import plain, table

if TYPE_CHECKING:
    from ..executor.step import Step
    from ..openvino.model import Model
    from .render import Record

__all__ = [
    "STDOUT",
    "NanCheck",
    "Summary",
    "best_rows",
    "check_count",
    "check_target",
    "label",
    "labels_of",
    "save",
    "summarize",
]

STDOUT = Path("-")
"""The target that stands for stdout."""

_FORMS = "-o takes a path that ends in .npy, .npz or / (a folder of .npy), or - for stdout"


def check_target(path: str) -> Path:
    """Check before the run that outputs can be saved to a path, and return it.

    Raises:
        InputError: if the path implies no file format, its folder does not exist, or it cannot be overwritten.
    """
    target = Path(path)
    if target == STDOUT:
        if sys.stdout.isatty():
            raise InputError(
                "stdout is a terminal, and arrays are not text", hint="-o - > out.npy writes a file"
            )
        return target
    is_folder = path.endswith(("/", os.sep)) or (target.is_dir() and not _is_file_name(target))
    if not is_folder and not _is_file_name(target):
        what = (
            f"{path!r} is a file"
            if target.exists()
            else f"{path!r} must end in .npy, .npz or /, or be a folder"
        )
        raise InputError(what, hint=_FORMS)
    if is_folder and target.exists() and not target.is_dir():
        raise InputError(f"{path!r} is a file", hint=_FORMS)
    resolved = folder_target(target) if is_folder else resolve_target(target)
    place = resolved if resolved.is_dir() else resolved.parent
    if not os.access(place, os.W_OK):
        raise InputError(f"{path!r} cannot be written: the folder {str(place)!r} is not writable")
    return target


def check_count(target: Path, names: Sequence[str]) -> None:
    """Check that a target can hold this many arrays.

    Raises:
        InputError: if the target is an ``.npy``, and there are several arrays.
    """
    if target.suffix.lower() == ".npy" and len(names) != 1:
        first = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise InputError(
            f"{str(target)!r} holds one tensor, got {len(names)}: {first}",
            hint="-o out.npz saves them in one file, -o out/ as .npy in a folder",
        )


def _is_file_name(target: Path) -> bool:
    return target.suffix.lower() in (".npy", ".npz")


def save(target: Path, arrays: Mapping[str, Array]) -> dict[str, Path]:
    """Save to an ``.npy``, an ``.npz``, a folder or stdout, as `check_target` allows; return the file of each array."""
    plain = {name: _plain(array) for name, array in arrays.items()}
    if target == STDOUT:
        _write(sys.stdout.buffer, plain, len(plain) == 1)
    elif _is_file_name(target):
        check_count(target, list(plain))
        with replace_files(target) as (file,):
            _write(file, plain, target.suffix.lower() == ".npy")
    else:
        return _folder(target, plain)
    return dict.fromkeys(plain, target)


def _write(file: IO[bytes], arrays: Mapping[str, Array], is_single: bool) -> None:
    if is_single:
        write_npy(file, next(iter(arrays.values())))
    else:
        _archive(file, arrays)


def _plain(array: Array) -> Array:
    """Convert an array to a type that ``.npy`` files can hold without pickling."""
    if array.dtype.isbuiltin == 2:  # a type registered by another package, such as ml_dtypes
        return array.view(f"V{array.dtype.itemsize}")
    if array.dtype != object:
        return array
    kind = np.bytes_ if any(isinstance(item, bytes) for item in array.flat) else np.str_
    return array.astype(kind)


def _archive(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():  # with a fixed date, so that equal results give equal files
            with archive.open(zipfile.ZipInfo(f"{member_name(name)}.npy"), "w", force_zip64=True) as member:
                write_npy(member, array)


def _folder(target: Path, arrays: Mapping[str, Array]) -> dict[str, Path]:
    """Save each array to a file of a folder."""
    names = file_names(arrays)
    with replace_in_folder(target) as stage:
        for name, array in zip(names, arrays.values(), strict=True):
            with create(stage / f"{name}.npy") as file:
                write_npy(file, array)
    return {key: target / f"{name}.npy" for key, name in zip(arrays, names, strict=True)}


TOP = 5


@dataclass(frozen=True)
class Summary:
    """Statistics of a tensor, ``None`` for non-numeric ones. NaN is counted, and excluded from the other statistics."""

    type: str
    shape: tuple[int, ...]
    min: float | int | None = None
    mean: float | None = None
    max: float | int | None = None
    nan: int = 0
    inf: int = 0
    top: tuple[tuple[int, float | int], ...] | None = None

    def record(self) -> Record:
        """Return a dict for JSON."""
        top = None if self.top is None else [{"index": i, "value": v} for i, v in self.top]
        return {**asdict(self), "top": top}


def summarize(array: Array, element: ElementType) -> Summary:
    """Return the bounds and the mean of an array, and its top entries if it looks like a vector of scores."""
    kind, shape = _type(array, element), array.shape
    if array.dtype.kind in "OSU":
        return Summary(kind, shape)
    nan = inf = numbers = 0
    total, low, high = 0.0, None, None
    for block in map(_numbers, blocks(array)):
        if block.dtype.kind == "f":
            is_nan = np.isnan(block)
            nan += int(np.count_nonzero(is_nan))
            inf += int(np.count_nonzero(np.isinf(block)))
            block = block[~is_nan]
        if block.size:
            low = block.min() if low is None else min(low, block.min())
            high = block.max() if high is None else max(high, block.max())
            with np.errstate(all="ignore"):
                total += float(block.sum(dtype=np.float64))
            numbers += block.size
    if low is None or high is None:
        return Summary(kind, shape, nan=nan, inf=inf)
    return Summary(kind, shape, _python(low), total / numbers, _python(high), nan, inf, _top(array))


def _numbers(block: tuple[Array, ...]) -> Array:
    """Convert a block of a type that NumPy lacks, such as bf16, to f32, which is exact."""
    (numbers,) = block
    return numbers if numbers.dtype.kind in "biuf" else numbers.astype(np.float32)


def _type(array: Array, element: ElementType) -> str:
    return (element if element is not ElementType.dynamic else ElementType.from_dtype(array.dtype)).label


def _top(array: Array) -> tuple[tuple[int, float | int], ...] | None:
    is_vector = array.ndim > 0 and array.shape[-1] >= TOP and array.size == array.shape[-1]
    if not is_vector or array.dtype.kind == "b":
        return None
    places, scores, start = np.empty(0, np.int64), _numbers((array.reshape(-1)[:0],)), 0
    for block in map(_numbers, blocks(array)):
        last = scores[-1] if len(scores) == TOP else None
        better = np.flatnonzero(block > last) if last is not None and last == last else np.arange(block.size)
        if better.size:
            scores = np.concatenate([scores, block[better]])
            places = np.concatenate([places, better + start])
            best = np.argsort(-scores.astype(np.float64), kind="stable")[:TOP]
            places, scores = places[best], scores[best]
        start += block.size
    return tuple((int(place), _python(score)) for place, score in zip(places, scores, strict=True))


def _python(value: np.generic) -> float | int:
    return float(value) if value.dtype.kind == "f" else int(value)


_INFO = ("model_info", "labels")
_ROWS = 20


def labels_of(model: Model, path: str | None) -> list[str]:
    """Return class names from a file, or else from the model's ``model_info``; empty if there are none.

    Args:
        model: the model.
        path: a text file with one name per line, a JSON list, or a JSON object that maps class indices to names.

    Raises:
        InputError: if the file cannot be read.
    """
    if path is not None:
        return _read_names(path)
    if not model.has_rt_info(_INFO):
        return []
    return [name.replace("_", " ") for name in str(model.get_rt_info(_INFO).value).split()]


def _read_names(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as reason:
        raise InputError(f"{path} cannot be read: {reason.strerror or reason}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8", hint="expected a name in each line") from None
    if not text.lstrip().startswith(("[", "{")):
        return text.splitlines()
    try:
        return _names(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise InputError(
            f"{path} is not a list of names", hint="expected a JSON list, or an object from numbers to names"
        ) from None


def _names(content: object) -> list[str]:
    if isinstance(content, list):
        return [str(each) for each in content]
    if not isinstance(content, dict):
        raise TypeError
    numbered = {
        int(number): str(name[-1] if isinstance(name, list) else name) for number, name in content.items()
    }
    return [numbered.get(number, "") for number in range(max(numbered, default=-1) + 1)]


def label(labels: Sequence[str], index: int) -> str:
    """Return the name of a class; empty if it has none."""
    return labels[index] if index < len(labels) else ""


def best_rows(array: Array) -> list[tuple[int, int, float]]:
    """Return row, best class and its score for each row of a 2-D array of scores; empty for other arrays."""
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 2 or array.dtype.kind != "f":
        return []
    best = np.asarray(array.argmax(axis=1))
    return [(row, int(best[row]), float(array[row, best[row]])) for row in range(min(len(best), _ROWS))]


@dataclass
class NanCheck:
    """Observer of a run that records layers that produce NaN or Inf from finite inputs."""

    origins: list[Record] = field(default_factory=list)
    _is_finite: bool = True

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Record whether the inputs are finite, before the layer may overwrite them."""
        self._is_finite = not any(any(_count_non_finite(array)) for array in inputs)

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Count NaN and Inf in the outputs."""
        nan, inf = (
            (sum(counts) for counts in zip(*map(_count_non_finite, outputs), strict=True))
            if outputs
            else (0, 0)
        )
        if self._is_finite and (nan or inf):
            where = step.layer.where
            self.origins.append(
                {"layer": step.layer.name, "operation": where.operation, "nan": nan, "inf": inf}
            )

    def text(self) -> str:
        """Format the recorded layers as a table, or return a line that says there are none."""
        if not self.origins:
            return "NaN check: no layer makes NaN or Inf of finite inputs"
        rows = [[o["layer"], o["operation"], plain(o["nan"]), plain(o["inf"])] for o in self.origins]
        title = "NaN or Inf of finite inputs"
        header = ["layer", "operation", "nan", "inf"]
        return table(title, header, rows, right=header[2:], least=("operation",), rest="a pipe gets all")


def _count_non_finite(array: Array) -> tuple[int, int]:
    """Return the number of NaN and of infinite elements."""
    if array.dtype.kind not in "fV":
        return 0, 0
    real = array if array.dtype.kind == "f" else array.astype(np.float32)  # bf16 and others that NumPy lacks
    if np.isfinite(real).all():
        return 0, 0
    return int(np.isnan(real).sum()), int(np.isinf(real).sum())
