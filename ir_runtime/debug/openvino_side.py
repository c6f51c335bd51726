"""OpenVINO's CPU plugin as a side, observed without being disturbed.

What an added output shows need not be what the plugin computes without it: nodes are split, and in bf16 the layers
behind the last product run in f32. So only tensors between execution nodes are looked at, each through a product with
1, behind which nothing is computed; and observations count only if the outputs are bit for bit those of the model
alone, and its nodes run in the same precisions. Where not, the tensors are divided until those remain that can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bench.feeding import feed, readable
from ..codes import Code
from ..compiler.widen import has_f16
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Port
from ..ir.pages import let_go
from ..ir.tensor import Array
from ..openvino.saving import save_model
from .execution_nodes import Node, boundaries, held, nodes_of, precisions_of, probable, wide
from .faithful import observed, same_bits
from .observation import Observation, Side
from .reference import Reference
from .tensors import computed_layers, is_float

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["OpenVINO"]

TRIES = 80
"""Compilations with probes, after which what was not seen is given up."""


class OpenVINO:
    """The CPU plugin.

    Args:
        hint: the precision that is asked for: ``f32``, ``bf16`` or ``f16``; by default ``f32``.
        threads: how many it uses; 0 leaves that to it.
        fused: without it, every tensor is an output, so that layers are not fused.
    """

    def __init__(self, hint: str = "", threads: int = 0, fused: bool = True) -> None:
        if hint not in ("", "f32", "bf16", "f16"):
            message = f"unknown precision {hint!r}"
            raise InputError(message, code=Code.NO_SUCH_NAME, hint="expected f32, bf16 or f16")
        self.hint, self.threads, self.fused = hint or "f32", threads, fused

    def variants(self) -> dict[str, Side]:
        """Return the plugin with one thread, and with all tensors as outputs, so that no layers are fused."""
        return {
            "with one thread": OpenVINO(self.hint, threads=1),
            "without fusion": OpenVINO(self.hint, fused=False),
        }

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the model alone, then with probes.

        Raises:
            InputError: if OpenVINO is not installed, or cannot run the model.
        """
        with TemporaryDirectory() as folder:
            probing = _Probing(self, _saved(model, folder), reference, feeds)
            wanted = boundaries(reference, ports, probing.alone.node_of)
            if probing.is_narrow:
                wanted = probable(reference, wanted, *probing.nodes)
            widens = not probing.runs_f16 and has_f16(reference.graph, reference.types)
            found = _outputs(reference, wanted, probing.alone)
            if widens:  # outputs are rounded, and the probes see what is not
                found = {port: array for port, array in found.items() if array.dtype != np.float16}
            asked = [port for port in wanted if port not in found]
            if probing.is_narrow:  # what leads to an output of integers would run in f32
                asked = [port for port in asked if is_float(reference.types, port)]
            found |= probing.observe(asked)
        return Observation(
            name="openvino",
            outputs=probing.alone.outputs,
            tensors=found,
            asked=self.hint,
            ran=probing.alone.precisions,
            unobserved=tuple(port for port in wanted if port not in found),
            wide=wide(reference, *probing.nodes) if probing.is_narrow else (),
            held=held(reference, *probing.nodes) if probing.is_narrow else (),
            f16_in_f32=widens,
        )


def _outputs(reference: Reference, wanted: Sequence[Port], alone: _Execution) -> dict[Port, Array]:
    """Return the tensors that are outputs of the model: the run alone shows them, and a second output may change them."""
    outputs = zip(reference.outputs, alone.outputs, strict=True)
    return {port._port: array for port, array in outputs if port._port in set(wanted)}


def _saved(model: Model, folder: str) -> str:
    path = str(Path(folder) / "model.xml")
    save_model(model, path, compress_to_fp16=False)
    for layer in model._graph.of_type("Constant"):  # OpenVINO maps and packs all of them once more
        if layer.op is not None:
            let_go(np.asarray(layer.op.evaluate()))
    return path


@dataclass(frozen=True)
class _Execution:
    """One compilation of the plugin, and its run.

    Args:
        outputs: the outputs of the model.
        tensors: what the probes saw.
        node_of: the execution node of each layer that some node names.
        nodes: the type, the layers and the precision of each execution node.
        precisions: those of the nodes that multiply, or of all.
    """

    outputs: list[Array]
    tensors: dict[Port, Array]
    node_of: dict[str, str]
    nodes: dict[str, Node]
    precisions: tuple[str, ...]


class _Probing:
    def __init__(self, side: OpenVINO, path: str, reference: Reference, feeds: Sequence[Array]) -> None:
        try:
            self._api = import_module("openvino")
        except ImportError:
            raise InputError(
                "OpenVINO is not installed", code=Code.BAD_REQUEST, hint="pip install openvino"
            ) from None
        self._core = self._api.Core()
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
    def nodes(self) -> tuple[Mapping[str, str], Mapping[str, Node]]:
        """The execution node of each layer that one names, and the nodes by name, of the run alone."""
        return self.alone.node_of, self.alone.nodes

    def observe(self, ports: Sequence[Port]) -> dict[Port, Array]:
        """Return what can be seen of some tensors; all that is returned was seen in faithful runs."""

        def look(wanted: Sequence[Port]) -> Mapping[Port, Array] | None:
            try:
                run = self._run(wanted)
            except InputError:  # the plugin may fail on a model with probes that it runs without
                return None
            return run.tensors if self._is_faithful(run) else None

        return observed(ports, look, TRIES)

    def _is_faithful(self, run: _Execution) -> bool:
        if not same_bits(run.outputs, self.alone.outputs):
            return False
        return not self.is_narrow or self._computing(self.alone) <= self._computing(run)

    def _computing(self, run: _Execution) -> set[tuple[str, tuple[str, ...], str]]:
        """The nodes that compute, by their layers in the model: what the plugin adds has another name each time."""
        found = set()
        for node in run.nodes.values():
            layers = tuple(sorted(self._names.intersection(node.members)))
            if layers and node.type not in _TRANSPORT:
                found.add((node.type, layers, node.precision))
        return found

    def _run(self, ports: Sequence[Port]) -> _Execution:
        try:
            return self._compiled_run(ports)
        except RuntimeError as reason:
            lines = str(reason).strip().splitlines()
            raise InputError(f"OpenVINO does not run the model: {lines[-1]}", code=Code.BAD_REQUEST) from None

    def _compiled_run(self, ports: Sequence[Port]) -> _Execution:
        model = self._core.read_model(self._path)
        count = len(model.outputs)
        probed = _probe(model, self._reference, ports, self.is_narrow)
        config: dict[str, str | int] = {"INFERENCE_PRECISION_HINT": self._side.hint, "CACHE_DIR": ""}
        if self._side.threads:
            config["INFERENCE_NUM_THREADS"] = self._side.threads
        compiled = self._core.compile_model(model, "CPU", config)
        request = compiled.create_infer_request()
        feed(self._api, request, list(map(np.ascontiguousarray, self._feeds)))
        request.infer()
        arrays = [request.get_output_tensor(index).data for index in range(len(compiled.outputs))]
        arrays = readable(arrays, compiled.outputs)
        seen = {port: array.reshape(-1) for port, array in zip(probed, arrays[count:], strict=True)}
        nodes, node_of = nodes_of(compiled.get_runtime_model())
        return _Execution(arrays[:count], seen, node_of, nodes, precisions_of(nodes))


def _probe(model: Any, reference: Reference, ports: Sequence[Port], products: bool) -> list[Port]:
    """Add an output for each tensor; for numbers behind a product with 1, which ends what runs in another precision."""
    opset = import_module("openvino.opset13")
    layers = {op.get_friendly_name(): op for op in model.get_ops()}
    probed, results = [], []
    for port in ports:
        name = reference.graph[port.layer].name
        if name not in layers or port.number >= layers[name].get_output_size():
            continue
        end = layers[name].output(port.number)
        if reference.types[port].element is ElementType.f16:  # values computed in f32 are not rounded to f16
            end = opset.convert(end, "f32").output(0)
        if products and is_float(reference.types, port):
            one = opset.constant(np.ones((1, 1), np.float32))
            column = opset.reshape(end, opset.constant(np.array([-1, 1])), False)
            end = opset.matmul(column, one, False, False).output(0)
        results.append(opset.result(end))
        probed.append(port)
    model.add_results(results)
    return probed


_TRANSPORT = ("Const", "Input", "Output", "Reorder")
