"""`AsyncInferQueue`, a pool of inference requests."""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, SupportsIndex

from .._util.absent import ExplainsAbsent
from .._util.forks import register
from .._util.wrong_arguments import ArgumentTypeError, OutOfRangeError
from ..codes import Code
from .compiled import CompiledModel, InferRequest

__all__ = ["AsyncInferQueue"]


class AsyncInferQueue(ExplainsAbsent):
    """A pool of inference requests that run in the background. As OpenVINO's ``AsyncInferQueue``.

    An exception of a run or a callback is raised once, by the next call that starts a run, waits, or queries
    idle requests, with a note that names its request. `SystemExit` and `KeyboardInterrupt` take precedence.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([1], np.float32, name="x")
    >>> queue = ov.AsyncInferQueue(ov.compile_model(ov.Model([opset1.exp(x)], [x])), jobs=2)
    >>> found = {}
    >>> queue.set_callback(lambda request, number: found.update({number: float(request.results[0][0])}))
    >>> for number in range(3):
    ...     queue.start_async({"x": np.zeros(1, np.float32)}, userdata=number)
    >>> queue.wait_all()
    >>> sorted(found.items())
    [(0, 1.0), (1, 1.0), (2, 1.0)]
    >>> 2 in queue.userdata, queue.is_ready(), queue.get_idle_request_id() in range(len(queue))
    (True, True, True)

    Args:
        model: the compiled model. Concurrent runs share its threads.
        jobs: the number of requests. The default is ``OPTIMAL_NUMBER_OF_INFER_REQUESTS``, which is 1 unless the model
            was compiled for throughput. With one request, callbacks are called in the order of the runs.

    Raises:
        InputError: if ``model`` is not a compiled model, or ``jobs`` is not a non-negative integer.
    """

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        if not isinstance(model, CompiledModel):
            type_name = type(model).__name__
            raise ArgumentTypeError(f"expected a compiled model, got {type_name}", code=Code.BAD_REQUEST)
        if not isinstance(jobs, SupportsIndex) or operator.index(jobs) < 0:
            raise ArgumentTypeError(f"jobs must be a number from 0 on, got {jobs!r}", code=Code.BAD_REQUEST)
        self._requests = [model.create_infer_request() for _ in range(jobs or model._streams.count)]
        self._idle = deque(range(len(self._requests)))
        self._callback: Callable[[InferRequest, Any], object] | None = None
        self._failed: dict[int, None] = {}
        """Requests with failures that have not been raised yet."""
        self._userdata: list[object] = [None] * len(self._requests)
        self._renew()
        register(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def set_callback(self, callback: Callable[[InferRequest, Any], object]) -> None:
        """Call ``callback(request, userdata)`` after each run.

        Raises:
            InputError: if ``callback`` is not callable.
        """
        if not callable(callback):
            type_name = type(callback).__name__
            raise ArgumentTypeError(f"callback must be a function, got {type_name}", code=Code.BAD_REQUEST)
        self._callback = callback

    def start_async(self, inputs: object = None, userdata: object = None, share_inputs: bool = False) -> None:
        """Start a run on the request that has been idle longest. Wait for one if all are busy.

        Args:
            inputs: as for `CompiledModel`.
            userdata: passed to the callback.
            share_inputs: use the memory of the arrays instead of copies.

        Raises:
            InputError: if the inputs do not match the model.
            BaseException: if an earlier run or its callback raised it. In that case no run is started.
        """
        lent: list[int] = []
        try:
            with self._lock:
                self._wait_for_idle()
                self._raise_failure()
                lent = [self._idle[0]]
                del self._idle[0]  # no interrupt can occur without a call in between
            self._userdata[lent[0]] = userdata
            request = self._requests[lent[0]]
            request._join()  # it is marked as idle just before it ends
            done = partial(self._finish, request, userdata)
            request._start(inputs, userdata, share_inputs, done, partial(self._give_back, lent))
        except BaseException:
            if lent and not self._requests[lent[0]]._runs():
                self._give_back(lent)
            raise

    @property
    def userdata(self) -> list[Any]:
        """The most recent userdata of each request."""
        return list(self._userdata)

    def get_idle_request_id(self) -> int:
        """Return the index of the request that will run next. Wait for one if all are busy."""
        with self._lock:
            self._wait_for_idle()
            self._raise_failure()
            return self._idle[0]

    def is_ready(self) -> bool:
        """Return whether a request is idle."""
        with self._lock:
            self._raise_failure()
            return bool(self._idle)

    def wait_all(self) -> None:
        """Wait for all runs, and raise the first exception, with notes about further ones."""
        for request in self._requests:
            request._join()
        with self._lock:
            self._raise_failure(all=True)

    def _wait_for_idle(self) -> None:
        while not self._idle:
            self._changed.wait()

    def _give_back(self, lent: list[int]) -> None:
        """Mark a request as idle, and empty the list that holds its index so that this happens only once."""
        with self._lock:
            if lent:
                if self._requests[lent[0]]._failure is not None:
                    self._failed[lent[0]] = None
                self._idle.append(lent[0])
                del lent[0]
                self._changed.notify_all()

    def _raise_failure(self, all: bool = False) -> None:
        """Raise the first exception, if there is any; with ``all``, add notes about further ones."""
        failures = {n: reason for n in self._failed if (reason := self._requests[n]._failure) is not None}
        if not failures:
            return
        first = min(failures, key=lambda n: not isinstance(failures[n], SystemExit | KeyboardInterrupt))
        reason = failures.pop(first)
        others = failures if all else {}
        _note(reason, f"raised by request {first}, which was given {self._userdata[first]!r:.100}")
        for number, other in others.items():
            _note(reason, f"request {number} failed, too: {type(other).__name__}: {other}")
        for number in (first, *others):
            self._requests[number]._forget_failure()
            del self._failed[number]
        raise reason

    def _finish(self, request: InferRequest, userdata: object) -> None:
        if self._callback is not None:
            self._callback(request, userdata)

    def after_fork(self) -> None:
        """Mark the requests that ran in other threads as failed in a child process."""
        self._renew()
        for request in self._requests:
            request.after_fork()
        lost = [n for n, request in enumerate(self._requests) if not request._runs() and n not in self._idle]
        self._failed |= dict.fromkeys(lost)
        self._idle.extend(lost)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> InferRequest:
        if not -len(self) <= index < len(self):
            raise OutOfRangeError(
                f"the queue has {len(self)} requests, asked for {index}", code=Code.NO_SUCH_NAME
            )
        return self._requests[index]

    def __len__(self) -> int:
        return len(self._requests)

    def __repr__(self) -> str:
        return f"<AsyncInferQueue: {len(self)} jobs>"


def _note(reason: BaseException, text: str) -> None:
    if text not in getattr(reason, "__notes__", ()):
        reason.add_note(text)
