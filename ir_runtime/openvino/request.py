"""Inference requests: each runs once at a time, several run concurrently."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.forks import register
from .._util.wrong_arguments import ArgumentTypeError, checked
from ..codes import Code
from ..errors import InputError
from ..executor.step import Observer
from ..ir.element import ElementType
from ..ir.quantized_cache import Held
from ..ir.tensor import Array
from .background import Background
from .callbacks import call_back
from .executable import Executable
from .nodes import Output
from .request_tensors import RequestTensors
from .results import OVDict
from .state import VariableState, variable_states
from .tensor import Tensor
from .tensor_data import element_of

# Profiling is imported when it is used: most programs start sooner without it.
if TYPE_CHECKING:
    from ..executor.observers import Profile
    from .profiling import ProfilingInfo

__all__ = ["Request"]


class Request(RequestTensors):
    """Runs a compiled model, in the foreground or in the background, one run at a time.

    Runs in the background call a function when they have ended:

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x]), config={"PERF_COUNT": True})
    >>> request = compiled.create_infer_request()
    >>> ended = []
    >>> request.set_callback(ended.append, "done")
    >>> request.start_async([np.zeros(2, np.float32)])
    >>> request.wait_for(60_000), ended
    (True, ['done'])
    >>> request.results["y"], [layer.node_type for layer in request.profiling_info if layer.node_type == "Exp"]
    (array([1., 1.], dtype=float32), ['Exp'])
    >>> request.query_state()
    []
    >>> request.reset_state()
    >>> request.cancel()
    """

    def __init__(self, compiled: Executable) -> None:
        super().__init__(compiled)
        self._variables: dict[str, Held] = {}
        self._background: Background | None = None
        self._callback: Callable[[Any], object] | None = None
        self._profiles = str(compiled.config.get("PERF_COUNT")).upper() in ("TRUE", "YES")
        self._profile: Profile | None = None
        self.latency: float = 0.0
        """How long the last run took, in milliseconds."""
        self.userdata: Any = None
        register(self)

    def infer(
        self,
        inputs: object = None,
        share_inputs: bool = False,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
        observers: Iterable[Observer] = (),
    ) -> OVDict:
        """Run on inputs; those that are not given keep their previous values.

        Args:
            inputs: as for `CompiledModel`.
            share_inputs: keep arrays themselves for later runs, not copies.
            share_outputs: return the memory of `output_tensors`. It is not overwritten by the next run, unless programs
                have asked for these tensors, or set them.
            decode_strings: return strings as text; else as bytes in UTF-8.
            observers: see every layer's inputs and outputs. Then nothing is folded or fused.

        Raises:
            InputError: if an input is missing, unknown, or has another type or shape.
            ExecutionError: if a layer fails on the data.
            LimitError: if it takes more memory, iterations or time than the limits allow.
        """
        if self._background is not None:
            self._expect_idle()
        found = self._run(self._take(inputs, share_inputs), tuple(observers))
        if share_outputs:
            found = self._lend(found)
        return self._compiled._shown(found, decode_strings)

    def start_async(self, inputs: object = None, userdata: object = None, share_inputs: bool = False) -> None:
        """Start a run in the background; `wait` for it.

        What it raises, or its callback, is raised once: by `wait`, or where nothing waits, by the next run. What a
        callback raises is a `RuntimeError` there, whose ``__cause__`` is the exception itself.

        Args:
            inputs: as `CompiledModel` takes them.
            userdata: is given to the callback.
            share_inputs: whether the run reads the memory of the arrays instead of copies.

        Raises:
            InputError: as `infer`, here and not when waiting.
        """
        self._start(inputs, userdata, share_inputs, self._call_back, lambda: None)

    def _start(
        self,
        inputs: object,
        userdata: object,
        share: bool,
        callback: Callable[[], None],
        after: Callable[[], None],
    ) -> None:
        """Start a run. ``callback`` belongs to it; ``after`` is called when both have ended, or failed."""
        self._expect_idle()
        feeds = self._take(inputs, share)
        if userdata is not None:
            self.userdata = userdata
        run = Background(partial(self._work, feeds, callback), after)
        try:
            self._background = run
            run.start()
        except BaseException:
            run.cancel()
            raise

    def _take(self, inputs: object, share: bool) -> list[Array]:
        """Return one array for each input, and keep given ones for later runs."""
        if self._batches:
            self._join_batches()
        kept, binder = self._input_values, self._compiled._binder
        if inputs is None and (exact := binder.exact(kept)) is not None:
            return exact
        arrays = binder.bind(inputs, kept)
        for index, array in enumerate(arrays):
            held = kept[index]
            if held is None or not _holds(held, array):
                shared = (
                    share and array.flags.writeable
                )  # programs write into the tensors of inputs, as in OpenVINO
                arrays[index] = own = array if shared else np.array(array, order="C")
                kept[index] = Tensor.of(own, _element(self._compiled._inputs[index], own))
                self._batches.pop(index, None)
        return arrays

    def _run(self, feeds: list[Array], observers: tuple[Observer, ...] = ()) -> OVDict:
        watching = observers
        if self._profiles:
            from ..executor.observers import Profile

            self._profile = Profile()
            watching = (*observers, self._profile)
        start = time.perf_counter()
        results = self._compiled._run_arrays(feeds, watching, bool(observers), self._variables)
        self.latency = (time.perf_counter() - start) * 1e3
        self._results = results
        for index, tensor in self._output_values.items():
            if index in self._lent:
                tensor._hold(results[index], is_shared=False)
                continue
            tensor.copy_from(Tensor.of(results[index], tensor.element_type))
        return results

    def _work(self, feeds: list[Array], callback: Callable[[], None]) -> None:
        self._run(feeds)
        callback()

    def _call_back(self) -> None:
        if self._callback is not None:
            call_back("the request", self._callback, self.userdata)

    def wait(self) -> None:
        """Wait for the run in the background; raise what it raised."""
        self.wait_for(None)

    def wait_for(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` milliseconds; return whether the run has ended.

        Raises:
            InputError: if ``timeout`` is negative.
        """
        if timeout is not None:
            checked(timeout, int, float)
        if timeout is not None and timeout < 0:
            raise InputError(f"timeout must be at least 0, got {timeout}", code=Code.BAD_REQUEST)
        if not self._join(None if timeout is None else timeout / 1e3):
            return False
        self._raise_failure()
        return True

    def set_callback(self, callback: Callable[[Any], object], userdata: object = None) -> None:
        """Call ``callback(userdata)`` after each run in the background.

        Raises:
            InputError: if ``callback`` cannot be called.
        """
        if not callable(callback):
            got = type(callback).__name__
            raise ArgumentTypeError(f"callback must be a function, got {got}", code=Code.BAD_REQUEST)
        self._callback, self.userdata = callback, userdata

    def cancel(self) -> None:
        """For OpenVINO's API: a run cannot be stopped, so this waits for it."""
        self.wait()

    def _expect_idle(self) -> None:
        if self._background is None:
            return
        if self._runs():
            raise InputError("the request is still running; wait for it", code=Code.BAD_REQUEST)
        self._raise_failure()

    def _runs(self) -> bool:
        return self._background is not None and self._background.is_running

    def _join(self, seconds: float | None = None) -> bool:
        return self._background is None or self._background.wait(seconds)

    @property
    def _failure(self) -> BaseException | None:
        return None if self._background is None else self._background.failure

    def _forget_failure(self) -> None:
        if self._background is not None:
            self._background.failure = None

    def _raise_failure(self) -> None:
        if (reason := self._failure) is not None:
            self._forget_failure()
            raise reason

    def after_fork(self) -> None:
        """In a child process, a run in the background continues only in the thread that forked."""
        if self._background is not None:
            self._background.after_fork()

    @property
    def results(self) -> OVDict:
        """The outputs of the last run."""
        if self._results is None:
            raise InputError("nothing has run yet", code=Code.BAD_REQUEST, hint="call infer first")
        return self._compiled._shown(self._results)

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """How long each layer took in the last run, if the model was compiled with ``PERF_COUNT``."""
        from .profiling import profiling_info

        return [] if self._profile is None else profiling_info(self._profile, self._compiled.backend)

    @property
    def profiling_info(self) -> list[ProfilingInfo]:
        """How long each layer took in the last run, if the model was compiled with ``PERF_COUNT``."""
        return self.get_profiling_info()

    def query_state(self) -> list[VariableState]:
        """Return the variables of this request."""
        return variable_states(self._compiled, self._variables)

    def reset_state(self) -> None:
        """Give the variables their initial values."""
        self._variables.clear()

    def __repr__(self) -> str:
        return repr(self._compiled).replace("CompiledModel", "InferRequest", 1)


def _holds(tensor: Tensor, array: Array) -> bool:
    """Return whether a tensor is where an array comes from; one of packed elements is unpacked for each run."""
    return tensor._held is array or (tensor._element.is_packed and np.array_equal(tensor._data, array))


def _element(port: Output, array: Array) -> ElementType:
    element = port.element_type
    return element_of(array) if element is ElementType.dynamic else element
