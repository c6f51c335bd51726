"""Chains of element-wise operations, fused into one pass over the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ...._util.cached import cached_property
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops.quantization import FakeQuantize
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from .._backend import backend
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.recording import RECORD, is_recording
from ..threading.task import UNUSED
from ._activation_code import ActivationKind
from ._copy import MAX_SIZE, expanded
from ._elementwise_code import Opcode
from ._elementwise_ops import ELEMENTWISE_TYPES, ElementwiseOp, elementwise_op, numpy_function, outer_op
from ._elementwise_plan import OPERAND_SLOTS, Plan, make_plan
from ._epilogue import BF16, F32
from ._products import asked_products

__all__ = ["ElementwiseChain"]

# Results with fewer elements are computed by NumPy, whose calls are cheaper, unless a run is recorded or NumPy rounds
# otherwise; FakeQuantize takes some twenty calls.
MIN_SIZE = 1 << 11
MIN_QUANTIZED_SIZE = MIN_SIZE // 16
# Plans that a chain caches, one for each layout of inputs.
MAX_PLANS = 16
# Feature maps may be stored in bf16.
MAP_RANK = 4


# Kernels of one unary layer that are shared by layers with the same parameters.
MAX_SHARED = 256

_SHARED: dict[tuple[object, ...], Kernel] = {}
_Layout: TypeAlias = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True)
class ElementwiseChain(KernelTemplate):
    """A kernel of element-wise layers, the first of which takes ``arity`` inputs; of a ``small`` tensor, if its shape is static.

    Shapes that it does not support are left to the operations themselves. With ``bf16``, the result may be stored in bf16; if
    it ``rounds``, it is, and the data may be.
    """

    ops: tuple[ElementwiseOp, ...]
    arity: int
    bf16: bool = False
    rounds: bool = False
    small: bool = False
    _plans: dict[_Layout, Plan | None] = field(default_factory=dict, compare=False)

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> ElementwiseChain | None:
        """Return a kernel that also computes ``op``, or ``None``."""
        op_ = elementwise_op(op, inputs, place)
        if op_ is None or op_.paired + sum(known.paired for known in self.ops) > len(OPERAND_SLOTS):
            return None
        return replace(self, ops=(*self.ops, op_), _plans={})

    def reads_bf16(self, place: int) -> bool:
        """Return whether an input may be stored in bf16."""
        return self.rounds and place == self.ops[0].place

    def storing_bf16(self) -> ElementwiseChain | None:
        """Return a kernel that stores its result in bf16, or ``None``."""
        return replace(self, rounds=True, _plans={}) if self.bf16 else None

    @cached_property
    def _read(self) -> list[int]:
        """Return the indices of the data and of the operands that are not constant."""
        places, start = [self.ops[0].place], 0
        for index, op_ in enumerate(self.ops):
            if op_.paired:
                places.append(1 - op_.place if index == 0 else start)
            start += self.arity if index == 0 else op_.inputs
        return places

    @cached_property
    def _left_to_numpy(self) -> bool:
        """Whether NumPy computes the same as fast: a few numbers, unless a run is recorded."""
        exact = (*range(Opcode.MOD), Opcode.ACTIVATION + ActivationKind.CLAMP)
        return self.small and all(op_.code in exact for op_ in self.ops)

    def prepare(self) -> Kernel:
        """Return the kernel; for few numbers, one that is called faster."""
        if not self._left_to_numpy:
            return Kernel(self._compute, accepts=any_lengths, replay=replayed())
        if len(self.ops) > 1 or self.ops[0].paired or self.ops[0].planes:
            return self._for_few(self._op_by_op)
        (only,) = self.ops
        key = (type(only.op), only.code, only.parameters, self.arity)
        if key not in _SHARED:
            if len(_SHARED) >= MAX_SHARED:
                _SHARED.clear()
            _SHARED[key] = self._for_few(numpy_function(only.op))
        return _SHARED[key]

    def _for_few(self, run: Callable[..., Array]) -> Kernel:
        """Return a function that computes by ``run``, unless a run is recorded."""

        def kernel(*arrays: Array) -> Array:
            return self._compute(*arrays) if is_recording() else run(*arrays)

        return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))

    def _compute(self, *arrays: Array) -> Array:
        read = [arrays[place] for place in self._read]
        key = tuple((array.shape, array.strides) for array in read)
        try:
            plan = self._plans[key]
        except KeyError:
            plan = self._remember(key, read)
        if plan is None:
            whole = None if RECORD.get() is None else self._expanded(*arrays)
            return self._op_by_op(*arrays) if whole is None else self._compute(*whole)
        out = empty(plan.shape, BF16 if self.rounds else F32)
        source, first, second = (*plan.read(read), UNUSED, UNUSED)[:3]
        parallel_for(plan.task.address, plan.job, out, source, first, second, threads() if plan.large else 1)
        return out.transpose(plan.back)

    def _remember(self, key: _Layout, read: Sequence[Array]) -> Plan | None:
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        plan = self._plans[key] = make_plan(self.ops, read, self.rounds)
        return plan

    def _expanded(self, *arrays: Array) -> list[Array] | None:
        """Return the inputs, the first operands as large as their result, if few and recorded: NumPy would end the replay."""
        first, place = arrays[: self.arity], self.ops[0].place
        shapes = [array.shape for array in first]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            return None  # which the operation says better
        if shape == shapes[place] or not 0 < math.prod(shape) <= MAX_SIZE or not is_recording():
            return None
        whole = expanded(first[place], shape) if first[place].dtype == F32 else None
        return None if whole is None else [*arrays[:place], whole, *arrays[place + 1 :]]

    def _op_by_op(self, *arrays: Array) -> Array:
        """Evaluate the operations one by one: for operands that broadcast the result or need too many axes."""
        first = self.ops[0]
        found: Array = numpy_function(first.op)(
            *(array.astype(F32) if array.dtype == BF16 else array for array in arrays[: self.arity])
        )
        start = self.arity
        for op_ in self.ops[1:]:
            inputs = list(arrays[start : start + op_.inputs])
            inputs.insert(op_.place, found)
            found, start = numpy_function(op_.op)(*inputs), start + op_.inputs
        return np.asarray(found, BF16 if self.rounds else None)


@backend.accelerates(*ELEMENTWISE_TYPES)
def elementwise(op: Operation, *inputs: Value) -> KernelTemplate | None:
    """f32, if the result has the shape of one input."""
    for place in range(min(len(inputs), 3)):
        shape = inputs[place].shape
        if inputs[place].known() is not None or shape.rank == 0:
            continue
        small = shape.is_static and math.prod(shape.static) < MIN_SIZE
        if small and isinstance(op, FakeQuantize) and math.prod(shape.static) < MIN_QUANTIZED_SIZE:
            continue
        if (op_ := elementwise_op(op, inputs, place)) is not None:
            is_map = shape.rank == MAP_RANK and not small
            return ElementwiseChain((op_,), len(inputs), is_map and asked_products().is_faster, small=small)
    return _outer(op, inputs)


def _outer(op: Operation, inputs: Sequence[Value]) -> KernelTemplate | None:
    """Return a kernel for two operands that may both broadcast, as positions and frequencies do, or the larger one is constant."""
    if len(inputs) != 2 or any(not x.shape.rank for x in inputs):
        return None
    op_ = outer_op(op, inputs)
    if op_ is None:
        return None
    shapes = [x.shape.static for x in inputs if x.shape.is_static]
    small = len(shapes) == 2 and math.prod(np.broadcast_shapes(*shapes)) < MIN_SIZE
    return ElementwiseChain((op_,), 2, small=small)
