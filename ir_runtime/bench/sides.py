"""A model compiled by one runtime, to be measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from .._util.records import Record
from .feeding import feed, readable

if TYPE_CHECKING:
    from ..ir.array import Array
    from ..limits import Limits
    from .interfaces import Queue, Request, RuntimeApi

__all__ = ["OPENVINO", "OURS", "Runtime", "Setting", "Side", "import_runtime"]

Runtime = Literal["ir_runtime", "openvino"]
OURS: Runtime = "ir_runtime"
OPENVINO: Runtime = "openvino"

_F32 = {"INFERENCE_PRECISION_HINT": "f32"}
# Without this OpenVINO quantises activations beside packed weights, and its cache of keys, in spite of f32.
_EXACT = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}


@dataclass(frozen=True)
class Setting:
    """The settings of a runtime, as JSON-compatible values: one field for each option of the command line.

    Args:
        model: path of the ``.xml``.
        weights: path of the ``.bin``, where it is not beside the model.
        shapes: other shapes of inputs as (name, number or ``None`` for the only one; text).
        hint: ``latency``, ``throughput``, ``cumulative_throughput`` or ``none``.
        threads: how many to use; by default, what the runtime chooses.
        backend: of this package.
        exact: whether OpenVINO must not quantise anything that the model does not.
        config: further properties for OpenVINO.
        streams: how many runs at once share the threads; by default, what the runtime makes of the hint.
        precision: the type to compute in; by default, this package's are those of the model, OpenVINO's is f32.
        counters: whether the time of each layer is measured.
        queued: whether a single request runs in the background, as several do.
        memory: bytes that a run of this package may need; by default, what the machine has.
        timeout: seconds that each step of this package may take; by default, an hour.
        mode: ``accuracy``, or ``performance``: this package in that mode, and OpenVINO as it comes.
    """

    model: str
    weights: str | None = None
    shapes: Sequence[tuple[str | int | None, str]] = ()
    hint: str = "latency"
    threads: int | None = None
    backend: str | None = None
    exact: bool = True
    config: Mapping[str, str] | None = None
    streams: int | None = None
    precision: str | None = None
    counters: bool = False
    queued: bool = False
    mode: str = "accuracy"
    memory: int | None = None
    timeout: float | None = None

    def properties(self, runtime: Runtime) -> dict[str, str]:
        """Return the properties that say so to a runtime."""
        numbers = {"INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": self.streams}
        said = {name: str(number) for name, number in numbers.items() if number is not None}
        said |= {"PERF_COUNT": "YES"} if self.counters else {}
        precision = {} if self.precision is None else {"INFERENCE_PRECISION_HINT": self.precision}
        is_exact = self.mode == "accuracy"
        if runtime == OURS:
            said |= {} if is_exact else {"EXECUTION_MODE_HINT": self.mode.upper()}
            return said | precision | ({} if self.backend is None else {"BACKEND": self.backend})
        hint = {} if self.hint == "none" else {"PERFORMANCE_HINT": self.hint.upper()}
        exact = {**_F32, **(_EXACT if self.exact else {})} if is_exact else {}
        return said | exact | hint | precision | dict(self.config or {})

    @property
    def limits(self) -> Limits:
        """What this package may use."""
        from ..limits import DEFAULT  # here, as importing this package is measured

        limits = DEFAULT if self.memory is None else replace(DEFAULT, memory=self.memory)
        return limits if self.timeout is None else replace(limits, seconds=self.timeout)

    def record(self) -> Record:
        """As a dictionary, from whose items it can be made again."""
        return asdict(self)


def import_runtime(runtime: Runtime) -> RuntimeApi:
    """Return the module of a runtime.

    Raises:
        InputError: if it is not installed.
    """
    if runtime == OURS:
        return cast("RuntimeApi", import_module(OURS))
    try:
        return cast("RuntimeApi", import_module(OPENVINO))
    except ImportError:
        from ..errors import InputError

        hint = "pip install openvino, or measure without --against"
        raise InputError("the package openvino, to compare with, is not installed", hint=hint) from None


class Side:
    """A model, read and compiled by one runtime; requests are made and run here.

    Args:
        runtime: which one.
        setting: the model, and the requested measurements.

    Raises:
        InputError: if the runtime is not installed, or OpenVINO refuses the model.
        IRError: if this package refuses it.
    """

    def __init__(self, runtime: Runtime, setting: Setting) -> None:
        self.runtime, self.setting = runtime, setting
        self._api = import_runtime(runtime)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of properties without a meaning for some backend
            self._load()
        self.stateful = bool(self.compiled.create_infer_request().query_state())

    def _load(self) -> None:
        core = self._api.Core()
        start = time.perf_counter()
        with _refusals(self.runtime, self.setting.model):
            limits = {"limits": self.setting.limits} if self.runtime == OURS else {}
            model = core.read_model(*self._files(), **limits)
            if self.setting.shapes:
                model.reshape(self._shapes())
            read = time.perf_counter()
            self.compiled = core.compile_model(model, "CPU", self.setting.properties(self.runtime))
        self.read, self.compile = read - start, time.perf_counter() - read
        """Seconds to read the model (with new shapes, to infer them), and to compile it."""

    def _files(self) -> list[str]:
        weights = self.setting.weights
        return [self.setting.model] if weights is None else [self.setting.model, weights]

    def _shapes(self) -> object:
        shapes = {key: self._api.PartialShape(text) for key, text in self.setting.shapes}
        return shapes.get(None, shapes)

    @property
    def version(self) -> str:
        """The version of the runtime."""
        return str(self._api.__version__)

    @property
    def backend(self) -> str:
        """What computes: the backend of this package that was chosen, or the device."""
        return str(getattr(self.compiled, "backend", "CPU"))

    @property
    def precision(self) -> str:
        """The type in which f32 is multiplied, as far as the runtime says."""
        return self.compiled.get_property("INFERENCE_PRECISION_HINT").to_string()

    def request(self, inputs: Sequence[Array]) -> Request:
        """Return a request that holds an array for each input."""
        request = self.compiled.create_infer_request()
        feed(self._api, request, inputs)
        return request

    def queue(self, count: int, inputs: Sequence[Array]) -> Queue:
        """Return a queue of this many requests, each with an array for each input."""
        queue = self._api.AsyncInferQueue(self.compiled, count)
        for request in queue:
            feed(self._api, request, inputs)
        return queue

    def results(self, request: Request) -> list[Array]:
        """Run once from the start; return copies of the outputs, as arrays that NumPy can compute with."""
        self.reset(request)
        return readable(request.infer().to_tuple(), self.compiled.outputs)

    def reset(self, request: Request) -> None:
        """Reset the variables."""
        if self.stateful:
            request.reset_state()


@contextmanager
def _refusals(runtime: Runtime, model: str) -> Iterator[None]:
    """Raise an error of one line if OpenVINO refuses the model."""
    try:
        yield
    except RuntimeError as reason:
        if runtime == OURS:
            raise
        from ..errors import InputError

        lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
        said = lines[-1] if lines else type(reason).__name__
        raise InputError(f"OpenVINO refuses {Path(model).name}: {said}") from reason
