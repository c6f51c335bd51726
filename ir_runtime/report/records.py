"""Collect the details of layers and constants that a report shows, as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from .._util.deadline import check
from .._util.escaping import shown
from ..analysis.cost import Cost
from ..analysis.shapes import Shapes
from ..diagnostics import Diagnostics
from ..ir.formula import Count
from ..ir.graph import IO_TYPES, PortSpec
from ..ops._define.describe import group
from .constants import Constants
from .items import PART_LABEL, Edge, Item, Scopes, body_path
from .names import module_of
from .text import dims, plain, tensor_name

__all__ = ["Record", "Records"]

Record: TypeAlias = dict[str, Any]


class Records:
    """The layers of a report, in order, except constants.

    Args:
        tree: the layers and their scopes.
        shapes: names for dynamic lengths.
        report: the findings.
        cost: the FLOPs of the layers, if they were counted.
        limit: the largest constant to include values of, in bytes.
        quick: skip the statistics of large constants.
    """

    def __init__(
        self,
        tree: Scopes,
        shapes: Shapes,
        report: Diagnostics,
        cost: Cost | None = None,
        limit: int | None = None,
        quick: bool = False,
    ) -> None:
        self._tree, listing = tree, tree.listing
        self.items = [item for item in listing.items if not item.is_constant]
        self.index = {item.index: number for number, item in enumerate(self.items)}
        """The number of each layer, by its place among all."""
        self.constants = Constants(listing, limit, quick)
        self._sources: dict[tuple[int, int], Edge] = {
            (edge.target, edge.input): edge for edge in listing.edges if not edge.back
        }
        self._named = {
            (row.line, row.layer, row.port): dims(row.shape) for row in shapes.ports if not row.is_input
        }
        layers = cost.layers if cost is not None else ()
        self._costs = {(each.within, each.layer.id): each for each in layers}
        self.findings = [_finding(each) for each in report]
        self._about: dict[str, list[int]] = {}
        for number, each in enumerate(report):
            if each.layer is not None:
                self._about.setdefault(each.layer, []).append(number)
        groups = [_group(item) for item in self.items]
        self.groups = sorted(set(groups))
        self._group_of = {name: number for number, name in enumerate(self.groups)}

    def nodes(self) -> list[Record]:
        """Return the layers as records for JSON."""
        return [self._node(item) for item in self.items]

    def edges(self) -> list[list[int]]:
        """Return the edges between layers: producer, output, consumer, input, and whether the value is loop-carried."""
        index = self.index
        return [
            [index[e.source], e.port, index[e.target], e.input, int(e.back)]
            for e in self._tree.listing.edges
            if e.source in index and e.target in index
        ]

    def scopes(self) -> list[Record]:
        """Return the scopes as records for JSON, the whole model first."""
        return [
            {
                "l": shown(scope.title), "p": scope.parent, "open": int(scope.open), "n": scope.size,
                "o": self.index.get(scope.owner, -1), "copies": scope.copies,
            }
            for scope in self._tree.scopes
        ]  # fmt: skip

    def layers_by_name(self) -> Mapping[str, int]:
        """Return the number of each layer outside of bodies, by name."""
        return {
            item.layer.name: number for number, item in reversed(list(enumerate(self.items))) if not item.base
        }

    def all_layers_by_name(self) -> Mapping[str, int]:
        """Return the number of each layer by name; for a duplicate name, a layer outside of bodies takes precedence."""
        inside = {item.layer.name: number for number, item in reversed(list(enumerate(self.items)))}
        return {**inside, **self.layers_by_name()}

    def layers_by_id(self) -> Mapping[int, int]:
        """Return the number of each layer outside of bodies, by id."""
        return {item.layer.id: number for number, item in enumerate(self.items) if not item.base}

    def own_values(self, overlay: Record) -> list[float]:
        """Return the value of each layer in an overlay, such as its time, without double counting.

        It is 0 if unknown, or if the value of a layer with bodies, such as a Loop, already includes it.

        Args:
            overlay: the record of a quantity with one value per layer, which colours the graph.
        """
        inclusive = bool(overlay.get("inclusive"))
        return [
            0 if inclusive and item.base else value or 0
            for item, value in zip(self.items, overlay["values"], strict=True)
        ]

    def readers_of_constant(self, id: int) -> list[int]:
        """Return the positions in `items` of the layers that read the constant with the given id, outside bodies."""
        constants = self.constants.items
        numbers = {number for number, item in enumerate(constants) if item.layer.id == id and not item.base}
        return [k for k, item in enumerate(self.items) if numbers & set(self.constants.of(item.index))]

    def cost_of(self, item: Item) -> Count | None:
        """Return the FLOPs of a layer per inference: a number, or a formula in dynamic lengths.

        A layer with bodies includes their layers; a layer in a body is multiplied by the maximum number of iterations.
        """
        cost = self._costs.get((self.within(item), item.layer.id))
        return None if cost is None or cost.flops is None or cost.runs is None else cost.flops * cost.runs

    def title(self, number: int) -> str:
        """Return the module path of a layer and its operation: ``features › 1 › Convolution``."""
        item = self.items[number]
        modules = [shown(label) for label in module_of(item) or self._scopes_around(item)]
        named = item.layer.type in IO_TYPES or not modules
        own = f"{shown(item.layer.name)} ({shown(item.layer.type)})" if named else shown(item.layer.type)
        return " › ".join([*modules, own])

    def title_of_copies(self, numbers: Sequence[int]) -> str:
        """Return one title for a layer and its copies, with a range for the number that differs."""
        first, last = (self.title(numbers[k]).split(" › ") for k in (0, -1))
        differing = [k for k, (one, other) in enumerate(zip(first, last, strict=False)) if one != other]
        if len(first) == len(last) and len(differing) == 1:
            place = differing[0]
            same = len(first[place].rstrip("0123456789"))
            first[place] += f"–{last[place].removeprefix(first[place][:same])}"
            return " › ".join(first)
        return f"{len(numbers)} × {' › '.join(first)}" if len(numbers) > 1 else " › ".join(first)

    def copies(self) -> list[list[int]]:
        """Group the numbers of all layers, each with its copies in repeated scopes."""
        copies: dict[int, list[int]] = {}
        for number, item in enumerate(self.items):
            copies.setdefault(self._tree.twins.get(item.index, item.index), []).append(number)
        return list(copies.values())

    def _scopes_around(self, item: Item) -> list[str]:
        """Return the labels of the scopes that contain a layer, outermost first."""
        labels: list[str] = []
        scope = self._tree.of[item.index]
        while scope > 0:
            label = self._tree.scopes[scope].label
            repeated = labels and (labels[-1].startswith(f"{label}.") or self._tree.scopes[scope].copies)
            if not repeated and not PART_LABEL.fullmatch(label):
                labels.append(label)
            scope = self._tree.scopes[scope].parent
        return labels[::-1]

    def within(self, item: Item) -> str:
        """Return the path of the bodies that contain a layer; empty for layers of the main graph."""
        return body_path(self._tree.listing, item)

    def count_findings(self, item: Item) -> int | None:
        """Return the number of findings on a layer; ``None`` for none."""
        return len(self._about.get(item.layer.name, ())) or None

    def _node(self, item: Item) -> Record:
        check(item.layer.where)
        layer = item.layer
        node: Record = {
            "n": shown(layer.name),
            "t": shown(layer.type),
            "v": shown(layer.where.operation or f"{layer.type} ({layer.version})"),
            "g": self._group_of[_group(item)],
            "s": self._tree.of[item.index],
            "id": layer.id,
            "line": layer.where.line,
            "d": self._note(item),
            "a": plain(layer.attributes),
            "i": [self._input(item, number, spec) for number, spec in enumerate(layer.inputs)],
            "o": [self._output(item, number, spec) for number, spec in enumerate(layer.outputs)],
        }
        optional = {
            "r": plain(layer.rt_info) if layer.rt_info else None,
            "c": self.constants.of(item.index),
            "h": int(item.is_shape),
            "b": self._tree.of[item.index] if item.bodies else None,
            "f": self._about.get(layer.name),
        }
        return node | {key: value for key, value in optional.items() if value}

    def _input(self, item: Item, number: int, spec: PortSpec) -> list[Any]:
        """Return the name of an input, its producer and output (or constant), and its declared type."""
        port = item.layer.op.port_of(number) if item.layer.op is not None else None
        name = shown(port.name if port is not None and port.name else f"{spec.id}")
        declared = None if spec.type is None else f"{spec.type.element.label} {dims(spec.type.shape)}"
        edge = self._sources.get((item.index, number))
        if edge is None:
            return [name, "", 0, declared]
        if edge.source in self.index:
            return [name, self.index[edge.source], edge.port, declared]
        return [name, f"c{self.constants.number(edge.source)}", edge.port, declared]

    def _output(self, item: Item, number: int, spec: PortSpec) -> list[Any]:
        """Return the row of an output: inferred element type, inferred shape, declared type and shape, and names.

        The first two are ``None`` if they could not be inferred, and the third if nothing else is declared. A fifth item, 1,
        marks a declaration that contradicts the inferred type or shape.
        """
        value = item.value(number)
        declared = None if spec.type is None else [spec.type.element.label, dims(spec.type.shape)]
        names = [shown(name) for name in spec.names]
        if value is None:
            return [None, None, declared, names]
        shape = self._named.get((spec.line or item.layer.where.line, item.layer.name, spec.id)) or dims(
            value.shape
        )
        if spec.type is None or declared == [value.element.label, dims(value.shape)]:
            return [value.element.label, shape, None, names]
        fits = spec.type.element.compatible(value.element) and spec.type.shape.compatible(value.shape)
        return [value.element.label, shape, declared, names, *([] if fits else [1])]

    def _note(self, item: Item) -> str:
        """Return a short text that distinguishes a layer: the name of an input or output, or constants and attributes."""
        if item.layer.type == "Parameter":
            return shown(item.layer.name)
        if item.layer.type == "Result":
            edge = self._sources.get((item.index, 0))
            source = self._tree.listing.items[edge.source].layer if edge is not None else item.layer
            names = source.outputs[edge.port].names if edge is not None and source.outputs else ()
            return shown(tensor_name(names, source.name))
        return " ".join(filter(None, (self.constants.note(item.index), _settings(item))))


def _settings(item: Item) -> str:
    """Return the attributes that the picture shows, such as kernel, strides or axis."""
    attributes = item.layer.attributes
    parts = []
    if kernel := attributes.get("kernel"):
        parts.append(kernel.replace(" ", "").replace(",", "×"))
    strides = attributes.get("strides", "").replace(" ", "")
    if strides and set(strides.split(",")) != {"1"}:
        parts.append(f"stride {strides.split(',')[0] if len(set(strides.split(','))) == 1 else strides}")
    if axis := attributes.get("axis"):
        parts += [f"axis {axis}"] if item.layer.type in ("Concat", "Softmax", "LogSoftmax", "Split") else []
    if item.layer.type == "Convert":
        parts.append(f"to {attributes.get('destination_type', '')}")
    return shown(", ".join(parts))


def _group(item: Item) -> str:
    """Return the group of a layer's operation in the specification."""
    layer = item.layer
    if layer.type in IO_TYPES:
        return "input or output"
    if layer.op is None:
        return "unknown"
    return group(type(layer.op)) or "custom"


def _finding(finding: Any) -> Record:
    record: Record = finding.record()
    return {
        key: plain(value) if isinstance(value, str) else value
        for key, value in record.items()
        if value is not None
    } | {"causes": [shown(str(cause)) for cause in finding.causes]}
