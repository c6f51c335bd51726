"""`OVDict`, the results of a run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from ..executor.step import base_buffer_of
from ..ir.graph import Port
from ..ir.tensor import Array, TensorType
from .names import find_index
from .node import Output
from .shapes import PartialShape
from .tensor_data import as_text, encode_strings

__all__ = ["OVDict", "summarize_port", "unshare"]


class OVDict(Mapping[Output, Array]):
    """A read-only mapping of the outputs of a run by index, tensor name, layer name or port. As OpenVINO's ``OVDict``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> powers = opset1.exp(x)
    >>> powers.output(0).set_names({"powers"})
    >>> found = ov.compile_model(ov.Model([powers], [x]))(np.zeros(2, np.float32))
    >>> found[0], len(found)
    (array([1., 1.], dtype=float32), 1)
    >>> found.to_tuple()
    (array([1., 1.], dtype=float32),)
    >>> len(found.names()), list(found.to_dict().values())
    (1, [array([1., 1.], dtype=float32)])

    ``print`` shows the arrays, ``repr`` is OpenVINO's:

    >>> print(found)
    powers f32[2]
    [1. 1.]
    """

    def __init__(self, ports: Sequence[Output], arrays: Sequence[Array]) -> None:
        self._ports, self._arrays = tuple(ports), tuple(arrays)

    def __getitem__(self, key: int | str | Output) -> Array:
        if not isinstance(key, str | Output):  # negative indices count from the end, as in a tuple
            index = operator.index(key)
            key = index + len(self._ports) if index < 0 else index
        try:
            return self._arrays[find_index(self._ports, key, "output")]
        except RuntimeError as reason:
            raise KeyError(str(reason)) from None

    def __iter__(self) -> Iterator[Output]:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._ports)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, int | str | Output):
            return False
        try:
            return self[key] is not None
        except KeyError:
            return False

    def _with_strings(self, decode: bool) -> OVDict:
        """Return the results with strings as `str`, or as UTF-8 bytes unless ``decode``."""
        shown = as_text if decode else encode_strings
        return OVDict(self._ports, [shown(a) if a.dtype.hasobject else a for a in self._arrays])

    def names(self) -> tuple[set[str], ...]:
        """Return the tensor names of each output."""
        return tuple(port.names for port in self._ports)

    def to_dict(self) -> dict[Output, Array]:
        """Return the results as a dictionary by port."""
        return dict(zip(self._ports, self._arrays, strict=True))

    def to_tuple(self) -> tuple[Array, ...]:
        """Return the arrays as a tuple, in the order of the outputs."""
        return self._arrays

    def __reduce__(self) -> tuple[Callable[..., OVDict], tuple[object, ...]]:
        described = [(port._owner, port._type, port._names) for port in self._ports]
        return _restore, (described, self._arrays)

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def __str__(self) -> str:
        pairs = zip(self._ports, self._arrays, strict=True)
        return "\n".join(f"{summarize_port(port, array.shape)}\n{array}" for port, array in pairs)


def summarize_port(port: Output, shape: Sequence[int] | None = None) -> str:
    """Return the name, type and shape of a port as text, with its declared shape by default."""
    lengths = str(port._type.shape) if shape is None else f"[{','.join(map(str, shape))}]"
    return f"{port.label} {port.element_type.label}{lengths}"


def _restore(described: Sequence[tuple[str, TensorType, tuple[str, ...]]], arrays: Sequence[Array]) -> OVDict:
    """Unpickle or copy results. Their ports keep names and types, but belong to no model."""
    from .build.ends import Parameter
    from .const_ports import ConstOutput

    ports = []
    for place, (name, type, names) in enumerate(described):
        node = Parameter(type.element, PartialShape(type.shape))
        node.friendly_name = name
        ports.append(ConstOutput(node, 0, Port(place, 0), type, names))
    return OVDict(ports, arrays)


def unshare(
    arrays: Sequence[Array], shared: Sequence[Array], base_buffers: Collection[int] = ()
) -> list[Array]:
    """Return the arrays as contiguous writable arrays that share no memory, copied where necessary.

    A plan may return an input, a constant or a view of either, which the caller must not modify through the
    result.

    Args:
        arrays: the results of a plan.
        shared: the arrays whose memory must not be shared.
        base_buffers: other memory that must not be shared, as identified by `base_buffer_of`.
    """
    buffers = {id(array) if array.base is None else base_buffer_of(array) for array in shared}
    result = []
    for array in arrays:
        own = array if array.__class__ is np.ndarray else np.asarray(array)
        buffer, flags = id(own) if own.base is None else base_buffer_of(own), own.flags
        if not flags.c_contiguous or not flags.writeable or buffer in buffers or buffer in base_buffers:
            own = own.copy()
            buffer = id(own)
        buffers.add(buffer)
        result.append(own)
    return result
