"""The outputs of a model, and of its layers, as computed in f64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..api.model import Model
from ..api.names import find_ports
from ..ir.tensor import Array
from .decisions import decides, pinned
from .reference import Recorder, Reference, chained
from .tensors import name_of, ports_by_name

__all__ = ["Truth", "oracle"]


class Truth(Mapping[str, Array]):
    """Tensors in f64 by name: the outputs of the model, then the layers that were asked for.

    Outputs are also found by index.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> truth = debug.oracle(model, inputs, "y")
    >>> truth["y"].dtype
    dtype('float64')
    """

    def __init__(self, outputs: Sequence[tuple[str, Array]], layers: Mapping[str, Array]) -> None:
        self.outputs = [array for _, array in outputs]
        """The outputs of the model, in order."""
        self._tensors = {**dict(outputs), **layers}

    def __getitem__(self, key: int | str) -> Array:
        return self.outputs[key] if isinstance(key, int) else self._tensors[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"<Truth: {', '.join(self._tensors)}>"


def oracle(
    model: Model,
    inputs: Any,
    layers: str | Sequence[Any] = (),
    pin: Mapping[Any, Array] | None = None,
) -> Truth:
    """Compute a model in f64: numbers that it has in f32, f16 or bf16 are never rounded to these.

    Comparisons, roundings and selections may come out otherwise than in f32. To judge another execution, give its
    decisions as ``pin``.

    >>> import numpy as np, ir_runtime
    >>> model = ir_runtime.read_fragment('<layer id="0" type="Exp" version="opset1">'
    ...     '<input><port id="0"><dim>1</dim></port></input><output><port id="1"/></output></layer>')
    >>> oracle(model, [np.float32([1])]).outputs[0]
    array([2.71828183])

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        layers: further tensors to return: layer names, tensor names, globs or (layer name, output).
        pin: tensors by name, ``layer`` or ``layer:output``, of which those of deciding layers are taken over.

    Raises:
        InputError: if an input is missing, unknown, or has another type or shape; if a name is unknown.
        ExecutionError: if a layer fails on the data.
    """
    plain, wide = Reference(model), Reference(model, wide=True)
    asked = find_ports(plain.graph, [layers] if isinstance(layers, str) else layers)
    recorder = Recorder(asked)
    results = wide.run(wide.feeds(inputs), chained(pinned(_decisions(plain, pin or {})), recorder))
    outputs = [(port.label, np.array(array)) for port, array in zip(wide.outputs, results, strict=True)]
    found = recorder.tensors
    return Truth(outputs, {name_of(wide.graph, port): found[port] for port in asked if port in found})


def _decisions(plain: Reference, pin: Mapping[Any, Array]) -> dict[int, list[Array | None]]:
    """The outputs of deciding layers, among those that are given by name."""
    deciding = [layer for layer in plain.graph if decides(plain.graph, plain.types, layer)]
    names = {port: name for name, port in ports_by_name(plain.graph, deciding).items()}
    results = {port._port: key for key, port in enumerate(plain.outputs)}
    found = {}
    for layer in deciding:
        arrays = [_given(pin, names.get(port), results.get(port)) for port in layer.output_ports]
        if any(array is not None for array in arrays):
            found[layer.id] = arrays
    return found


def _given(pin: Mapping[Any, Array], name: str | None, output: int | None) -> Array | None:
    for key in (name, output):
        if key is not None and key in pin:
            return np.asarray(pin[key])
    return None
