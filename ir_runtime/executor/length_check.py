"""Check lengths before a kernel runs, if they were dynamic when it was chosen.

A kernel of a backend may follow addresses, and NumPy broadcasts where many operations want equal lengths, so a wrong
length must be refused before a kernel starts. Three facts
make that certain, whatever a kernel does:

* What enters a plan has the inferred type: inputs, variables, the inputs and results of bodies, and what
  operations from outside this package compute are each checked against it (`output_contract`).
* A step whose inputs have known lengths needs no look at them: inference has accepted these very lengths.
* Any other step is checked here. Inference must accept the lengths of the arrays as it accepted the open ones,
  and no length may contradict what was known when the kernel was chosen. Shapes that were accepted are
  remembered, so that a run costs one look-up for each step.

References of operations that refuse wrong lengths themselves (`Op.refuses_lengths`) need no check. Nor do kernels that
accept `any_lengths`: they give what the reference gives for all lengths, or refuse. Other kernels may say in ``accepts`` which lengths suit them for
certain; inference is asked about the rest. That is for lengths that grow with every run.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from ..analysis.expected import Expected, RefusedInputError
from ..backends import Accepts, Compute, Kernel, any_lengths
from ..errors import ExecutionError
from ..ir.dimension import Symbol
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value

__all__ = ["LengthCheck", "checked"]

# Shapes that a step remembers as accepted.
REMEMBERED = 64


def checked(kernel: Kernel, check: LengthCheck) -> Kernel:
    """Return a kernel that refuses the lengths that inference refuses."""
    unknown = [index for index, type in enumerate(check.reads) if type.shape.is_dynamic]
    if not unknown or kernel.accepts is any_lengths:
        return kernel
    return kernel.wrapped(_checking(kernel.whole, check, unknown, kernel.accepts))


def _checking(run: Compute, check: LengthCheck, unknown: Sequence[int], accepts: Accepts | None) -> Compute:
    """Return a function that checks lengths first."""
    if accepts is not None:
        return _by_itself(run, check, accepts)
    return _of_one(run, check, unknown[0]) if len(unknown) == 1 else _of_several(run, check, unknown)


def _of_one(run: Compute, check: LengthCheck, index: int) -> Compute:
    accepted = check.accepted

    def checking(*arrays: Array) -> Array | tuple[Array, ...]:
        if (shape := arrays[index].shape) not in accepted:
            check.accept(arrays, shape)
        return run(*arrays)

    return checking


def _of_several(run: Compute, check: LengthCheck, unknown: Sequence[int]) -> Compute:
    accepted = check.accepted

    def checking(*arrays: Array) -> Array | tuple[Array, ...]:
        shapes = tuple([arrays[index].shape for index in unknown])
        if shapes not in accepted:
            check.accept(arrays, shapes)
        return run(*arrays)

    return checking


def _by_itself(run: Compute, check: LengthCheck, accepts: Accepts) -> Compute:
    def checking(*arrays: Array) -> Array | tuple[Array, ...]:
        if not accepts(*arrays):
            check.accept(arrays)
        return run(*arrays)

    return checking


@dataclass(frozen=True, slots=True, eq=False)
class LengthCheck:
    """The facts about a step when its kernel was chosen.

    Args:
        expected: the inference of its layers.
        reads: the types of its inputs.
        contents: the contents of inputs fixed in the plan, or ``None``.
        made: the result types of each layer.
    """

    expected: Expected
    reads: tuple[TensorType, ...]
    contents: tuple[Array | None, ...]
    made: tuple[tuple[TensorType, ...], ...]
    accepted: set[Hashable] = field(default_factory=set)
    """Shapes of the inputs of unknown lengths that were accepted before."""

    def accept(self, arrays: Sequence[Array], key: Hashable = None) -> None:
        """Check the lengths of the inputs, and cache them by ``key`` unless it is ``None``.

        Raises:
            RefusedInputError: if a layer refuses the inputs; it names the layer.
        """
        lengths: dict[Symbol, int] = {}
        for array, type in zip(arrays, self.reads, strict=True):
            self._compare(PartialShape(array.shape), type, lengths)
        results = self.expected.results(list(map(_value, arrays, self.expected.elements, self.contents)))
        for types, made in zip(results, self.made, strict=True):
            for result, type in zip(types, made, strict=False):
                self._compare(result.shape, type, lengths)
        if key is not None:
            if len(self.accepted) >= REMEMBERED:
                self.accepted.clear()
            self.accepted.add(key)

    def _compare(self, shape: PartialShape, type: TensorType, lengths: dict[Symbol, int]) -> None:
        """Compare the shape of a tensor with the expected type."""
        if not _agree(shape, type.shape, lengths):
            reason = ExecutionError(
                f"expected {type.shape}, as was inferred, got {shape}",
                hint="a layer before it computes something else than the file says",
            )
            raise RefusedInputError(self.expected.layers[-1], reason)


def _value(array: Array, element: ElementType, contents: Array | None) -> Value:
    """Return the value visible to inference: contents only if equal in every run."""
    if element is ElementType.dynamic:
        element = ElementType.from_dtype(array.dtype)
    return Value(TensorType(element, PartialShape(array.shape)), contents)


def _agree(shape: PartialShape, known: PartialShape, lengths: dict[Symbol, int]) -> bool:
    """Return whether a shape is possible; ``lengths`` collects the lengths of symbols."""
    if shape.rank is None or known.rank is None:
        return True
    return shape.rank == known.rank and all(
        dim.is_dynamic
        or (
            expected.contains(dim.min)
            and (expected.symbol is None or _same(lengths, expected.symbol, dim.min))
        )
        for dim, expected in zip(shape, known, strict=True)
    )


def _same(lengths: dict[Symbol, int], symbol: Symbol, length: int) -> bool:
    return lengths.setdefault(symbol, length) == length
