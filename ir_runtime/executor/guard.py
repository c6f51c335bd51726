"""Run-time checks of dynamic shapes: sizes and lengths that are unknown when a model is compiled.

A step whose results have known sizes needs no guard: these sizes are summed once, when compiling. Other kernels are
wrapped in a guard, which must be cheap for shapes that recur:

* a view needs no memory;
* a result whose unknown lengths are all those of one input is proportional to it in size;
* the result of a `bounded` operation has at most as many elements as its inputs' element counts multiplied, usually a
  low bound;
* inferred sizes are cached by the shapes of the inputs, and by the contents of small ones.

Empty inputs go through inference as well. If all results are empty too, the kernel does not run: the other lengths of
its inputs, which may be huge, then cost neither time nor memory.

Live bytes are counted only when the bytes allocated so far reach the limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..analysis.error_context import Expected, RefusedInputError
from ..backends import Accepts, Compute, Kernel, ResultShape, any_lengths
from ..diagnostics import Location
from ..errors import ExecutionError
from ..ir.dimension import Symbol
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value, bytes_of, check_lengths, empty_results
from .context import RUN, Run
from .step import base_buffer_of

__all__ = ["Guard", "LengthCheck", "live_bytes", "check_room", "add_length_check", "add_guard", "reserve"]

# Maximum number of shapes cached by a guard or a length check; lengths that grow with every run do not recur.
REMEMBERED = 64
# Contents of inputs with at most this many elements are part of the cache key.
SMALL = 64
# Results with at most this many bytes need no guard.
NEGLIGIBLE = 1 << 16


def add_guard(
    kernel: Kernel,
    expected: Expected,
    inputs: Sequence[TensorType],
    outputs: Sequence[TensorType],
    bounded: bool,
    always_runs: bool = False,
) -> Kernel:
    """Wrap a kernel in a guard that enforces limits, unless its results are views, of static shape, or small.

    Args:
        kernel: the kernel of the step.
        expected: the inference of the step.
        inputs: the type of each input.
        outputs: the type of each output.
        bounded: whether no result has more elements than the product, or the sum, of the element counts of its
            non-empty inputs.
        always_runs: whether the kernel must run even if no result has elements.
    """
    if kernel.view or all(type.shape.is_static or _max_bytes(type) <= NEGLIGIBLE for type in outputs):
        return kernel
    width = sum(type.element.dtype.itemsize or 1 for type in outputs) * max(len(inputs), 1)
    itemsize = width // max(len(inputs), 1)
    guard = Guard(expected, width if bounded else 0, kernel.result_shape, itemsize, always_runs)
    for index, type in enumerate(inputs):
        if (ratio := _ratio(type, outputs)) is not None:
            return kernel.wrapped(_guard_by_ratio(kernel.whole, guard, index, ratio))
    return kernel.wrapped(_guard_by_product(kernel.whole, guard))


def _ratio(source: TensorType, outputs: Sequence[TensorType]) -> float | None:
    """Return the bytes of all results for each element of an input with all of their unknown lengths.

    Returns ``None`` if a result has an unknown length that the input lacks, or the rank of either is unknown.
    """
    if source.shape.rank is None:
        return None
    total = 0.0
    for type in outputs:
        missing = None if type.shape.rank is None else _unknown(type) - _unknown(source)
        if missing is None or missing:
            return None
        total += _static_size(type) * max(type.element.dtype.itemsize, 1)
    return total / max(_static_size(source), 1)


def _unknown(type: TensorType) -> Counter[object]:
    """Count the unknown lengths of a tensor by symbol; each length without a symbol counts separately."""
    return Counter(dim.symbol or object() for dim in type.shape if dim.is_dynamic)


def _static_size(type: TensorType) -> int:
    return math.prod([dim.min for dim in type.shape if dim.is_static])


def _guard_by_ratio(compute: Compute, guard: Guard, index: int, ratio: float) -> Compute:
    """Guard a function whose results have ``ratio`` bytes per element of input ``index``."""
    current = RUN.get

    def run_guarded(*arrays: Array) -> Array | tuple[Array, ...]:
        if (run := current(None)) is not None:
            most = ratio * arrays[index].size
            if 0 < most <= run.left and most <= run.limits.elements:
                run.left -= most
            elif (empty := guard.check(run, arrays)) is not None:
                return empty
        return compute(*arrays)

    return run_guarded


def _guard_by_product(compute: Compute, guard: Guard) -> Compute:
    """Guard a function by the product of its inputs' element counts, or else by the sizes of its results."""
    current, width = RUN.get, guard.width

    def run_guarded(*arrays: Array) -> Array | tuple[Array, ...]:
        if (run := current(None)) is None:
            return compute(*arrays)
        most = width
        for array in arrays:
            most *= array.size
        if not 0 < most <= run.left or most > run.limits.elements:
            return compute(*arrays) if (empty := guard.check(run, arrays)) is None else empty
        results = compute(*arrays)
        run.left -= results.nbytes if isinstance(results, np.ndarray) else sum(a.nbytes for a in results)
        return results

    return run_guarded


def _max_bytes(type: TensorType) -> float:
    """Return the upper bound of a tensor's bytes; infinite if a length is unbounded."""
    longest = None if type.shape.rank is None else [dim.max for dim in type.shape]
    if longest is None or None in longest:
        return math.inf
    return math.prod(n for n in longest if n is not None) * max(type.element.dtype.itemsize, 1)


@dataclass(slots=True, eq=False)
class Guard:
    """The size limits of a step."""

    expected: Expected
    width: int
    """Result bytes for each element in the product of the inputs; 0 if the operation is not bounded."""
    result_shape: ResultShape | None = None
    """Computes the result shape without inference, for kernels whose lengths grow with every run."""
    itemsize: int = 0
    """Bytes of one element of every result, summed."""
    always_runs: bool = False
    """Whether the kernel must run even if no result has elements."""
    cached: dict[Hashable, Sequence[TensorType]] = field(default_factory=dict)
    """Result types by input shapes and contents of small inputs."""

    def check(self, run: Run, arrays: Sequence[Array]) -> tuple[Array, ...] | None:
        """Reserve the memory of a step before it runs; return its results if all are empty, else ``None``: the kernel must run.

        Raises:
            LimitError: if the results exceed the limits of the run.
            RefusedInputError: if inference refuses the inputs.
        """
        rule = self.result_shape
        if rule is not None and (shape := rule(*arrays)) is not None and (count := math.prod(shape)):
            run.limits.check("elements", count)
            reserve(run, count * self.itemsize)
            return None
        types = self._types(arrays)
        for type in types:
            check_lengths(type, run.limits)
        reserve(run, sum(map(bytes_of, types)))
        return None if self.always_runs else empty_results(types)

    def _types(self, arrays: Sequence[Array]) -> Sequence[TensorType]:
        key = _key(arrays)
        types = self.cached.get(key)
        if types is None:
            types = self.expected.types(arrays)
            if len(self.cached) >= REMEMBERED:
                self.cached.clear()
            if key is not None:
                self.cached[key] = types
        return types


def _key(arrays: Sequence[Array]) -> Hashable:
    """Return the key of inputs in the cache of result types; ``None`` if one holds strings, for which results are not cached."""
    parts: list[Hashable] = []
    for array in arrays:
        if array.dtype == object:
            return None
        parts.append(array.shape if array.size > SMALL else (array.shape, array.tobytes()))
    return tuple(parts)


def reserve(run: Run, need: int) -> None:
    """Reserve the ``need`` bytes that a step will allocate.

    Raises:
        LimitError: if the live arrays would then exceed the memory limit of the run.
    """
    if need > run.left:
        now = live_bytes(run)
        run.left = run.limits.memory - now
        if need > run.left:
            run.limits.check("memory", now + need)
    run.left -= need


def check_room(need: int, results: Sequence[Array], where: Location) -> None:
    """Check that ``need`` more bytes fit beside the live arrays of the current run and ``results``.

    Nothing is reserved: the caller frees the memory before the next step. Outside of a run, and for at most `NEGLIGIBLE` bytes,
    nothing is checked.

    Args:
        need: the number of bytes.
        results: the results of the step that are not in slots yet.
        where: the location that an error names.

    Raises:
        LimitError: if they exceed the memory limit of the run.
    """
    run = RUN.get(None)
    if run is not None and need > NEGLIGIBLE:
        run.limits.check("memory", live_bytes(run, results) + need, where)


def live_bytes(run: Run, results: Sequence[Array] = ()) -> int:
    """Return the bytes of live arrays of a run and its bodies, without constants; views of the same memory count once.

    Args:
        run: the run.
        results: the results of a step that are not in slots yet.
    """
    sizes = {base_buffer_of(array): array.nbytes for array in results}
    for env, slots in run.envs:
        for array, constant in zip(env, slots, strict=True):
            if isinstance(array, np.ndarray) and array is not constant:
                root = base_buffer_of(array)
                sizes[root] = max(sizes.get(root, 0), array.nbytes)
    return sum(sizes.values())


def add_length_check(kernel: Kernel, check: LengthCheck) -> Kernel:
    """Return the kernel preceded by a length check, or unchanged if it accepts any lengths or all are static."""
    unknown = [index for index, type in enumerate(check.reads) if type.shape.is_dynamic]
    if not unknown or kernel.accepts is any_lengths:
        return kernel
    return kernel.wrapped(_check_first(kernel.whole, check, unknown, kernel.accepts))


def _check_first(
    run: Compute, check: LengthCheck, unknown: Sequence[int], accepts: Accepts | None
) -> Compute:
    """Return a function that checks the lengths of its arguments before it calls ``run``.

    Args:
        run: the function to call.
        check: the check by shape inference, whose outcomes are cached.
        unknown: the indices of the arguments with unknown lengths.
        accepts: the check of the kernel, which decides first if there is one.
    """
    if accepts is not None:
        return _check_by_kernel(run, check, accepts)
    return _check_one(run, check, unknown[0]) if len(unknown) == 1 else _check_several(run, check, unknown)


def _check_one(run: Compute, check: LengthCheck, index: int) -> Compute:
    accepted = check.accepted

    def run_checked(*arrays: Array) -> Array | tuple[Array, ...]:
        if (shape := arrays[index].shape) not in accepted:
            check.accept(arrays, shape)
        return run(*arrays)

    return run_checked


def _check_several(run: Compute, check: LengthCheck, unknown: Sequence[int]) -> Compute:
    accepted = check.accepted

    def run_checked(*arrays: Array) -> Array | tuple[Array, ...]:
        shapes = tuple([arrays[index].shape for index in unknown])
        if shapes not in accepted:
            check.accept(arrays, shapes)
        return run(*arrays)

    return run_checked


def _check_by_kernel(run: Compute, check: LengthCheck, accepts: Accepts) -> Compute:
    def run_checked(*arrays: Array) -> Array | tuple[Array, ...]:
        if not accepts(*arrays):
            check.accept(arrays)
        return run(*arrays)

    return run_checked


@dataclass(frozen=True, slots=True, eq=False)
class LengthCheck:
    """Checks inputs against the types for which a step's kernel was chosen.

    Args:
        expected: the inference of the step's layers.
        reads: the types of the step's inputs.
        contents: the contents of each input that is fixed in the plan, else ``None``.
        result_types: the result types of each layer.
    """

    expected: Expected
    reads: tuple[TensorType, ...]
    contents: tuple[Array | None, ...]
    result_types: tuple[tuple[TensorType, ...], ...]
    accepted: set[Hashable] = field(default_factory=set)
    """Accepted shapes of the inputs with unknown lengths."""

    def accept(self, arrays: Sequence[Array], key: Hashable = None) -> None:
        """Check the lengths of the inputs, and remember ``key`` as accepted unless it is ``None``.

        Raises:
            RefusedInputError: if a layer refuses the inputs, or they disagree with the inferred types; it names the layer.
        """
        lengths: dict[Symbol, int] = {}
        for array, type in zip(arrays, self.reads, strict=True):
            self._compare(PartialShape(array.shape), type, lengths)
        results = self.expected.results(list(map(_value, arrays, self.expected.elements, self.contents)))
        for types, expected in zip(results, self.result_types, strict=True):
            for result, type in zip(types, expected, strict=False):
                self._compare(result.shape, type, lengths)
        if key is not None:
            if len(self.accepted) >= REMEMBERED:
                self.accepted.clear()
            self.accepted.add(key)

    def _compare(self, shape: PartialShape, type: TensorType, lengths: dict[Symbol, int]) -> None:
        """Raise a `RefusedInputError` unless a tensor's shape agrees with the inferred type; ``lengths`` are those of symbols so far."""
        if not _agree(shape, type.shape, lengths):
            reason = ExecutionError(
                f"expected the inferred shape {type.shape}, got {shape}",
                hint="an earlier layer computes another shape than the file declares",
            )
            raise RefusedInputError(self.expected.layers[-1], reason)


def _value(array: Array, element: ElementType, contents: Array | None) -> Value:
    """Return the `Value` of an input for inference, with its contents if they are fixed in the plan."""
    if element is ElementType.dynamic:
        element = ElementType.from_dtype(array.dtype)
    return Value(TensorType(element, PartialShape(array.shape)), contents)


def _agree(shape: PartialShape, inferred: PartialShape, lengths: dict[Symbol, int]) -> bool:
    """Return whether a shape agrees with the inferred one; ``lengths`` collects the length of each symbol."""
    if shape.rank is None or inferred.rank is None:
        return True
    return shape.rank == inferred.rank and all(
        dim.is_dynamic
        or (
            expected.contains(dim.min)
            and (expected.symbol is None or _same(lengths, expected.symbol, dim.min))
        )
        for dim, expected in zip(shape, inferred, strict=True)
    )


def _same(lengths: dict[Symbol, int], symbol: Symbol, length: int) -> bool:
    return lengths.setdefault(symbol, length) == length
