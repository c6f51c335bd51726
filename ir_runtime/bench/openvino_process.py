"""Run OpenVINO in a separate process, so that a crash does not end this one.

OpenVINO's CPU plugin crashes on some models, for example by a division by zero. A job is a model to compile and run once.
The process is started by the first job, answers one job after another, and ends with its parent. Jobs and answers are
pickled, and pass through its standard input and output.
"""

from __future__ import annotations

import atexit
import pickle
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .._util.child_process import close_pipes, disown, next_job, open_pipes, send
from .._util.forks import register

if TYPE_CHECKING:
    from .._util.child_process import Process
    from ..ir.tensor import Array

__all__ = ["Answer", "Died", "Failed", "Job", "Node", "Probe", "run"]


class Probe(NamedTuple):
    """A tensor to observe.

    Args:
        layer: the name of the layer that computes it.
        output: the index of the output of the layer.
        widens: whether to convert the tensor to f32.
        product: whether to observe it through a product with 1, so that the probe does not change the precision of nodes.
    """

    layer: str
    output: int
    widens: bool
    product: bool


@dataclass(frozen=True)
class Job:
    """A model to compile and run once.

    Args:
        path: the path of the model.
        config: properties of the CPU plugin.
        inputs: an array for each input.
        probes: the tensors to observe in addition to the outputs.
    """

    path: str
    config: Mapping[str, str | int]
    inputs: Sequence[Array]
    probes: Sequence[Probe] = ()


class Node(NamedTuple):
    """An execution node of OpenVINO, and the precisions and the kernel that it reports.

    It is a layer as compiled, with those fused into it: its members.
    """

    name: str
    type: str
    members: tuple[str, ...]
    precision: str
    result: str
    kernel: str


@dataclass(frozen=True)
class Answer:
    """The results of a job.

    Args:
        outputs: the outputs of the model.
        seen: the flattened tensor of each probe, or ``None`` if the model has no such tensor.
        nodes: the execution nodes, in order.
        settings: the properties of the compiled model that affect results.
        version: the version of OpenVINO.
    """

    outputs: list[Array]
    seen: list[Array | None]
    nodes: list[Node]
    settings: dict[str, str]
    version: str


class Failed(Exception):  # noqa: N818 - an answer
    """OpenVINO refuses a job; the message is the last line of its error. ``missing`` is true if it is not installed."""

    def __init__(self, message: str, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class Died(Exception):  # noqa: N818 - an answer
    """The process ended during a job; the message gives the signal or exit code."""


SETTINGS = (
    "INFERENCE_PRECISION_HINT",
    "EXECUTION_MODE_HINT",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE",
    "KV_CACHE_PRECISION",
    "KEY_CACHE_PRECISION",
    "VALUE_CACHE_PRECISION",
    "KEY_CACHE_GROUP_SIZE",
    "VALUE_CACHE_GROUP_SIZE",
    "INFERENCE_NUM_THREADS",
)
"""The properties of a compiled model that affect results."""


def run(job: Job) -> Answer:
    """Run a job in OpenVINO's process.

    Raises:
        Failed: if OpenVINO is not installed, or refuses the model or the inputs.
        Died: if the process ended.
    """
    return _WORKER.run(job)


class _Worker:
    """The process, started on first use, and again after it has ended.

    Threads share it, so the lock is held during a job. `conformance.worker.Worker` differs: it runs the jobs of a single thread,
    and other threads may kill it during a job, so its lock guards only start and end.
    """

    def __init__(self) -> None:
        self._process: Process | None = None
        self._lock = threading.Lock()

    def after_fork(self) -> None:
        """Leave the process to the parent; a forked process starts its own."""
        if self._process is not None:
            disown(self._process)
        self._process, self._lock = None, threading.Lock()

    def run(self, job: Job) -> Answer:
        with self._lock:
            process = self._ensure_process()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                send(process.stdin, job)
                answer = pickle.load(process.stdout)  # noqa: S301 - from our own process
            except (OSError, EOFError, pickle.UnpicklingError):
                from .._util.child_process import describe_exit

                raise Died(describe_exit(self._end(process))) from None
            except BaseException:  # such as Ctrl-C; otherwise the next job would receive this answer
                process.kill()
                self._end(process)
                raise
        if isinstance(answer, Failed):
            raise answer
        assert isinstance(answer, Answer)
        return answer

    def _ensure_process(self) -> Process:
        from .._util.child_process import start_worker

        if self._process is not None and self._process.poll() is not None:
            self._end(self._process)
        if self._process is None:
            self._process = start_worker(__name__)
        return self._process

    def stop(self) -> None:
        """End the process if it runs."""
        if self._process is not None:
            self._end(self._process)

    def _end(self, process: Process) -> int:
        self._process = None
        return close_pipes(process)


_WORKER = register(_Worker())
atexit.register(_WORKER.stop)


def main() -> None:
    """Answer jobs from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # handled by the waiting process
    jobs, answers = open_pipes()
    while (job := next_job(jobs)) is not None:
        try:
            answer: object = _do(job)
        except ImportError:
            answer = Failed("OpenVINO is not installed", missing=True)
        except Exception as reason:
            lines = str(reason).strip().splitlines()
            answer = Failed(lines[-1] if lines else type(reason).__name__)
        send(answers, answer)


def _do(job: Job) -> Answer:
    from .feeding import feed, readable

    api: Any = import_module("openvino")
    model = _core(api).read_model(job.path)
    count = len(model.outputs)
    probed = _add_probes(api, model, job.probes)
    compiled = _core(api).compile_model(model, "CPU", dict(job.config))
    request = compiled.create_infer_request()
    feed(api, request, job.inputs)
    request.infer()
    arrays = [request.get_output_tensor(index).data for index in range(len(compiled.outputs))]
    arrays = readable(arrays, compiled.outputs)
    seen: list[Array | None] = [None] * len(job.probes)
    for place, array in zip(probed, arrays[count:], strict=True):
        seen[place] = array.reshape(-1)
    nodes = [_node(op) for op in compiled.get_runtime_model().get_ordered_ops()]
    return Answer(arrays[:count], seen, nodes, _settings(compiled), api.get_version())


_CORES: list[Any] = []


def _core(api: Any) -> Any:
    if not _CORES:
        _CORES.append(api.Core())
    return _CORES[0]


def _add_probes(api: Any, model: Any, probes: Sequence[Probe]) -> list[int]:
    """Add an output to the model for each probe whose tensor exists; return the indices of these probes."""
    import numpy as np

    opset = import_module("openvino.opset13")
    layers = {op.get_friendly_name(): op for op in model.get_ops()}
    probed, results = [], []
    for place, probe in enumerate(probes):
        if probe.layer not in layers or probe.output >= layers[probe.layer].get_output_size():
            continue
        end = layers[probe.layer].output(probe.output)
        if probe.widens:
            end = opset.convert(end, "f32").output(0)
        if probe.product:
            one = opset.constant(np.ones((1, 1), np.float32))
            column = opset.reshape(end, opset.constant(np.array([-1, 1])), False)
            end = opset.matmul(column, one, False, False).output(0)
        results.append(opset.result(end))
        probed.append(place)
    model.add_results(results)
    return probed


def _node(op: Any) -> Node:
    info = op.get_rt_info()
    keys = ("layerType", "originalLayersNames", "runtimePrecision", "outputPrecisions", "primitiveType")
    kind, members, precision, results, kernel = (info[key].astype(str) if key in info else "" for key in keys)
    return Node(
        op.get_friendly_name(), kind, tuple(members.split(",")), precision, results.partition(",")[0], kernel
    )


def _settings(compiled: Any) -> dict[str, str]:
    """Return the properties of a compiled model that affect results, except those that this version of OpenVINO lacks."""
    properties: dict[str, str] = {}
    for name in SETTINGS:
        try:
            value = compiled.get_property(name)
        except RuntimeError:
            continue
        is_type = hasattr(value, "to_string")
        properties[name] = value.to_string() if is_type else str(value).rpartition(".")[2]
    return properties


if __name__ == "__main__":
    # Not as __main__: pickle finds the classes of this module by its name.
    import_module("ir_runtime.bench.openvino_process").main()
