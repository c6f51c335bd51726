"""Several requests that share the work."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

from .compiled import CompiledModel
from .request import InferRequest

__all__ = ["AsyncInferQueue"]


class AsyncInferQueue:
    """A pool of requests, each of which runs in the background. As OpenVINO's ``AsyncInferQueue``.

    Args:
        model: what they run; those that run at once share its threads.
        jobs: how many there are; by default as many as there are threads.
    """

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        self._requests = [
            model.create_infer_request() for _ in range(jobs or model.get_property("INFERENCE_NUM_THREADS"))
        ]
        self._idle: queue.Queue[int] = queue.Queue()
        self._callback: Callable[[InferRequest, Any], None] | None = None
        self._failures: list[BaseException] = []
        self._userdata: list[Any] = [None] * len(self._requests)
        for index in range(len(self._requests)):
            self._idle.put(index)

    def set_callback(self, callback: Callable[[InferRequest, Any], None]) -> None:
        """Call ``callback(request, userdata)`` after each run."""
        self._callback = callback

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Run on the request that has been idle longest; waits for one if all are busy.

        Raises:
            InputError: if the inputs do not fit.
        """
        index = self._idle.get()
        request = self._requests[index]
        try:
            self._collect(request)
            request.set_callback(lambda _: self._done(request, userdata))
            request._after = lambda: self._idle.put(index)
            self._userdata[index] = userdata
            request.start_async(inputs, userdata, share_inputs)
        except BaseException:
            self._idle.put(index)
            raise

    @property
    def userdata(self) -> list[Any]:
        """What was last given to each request."""
        return list(self._userdata)

    def get_idle_request_id(self) -> int:
        """The request that runs next; waits for one if all are busy."""
        with self._idle.not_empty:
            while not self._idle.queue:
                self._idle.not_empty.wait()
            return int(self._idle.queue[0])

    def is_ready(self) -> bool:
        """Whether a request is idle."""
        return not self._idle.empty()

    def wait_all(self) -> None:
        """Wait for every run; raise the first failure."""
        for request in self._requests:
            self._collect(request)
        if self._failures:
            first, self._failures = self._failures[0], []
            raise first

    def _done(self, request: InferRequest, userdata: Any) -> None:
        if self._callback is not None:
            self._callback(request, userdata)

    def _collect(self, request: InferRequest) -> None:
        try:
            request.wait()
        except Exception as reason:
            self._failures.append(reason)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> InferRequest:
        return self._requests[index]

    def __len__(self) -> int:
        return len(self._requests)

    def __repr__(self) -> str:
        return f"<AsyncInferQueue: {len(self)} jobs>"
