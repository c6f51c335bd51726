"""Compare two models as graphs, regardless of layer names and ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from .._util.escaping import quoted, shown
from .._util.markup import Shown
from .._util.records import Record
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array
from ..openvino.model import Model
from .matching import Matching, attributes_of, match

__all__ = ["Change", "Difference", "diff", "diff_with_pairs"]


@dataclass(frozen=True)
class Change:
    """A single difference between two models.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> old = ov.Model([opset1.exp(x, name="y")], [x])
    >>> z = opset1.parameter([2], np.float32, name="x")
    >>> new = ov.Model([opset1.relu(opset1.exp(z, name="y"), name="z")], [z])
    >>> [change.kind for change in debug.diff(old, new).changes]
    ['inputs', 'added']
    >>> debug.diff(old, new).changes[0].record()["kind"]
    'inputs'

    Args:
        kind: ``added``, ``removed``, ``attribute``, ``inputs``, ``shape``, ``weights``, ``version`` or ``order``.
        layer: the name of the layer, in the old model if it exists there.
        operation: the operation of the layer.
        what: a description of the change.
        amount: for weights, the RMS of the difference divided by the RMS of the old weights.
    """

    kind: str
    layer: str
    operation: str
    what: str = ""
    amount: float | None = None

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "kind": self.kind, "layer": self.layer, "operation": self.operation, "what": self.what,
            "amount": self.amount,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.kind:9} {quoted(self.layer)} ({self.operation})" + (
            f": {shown(self.what)}" if self.what else ""
        )


@dataclass(frozen=True)
class Difference(Shown):
    """All differences between two models, in the order of the old one.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> old = ov.Model([opset1.exp(x, name="y")], [x])
    >>> z = opset1.parameter([2], np.float32, name="x")
    >>> new = ov.Model([opset1.relu(opset1.exp(z, name="y"), name="z")], [z])
    >>> debug.diff(old, old.clone()).changes
    ()
    >>> found = debug.diff(old, new)
    >>> found.summary, len(found.record()["changes"])
    ('3 layers are in both models, 1 of them renamed', 2)

    Args:
        changes: the differences.
        same: the number of layers in both models.
        renamed: the number of these with another name, which does not count as a change.
    """

    changes: tuple[Change, ...]
    same: int
    renamed: int

    def __bool__(self) -> bool:
        return bool(self.changes)

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": 1, "changes": [change.record() for change in self.changes], "same": self.same,
            "renamed": self.renamed,
        }  # fmt: skip

    @property
    def summary(self) -> str:
        """The number of layers in both models, and of renamed ones, as text."""
        return f"{self.same} layers are in both models" + (
            f", {self.renamed} of them renamed" if self.renamed else ""
        )

    def __str__(self) -> str:
        lines = [str(change) for change in self.changes] or ["no change"]
        return "\n".join([*lines, self.summary])


def diff(old: Model, new: Model) -> Difference:
    """Compare two models as graphs: layers are matched by structure and names, not by ids.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> old = ov.Model([opset1.exp(x, name="y")], [x])
    >>> z = opset1.parameter([2], np.float32, name="x")
    >>> new = ov.Model([opset1.relu(opset1.exp(z, name="y"), name="z")], [z])
    >>> print(debug.diff(old, new).changes[-1])
    added     'z' (ReLU-1)

    Args:
        old: the old model.
        new: the new model.

    Returns:
        the changes of layers, attributes, connections, shapes and weights; true if there are any.
    """
    return diff_with_pairs(old, new)[0]


def diff_with_pairs(old: Model, new: Model) -> tuple[Difference, Mapping[int, int]]:
    """Compare two models; also return the ids of matched layers, new by old."""
    ours, theirs = old._runnable(), new._runnable()
    matching = match(ours._graph, theirs._graph)
    changes = list(_all_changes(matching))
    for a, b in matching.pairs.items():
        changes += _shapes(ours, theirs, matching.old[a], matching.new[b])
    changes += _order(matching, "Parameter")
    changes += _order(matching, "Result")
    order = {layer.name: index for index, layer in enumerate(matching.old)}
    changes.sort(key=lambda change: order.get(change.layer, len(order)))
    renamed = sum(matching.old[a].name != matching.new[b].name for a, b in matching.pairs.items())
    return Difference(tuple(changes), len(matching.pairs), renamed), matching.pairs


def _order(matching: Matching, type: str) -> Iterator[Change]:
    """Yield the inputs or outputs whose position changed."""
    old = [layer for layer in matching.old.of_type(type) if layer.id in matching.pairs]
    place = {layer.id: index for index, layer in enumerate(matching.new.of_type(type))}
    places = [place[matching.pairs[layer.id]] for layer in old]
    if places != sorted(places):
        for index, (layer, now) in enumerate(zip(old, places, strict=True)):
            if index != now:
                yield Change("order", layer.name, layer.operation, f"was number {index}, is number {now}")


def _all_changes(matching: Matching) -> Iterator[Change]:
    """Yield the changes between two graphs, including those in bodies."""
    yield from (Change("removed", layer.name, layer.operation) for layer in matching.removed)
    yield from (Change("added", layer.name, layer.operation) for layer in matching.added)
    for a, b in matching.pairs.items():
        yield from _changes(matching, matching.old[a], matching.new[b])


def _changes(matching: Matching, a: Layer, b: Layer) -> Iterator[Change]:
    operation = a.operation
    if b.operation != operation:
        yield Change("version", a.name, operation, f"{operation} is now {b.operation}")
    before, after = attributes_of(a), attributes_of(b)
    for name in sorted(before.keys() | after.keys()):
        if (x := before.get(name)) != (y := after.get(name)) and not _is_body(a, name):
            yield Change("attribute", a.name, operation, f"{name} was {x or 'missing'}, is {y or 'missing'}")
    if rewired := [str(index) for index, same in enumerate(_same_sources(matching, a, b)) if not same]:
        yield Change("inputs", a.name, operation, f"input {', '.join(rewired)} reads another layer")
    if a.type == "Constant" and b.type == "Constant" and (change := _weights(a, b)) is not None:
        yield change
    for name, ours, theirs in _body_pairs(a, b):
        for change in _all_changes(match(ours, theirs)):
            yield replace(change, layer=f"{a.name}/{name}/{change.layer}")


def _is_body(layer: Layer, name: str) -> bool:
    return any(body.name == name for body in layer.bodies())


def _body_pairs(a: Layer, b: Layer) -> Iterator[tuple[str, Graph, Graph]]:
    theirs = {body.name: body.graph for body in b.bodies()}
    return ((body.name, body.graph, theirs[body.name]) for body in a.bodies() if body.name in theirs)


def _same_sources(matching: Matching, a: Layer, b: Layer) -> Iterator[bool]:
    ours, theirs = matching.old.sources(a), matching.new.sources(b)
    for index in range(max(len(ours), len(theirs))):
        x, y = (ports[index] if index < len(ports) else None for ports in (ours, theirs))
        if x is None or y is None:
            yield x is y
        else:
            partner = matching.pairs.get(x.layer)
            yield partner is None or (partner == y.layer and x.number == y.number)


def _weights(a: Layer, b: Layer) -> Change | None:
    before, after = _contents(a), _contents(b)
    if before.shape != after.shape or before.dtype != after.dtype:
        return Change("weights", a.name, a.operation, f"{_type(before)} is now {_type(after)}")
    if before.tobytes() == after.tobytes():
        return None
    differ = before != after
    if before.dtype.kind not in "fiub":
        return Change("weights", a.name, a.operation, f"{int(differ.sum())} of {before.size} elements differ")
    x, y = before.astype(np.float64), after.astype(np.float64)
    off = float(np.sqrt(np.mean(np.square(x - y))))
    size = float(np.sqrt(np.mean(np.square(x))))
    amount = off / size if size else float("inf")
    count, largest = int(differ.sum()), float(np.abs(x - y).max())
    what = f"{count} of {before.size} elements differ, by {largest:.2g} at most, {amount:.1e} of their rms"
    return Change("weights", a.name, a.operation, what, amount)


def _contents(layer: Layer) -> Array:
    assert layer.op is not None
    return np.asarray(layer.op.evaluate())


def _type(array: Array) -> str:
    return f"{array.dtype.name}{list(array.shape)}"


def _shapes(old: Model, new: Model, a: Layer, b: Layer) -> Iterator[Change]:
    """Yield changes of output shapes and types that do not follow from changed inputs."""
    if a.type == "Constant":
        return
    for x, y in zip(a.output_ports, b.output_ports, strict=False):
        before, after = old._values[x].type, new._values[y].type
        if str(before) != str(after):
            yield Change("shape", a.name, a.operation, f"{before} is now {after}")
