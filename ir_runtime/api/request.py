"""Inference requests: one run at a time each, as many at once as there are requests."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..codes import Code
from ..errors import InputError
from ..runtime.observers import Profile
from ..runtime.plan import Observer
from .compiled import CompiledModel
from .feeding import as_array
from .names import find_port
from .ports import Output
from .results import OVDict
from .tensor import Tensor

__all__ = ["InferRequest", "ProfilingInfo"]


@dataclass(frozen=True)
class ProfilingInfo:
    """How long a layer took. As OpenVINO's ``ProfilingInfo``."""

    node_name: str
    node_type: str
    exec_type: str
    real_time: datetime.timedelta
    cpu_time: datetime.timedelta
    status: str = "EXECUTED"


class InferRequest:
    """Keeps inputs and outputs between runs. As OpenVINO's ``InferRequest``."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._kept: dict[Output, Tensor] = {}
        self._results: OVDict | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._callback: tuple[Callable[[Any], None], Any] | None = None
        self._profile = Profile()
        self._after: Callable[[], None] = lambda: None
        self.latency = 0.0
        """How long the last run took, in milliseconds."""
        self.userdata: Any = None

    def infer(
        self,
        inputs: Any = None,
        share_inputs: bool = False,
        share_outputs: bool = False,
        *,
        observers: Iterable[Observer] = (),
    ) -> OVDict:
        """Run on inputs, and on tensors set before for those that are not given.

        Raises:
            InputError: if an input is missing, unknown, or has another type or shape.
            ExecutionError: if a layer fails on the data.
        """
        self._refuse_while_running()
        return self._infer(inputs, tuple(observers))

    def _infer(self, inputs: Any, observers: tuple[Observer, ...] = ()) -> OVDict:
        watching = list(observers)
        if self._compiled.config.get("PERF_COUNT") in (True, "YES", "true"):
            self._profile = Profile()
            watching.append(self._profile)
        if observers:
            self._results = self._compiled._run(inputs, self._kept, watching, every_layer=True)
        else:
            self._results, self.latency = self._compiled._timed(inputs, self._kept, watching)
        return self._results

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Start a run in the background; `wait` for it."""
        self._refuse_while_running()
        self.userdata, self._failure = userdata, None
        self._thread = threading.Thread(target=self._work, args=(inputs,), daemon=True)
        self._thread.start()

    def _work(self, inputs: Any) -> None:
        try:
            self._infer(inputs)
            if self._callback is not None:
                function, data = self._callback
                function(data if self.userdata is None else self.userdata)
        except BaseException as reason:
            self._failure = reason
        finally:
            self._after()

    def wait(self) -> None:
        """Wait for the run in the background; raise what it raised."""
        self.wait_for(None)

    def wait_for(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` milliseconds; return whether the run has ended."""
        if self._thread is None:
            return True
        self._thread.join(None if timeout is None else timeout / 1e3)
        if self._thread.is_alive():
            return False
        self._thread = None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return True

    def set_callback(self, callback: Callable[[Any], None], userdata: Any = None) -> None:
        """Call ``callback(userdata)`` after each run in the background."""
        self._callback = (callback, userdata)

    def cancel(self) -> None:
        """For OpenVINO's API: a run cannot be stopped, so this waits for it."""
        self.wait()

    def _refuse_while_running(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            raise InputError("the request is still running; wait for it", code=Code.BAD_REQUEST)

    @property
    def results(self) -> OVDict:
        """The outputs of the last run."""
        if self._results is None:
            raise InputError("nothing has run yet", code=Code.BAD_REQUEST, hint="call infer first")
        return self._results

    @property
    def model_inputs(self) -> list[Output]:
        """The inputs of the model."""
        return self._compiled.inputs

    @property
    def model_outputs(self) -> list[Output]:
        """The outputs of the model."""
        return self._compiled.outputs

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensor of each input."""
        return [self._input_tensor(port) for port in self.model_inputs]

    @property
    def output_tensors(self) -> list[Tensor]:
        """The tensor of each output."""
        return [self._output_tensor(port) for port in self.model_outputs]

    def get_input_tensor(self, index: int | None = None) -> Tensor:
        """The tensor of an input, to write into; without an index, of the only one."""
        return self._input_tensor(self._compiled.input(index))

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        """The tensor of an output; without an index, of the only one."""
        return self._output_tensor(self._compiled.output(index))

    def set_input_tensor(self, index: int | Tensor, tensor: Tensor | None = None) -> None:
        """Give an input its tensor: ``set_input_tensor(tensor)`` or ``set_input_tensor(0, tensor)``."""
        if tensor is None:
            self._set(self._compiled.input(None), index)
        else:
            self._set(self._compiled.input(index), tensor)  # type: ignore[arg-type]

    def set_tensor(self, key: int | str | Output, tensor: Tensor) -> None:
        """Give an input its tensor, by name or port."""
        self._set(find_port(self.model_inputs, key, "input"), tensor)

    def set_tensors(self, tensors: Mapping[Any, Tensor]) -> None:
        """Give several inputs their tensors."""
        for key, tensor in tensors.items():
            self.set_tensor(key, tensor)

    def set_input_tensors(self, tensors: Mapping[Any, Tensor] | list[Tensor]) -> None:
        """Give several inputs their tensors, by index or in order."""
        pairs = tensors.items() if isinstance(tensors, Mapping) else enumerate(tensors)
        self.set_tensors(dict(pairs))

    def get_tensor(self, key: int | str | Output) -> Tensor:
        """The tensor of an input or output, by name or port."""
        for ports, get in (
            (self.model_inputs, self._input_tensor),
            (self.model_outputs, self._output_tensor),
        ):
            if any(p == key or (isinstance(key, str) and p.answers_to(key)) for p in ports):
                return get(find_port(ports, key, "tensor"))
        everything = [*self.model_inputs, *self.model_outputs]
        return self._output_tensor(find_port(everything, key, "tensor"))

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """How long each layer took in the last run, if the model was compiled with ``PERF_COUNT``."""
        spans = ((step, datetime.timedelta(seconds=seconds)) for step, seconds in self._profile.times)
        return [
            ProfilingInfo(step.layer.name, step.layer.type, self._compiled.backend, span, span)
            for step, span in spans
        ]

    def query_state(self) -> list[Any]:
        """The variables of the model."""
        return []

    def reset_state(self) -> None:
        """Give variables their initial values."""

    def get_compiled_model(self) -> CompiledModel:
        """The model that this request runs."""
        return self._compiled

    def _set(self, port: Output, tensor: Any) -> None:
        held = tensor if isinstance(tensor, Tensor) else Tensor(tensor, shared_memory=True)
        as_array(port, held)
        self._kept[port] = held

    def _input_tensor(self, port: Output) -> Tensor:
        if port not in self._kept:
            if port.partial_shape.is_dynamic:
                raise InputError(
                    f"input {port.label!r} has no tensor yet, and its shape is open: {port.partial_shape}",
                    hint="set_tensor gives it one",
                )
            self._kept[port] = Tensor(port.element_type, port.shape)
        return self._kept[port]

    def _output_tensor(self, port: Output) -> Tensor:
        return Tensor(self.results[port], shared_memory=True, type=port.element_type)

    def __repr__(self) -> str:
        return repr(self._compiled).replace("CompiledModel", "InferRequest", 1)
