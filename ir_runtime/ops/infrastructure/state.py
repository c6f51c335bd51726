"""Variables, which keep tensors between runs: ReadValue and Assign."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TypeAlias

import numpy as np

from ...errors import ExecutionError, InferenceError
from ...ir.element import ElementType
from ...ir.quantized_cache import Held, QuantizedCache
from ...ir.shape import PartialShape
from ...ir.tensor import Array, TensorType, Value
from .._define.operation import T_ANY, Input, Op, Output, attr, op

__all__ = ["Assign", "Assign3", "ReadValue", "ReadValue3", "Variables"]

Variables: TypeAlias = MutableMapping[str, Held]
"""The values of a request's variables; unset ones are absent."""


class _Stateful(Op):
    pure = False

    flops_per_element = 0

    variable_id: str = attr(doc="the name of the variable")


class _ReadValueBase(_Stateful):
    output = Output(T_ANY, "what the variable holds")

    def _read_value(self, variables: Variables, first: Array | None) -> Array:
        if (current := variables.get(self.variable_id)) is not None:
            return current.unpacked() if isinstance(current, QuantizedCache) else current
        if first is not None:
            return first
        type = self.declared
        if type is None or type.shape.rank is None or any(d.is_dynamic and d.min for d in type.shape):
            raise ExecutionError(
                f"variable {self.variable_id!r} is read before it has a value",
                hint="set it before the run, or give the ReadValue layer an input to start from",
                clause="a variable without initial value has a static shape, or is assigned before it is read",
            )
        return np.zeros([d.min for d in type.shape], type.element.dtype)

    @property
    def declared(self) -> TensorType | None:
        """The type of the variable, if the layer declares it."""
        return None


@op("ReadValue-3")
class ReadValue3(_ReadValueBase):
    """The value of a variable; ``initial_value`` if it is not set."""

    initial_value = Input(T_ANY, "what it holds at first")

    def infer(self, initial_value: Value) -> PartialShape:
        return initial_value.shape

    def evaluate(self, initial_value: Array, *, variables: Variables) -> Array:
        return self._read_value(variables, initial_value)


@op("ReadValue-6")
class ReadValue(_ReadValueBase):
    """The value of a variable; ``initial_value``, or zeros, if it is not set.

    Without an initial value, lengths that ``variable_shape`` leaves open are 0 at first, as in OpenVINO.
    """

    initial_value = Input(T_ANY, "what it holds at first; zeros if absent", optional=True)

    variable_type: ElementType = attr(ElementType.dynamic, doc="the element type of the variable")
    variable_shape: PartialShape = attr(PartialShape.dynamic(), doc="the shape of the variable")

    def infer(self, initial_value: Value | None = None) -> TensorType:
        if initial_value is None:
            return self.declared
        if not initial_value.shape.refines(self.variable_shape):
            raise InferenceError(
                f"initial_value has shape {initial_value.shape}, but attribute 'variable_shape' is {self.variable_shape}",
                hint="variable_shape must allow every shape that initial_value can have",
                clause="initial_value fits attribute 'variable_shape'",
            )
        return initial_value.type if self.variable_type is ElementType.dynamic else self.declared

    @property
    def declared(self) -> TensorType:
        """The declared type."""
        return TensorType(self.variable_type, self.variable_shape)

    def evaluate(self, initial_value: Array | None = None, *, variables: Variables) -> Array:
        return self._read_value(variables, initial_value)


class _AssignBase(_Stateful):
    new_value = Input(T_ANY, "what the variable holds from now on")
    output = Output(T_ANY, "the same tensor")

    has_side_effects = True

    def infer(self, new_value: Value) -> PartialShape:
        return new_value.shape

    def evaluate(self, new_value: Array, *, variables: Variables) -> Array:
        variables[self.variable_id] = new_value
        return new_value


@op("Assign-3")
class Assign3(_AssignBase):
    """Assign ``new_value`` to a variable, for the next run to read."""


@op("Assign-6")
class Assign(_AssignBase):
    """Assign ``new_value`` to a variable, for the next run to read."""
