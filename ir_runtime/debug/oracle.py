"""Compute the outputs of a model, and of its layers, in f64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .._util.escaping import shown
from .._util.records import Record
from ..ir.graph import Port
from ..ir.tensor import Array
from ..openvino.model import Model
from ..openvino.names import find_ports
from .caching import entry_for
from .decisions import decides, pin_decisions
from .observation import NamedArrays
from .progress import STOPS, attach_partial
from .reference import Recorder, Reference, chain_changes, check_types, round_as_declared
from .resuming import Resumable
from .spilling import MemoryBudget, Tensors, budget_of, keeping
from .tensors import Names, name_of, ports_by_name

__all__ = ["Truth", "oracle"]


class Truth(Mapping[str, Array]):
    """Tensors in f64 by name: model outputs, followed by requested layers.

    Outputs can also be indexed by number.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> truth = debug.oracle(model, inputs, "y")
    >>> truth["y"].dtype
    dtype('float64')
    >>> sorted(truth.record())[:3]
    ['partial', 'schema', 'tensors']
    """

    def __init__(
        self,
        outputs: Sequence[tuple[str, Array]],
        layers: Mapping[str, Array],
        budget: MemoryBudget | None = None,
        partial: bool = False,
    ) -> None:
        self.outputs = [array for _, array in outputs]
        """The outputs of the model, in order."""
        self.partial = partial
        """Whether the run was interrupted, so that outputs and the last layers are missing."""
        self._named, self._layers = dict(outputs), layers
        self._budget = budget  # its files are deleted with it

    def __getitem__(self, key: int | str) -> Array:
        if isinstance(key, int):
            return self.outputs[key]
        return self._layers[key] if key in self._layers else self._named[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._named, *self._layers]))

    def __len__(self) -> int:
        return len({*self._named, *self._layers})

    def __repr__(self) -> str:
        return f"<Truth: {'partial: ' if self.partial else ''}{', '.join(self)}>"

    def __str__(self) -> str:
        lines = [f"{shown(name)} {array.dtype.name}{list(array.shape)}" for name, array in self.items()]
        if self.partial:
            lines.insert(0, "PARTIAL: the run was interrupted; these layers were computed")
        return "\n".join(lines)

    def record(self) -> Record:
        """Return a dict for JSON."""
        tensors = [{"name": name, "shape": list(array.shape)} for name, array in self.items()]
        return {"schema": 1, "partial": self.partial, "tensors": tensors}


def oracle(
    model: Model,
    inputs: object,
    layers: Names = (),
    pin: NamedArrays | None = None,
    types: str = "real",
) -> Truth:
    """Compute a model in f64, without rounding to its own f32, f16 or bf16.

    Results of comparisons, roundings and selections may differ from those in f32. To judge another execution, pass its
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
        pin: tensors of another execution by name, ``layer`` or ``layer:output``; results of deciding layers are taken from it.
        types: ``real``, or ``declared`` to round tensors that the model declares as f16 or bf16.

    Returns:
        the tensors. Those beyond the memory limit are files, which are deleted with the result.

    Raises:
        InputError: if an input is missing, unknown, or has another type or shape; if a name is unknown.
        ExecutionError: if a layer fails on the data.
    """
    check_types(types)
    plain, wide = Reference(model), Reference(model, wide=True)
    requested = find_ports(plain.graph, [layers] if isinstance(layers, str) else layers)
    budget = budget_of(model.limits)
    recorder = Recorder(requested, Tensors(budget))
    rounding = round_as_declared(plain.types) if types == "declared" else None
    feeds = wide.feeds(inputs)
    wide.check_memory(feeds)
    entry = None if pin else entry_for(f"oracle {types} {requested}", model, feeds, "reference")
    whole = Resumable(model, wide, feeds, entry)
    rest, feeds = whole.start(requested, recorder.tensors)
    change = chain_changes(pin_decisions(_decisions(plain, pin or {})), rounding, recorder, whole.note)
    tensors = recorder.tensors
    try:
        with keeping(budget):
            results = rest.run(feeds, change)
    except STOPS as reason:

        def partial() -> Truth:
            whole.save(tensors)
            ports_by_name = {name_of(wide.graph, port): port for port in tensors}
            return Truth([], _Named(ports_by_name, tensors), budget, partial=True)

        raise attach_partial(reason, partial) from None
    results.reverse()
    outputs = [(port.label, np.array(results.pop())) for port in wide.outputs]
    ports_by_name = {name_of(wide.graph, port): port for port in requested if port in tensors}
    return Truth(outputs, _Named(ports_by_name, tensors), budget)


class _Named(Mapping[str, Array]):
    """A mapping of names to kept tensors; spilled ones are memory-mapped on access."""

    def __init__(self, ports: Mapping[str, Port], tensors: Mapping[Port, Array]) -> None:
        self._ports, self._tensors = ports, tensors

    def __getitem__(self, name: str) -> Array:
        return self._tensors[self._ports[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._ports)


def _decisions(plain: Reference, pin: NamedArrays) -> dict[Port, Array]:
    """Return the pinned outputs of deciding layers."""
    deciding = [layer for layer in plain.graph if decides(plain.graph, plain.types, layer)]
    names = {port: name for name, port in ports_by_name(plain.graph, deciding).items()}
    results = {port._port: key for key, port in enumerate(plain.outputs)}
    ports = [port for layer in deciding for port in layer.output_ports]
    arrays = {port: _lookup(pin, names.get(port), results.get(port)) for port in ports}
    return {port: array for port, array in arrays.items() if array is not None}


def _lookup(pin: NamedArrays, name: str | None, output: int | None) -> Array | None:
    for key in (name, output):
        if key is not None and key in pin:
            return np.asarray(pin[key])
    return None
