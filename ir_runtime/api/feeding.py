"""Find one value for each input of a model among what the caller gives."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..codes import Code
from ..errors import InputError
from ..ir.tensor import Array
from .casting import as_array, describe
from .names import find_port
from .nodes import Output
from .tensor import Tensor

__all__ = ["bind"]


def bind(
    ports: Sequence[Output], inputs: object, kept: Mapping[Output, Tensor], strict: bool = False
) -> list[Array]:
    """One array for each input, in order.

    Args:
        ports: the inputs of the model.
        inputs: a mapping by index, name or port; a sequence by position; the only array; or ``None``.
        kept: tensors that the request already holds.
        strict: refuse arrays of another element type than the input's, instead of casting them.

    Raises:
        InputError: if an input is missing, unknown, given twice, or has another type or shape.
    """
    given: dict[Output, object] = dict(kept)
    seen: set[Output] = set()
    for port, value in _pairs(ports, inputs):
        if port in seen:
            raise InputError(f"input {port.label!r} is given twice")
        seen.add(port)
        given[port] = value
    missing = [port for port in ports if port not in given]
    if missing:
        wanted = "; ".join(describe(port) for port in missing)
        count = "an input is" if len(missing) == 1 else f"{len(missing)} inputs are"
        raise InputError(f"{count} missing: {wanted}")
    return [as_array(port, given[port], strict) for port in ports]


def _pairs(ports: Sequence[Output], inputs: object) -> Iterator[tuple[Output, object]]:
    if inputs is None:
        return
    if isinstance(inputs, Mapping):
        for key, value in inputs.items():
            yield find_port(ports, _same(ports, key), "input"), value
    elif isinstance(inputs, list | tuple) and not (len(ports) == 1 and _is_data(ports[0], inputs)):
        if len(inputs) > len(ports):
            raise InputError(f"got {len(inputs)} inputs, the model has {len(ports)}", hint=_all(ports))
        yield from zip(ports, inputs, strict=False)
    elif len(ports) != 1:
        raise InputError(f"got one array, the model has {len(ports)} inputs", hint=_all(ports))
    else:
        yield ports[0], inputs


def _same(ports: Sequence[Output], key: object) -> int | str | Output:
    if isinstance(key, int | str | Output):
        return key
    raise InputError(
        f"{key!r} is not an input: expected an index, a name or a port",
        code=Code.NO_SUCH_NAME,
        hint=_all(ports),
    )


def _all(ports: Iterable[Output]) -> str:
    return "its inputs are " + ", ".join(map(describe, ports))


def _is_data(port: Output, values: Sequence[object]) -> bool:
    """Whether a sequence is itself the data, as in ``compiled([1.0, 2.0])``, and not one scalar for each input."""
    if not values:
        return False
    if isinstance(values[0], list):
        return _is_table(port, values)
    scalar = port._type.shape.rank == 0 and len(values) == 1
    return not scalar and all(isinstance(v, numbers.Number | str | bytes) for v in values)


def _is_table(port: Output, rows: Sequence[object]) -> bool:
    """Whether lists are the rows of the data, as OpenVINO takes them; else the first one is that of the only input."""
    lists = [row for row in rows if isinstance(row, list)]
    width = len(lists[0]) if lists else 0
    if len(lists) != len(rows) or any(len(row) != width for row in lists):
        return False
    simple = all(isinstance(v, numbers.Number | str | bytes) for row in lists for v in row)
    return simple and port._type.shape.contains((len(lists), width))
