"""OpenVINO's CPU plugin as a side, observed without changing its results.

An additional output may change the computation: it splits fused nodes, and in bf16 the layers after the last product run
in f32. So only tensors between execution nodes are observed, each through a multiplication by 1 that has no other
consumer. Observations count only if the outputs are bitwise equal to those of the unmodified model, with the same node
precisions. Otherwise, the tensors are bisected until only observable ones remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..bench import openvino_process as process
from ..bench.openvino_process import Node as ReportedNode
from ..codes import Code
from ..compiler.widen import has_f16
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Graph, Port
from ..ir.pages import let_go
from ..ir.tensor import Array
from ..openvino.saving import save_model
from .decisions import find_decision_dependents
from .observation import Observation, Side, observe_faithfully, same_bits
from .precision import is_move
from .reference import Reference
from .tensors import computed_layers, is_float

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["OpenVINO"]

TRIES = 80
"""The most compilations with probes."""
HINTS = ("f32", "bf16", "f16")
DEFAULT = "default"


@dataclass(frozen=True)
class OpenVINO:
    """A side that runs OpenVINO's CPU plugin.

    Args:
        hint: the requested precision: ``f32`` (the default), ``bf16`` or ``f16``, without quantization of activations and
            caches; ``default`` uses the plugin's defaults.
        threads: the number of threads; 0 uses the plugin's default.
        fused: if False, every tensor is an output, which prevents fusion.
        changed: plugin properties to override.
    """

    hint: str = "f32"
    threads: int = 0
    fused: bool = True
    changed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hint", self.hint or "f32")
        if self.hint not in (*HINTS, DEFAULT):
            message = f"unknown precision {self.hint!r}"
            raise InputError(
                message, code=Code.NO_SUCH_NAME, hint=f"expected {', '.join(HINTS)} or {DEFAULT}"
            )

    @property
    def config(self) -> dict[str, str]:
        """The properties to compile the model with."""
        exact = {
            "INFERENCE_PRECISION_HINT": self.hint,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
            "KV_CACHE_PRECISION": self.hint,
        }
        properties = {} if self.hint == DEFAULT else exact
        if self.threads:
            properties["INFERENCE_NUM_THREADS"] = str(self.threads)
        return {**properties, **self.changed}

    def variants(self) -> dict[str, Side]:
        """Return variants of the side: with more exact properties, with one thread, and without fusion."""
        exact = OpenVINO().config
        settings = {
            f"with {name}={value}": OpenVINO(self.hint, changed={name: value})
            for name, value in exact.items()
            if self.config.get(name) != value
        }
        return {
            **settings,
            "with one thread": OpenVINO(self.hint, threads=1),
            "without fusion": OpenVINO(self.hint, fused=False),
        }

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the model as it is, then with probes on intermediate tensors.

        Raises:
            InputError: if OpenVINO is not installed, cannot run the model, or its process ends.
        """
        with TemporaryDirectory() as folder:
            probing = _Probing(self, _save(model, folder), reference, feeds)
            ports_between = _boundaries(reference, ports, probing.alone.node_of)
            if probing.is_narrow:
                ports_between = _observable(reference, ports_between, *probing.nodes)
            widens = not probing.runs_f16 and has_f16(reference.graph, reference.types)
            tensors = _outputs(reference, ports_between, probing.alone)
            if widens:  # outputs are rounded, while the probes see unrounded values
                tensors = {port: array for port, array in tensors.items() if array.dtype != np.float16}
            unobserved = [port for port in ports_between if port not in tensors]
            if probing.is_narrow:  # layers before an integer output would run in f32
                unobserved = [port for port in unobserved if is_float(reference.types, port)]
            tensors |= probing.observe(unobserved)
        return Observation(
            name="openvino",
            outputs=probing.alone.outputs,
            tensors=tensors,
            asked="" if self.hint == DEFAULT else self.hint,
            ran=probing.alone.precisions,
            unobserved=tuple(port for port in ports_between if port not in tensors),
            wide=_find_wide(reference, *probing.nodes) if probing.is_narrow else (),
            held=_find_held(reference, *probing.nodes) if probing.is_narrow else (),
            f16_in_f32=widens,
            settings=probing.alone.settings,
        )


def _outputs(reference: Reference, wanted: Sequence[Port], alone: _Execution) -> dict[Port, Array]:
    """Return the requested tensors that are model outputs, from the unmodified run."""
    outputs = zip(reference.outputs, alone.outputs, strict=True)
    return {port._port: array for port, array in outputs if port._port in set(wanted)}


def _save(model: Model, folder: str) -> str:
    path = str(Path(folder) / "model.xml")
    save_model(model, path, compress_to_fp16=False)
    for layer in model._graph.of_type("Constant"):  # OpenVINO maps and packs them again
        if layer.op is not None:
            let_go(np.asarray(layer.op.evaluate()))
    return path


@dataclass(frozen=True)
class _Execution:
    """The results of compiling and running the model once.

    Args:
        outputs: the outputs of the model.
        tensors: the tensors observed by probes.
        node_of: the execution node of each layer that a node names.
        nodes: the execution nodes by name.
        precisions: the precisions of product nodes, or of all nodes.
        settings: the settings of the run.
    """

    outputs: list[Array]
    tensors: dict[Port, Array]
    node_of: dict[str, str]
    nodes: dict[str, _Node]
    precisions: tuple[str, ...]
    settings: Mapping[str, str]


class _Probing:
    def __init__(self, side: OpenVINO, path: str, reference: Reference, feeds: Sequence[Array]) -> None:
        self._side, self._path, self._reference, self._feeds = side, path, reference, feeds
        self._names = {layer.name for layer in reference.graph}
        self.is_narrow = False
        """Whether it computes in bf16 or f16."""
        layers = () if side.fused else computed_layers(reference.graph)
        self.alone = self._run([port for layer in layers for port in layer.output_ports])
        self.is_narrow = bool({"bf16", "f16"} & set(self.alone.precisions))
        self.runs_f16 = "f16" in self.alone.precisions
        """Whether it computes in f16, which most processors do not: they compute that in f32."""

    @property
    def nodes(self) -> tuple[Mapping[str, str], Mapping[str, _Node]]:
        """The execution node of each layer that a node names, and the nodes by name, in the unmodified run."""
        return self.alone.node_of, self.alone.nodes

    def observe(self, ports: Sequence[Port]) -> dict[Port, Array]:
        """Observe the tensors that can be observed without changing the results."""

        def look(wanted: Sequence[Port]) -> Mapping[Port, Array] | None:
            try:
                run = self._run(wanted)
            except InputError:  # the plugin may fail on a model with probes
                return None
            return run.tensors if self._is_faithful(run) else None

        return observe_faithfully(ports, look, TRIES)

    def _is_faithful(self, run: _Execution) -> bool:
        if not same_bits(run.outputs, self.alone.outputs):
            return False
        return not self.is_narrow or self._computing_nodes(self.alone) <= self._computing_nodes(run)

    def _computing_nodes(self, run: _Execution) -> set[tuple[str, tuple[str, ...], str]]:
        """Return the computing nodes of a run, identified by type, layers and precision, as the plugin's node names vary."""
        nodes = set()
        for node in run.nodes.values():
            layers = tuple(sorted(self._names.intersection(node.members)))
            if layers and node.type not in _TRANSPORT:
                nodes.add((node.type, layers, node.precision))
        return nodes

    def _run(self, ports: Sequence[Port]) -> _Execution:
        try:
            return self._run_probes(ports)
        except process.Failed as reason:
            if reason.missing:
                raise InputError(
                    "OpenVINO is not installed", code=Code.BAD_REQUEST, hint="pip install openvino"
                ) from None
            raise InputError(f"OpenVINO does not run the model: {reason}", code=Code.BAD_REQUEST) from None
        except process.Died as reason:
            raise InputError(
                f"OpenVINO's process ended with {reason} while it ran the model",
                code=Code.BAD_REQUEST,
                hint="the fault is in OpenVINO, not in this comparison; 'ir-runtime bisect' finds the layer",
            ) from None

    def _run_probes(self, ports: Sequence[Port]) -> _Execution:
        feeds = [np.asarray(feed, order="C") for feed in self._feeds]
        probes = [self._probe(port) for port in ports]
        config = {**self._side.config, "CACHE_DIR": ""}
        ran = process.run(process.Job(self._path, config, feeds, probes))
        tensors = {port: array for port, array in zip(ports, ran.seen, strict=True) if array is not None}
        nodes, node_of = _nodes_of(ran.nodes)
        settings = {"version": ran.version.partition("-")[0], **ran.settings}
        return _Execution(ran.outputs, tensors, node_of, nodes, _precisions_of(nodes), settings)

    def _probe(self, port: Port) -> process.Probe:
        """Return the probe of a tensor; it observes a multiplication by 1 if the plugin rounds at the ends of nodes."""
        types = self._reference.types
        return process.Probe(
            layer=self._reference.graph[port.layer].name,
            output=port.number,
            widens=types[port].element is ElementType.f16,  # values computed in f32 are not rounded to f16
            product=self.is_narrow and is_float(types, port),
        )


_TRANSPORT = ("Const", "Input", "Output", "Reorder")


class _Node(NamedTuple):
    """An execution node of the plugin: its type, layers, precision, and the precision of its first result."""

    type: str
    members: tuple[str, ...]
    precision: str
    result: str


def _boundaries(reference: Reference, ports: Sequence[Port], node_of: Mapping[str, str]) -> list[Port]:
    """Return the tensors that leave an execution node."""
    graph, nodes = reference.graph, _nodes_by_layer(reference.graph, node_of)
    outputs = {port._port for port in reference.outputs}
    return [
        port
        for port in ports
        if port in outputs or any(nodes[r.layer] != nodes[port.layer] for r in graph.readers(port))
    ]


def _nodes_by_layer(graph: Graph, node_of: Mapping[str, str]) -> dict[int, str]:
    """Return the execution node of each layer, by id; layers that no node names belong to the node of their consumer."""
    nodes: dict[int, str] = {}
    for layer in reversed(graph.order):
        readers = {
            nodes.get(reader.layer, "") for port in layer.output_ports for reader in graph.readers(port)
        }
        alone = readers.pop() if len(readers) == 1 else layer.name
        nodes[layer.id] = node_of.get(layer.name, alone)
    return nodes


def _observable(
    reference: Reference,
    ports: Sequence[Port],
    node_of: Mapping[str, str],
    nodes: Mapping[str, _Node],
) -> list[Port]:
    """Return the tensors that can be observed if the plugin rounds at the ends of execution nodes.

    A layer that no node names is inside a node, such as the cache of attention, and another consumer would split that
    node. Integers that follow from shapes and inputs alone can be observed, as they are not rounded.
    """
    graph, outputs = reference.graph, {port._port for port in reference.outputs}
    decided, inside = find_decision_dependents(graph, reference.types), _inside(graph, node_of, nodes)
    return [
        port
        for port in ports
        if port in outputs
        or (
            graph[port.layer].name in node_of
            and port.layer not in inside
            and (is_float(reference.types, port) or port.layer in decided)
        )
    ]


def _inside(graph: Graph, node_of: Mapping[str, str], nodes: Mapping[str, _Node]) -> set[int]:
    """Return the ids of layers whose execution node ends with a layer added by the plugin."""
    names, inside = {layer.name for layer in graph}, set[int]()
    for layer in graph:
        members = (
            [name for name in nodes[node_of[layer.name]].members if name] if layer.name in node_of else []
        )
        moved = is_move(layer) and any(port.layer in inside for port in graph.reads(layer)[:1])
        if moved or (members and members[-1] not in names):
            inside.add(layer.id)
    return inside


def _find_wide(
    reference: Reference, node_of: Mapping[str, str], nodes: Mapping[str, _Node]
) -> tuple[int, ...]:
    """Return the ids of non-constant layers in nodes that compute in f32."""
    of = _nodes_by_layer(reference.graph, node_of)
    node_names = {name for name, node in nodes.items() if node.precision == "f32" or node.type == "RoPE"}
    return tuple(
        layer.id for layer in reference.graph if layer.type != "Constant" and of[layer.id] in node_names
    )


def _find_held(
    reference: Reference, node_of: Mapping[str, str], nodes: Mapping[str, _Node]
) -> tuple[int, ...]:
    """Return the ids of layers at the end of nodes with f32 output."""
    graph, of = reference.graph, _nodes_by_layer(reference.graph, node_of)
    node_names = {name for name, node in nodes.items() if node.result == "f32"}
    return tuple(
        layer.id
        for layer in graph
        if layer.type != "Constant"
        and of[layer.id] in node_names
        and any(of[r.layer] != of[layer.id] for port in layer.output_ports for r in graph.readers(port))
    )


def _nodes_of(reported: Sequence[ReportedNode]) -> tuple[dict[str, _Node], dict[str, str]]:
    """Parse the reported execution nodes; return them by name, and the node of each layer that a node names."""
    nodes: dict[str, _Node] = {}
    node_of: dict[str, str] = {}
    for node in reported:
        nodes[node.name] = _Node(node.type, node.members, _precision(node), node.result)
        node_of |= dict.fromkeys(node.members, node.name)
    return nodes, node_of


def _precision(node: ReportedNode) -> str:
    """Return the precision of a node; if it is reported as that of compressed weights, use the kernel's precision."""
    kernel = node.kernel.rpartition("_")[2]
    if node.type in _PRODUCTS and node.precision not in NUMBERS and kernel in NUMBERS:
        return kernel
    return node.precision


NUMBERS = ("bf16", "f16", "f32")
_PRODUCTS = (
    "Convolution",
    "Deconvolution",
    "FullyConnected",
    "MatMul",
    "RNNCell",
    "RNNSeq",
    "ScaledDotProductAttention",
)


def _precisions_of(nodes: Mapping[str, _Node]) -> tuple[str, ...]:
    of_products = {node.precision for node in nodes.values() if node.type in _PRODUCTS}
    precisions = of_products or {node.precision for node in nodes.values()} - {"i8", "u8"}
    return tuple(sorted(precisions & {*NUMBERS, "i8", "u8"}))
