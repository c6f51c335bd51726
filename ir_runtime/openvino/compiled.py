"""Compiled models and their inference requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

from .._util.garbage import no_collection
from .._util.wrong_arguments import ArgumentTypeError
from ..backends import awaited
from ..backends.common.kept_memory import release_memory
from ..codes import Code
from ..errors import InputError
from ..executor.step import Observer
from ..ir.quantized_cache import Held
from ..limits import Limits
from .config import check_config, describe, wants_f16
from .const_ports import show_ports
from .devices import CPU
from .executable import Executable
from .model import Model
from .nodes import Output
from .request import Request
from .results import OVDict
from .state import VariableState, variable_states

if TYPE_CHECKING:
    from .patching import Replacements

__all__ = ["CompiledModel", "InferRequest"]


class CompiledModel(Executable):
    """A model compiled for a backend. As OpenVINO's ``CompiledModel``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([-1], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x]))
    >>> compiled({"x": np.zeros(3, np.float32)})[compiled.output()]
    array([1., 1., 1.], dtype=float32)
    >>> compiled.input().partial_shape
    <PartialShape: [?]>
    >>> import io
    >>> saved = compiled.export_model()
    >>> ov.Core().import_model(saved, "CPU").infer_new_request(np.zeros(1, np.float32))[0]
    array([1.], dtype=float32)
    >>> compiled.get_property("INFERENCE_PRECISION_HINT"), compiled.provisional, compiled.query_state()
    (<Type: 'float32'>, False, [])
    >>> compiled.reset_state()
    >>> compiled.release_memory()
    >>> [node.get_type_name() for node in compiled.get_runtime_model().get_ordered_ops()]
    ['Parameter', 'ExecutionNode', 'Result']
    >>> compiled.create_infer_request().infer(np.zeros(2, np.float32))[0]
    array([1., 1.], dtype=float32)

    Args:
        model: what to run; later changes to it do not matter.
        backend: ``reference``, ``numpy`` or ``numba``; by default what ``IR_RUNTIME_BACKEND`` says, else numba
            for models of more than a megabyte where it is installed, else numpy.
        outputs: further tensors to return: tensor names, layer names, globs, (layer name, output).
        config: OpenVINO's properties.
        device: the name of the device it is compiled for; all run on the CPU.
        limits: bounds on what running it may ask for; by default those the model was read with.
        strict: refuse inputs of another element type than the model's, instead of casting them.
    """

    _model: Model

    def __init__(
        self,
        model: Model,
        backend: str | None = None,
        outputs: Iterable[str | tuple[str, int] | Output] | str | None = None,
        config: Mapping[str, object] | None = None,
        *,
        device: str = CPU,
        limits: Limits | None = None,
        strict: bool = False,
    ) -> None:
        checked = check_config(config)
        if device == "MULTI" and "PERFORMANCE_HINT" not in checked:
            checked |= check_config({"PERFORMANCE_HINT": "THROUGHPUT"})
        with no_collection():
            runnable = model._runnable(wants_f16(checked))
            runnable._compute_also(outputs or ())
            super().__init__(runnable, backend, checked, limits or model.limits, strict)
        self._device = device
        self._variables: dict[str, Held] = {}
        self._request: InferRequest | None = None
        self._has_run = False

    @property
    def provisional(self) -> bool:
        """Whether another backend answers once its kernels are compiled, and numpy serves until then.

        Results of two backends differ by rounding. A ``backend`` that is asked for is waited for.
        """
        return self.backend != awaited(self._requested_backend, self._model._is_large)

    @property
    def _infer_request(self) -> InferRequest | None:
        """The request that calls of the compiled model itself run on; None before the first call, as in OpenVINO.

        It has what a call reads and returns from when a program asks for it; with ``PERF_COUNT``, from the first call.
        """
        if self._request is None and self._has_run:
            self._request = InferRequest(self)
            self._request._variables = self._variables
        return self._request

    @_infer_request.setter
    def _infer_request(self, request: InferRequest | None) -> None:
        if not isinstance(request, InferRequest | None):
            got = type(request).__name__
            raise ArgumentTypeError(f"expected a request or None, got {got}", code=Code.BAD_REQUEST)
        self._request, self._has_run = request, request is not None
        self._variables = {} if request is None else request._variables

    def __call__(
        self,
        inputs: object = None,
        share_inputs: bool = True,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
        observers: Sequence[Observer] = (),
        patch: Replacements | None = None,
    ) -> OVDict:
        """Run on inputs: a mapping by index, name or port; a sequence; or the only array.

        Args:
            inputs: the data.
            share_inputs: for OpenVINO's signature; inputs are never changed.
            share_outputs: for OpenVINO's signature; results are always the caller's own.
            decode_strings: return strings as text; else as bytes in UTF-8.
            observers: see every layer's inputs and outputs. Then nothing is folded or fused.
            patch: by the name of a layer, a function of its outputs that returns what the rest of the run reads in
                their place, or ``None`` for no change. Then nothing is folded or fused.

        Raises:
            InputError: if an input is missing, unknown, or has another type or shape; if the layer is unknown.
            ExecutionError: if a layer fails on the data.
            LimitError: if it takes more memory, iterations or time than the limits allow.
        """
        self._has_run = True
        request = self._request if self._performance is None else self._infer_request
        if request is not None and not patch:
            request._forget_inputs()  # a call that lacks one is refused
            return request.infer(
                inputs, share_inputs, share_outputs, decode_strings=decode_strings, observers=observers
            )
        every_layer = bool(observers or patch)
        found = self._run(inputs, (), observers, every_layer, self._variables, self._patch(patch))
        return self._shown(found, decode_strings)

    def infer_new_request(self, inputs: object = None) -> OVDict:
        """Run once, on a new request."""
        return self._shown(self._run(inputs))

    def create_infer_request(self) -> InferRequest:
        """Return a request that keeps its inputs and outputs between runs."""
        return InferRequest(self)

    def get_property(self, name: str) -> Any:
        """Return the value of a property.

        Raises:
            InputError: if the property is unknown.
        """
        from .supported import compiled_value

        found = compiled_value(name, self._device, self._streams, self.config)
        if name == "NETWORK_NAME":
            return self._model.friendly_name
        return describe(name, self.config, self.backend) if found is None else found

    def set_property(self, properties: Mapping[str, object]) -> None:
        """Refuse to change what is compiled, as OpenVINO does.

        >>> import ir_runtime as ov
        >>> from ir_runtime import opset1
        >>> x = opset1.parameter([2], "f32", name="x")
        >>> compiled = ov.compile_model(ov.Model([opset1.relu(x)], [x]))
        >>> compiled.set_property({"NUM_STREAMS": 2})  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        InputError: a compiled model has the properties that it was compiled with

        Raises:
            InputError: always.
        """
        message = "a compiled model has the properties that it was compiled with"
        raise InputError(message, code=Code.BAD_REQUEST, hint="give them to compile_model as config")

    def export_model(self, model_stream: IO[bytes] | None = None) -> BytesIO | None:
        """Write the model as bytes that `Core.import_model` reads, on any machine.

        Args:
            model_stream: the file to write to.

        Returns:
            an open file with the bytes, unless there is one to write to.

        Raises:
            InputError: if ``model_stream`` is not a file.
        """
        from .blob import write_blob

        if model_stream is not None and not hasattr(model_stream, "write"):
            got = type(model_stream).__name__
            raise ArgumentTypeError(
                f"expected a file that is open for writing, got {got}", code=Code.BAD_REQUEST
            )
        blob = write_blob(self._model, wants_f16(self.config))
        if model_stream is None:
            return BytesIO(blob)
        model_stream.write(blob)
        return None

    def get_runtime_model(self) -> Model:
        """Return the model that runs: a node for each kernel, with the layers that it computes in its ``rt_info``.

        Where the model was compiled with ``PERF_COUNT``, they also have their time and their layout, of past runs.
        """
        from .runtime_model import runtime_model

        return runtime_model(self)

    def query_state(self) -> list[VariableState]:
        """Return the variables that calls of the compiled model itself read and assign."""
        return variable_states(self, self._variables)

    def reset_state(self) -> None:
        """Give those variables their initial values."""
        self._variables.clear()

    def release_memory(self) -> None:
        """Return memory to the system that is kept for the large results of the next run.

        Compiled models share it, and it is returned when the last of them is deleted.
        """
        release_memory()

    def __reduce__(self) -> tuple[Callable[..., CompiledModel], tuple[object, ...]]:
        """Compile the model again for a copy; its variables have their initial values."""
        make = partial(CompiledModel, device=self._device, limits=self.limits, strict=self.strict)
        return make, (self._model, self._requested_backend, None, self.config)

    def __repr__(self) -> str:
        return f"<CompiledModel:\n{show_ports(self._inputs, self._outputs)}>"


class InferRequest(Request):
    """Keeps inputs and outputs between runs. As OpenVINO's ``InferRequest``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> request = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x])).create_infer_request()
    >>> request.start_async({"x": np.zeros(2, np.float32)})
    >>> request.wait()
    >>> request.get_output_tensor().data
    array([1., 1.], dtype=float32)
    >>> request.get_compiled_model().backend
    'numpy'
    """

    def __init__(self, compiled: CompiledModel) -> None:
        super().__init__(compiled)
        self._compiled_model = compiled

    def get_compiled_model(self) -> CompiledModel:
        """Return the model that this request runs."""
        return self._compiled_model
