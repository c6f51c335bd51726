"""Binding of the caller's arguments to the inputs of a model."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import InputError
from ..ir.tensor import Array
from .casting import as_array, describe, exact_type
from .names import find_index
from .node import Output
from .results import OVDict
from .tensor import Tensor

__all__ = ["Binder", "bind"]


class Binder:
    """Binds arguments to model inputs as `bind` does, with a fast path for arrays of the declared types.

    Args:
        ports: the inputs of the model.
        strict: refuse arrays of another element type instead of casting them.
    """

    def __init__(self, ports: Sequence[Output], strict: bool) -> None:
        self._ports, self._strict = ports, strict
        self._expected = [(*exact_type(port), port._type.shape) for port in ports]
        self._indices: dict[object, int] = {}
        for index, port in enumerate(ports):
            self._indices[index] = index
            for name in port.names:
                self._indices.setdefault(name, index)

    def bind(self, inputs: object, tensors: Sequence[Tensor | None] = ()) -> list[Array]:
        """Return one array for each input, in order.

        Args:
            inputs: the arguments.
            tensors: the tensors of the request, one or ``None`` per input.

        Raises:
            InputError: if an input is missing, unknown, given twice, or of the wrong type or shape.
        """
        values: Sequence[object] = ()
        if inputs is None:
            values = tensors
        elif type(inputs) is np.ndarray:
            values = (inputs,)
        elif type(inputs) is dict:
            values = self._order_values(inputs)
        elif type(inputs) is list or type(inputs) is tuple:
            values = inputs
        arrays = self.exact(values) if len(values) == len(self._ports) else None
        return bind(self._ports, inputs, tensors, self._strict) if arrays is None else arrays

    def exact(self, values: Sequence[object]) -> list[Array] | None:
        """Return the arrays of values in input order, or None if a value is missing or needs a conversion."""
        arrays: list[Array] = []
        for value, (dtype, element, lengths, shape) in zip(values, self._expected, strict=True):
            if type(value) is Tensor and value._element is element:
                value = value._data
            if type(value) is not np.ndarray or value.dtype is not dtype:
                return None
            if value.shape != lengths and not shape.contains(value.shape):
                return None
            arrays.append(value)
        return arrays

    def _order_values(self, inputs: Mapping[object, object]) -> Sequence[object]:
        """Return values given by index or tensor name in input order, None for missing ones.

        Returns an empty tuple if a key is unknown, of another type, or names an input twice.
        """
        values: list[object] = [None] * len(self._ports)
        for key, value in inputs.items():
            if type(key) is int or type(key) is str:
                index = self._indices.get(key)
                if index is not None and values[index] is None:
                    values[index] = value
                    continue
            return ()
        return values


def bind(
    ports: Sequence[Output], inputs: object, tensors: Sequence[Tensor | None] = (), strict: bool = False
) -> list[Array]:
    """Return one array for each input, in order.

    Args:
        ports: the inputs of the model.
        inputs: a mapping by index, name or port; a sequence by position; a single array, if there is one input; or ``None``.
        tensors: the tensors of the request, one or ``None`` per input, for inputs that ``inputs`` does not give.
        strict: refuse arrays of another element type instead of casting them.

    Raises:
        InputError: if an input is missing, unknown, given twice, or has another type or shape.
    """
    values: list[object] = list(tensors) if tensors else [None] * len(ports)
    placed = () if inputs is None else _place(ports, inputs, values)
    arrays = []
    for index, value in enumerate(values):
        if value is None and index not in placed:
            raise _missing_error(
                [port for i, port in enumerate(ports) if values[i] is None and i not in placed]
            )
        arrays.append(as_array(ports[index], value, strict))
    return arrays


def _missing_error(ports: Sequence[Output]) -> InputError:
    missing = "; ".join(map(describe, ports))
    count = "an input is" if len(ports) == 1 else f"{len(ports)} inputs are"
    return InputError(f"{count} missing: {missing}")


def _place(ports: Sequence[Output], inputs: object, values: list[object]) -> Collection[int]:
    """Store the arguments in ``values`` in input order, and return the indices of bound inputs."""
    if isinstance(inputs, OVDict):
        inputs = _as_sequence(ports, inputs)
    if isinstance(inputs, Mapping):
        placed: set[int] = set()
        for key, value in inputs.items():
            index = find_index(ports, _check_key(ports, key), "input")
            if index in placed:
                raise InputError(f"input {ports[index].label!r} is given twice")
            placed.add(index)
            values[index] = value
        return placed
    if isinstance(inputs, list | tuple) and not (len(ports) == 1 and _is_data(ports[0], inputs)):
        if len(inputs) > len(ports):
            raise InputError(f"got {len(inputs)} inputs, the model has {len(ports)}", hint=_all(ports))
        values[: len(inputs)] = inputs
        return range(len(inputs))
    if len(ports) != 1:
        raise InputError(f"got one array, the model has {len(ports)} inputs", hint=_all(ports))
    values[0] = inputs
    return (0,)


def _as_sequence(ports: Sequence[Output], results: OVDict) -> list[Array]:
    """Return the results of another model as a sequence to be bound by position, as in OpenVINO.

    Raises:
        InputError: if a result has the name of an input at another position.
    """
    for place, names in enumerate(results.names()):
        other = next((index for index, port in enumerate(ports) if port.names & names), place)
        if other != place:
            raise InputError(
                f"result {place} has the name of input {other}, {ports[other].label!r}",
                hint="results are bound by position: pass them by name, as in {name: results[name]}",
            )
    return list(results.to_tuple())


def _check_key(ports: Sequence[Output], key: object) -> int | str | Output:
    if isinstance(key, int | str | Output):
        return key
    raise ArgumentTypeError(
        f"{key!r} is not an input: expected an index, a name or a port",
        code=Code.NO_SUCH_NAME,
        hint=_all(ports),
    )


def _all(ports: Iterable[Output]) -> str:
    return "its inputs are " + ", ".join(map(describe, ports))


def _is_data(port: Output, values: Sequence[object]) -> bool:
    """Return whether a sequence is the data of the only input, as in ``compiled([1.0, 2.0])``, not a list of inputs."""
    if not values:
        return False
    if isinstance(values[0], list):
        return _is_table(port, values)
    scalar = port._type.shape.rank == 0 and len(values) == 1
    return not scalar and all(isinstance(v, numbers.Number | str | bytes) for v in values)


def _is_table(port: Output, rows: Sequence[object]) -> bool:
    """Return whether lists are the rows of the only input, not a list of inputs."""
    lists = [row for row in rows if isinstance(row, list)]
    width = len(lists[0]) if lists else 0
    if len(lists) != len(rows) or any(len(row) != width for row in lists):
        return False
    simple = all(isinstance(v, numbers.Number | str | bytes) for row in lists for v in row)
    return simple and port._type.shape.contains((len(lists), width))
