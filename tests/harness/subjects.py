"""Models fed with nearly correct inputs: the inputs, the models, and the expected outcome."""

from __future__ import annotations

import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ir_runtime as ir
from harness.files import model_of
from harness.kernels import FAST, loaded, watched
from harness.oracle import assert_agree
from harness.sample import Sample, all_samples
from ir_runtime.debug.reference import Reference
from ir_runtime.ir.array import Packed
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops.infrastructure import Constant

__all__ = [
    "Feed",
    "Subject",
    "Task",
    "all_subjects",
    "difference",
    "examine",
    "layouts",
    "lengths",
    "of_patterns",
    "ranks",
    "some_subjects",
    "values",
]


class Feed(NamedTuple):
    """Inputs, and how they differ from the correct ones."""

    what: str
    arrays: tuple[Array, ...]


def lengths(arrays: Sequence[Array]) -> Iterator[Feed]:
    """Yield inputs with wrong lengths: one axis longer or shorter, two axes swapped, or a length changed in all shapes."""
    for index, x in enumerate(arrays):
        for axis, length in enumerate(x.shape):
            for other in _others(length):
                shape = (*x.shape[:axis], other, *x.shape[axis + 1 :])
                yield _with(arrays, {index: shape}, f"axis {axis} of input {index} is {other}")
        for axis in range(x.ndim):
            for after in range(axis):
                if x.shape[axis] != x.shape[after]:
                    turned = tuple(np.array(x.shape)[_swapped(x.ndim, axis, after)].tolist())
                    yield _with(
                        arrays, {index: turned}, f"axes {after} and {axis} of input {index} swap lengths"
                    )
    common = Counter(length for x in arrays for length in x.shape)
    for length in (n for n, count in common.items() if count > 1):
        for other in _others(length):
            shapes = {i: tuple(other if n == length else n for n in x.shape) for i, x in enumerate(arrays)}
            yield _with(arrays, shapes, f"every length of {length} is {other}")


def _others(length: int) -> list[int]:
    return [
        n for n in dict.fromkeys((length + 1, length - 1, 2 * length, length // 2, 0, 1)) if 0 <= n != length
    ]


def _swapped(rank: int, a: int, b: int) -> list[int]:
    order = list(range(rank))
    order[a], order[b] = b, a
    return order


def ranks(arrays: Sequence[Array]) -> Iterator[Feed]:
    """Yield inputs with one axis more or less."""
    for index, x in enumerate(arrays):
        yield _with(arrays, {index: (1, *x.shape)}, f"input {index} has an axis more")
        yield _with(arrays, {index: (*x.shape, 2)}, f"input {index} has a last axis of 2 more")
        if x.ndim:
            yield _with(arrays, {index: x.shape[1:]}, f"input {index} lacks the first axis")
            yield _with(arrays, {index: x.shape[:-1]}, f"input {index} lacks the last axis")


def _with(arrays: Sequence[Array], shapes: dict[int, tuple[int, ...]], what: str) -> Feed:
    """Return a feed with other shapes; values repeat as needed, and no memory follows the last one."""
    return Feed(what, tuple(np.resize(x, shapes.get(i, x.shape)).copy() for i, x in enumerate(arrays)))


def layouts(arrays: Sequence[Array]) -> Iterator[Feed]:
    """Yield equal inputs in other layouts: with gaps, reversed, unaligned, column-major, read-only."""
    ways = {
        "with gaps": lambda x: _strided(x, [2 * n for n in _contiguous(x)]),
        "backwards": lambda x: _strided(x, [-n for n in _contiguous(x)]),
        "backwards along the last axis": lambda x: _strided(x, [*_contiguous(x)[:-1], -x.itemsize]),
        "at an odd address": lambda x: _strided(x, _contiguous(x), 1),
        "with odd gaps": lambda x: _strided(x, [n + n // x.itemsize for n in _contiguous(x)], 1),
        "columns first": np.asfortranarray,
        "channels last": _channels_last,
        "all rows the same": lambda x: np.broadcast_to(x[:1], x.shape),
    }
    for what, way in ways.items():
        made = tuple(way(x) if x.ndim and x.size and x.dtype != object else x for x in arrays)
        yield Feed(what, made)
    fixed = tuple(x.copy() for x in arrays)
    for x in fixed:
        x.setflags(write=False)
    yield Feed("read-only", fixed)


def _channels_last(x: Array) -> Array:
    return x if x.ndim < 3 else np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


def _contiguous(x: Array) -> list[int]:
    """Return C-contiguous strides in bytes."""
    return [x.itemsize * int(np.prod(x.shape[axis + 1 :])) for axis in range(x.ndim)]


def _strided(x: Array, strides: Sequence[int], offset: int = 0) -> Array:
    """Return a copy with these strides, in the smallest possible memory."""
    reach = [(n - 1) * stride for n, stride in zip(x.shape, strides, strict=True)]
    before = -sum(n for n in reach if n < 0)
    buffer = np.empty(offset + before + sum(n for n in reach if n > 0) + x.itemsize, np.uint8)
    found = np.ndarray(x.shape, x.dtype, buffer, offset + before, strides)
    found[...] = x
    return found


_WHOLE = (-1, 0, 1, 2, 1 << 31, -(1 << 31), (1 << 31) - 1, (1 << 63) - 1, -(1 << 63), 255, 127)
_REAL = (np.nan, np.inf, -np.inf)


def values(arrays: Sequence[Array]) -> Iterator[Feed]:
    """Yield inputs with other values, at one position or everywhere: out of range, or not finite."""
    for index, x in enumerate(arrays):
        for number in _numbers(x):
            for what, place in (("everywhere", slice(None)), ("first", 0), ("last", -1)):
                if place != slice(None) and x.size < 2:
                    continue
                made = x.copy()
                made.reshape(-1)[place] = number
                others = (*arrays[:index], made, *arrays[index + 1 :])
                yield Feed(f"{number} {what} in input {index}", others)


def _numbers(x: Array) -> Sequence[float]:
    """Return the special values that the dtype of an input can represent."""
    if not x.size or x.dtype == object:
        return ()
    if ElementType.from_dtype(x.dtype).real:
        return _REAL
    if x.dtype.kind not in "iu":
        return ()
    bounds = np.iinfo(x.dtype)
    longest = max((n for n in x.shape), default=0)
    return [n for n in (*_WHOLE, longest, longest + 1) if bounds.min <= n <= bounds.max]


LIMITS = ir.Limits(memory=1 << 28, trips=200, seconds=20)
# Where inputs cancel out, as in the mean of equal numbers, what remains is rounding; relative to the largest input.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Subject:
    """A model with static shapes, and its correct inputs."""

    name: str
    xml: bytes
    weights: bytes
    inputs: tuple[Array, ...]
    atol: float = 0.0
    """By how much results may differ where rounding counts for more than usual."""


@dataclass(frozen=True)
class Task:
    """The trials of a subject.

    Args:
        subject: the model.
        feeds: the number of kinds of wrong inputs, in addition to the correct ones.
        openings: the number of partly dynamic variants, in addition to the static and the fully dynamic one.
        threads: the number of threads that share a layer.
    """

    subject: Subject
    feeds: int
    openings: int
    threads: int = 1


def all_subjects() -> Iterator[Subject]:
    """Yield every sample of an operation that fast backends have kernels for, then every pattern."""
    yield from (_subject(sample, fixed) for sample, fixed in _candidates())
    yield from of_patterns().values()


def some_subjects(each: int) -> tuple[list[Subject], set[str]]:
    """Return up to ``each`` samples per kernel factory and all patterns; and the factories that are covered."""
    counts: dict[str, int] = {}
    chosen: dict[tuple[int, tuple[int, ...]], Subject] = {}
    with watched() as made:
        candidates = list(_candidates())
        for index in np.random.default_rng(0).permutation(len(candidates)):
            sample, fixed = candidates[index]
            for dynamic in (True, False):
                made.clear()
                _make_kernels(sample, fixed, dynamic)
                if any(counts.get(name, 0) < each for name in made):
                    chosen[index, fixed] = _subject(sample, fixed)
                    counts |= {name: counts.get(name, 0) + 1 for name in made}
        made.clear()
        for subject in of_patterns().values():
            model = ir.read_model(subject.xml, subject.weights)
            for shapes in (_static(subject.inputs), _open(subject.inputs)):
                model.reshape(shapes)
                for name in FAST:
                    ir.compile_model(model, backend=name)
    return [*chosen.values(), *of_patterns().values()], made | set(counts)


@cache
def of_patterns() -> Mapping[str, Subject]:
    """Return models of the patterns that fast backends fuse."""
    import openvino as ov
    from models.patterns import PATTERNS

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        for name, (build, draw) in PATTERNS.items():
            ov.save_model(build(), path, compress_to_fp16=False)
            weights = path.with_suffix(".bin").read_bytes()
            found[name] = Subject(name, path.read_bytes(), weights, tuple(draw()))
    return found


def _candidates() -> Iterator[tuple[Sample, tuple[int, ...]]]:
    """Yield samples with the indices of their constant inputs: the required ones, or all but the first."""
    kinds = {op for name in FAST for op in loaded(name).offers}
    for sample in all_samples():
        if sample.cls in kinds:
            yield from (
                (sample, fixed) for fixed in dict.fromkeys([sample.constant, _behind_the_first(sample)])
            )


def _behind_the_first(sample: Sample) -> tuple[int, ...]:
    return tuple(range(1, len(sample.inputs)))


def _subject(sample: Sample, fixed: Collection[int]) -> Subject:
    xml, weights = model_of(sample, fixed)
    inputs = tuple(x for i, x in enumerate(sample.inputs) if i not in fixed)
    name = f"{sample} with inputs {fixed} constant" if fixed else str(sample)
    return Subject(name, xml, weights, inputs, sample.atol or 0.0)


def _make_kernels(sample: Sample, fixed: Collection[int], dynamic: bool) -> None:
    """Ask all fast backends for a kernel."""
    known = [
        value
        if i in fixed
        else Value.unknown(value.element, PartialShape.dynamic(value.shape.rank) if dynamic else value.shape)
        for i, value in enumerate(sample.values())
    ]
    for name in FAST:
        loaded(name).kernel(sample.layer(), known)


def examine(task: Task, tell: Callable[[str], None]) -> list[str]:
    """Return the failures: fast backends must return the reference's results, and refuse the inputs that it refuses.

    They may also refuse inputs that shape inference refuses for these lengths.
    """
    subject, found = task.subject, []
    model = ir.read_model(subject.xml, np.frombuffer(subject.weights, np.uint8).copy(), limits=LIMITS)
    _set_apart(model)
    feeds = _some(subject, _feeds(subject.inputs), 1, task.feeds)
    refusable = {feed.what: _reshaped(model, _static(feed.arrays)) is not None for feed in feeds}
    for how, shapes in _some(subject, _openings(subject.inputs), 2, task.openings):
        if _reshaped(model, shapes) is not None:
            continue
        tell(f"{subject.name} compiled with {how} open")
        reference = _reference(model, task.threads)
        fast = [_compiled(model, name, task.threads) for name in FAST]
        for feed in feeds:
            if not all(_fits(shapes[i], x) for i, x in enumerate(feed.arrays)):
                continue
            place = f"{subject.name} with {how} open, {feed.what}: {[list(x.shape) for x in feed.arrays]}"
            tell(f"reference: {place}")
            wanted, rounding = _outcome(reference, feed), ROUNDING * _largest(feed)
            for compiled in fast:
                tell(f"{compiled.backend}: {place}")
                outcome = _outcome(compiled, feed)
                if isinstance(outcome, ir.IRError) and refusable[feed.what]:
                    continue
                problem = difference(outcome, wanted, compiled.backend, max(subject.atol, rounding))
                found += [f"{compiled.backend}: {place}: {problem}"] if problem else []
    return found


def _reshaped(model: ir.Model, shapes: dict[int, Any]) -> ir.IRError | None:
    """Reshape a model; return the error if that is refused."""
    try:
        model.reshape(shapes)
    except ir.IRError as refusal:
        return refusal
    return None


def _compiled(model: ir.Model, backend: str, threads: int) -> ir.CompiledModel:
    config = {"INFERENCE_NUM_THREADS": threads}
    return ir.compile_model(model, backend=backend, config=config, limits=LIMITS)


def _set_apart(model: ir.Model) -> None:
    """Move every constant to memory pages of its own."""
    for layer in model._graph:
        if isinstance(layer.op, Constant) and isinstance(layer.op.value, np.ndarray | Packed):
            held = layer.op.value
            fresh = (
                Packed(held.raw.copy(), held.element, held.shape) if isinstance(held, Packed) else held.copy()
            )
            object.__setattr__(layer.op, "value", fresh)


def _some(subject: Subject, found: Iterable[Any], first: int, more: int) -> list[Any]:
    """Return the first items and a random choice of the others, the same for a subject each time."""
    every = list(found if more else islice(found, first))
    order = np.random.default_rng(zlib.crc32(subject.name.encode())).permutation(len(every[first:]))
    return every[:first] + [every[first + i] for i in sorted(order[:more])]


def _feeds(inputs: Sequence[Array]) -> Iterator[Feed]:
    """Yield the correct inputs, then nearly correct ones."""
    yield Feed("right inputs", tuple(x.copy() for x in inputs))
    for kind in (lengths, ranks, layouts, values):
        yield from kind(inputs)


def _openings(inputs: Sequence[Array]) -> Iterator[tuple[str, dict[int, Any]]]:
    """Yield the variants with dynamic dims."""
    static = _static(inputs)
    yield "nothing", static
    yield "all lengths", _open(inputs)
    yield "first lengths", {i: [-1, *x.shape[1:]] if x.ndim else [] for i, x in enumerate(inputs)}
    yield "all but the first lengths", {i: [*x.shape[:1], *[-1] * (x.ndim - 1)] for i, x in enumerate(inputs)}
    for i, x in enumerate(inputs):
        for axis in range(x.ndim):
            yield f"axis {axis} of input {i}", {**static, i: [*x.shape[:axis], -1, *x.shape[axis + 1 :]]}
    yield "all ranks", dict.fromkeys(static, "...")


def _static(inputs: Sequence[Array]) -> dict[int, Any]:
    return {i: list(x.shape) for i, x in enumerate(inputs)}


def _open(inputs: Sequence[Array]) -> dict[int, Any]:
    return {i: [-1] * x.ndim for i, x in enumerate(inputs)}


def _fits(shape: Any, x: Array) -> bool:
    return PartialShape(shape).contains(x.shape)


def _largest(feed: Feed) -> float:
    """Return the largest finite magnitude."""
    reals = [np.abs(x[np.isfinite(x)]).astype(np.float64) for x in feed.arrays if x.dtype.kind == "f"]
    return max((float(x.max(initial=0.0)) for x in reals), default=0.0)


def _reference(model: ir.Model, threads: int) -> Callable[[list[Array]], Any]:
    """Return a function that runs the reference; f16 is computed in f32, as in the fast backends."""
    reference = Reference(model, f16_in_f32=True)
    if not reference.f16_in_f32:
        return _compiled(model, "reference", threads)
    return lambda inputs: reference.run(reference.feeds(inputs))


def _outcome(compiled: Callable[[list[Array]], Any], feed: Feed) -> list[Array] | Exception:
    try:
        found = compiled(list(feed.arrays))
    except Exception as problem:
        return problem
    return [found[i] for i in range(len(found))]


def difference(found: Any, wanted: Any, backend: str, atol: float) -> str:
    """Return the difference of an outcome from the reference's; empty if none."""
    for outcome in (wanted, found):
        if isinstance(outcome, Exception) and not isinstance(outcome, ir.IRError):
            return f"{type(outcome).__name__}: {outcome}"
    if isinstance(wanted, ir.IRError):
        shapes = "" if isinstance(found, ir.IRError) else str([list(x.shape) for x in found])
        return shapes and f"gives {shapes}, and the reference refuses: {wanted}"
    if isinstance(found, ir.IRError):
        return f"refuses, and the reference gives {[list(x.shape) for x in wanted]}: {found}"
    try:
        for ours, theirs in zip(found, wanted, strict=True):
            if ours.dtype == object or _bytes(ours) != _bytes(theirs):
                assert_agree(ours, theirs, backend, atol)
    except AssertionError as difference:
        return str(difference)
    return ""


def _bytes(x: Array) -> tuple[Any, ...]:
    return x.dtype, x.shape, x.tobytes()
