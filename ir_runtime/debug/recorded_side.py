"""Recorded arrays of any device as a side: matched by name, and converted to the layouts of the model.

Devices store tensors in their own layouts: channels last, flat, without a batch axis, in f16, or as scaled integers.
Shapes and types determine the conversion, never values: `find_permutation` finds a permutation that gives the declared shape. An
array that does not fit is left unchanged, and the report states the difference in shape.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import ml_dtypes
import numpy as np

from .._util.array_files import check_claims
from .._util.escaping import name_of_member, quoted, shown
from .._util.nearest import did_you_mean
from ..codes import Code
from ..errors import InputError, IRError
from ..ir.element import ElementType
from ..ir.graph import Port
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType
from ..limits import current
from .observation import NamedArrays, Observation
from .reference import Reference
from .tensors import name_of
from .verdict import difference

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["Recorded", "first_rows", "find_permutation", "read_array", "read_arrays", "recorded"]

SHOWN = 5
"""The most names in a list; the others are counted."""
RANK = 6
"""The largest rank whose axes are permuted."""
_SCALE, _ZERO_POINT = ".scale", ".zero_point"
_LAYOUTS = {
    (0, 3, 1, 2): "NHWC", (0, 2, 3, 1): "NCHW", (0, 4, 1, 2, 3): "NDHWC", (0, 2, 3, 4, 1): "NCDHW",
}  # fmt: skip
"""Names of image layouts by the permutation that converts between them."""
_PRECISIONS = {"float16": "f16", "bfloat16": "bf16"}


def recorded(path: str) -> Recorded:
    """Read an ``.npz``, a single ``.npy``, or a folder of ``.npy`` files, as a side.

    Raises:
        InputError: if the files cannot be read.
    """
    if os.path.isdir(path):
        files = sorted(Path(path).glob("*.npy"))
        if not files:
            message = f"the folder {path!r} has no .npy files"
            raise InputError(message, code=Code.BAD_REQUEST, hint="expected one for each tensor, NAME.npy")
        return Recorded(path, {_key(file.stem): read_array(str(file)) for file in files})
    return Recorded(path, read_arrays(path))


def read_array(path: str) -> Array:
    """Read an ``.npy`` file.

    Raises:
        InputError: if the file cannot be read, or has another format.
    """
    arrays = read_arrays(path)
    if len(arrays) != 1 or 0 not in arrays:
        raise InputError(f"{path!r} is an archive of arrays, not one", code=Code.BAD_REQUEST)
    return arrays[0]


def read_arrays(path: str) -> dict[int | str, Array]:
    """Read an ``.npz`` into arrays by name or number; the array of an ``.npy`` has number 0.

    Raises:
        InputError: if the file cannot be read, or has another format.
    """
    try:
        with open(path, "rb") as file:
            check_claims(file, path, current())
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return {0: content}
            with content as archive:
                return {_key(name_of_member(key)): archive[key] for key in archive.files}
    except OSError as reason:
        raise InputError(f"cannot read {path!r}: {reason.strerror}", code=Code.BAD_REQUEST) from None
    except (AttributeError, ValueError, EOFError, BadZipFile, zlib.error):
        hint = "expected an .npz or .npy of plain arrays, as numpy.savez or numpy.save writes it"
        raise InputError(f"{path!r} has no arrays", code=Code.BAD_REQUEST, hint=hint) from None


def _key(name: str) -> int | str:
    return int(name) if name.isdecimal() else name


@dataclass(frozen=True)
class Recorded:
    """A side whose results were recorded on any device, as arrays by name.

    Args:
        name: the name of the side in messages, such as a path.
        arrays: the arrays: outputs by number, tensor name or layer name, other tensors by tensor name, ``layer`` or
            ``layer:output``. Quantized integers need ``NAME.scale``, and may have ``NAME.zero_point``.
    """

    name: str
    arrays: NamedArrays

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Look up the tensors of the model among the arrays.

        Raises:
            InputError: if no tensor matches, or integers have no scale.
        """
        reading = _Reading(self, reference, feeds, ports)
        return reading.observation()

    def rows(self, reference: Reference, feeds: Sequence[Array]) -> int | None:
        """Return the number of batch rows in the arrays if there are fewer than in the inputs, else ``None``.

        Args:
            reference: the reference of the model.
            feeds: an array for each input.
        """
        lengths = {feed.shape[0] for feed in feeds if feed.ndim}
        targets, counts = _targets(reference, feeds, None), set[int | None]()
        for key, array in self.arrays.items():
            target = targets.get(key)
            if target is None or not target.type.shape.is_static:
                continue
            shape, array_shape = target.type.shape.static, np.shape(array)
            if len(shape) > 1 and shape[0] in lengths:
                counts.add(_count_rows(array_shape, shape))
        return counts.pop() if len(counts) == 1 else None


def _count_rows(found: tuple[int, ...], wanted: tuple[int, ...]) -> int | None:
    """Return the number of rows of an array that has the wanted shape except for fewer rows, else ``None``."""
    if not found or not 0 < found[0] < wanted[0] or find_permutation(found, wanted) is not None:
        return None
    return found[0] if find_permutation(found, (found[0], *wanted[1:])) is not None else None


def first_rows(
    name: str, model: Model, reference: Reference, feeds: Sequence[Array], rows: int
) -> tuple[Model, list[Array], str]:
    """Reduce the batch of a model and its inputs to the first rows; also return a note about it.

    Args:
        name: the name of the side with fewer rows.
        model: the model.
        reference: its reference.
        feeds: an array for each input.
        rows: the number of rows.

    Raises:
        InputError: if the model cannot run on fewer rows.
    """
    batch = max(feed.shape[0] for feed in feeds if feed.ndim)
    few = [feed[:rows] if feed.ndim and feed.shape[0] == batch else feed for feed in feeds]
    part = model
    if not all(port.partial_shape.contains(x.shape) for port, x in zip(reference.inputs, few, strict=True)):
        part = model.clone()
        try:
            part.reshape({index: PartialShape(array.shape) for index, array in enumerate(few)})
            Reference(part)
        except IRError as reason:
            message = (
                f"{name} has {rows} of {batch} rows, and the model cannot be run on {rows}: {reason.message}"
            )
            raise InputError(
                message,
                code=Code.BAD_REQUEST,
                hint="give results of the whole batch, or of a model of fewer rows",
            ) from None
    return part, few, f"{name} has {rows} of {batch} rows: the first {rows} are judged"


@dataclass(frozen=True)
class _Target:
    """A tensor of the model that a recorded array may represent.

    Args:
        label: the name of the tensor in messages.
        type: the type and shape of the tensor.
        port: the port of the tensor; ``None`` if it only serves as an output.
        output: the number of the model output that it is, or ``None``.
        feed: the input array, if the tensor is a model input.
    """

    label: str
    type: TensorType
    port: Port | None = None
    output: int | None = None
    feed: Array | None = None


def _targets(
    reference: Reference, feeds: Sequence[Array], ports: Sequence[Port] | None
) -> dict[int | str, _Target]:
    """Return the tensor that each possible name or number of an array refers to."""
    graph, types = reference.graph, reference.with_shapes(feeds).types
    targets: dict[int | str, _Target] = {}
    observable = (
        set(ports)
        if ports is not None
        else {port for layer in graph for port in layer.output_ports if layer.type != "Constant"}
    )
    for index, output in enumerate(reference.outputs):
        port = output._port
        own = name_of(graph, port)
        names: list[int | str] = [index, *sorted(output.names), *graph[port.layer].outputs[port.number].names]
        target = _Target(output.label, types[port].type, None, index)
        for name in names:
            targets.setdefault(name, target)
        targets.setdefault(own, _Target(own, types[port].type, port if port in observable else None, index))
    for layer in graph:
        for number, port in enumerate(layer.output_ports):
            if port in observable:
                name = name_of(graph, port)
                target = _Target(name, types[port].type, port)
                for alias in (name, *layer.outputs[number].names):
                    targets.setdefault(alias, target)
    for layer, feed in zip(graph.of_type("Parameter"), feeds, strict=True):
        type = types[Port(layer.id, 0)].type
        for name in (layer.name, *layer.outputs[0].names):
            targets.setdefault(name, _Target(layer.name, type, feed=feed))
    return targets


@dataclass
class _Reading:
    """Converts recorded arrays to the tensors of a model.

    Args:
        side: the arrays.
        reference: the reference of the model.
        feeds: an array for each input.
        ports: the tensors to observe.
    """

    side: Recorded
    reference: Reference
    feeds: Sequence[Array]
    ports: Sequence[Port]
    outputs: dict[int, Array] = field(default_factory=dict)
    tensors: dict[Port, Array] = field(default_factory=dict)
    steps: dict[Port, float] = field(default_factory=dict)
    stored: str = ""
    """The type in which f32 tensors were stored, if it is narrower."""
    notes: list[str] = field(default_factory=list)

    def observation(self) -> Observation:
        """Convert all arrays, and return them as an observation."""
        targets, arrays = _targets(self.reference, self.feeds, self.ports), self.side.arrays
        companions = {f"{name}{end}" for name in arrays for end in (_SCALE, _ZERO_POINT)}
        unknown = []
        for key, array in arrays.items():
            if key in targets:
                self._take(key, np.asarray(array), targets[key])
            elif key not in companions:
                unknown.append(str(key))
        if not self.outputs and not self.tensors:
            raise self._error_without_match(unknown, targets)
        self.notes += _note_unknown(self.side.name, unknown, targets)
        count = len(self.reference.outputs)
        return Observation(
            self.side.name,
            [self.outputs.get(index, np.empty(0)) for index in range(count)],
            self.tensors,
            absent=tuple(index for index in range(count) if index not in self.outputs),
            stored=self.stored,
            steps=self.steps,
            notes=tuple(self.notes),
        )

    def _take(self, key: int | str, given: Array, target: _Target) -> None:
        array, step = self._dequantize(key, given, target)
        if target.type.shape.is_static:
            array, how = _convert_shape(array, target.type.shape.static)
            if how:
                self.notes.append(f"{quoted(target.label)} {how}")
        if target.feed is not None:
            if array.shape != target.feed.shape or difference(array, target.feed).startswith("0 of"):
                return
            self.notes.append(
                f"{self.side.name} has another input {quoted(target.label)} than was given: {difference(array, target.feed)}"
            )
            return
        if target.output is not None:
            self.outputs.setdefault(target.output, array)
        if target.port is not None:
            self.tensors.setdefault(target.port, array)
        port = target.port
        if target.output is not None:
            port = self.reference.outputs[target.output]._port
        if step and port is not None:
            self.steps[port] = step

    def _dequantize(self, key: int | str, array: Array, target: _Target) -> tuple[Array, float]:
        """Convert an array to the numeric type of its tensor; also return the quantization step, 0 unless it was scaled integers."""
        element = target.type.element
        if array.dtype.kind == "V" and array.dtype.itemsize == 2:  # as NumPy reads files of ml_dtypes
            array = array.view(ml_dtypes.bfloat16)
        if array.dtype.name in _PRECISIONS and element in (ElementType.f32, ElementType.f64):
            self.stored = self.stored or _PRECISIONS[array.dtype.name]
        if element.real:
            scale = self.side.arrays.get(f"{key}{_SCALE}")
            if array.dtype.kind not in "iu":
                return array, 0.0
            if scale is None:
                raise InputError(
                    f"{self.side.name}: {quoted(target.label)} is {array.dtype.name}, the model has {element.label}",
                    code=Code.BAD_REQUEST,
                    hint=f"give its scale beside it, as '{key}{_SCALE}', and its zero point as '{key}{_ZERO_POINT}'",
                )
            zero = self.side.arrays.get(f"{key}{_ZERO_POINT}", 0)
            wide = array.astype(np.float64) - self._broadcastable(key, zero, array)
            scales = self._broadcastable(key, scale, array)
            self.notes.append(
                f"{quoted(target.label)} is {array.dtype.name} with a scale: judged in these steps"
            )
            return (wide * scales).astype(np.float32), float(np.abs(scales).max(initial=0))
        is_whole = array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.rint(array)).all()
        return (array.astype(element.dtype) if is_whole and element.integral else array), 0.0

    def _broadcastable(self, key: int | str, numbers: object, array: Array) -> Array:
        """Reshape a scale or zero point, a single one or one per index of an axis, to broadcast to an array."""
        factors = np.asarray(numbers, np.float64)
        if factors.size == 1:
            return factors.reshape(())
        if factors.ndim == array.ndim and all(
            a in (1, b) for a, b in zip(factors.shape, array.shape, strict=True)
        ):
            return factors
        axes = [axis for axis in (1, array.ndim - 1, 0) if 0 <= axis < array.ndim]
        axis = next((axis for axis in axes if array.shape[axis] == factors.size), None)
        if axis is None or factors.ndim != 1:
            raise InputError(
                f"{self.side.name}: the scale or zero point of '{key}' has the shape {[*factors.shape]}, which fits no axis of {[*array.shape]}",
                code=Code.BAD_REQUEST,
                hint="give one number, or one for each index of axis 1, the last or the first axis",
            )
        return factors.reshape([-1 if place == axis else 1 for place in range(array.ndim)])

    def _error_without_match(
        self, unknown: Sequence[str], targets: Mapping[int | str, _Target]
    ) -> InputError:
        """Return the error for arrays that match no tensor of the model."""
        arrays = self.side.arrays
        has = _join_shown(
            f"{shown(str(key))} {np.asarray(arrays[key]).dtype.name}{[*np.shape(arrays[key])]}"
            for key in arrays
        )
        outputs = _join_shown(
            f"{shown(output.label)} (or {index})" for index, output in enumerate(self.reference.outputs)
        )
        names = [str(name) for name in targets]
        near = next(filter(None, (did_you_mean(name, names) for name in unknown)), "") or self._same_shape()
        return InputError(
            f"{self.side.name} has no tensor of the model: it has {has or 'no arrays'}",
            code=Code.NO_SUCH_NAME,
            hint=near or f"the outputs are {outputs}; other tensors are called as their layers are",
        )

    def _same_shape(self) -> str:
        """Return a hint if exactly one array has the shape of the only output; else an empty string."""
        shapes = {key: np.shape(array) for key, array in self.side.arrays.items()}
        if len(self.reference.outputs) != 1:
            return ""
        (output,) = self.reference.outputs
        alike = [key for key, shape in shapes.items() if output._type.shape.contains(shape)]
        if len(alike) != 1:
            return ""
        return f"{shown(str(alike[0]))!r} has the shape of the output: is it {shown(output.label)!r}? Save it by that name"


def _note_unknown(side: str, unknown: Sequence[str], targets: Mapping[int | str, _Target]) -> Iterator[str]:
    """Yield notes on arrays whose names match no tensor of the model."""
    names = [str(name) for name in targets]
    for name in unknown[:SHOWN]:
        near = did_you_mean(name, names, before="; ")
        yield f"{side}: the model computes no tensor called {quoted(name)}{near}"
    if len(unknown) > SHOWN:
        yield f"{side}: nor {len(unknown) - SHOWN} others of its tensors"


def _join_shown(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def _convert_shape(array: Array, shape: tuple[int, ...]) -> tuple[Array, str]:
    """Convert an array to the shape of a tensor if possible; also return a note about the conversion."""
    if array.shape == shape:
        return array, ""
    order = find_permutation(array.shape, shape)
    if order is None:
        return array, ""
    was = tuple(shape[axis] for axis in _inverse(order))
    turned = array.reshape(was).transpose(order)
    layout = _LAYOUTS.get(order, f"axes in the order {[*_inverse(order)]}")
    what = f", {layout}" if order != tuple(range(len(shape))) else ""
    return turned, f"is read from {[*array.shape]}{what}"


def find_permutation(found: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """Find the permutation of axes that converts an array to a shape; ``None`` if there is none.

    All or some neighbouring axes of the array may be merged, and axes of length 1 may be missing; the permutation applies
    after these are restored. The identity is tried first, then image layouts, then other permutations.

    >>> find_permutation((1, 5, 5, 16), (1, 16, 5, 5)), find_permutation((400,), (1, 16, 5, 5)), find_permutation((5, 5, 16), (1, 16, 5, 5))
    ((0, 3, 1, 2), (0, 1, 2, 3), (0, 3, 1, 2))

    Args:
        found: the shape of the array.
        wanted: the shape of the tensor.
    """
    if prod(found) != prod(wanted):
        return None
    same = tuple(range(len(wanted)))
    layouts = [order for order in _LAYOUTS if len(order) == len(wanted)]
    others = permutations(same) if len(wanted) <= RANK else iter(())
    for order in (same, *layouts, *others):
        was = [wanted[axis] for axis in _inverse(order)]
        if _merges(was, found):
            return order
    return None


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse of a permutation."""
    return tuple(int(axis) for axis in np.argsort(order))


def _merges(shape: Sequence[int], into: Sequence[int]) -> bool:
    """Return whether merging neighbouring axes of one shape gives the other, ignoring axes of length 1."""
    lengths = iter([length for length in shape if length != 1])
    for merged in into:
        size = 1
        while size < merged and (length := next(lengths, 0)):
            size *= length
        if size != merged:
            return False
    return next(lengths, 1) == 1
