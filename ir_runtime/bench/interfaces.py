"""Protocols for the part of the API, shared by ``ir_runtime`` and ``openvino``, that measurements use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..ir.array import Array

__all__ = [
    "Compiled",
    "CompiledNode",
    "Element",
    "Port",
    "ProfiledLayer",
    "Queue",
    "RawTensor",
    "Request",
    "RuntimeApi",
]


class Element(Protocol):
    """An element type."""

    bitwidth: int

    def to_string(self) -> str: ...


class Port(Protocol):
    """An input or output of a model."""

    def get_element_type(self) -> Element: ...


class RawTensor(Protocol):
    """A tensor with an array that shares its memory."""

    data: Array


class _Named(Protocol):
    name: str


class ProfiledLayer(Protocol):
    """The time of a layer in a run."""

    node_name: str
    node_type: str
    real_time: timedelta
    status: _Named


class _Results(Protocol):
    def to_tuple(self) -> tuple[Array, ...]: ...


class Request(Protocol):
    """An infer request."""

    model_inputs: Sequence[Port]
    latency: float

    def set_input_tensor(self, index: int, tensor: RawTensor) -> object: ...
    def infer(self, *, share_outputs: bool = False) -> _Results: ...
    def query_state(self) -> Sequence[object]: ...
    def reset_state(self) -> object: ...
    def get_profiling_info(self) -> Sequence[ProfiledLayer]: ...


class Queue(Protocol):
    """A queue of requests that run concurrently."""

    def __iter__(self) -> Iterator[Request]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Request: ...
    def get_idle_request_id(self) -> int: ...
    def set_callback(self, callback: Callable[[Request, object], None]) -> object: ...
    def start_async(self) -> object: ...
    def wait_all(self) -> object: ...


class CompiledNode(Protocol):
    """An execution node of OpenVINO: a layer as compiled, with the layers fused into it."""

    def get_rt_info(self) -> Mapping[str, object]: ...
    def get_friendly_name(self) -> str: ...
    def get_type_name(self) -> str: ...


class _RuntimeModel(Protocol):
    def get_ordered_ops(self) -> Sequence[CompiledNode]: ...


class Compiled(Protocol):
    """A compiled model."""

    outputs: Sequence[Port]

    def create_infer_request(self) -> Request: ...
    def get_runtime_model(self) -> _RuntimeModel: ...
    def get_property(self, name: str) -> Element: ...


class _Model(Protocol):
    def reshape(self, shapes: object) -> object: ...


class _Core(Protocol):
    def read_model(self, *files: str, **limits: object) -> _Model: ...
    def compile_model(self, model: _Model, device: str, config: Mapping[str, str]) -> Compiled: ...


class RuntimeApi(Protocol):
    """The module of a runtime."""

    __name__: str
    __version__: str
    Core: Callable[[], _Core]
    Tensor: Callable[..., RawTensor]
    PartialShape: Callable[[str], object]
    AsyncInferQueue: Callable[[Compiled, int], Queue]
