"""A side of a measurement: a model compiled by one of the runtimes."""

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
# Without these, OpenVINO quantizes activations for compressed weights, and its key cache, even with f32 precision.
_EXACT = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}


@dataclass(frozen=True)
class Setting:
    """The settings of a runtime, as JSON-compatible values: one field for each option of the command line.

    Args:
        model: the path of the ``.xml``.
        weights: the path of the ``.bin``, if it is not next to the model.
        shapes: the shapes of inputs as pairs: a name, an index, or ``None`` for the only input; and the shape as text.
        hint: ``latency``, ``throughput``, ``cumulative_throughput`` or ``none``.
        threads: the number of threads; by default, chosen by the runtime.
        backend: the backend of this package.
        exact: whether to prevent quantization by OpenVINO.
        config: additional properties for OpenVINO.
        streams: the number of concurrent runs that share the threads; by default, from the hint.
        precision: the type to compute in; by default, that of the model in this package, and f32 in OpenVINO.
        counters: whether the time of each layer is measured.
        queued: whether even a single request runs in the background, as several requests do.
        memory: the memory limit of this package in bytes; by default, the machine's memory.
        timeout: the time limit of each step of this package in seconds; by default, an hour.
        mode: ``accuracy``, or ``performance`` for this package in that mode, and OpenVINO with its defaults.
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
        """Return the properties with which a runtime compiles the model."""
        numbers = {"INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": self.streams}
        properties = {name: str(number) for name, number in numbers.items() if number is not None}
        properties |= {"PERF_COUNT": "YES"} if self.counters else {}
        precision = {} if self.precision is None else {"INFERENCE_PRECISION_HINT": self.precision}
        is_exact = self.mode == "accuracy"
        if runtime == OURS:
            properties |= {} if is_exact else {"EXECUTION_MODE_HINT": self.mode.upper()}
            return properties | precision | ({} if self.backend is None else {"BACKEND": self.backend})
        hint = {} if self.hint == "none" else {"PERFORMANCE_HINT": self.hint.upper()}
        exact = {**_F32, **(_EXACT if self.exact else {})} if is_exact else {}
        return properties | exact | hint | precision | dict(self.config or {})

    @property
    def limits(self) -> Limits:
        """The limits of this package."""
        from ..limits import DEFAULT  # imported late, as the import of this package is measured

        limits = DEFAULT if self.memory is None else replace(DEFAULT, memory=self.memory)
        return limits if self.timeout is None else replace(limits, seconds=self.timeout)

    def record(self) -> Record:
        """Return a JSON-compatible dict of the fields; ``Setting(**record)`` restores the setting."""
        return asdict(self)


def import_runtime(runtime: Runtime) -> RuntimeApi:
    """Import the module of a runtime.

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
    """A model, read and compiled by a runtime, and the means to run requests.

    Args:
        runtime: the runtime.
        setting: the model, and the settings of the runtime.

    Raises:
        InputError: if the runtime is not installed, or OpenVINO refuses the model.
        IRError: if this package refuses it.
    """

    def __init__(self, runtime: Runtime, setting: Setting) -> None:
        self.runtime, self.setting = runtime, setting
        self._api = import_runtime(runtime)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about properties that a backend ignores
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
        """The times in seconds to read and reshape the model, and to compile it."""

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
        """The backend of this package, or ``CPU``."""
        return str(getattr(self.compiled, "backend", "CPU"))

    @property
    def precision(self) -> str:
        """The type of f32 products, as the compiled model reports it."""
        return self.compiled.get_property("INFERENCE_PRECISION_HINT").to_string()

    def request(self, inputs: Sequence[Array]) -> Request:
        """Create a request with its inputs set to arrays."""
        request = self.compiled.create_infer_request()
        feed(self._api, request, inputs)
        return request

    def queue(self, count: int, inputs: Sequence[Array]) -> Queue:
        """Create a queue of ``count`` requests with their inputs set to arrays."""
        queue = self._api.AsyncInferQueue(self.compiled, count)
        for request in queue:
            feed(self._api, request, inputs)
        return queue

    def results(self, request: Request) -> list[Array]:
        """Reset the variables and run once; return copies of the outputs as NumPy arrays."""
        self.reset(request)
        return readable(request.infer().to_tuple(), self.compiled.outputs)

    def reset(self, request: Request) -> None:
        """Reset the variables of a request if the model has any."""
        if self.stateful:
            request.reset_state()


@contextmanager
def _refusals(runtime: Runtime, model: str) -> Iterator[None]:
    """Turn an error of OpenVINO in the block into an `InputError` with the last line of its message."""
    try:
        yield
    except RuntimeError as reason:
        if runtime == OURS:
            raise
        from ..errors import InputError

        lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
        message = lines[-1] if lines else type(reason).__name__
        raise InputError(f"OpenVINO refuses {Path(model).name}: {message}") from reason
