"""Compiled models, and the inference requests that run them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from threading import get_ident
from typing import IO, TYPE_CHECKING, Any, overload

import numpy as np

from .._util.absent import ExplainsAbsent
from .._util.forks import register
from .._util.scoped import no_collection
from .._util.wrong_arguments import ArgumentTypeError, checked
from ..analysis.infer import Inferred
from ..backends import load
from ..backends.common.kept_memory import kept_memory, release_memory
from ..backends.core.threads import at_most
from ..codes import Code
from ..compiler.compile import compile_plan
from ..compiler.kv_cache import APPEND
from ..diagnostics import Diagnostics
from ..errors import InputError
from ..executor.context import State
from ..executor.plan import ExecutionPlan
from ..executor.step import Observer, Patch
from ..ir.element import ElementType
from ..ir.graph import Port
from ..ir.quantized_cache import Held
from ..ir.tensor import Array, TensorType, Value
from ..limits import Limits
from .background import Background
from .callbacks import call_back
from .casting import as_array
from .config import check_config, describe, effective_properties, precision_of, wants_f16
from .const_ports import ConstOutput, show_ports
from .devices import CPU, Streams
from .feeding import Binder
from .model import Model
from .names import find_index, find_port, one_key
from .node import GraphNodes, Output
from .results import OVDict, summarize_port, unshare
from .state import VariableState
from .tensor import Tensor
from .tensor_data import element_of

# Imported on first use for faster startup.
if TYPE_CHECKING:
    from ..executor.step import Profile
    from .patching import Replacements
    from .profiling import Performance, ProfilingInfo

__all__ = ["CompiledModel", "InferRequest"]

_MAY_BE_STRINGS = (ElementType.string, ElementType.dynamic)


class CompiledModel(ExplainsAbsent):
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
    >>> compiled.get_property("INFERENCE_PRECISION_HINT"), compiled.query_state()
    (<Type: 'float32'>, [])
    >>> compiled.reset_state()
    >>> compiled.release_memory()
    >>> [node.get_type_name() for node in compiled.get_runtime_model().get_ordered_ops()]
    ['Parameter', 'ExecutionNode', 'Result']
    >>> compiled.inputs, len(compiled.outputs)
    ([<ConstOutput: names[x] shape[?] type: f32>], 1)
    >>> compiled.create_infer_request().infer(np.zeros(2, np.float32))[0]
    array([1., 1.], dtype=float32)

    Args:
        model: the model. Later changes to it have no effect.
        backend: ``reference``, ``numpy`` or ``native``. The default is ``IR_RUNTIME_BACKEND`` if set, otherwise
            native if it has kernels for the CPU, otherwise numpy.
        outputs: additional tensors to return: tensor names, layer names, globs, or (layer name, output
            index).
        config: OpenVINO's properties.
        device: the device name. All devices run on the CPU.
        limits: resource limits of a run. The default is those with which the model was read.
        strict: refuse inputs of another element type instead of casting them.
    """

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
        self.config: dict[str, object] = check_config(config)
        if device == "MULTI" and "PERFORMANCE_HINT" not in self.config:
            self.config |= check_config({"PERFORMANCE_HINT": "THROUGHPUT"})
        self._device = device
        self.strict: bool = strict
        self.limits: Limits = limits or model.limits
        self._streams = Streams.of(self.config)
        with no_collection():
            self._model = model._runnable(wants_f16(self.config))
            self._model._compute_also(outputs or ())
            self._inputs = tuple(self._model._const_inputs())
            self._outputs = tuple(self._model._const_outputs())
            self._binder = Binder(self._inputs, strict)
            self._returns_strings = any(o.element_type in _MAY_BE_STRINGS for o in self._outputs)
            self._weights = self._model._document.weights
            self._weights.check()
            self._load_backend(backend)
            self._plan = self._compile(fold=self.backend != "reference")
        packs = any(step.kernel_name == APPEND for step in self._plan.steps)
        precision = self._precision if packs else replace(self._precision, kv_cache="f32")
        self.config |= effective_properties(self.config, precision)
        self._unfused_plan: ExecutionPlan | None = None
        self._drawn: dict[int, int] = {}
        """The position in the random stream of each random operation, by the id of the operation."""
        self._running: dict[object, int] = {}
        """The calling thread of each run in progress. Runs share the compute threads."""
        self._lock = threading.Lock()
        self._memory = kept_memory()
        self._performance: Performance | None = None
        if self.config.get("PERF_COUNT"):
            from .profiling import Performance

            self._performance = Performance()
        self._variables: dict[str, Held] = {}
        self._request: InferRequest | None = None
        self._has_run = False
        register(self)

    def _load_backend(self, backend: str | None) -> None:
        requested = self.config.get("BACKEND")
        self._requested_backend = backend or (None if requested is None else str(requested))
        self.backend: str
        self.backend, self._chain = load(self._requested_backend)
        is_stateful = bool(self._model._graph.of_type("ReadValue"))
        self._precision = precision_of(self.config, self._chain, is_stateful)

    @property
    def inputs(self) -> list[ConstOutput]:
        """The inputs, in the order of the file."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[ConstOutput]:
        """The outputs, in the order of the file, followed by added ones."""
        return list(self._outputs)

    def input(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> ConstOutput:
        """Return an input by index or name, or the only input.

        Raises:
            InputError: if the index or name is unknown, or no key is given and there is not exactly one
                input.
        """
        return find_port(self._inputs, one_key(key, index, tensor_name), "input")

    def output(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> ConstOutput:
        """Return an output by index or name, or the only output.

        Raises:
            InputError: if the index or name is unknown, or no key is given and there is not exactly one
                output.
        """
        return find_port(self._outputs, one_key(key, index, tensor_name), "output")

    @property
    def _infer_request(self) -> InferRequest | None:
        """The request for calls of the compiled model itself, None before the first call as in OpenVINO.

        Calls store their inputs and outputs in it once a program has accessed it, or with ``PERF_COUNT`` from
        the first call.
        """
        if self._request is None and self._has_run:
            self._request = InferRequest(self)
            self._request._variables = self._variables
        return self._request

    @_infer_request.setter
    def _infer_request(self, request: InferRequest | None) -> None:
        if not isinstance(request, InferRequest | None):
            type_name = type(request).__name__
            raise ArgumentTypeError(f"expected a request or None, got {type_name}", code=Code.BAD_REQUEST)
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
        """Run the model on a mapping of inputs by index, name or port, a sequence of inputs, or the only input.

        Args:
            inputs: the input arrays or tensors.
            share_inputs: accepted for compatibility and ignored; inputs are never modified.
            share_outputs: accepted for compatibility; with a request in use, as for `InferRequest.infer`.
            decode_strings: return strings as `str` instead of UTF-8 bytes.
            observers: objects notified of the inputs and outputs of every layer; disables folding and fusion.
            patch: functions by layer name, each of which takes the layer's outputs and returns replacements,
                or None to keep them; disables folding and fusion.

        Raises:
            InputError: if an input is missing, unknown, or of the wrong type or shape, or ``patch`` names an
                unknown layer.
            ExecutionError: if a layer fails on the data.
            LimitError: if the run exceeds the limits of memory, iterations or time.
        """
        self._has_run = True
        request = self._request if self._performance is None else self._infer_request
        if request is not None and not patch:
            request._forget_inputs()  # a call must provide every input
            return request.infer(
                inputs, share_inputs, share_outputs, decode_strings=decode_strings, observers=observers
            )
        every_layer = bool(observers or patch)
        results = self._run(inputs, (), observers, every_layer, self._variables, self._patch(patch))
        return self._convert_strings(results, decode_strings)

    def _compile(self, fold: bool) -> ExecutionPlan:
        ports = [output._port for output in self._outputs]
        with at_most(self._streams.threads):
            return compile_plan(
                self._model._graph,
                self._model._values,
                ports,
                self._chain,
                fold,
                self.limits,
                None,
                self._precision,
            )

    def _computed_type(self, element: ElementType) -> ElementType:
        """Return the element type in which values of a declared type are computed."""
        is_widened = element is ElementType.f16 and self._chain and self._precision.f16 == "f32"
        return ElementType.f32 if is_widened else element

    def _compile_unfused(self) -> ExecutionPlan:
        with self._lock:
            if self._unfused_plan is None:
                self._unfused_plan = self._compile(fold=False)
            return self._unfused_plan

    def _run(
        self,
        inputs: object,
        tensors: Sequence[Tensor | None] = (),
        observers: Sequence[Observer] = (),
        every_layer: bool = False,
        variables: dict[str, Held] | None = None,
        patch: Patch | None = None,
    ) -> OVDict:
        feeds = self._binder.bind(inputs, tensors)
        return self._run_arrays(feeds, observers, every_layer, variables, patch)

    def _patch(self, replacements: Replacements | None) -> Patch | None:
        if not replacements:
            return None
        from .patching import patch_of

        return patch_of(self._model._graph, replacements)

    def _run_arrays(
        self,
        feeds: Sequence[Array],
        observers: Sequence[Observer] = (),
        every_layer: bool = False,
        variables: dict[str, Held] | None = None,
        patch: Patch | None = None,
    ) -> OVDict:
        plan = self._compile_unfused() if every_layer else self._plan
        if self._performance is not None and not every_layer:
            observers = [*observers, self._performance]
        if self.backend != "reference":  # the reference copies weights into memory
            self._weights.check()
        state = State({} if variables is None else variables, {}, self._advance)
        if self._streams.threads == 1:
            arrays = plan.run(feeds, observers, state, self.limits, patch, 1)
        else:
            run = object()
            try:
                self._running[run] = get_ident()
                threads = self._streams.share(len(self._running))
                arrays = plan.run(feeds, observers, state, self.limits, patch, threads)
            finally:
                if run in self._running:
                    del self._running[run]
        if state.assigned:
            state.commit(feeds)
        shared = [*feeds, *state.arrays] if state.values else feeds
        return OVDict(self._outputs, unshare(arrays, shared, plan.base_buffers))

    def _convert_strings(self, results: OVDict, decode_strings: bool = True) -> OVDict:
        """Return the results with strings decoded or encoded as requested."""
        return results._with_strings(decode_strings) if self._returns_strings else results

    def _advance(self, operation: object, count: int) -> int:
        """Advance the random stream of an operation by ``count``, and return its previous position."""
        with self._lock:
            start = self._drawn.get(id(operation), 0)
            self._drawn[id(operation)] = start + count
        return start

    def after_fork(self) -> None:
        """Drop the runs of other threads, which do not exist in a child process."""
        self._lock, me = threading.Lock(), get_ident()
        self._running = {run: thread for run, thread in self._running.items() if thread == me}

    def infer_new_request(self, inputs: object = None) -> OVDict:
        """Run the model once in a new request."""
        return self._convert_strings(self._run(inputs))

    def create_infer_request(self) -> InferRequest:
        """Return a new request, which keeps its inputs and outputs between runs."""
        return InferRequest(self)

    def get_property(self, name: str) -> Any:
        """Return the value of a property.

        Raises:
            InputError: if the property is unknown.
        """
        from .devices import compiled_value

        value = compiled_value(name, self._device, self._streams, self.config)
        if name == "NETWORK_NAME":
            return self._model.friendly_name
        return describe(name, self.config, self.backend) if value is None else value

    def set_property(self, properties: Mapping[str, object]) -> None:
        """Raise an error, as OpenVINO does: a compiled model cannot be changed.

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
        """Write a portable blob of the model, which `Core.import_model` reads on any machine.

        Args:
            model_stream: the file to write to.

        Returns:
            a `BytesIO` with the blob, or None if ``model_stream`` is given.

        Raises:
            InputError: if ``model_stream`` is not a file.
        """
        from .blob import write_blob

        if model_stream is not None and not hasattr(model_stream, "write"):
            type_name = type(model_stream).__name__
            raise ArgumentTypeError(
                f"expected a file that is open for writing, got {type_name}", code=Code.BAD_REQUEST
            )
        blob = write_blob(self._model, wants_f16(self.config))
        if model_stream is None:
            return BytesIO(blob)
        model_stream.write(blob)
        return None

    def get_runtime_model(self) -> Model:
        """Return the execution graph: a node for each kernel call, with its original layers in ``rt_info``.

        If the model was compiled with ``PERF_COUNT``, nodes also have the average time and the layouts of past runs.
        """
        from .profiling import ExecutionGraph

        model = self._model
        types = {port: value.type for port, value in model._values.items()}
        graph = ExecutionGraph(model._graph, types, self._plan, self.backend, self._performance)
        outputs = [(port._port, port.node.friendly_name) for port in self._outputs]
        document = graph.document([port._port for port in self._inputs], outputs, model.friendly_name)
        values = Inferred()
        values.update({port: Value(type) for port, type in graph.port_types.items()})
        runtime_model = Model.__new__(Model)
        runtime_model._start(document, GraphNodes(document.graph, values), Diagnostics())
        return runtime_model

    def query_state(self) -> list[VariableState]:
        """Return the variables of calls of the compiled model itself, as opposed to those of requests."""
        return self._variable_states(self._variables)

    def _variable_states(self, values: dict[str, Held]) -> list[VariableState]:
        """Return the model's variables in file order, backed by ``values``."""
        model, types = self._model, dict[str, TensorType]()
        for layer in model._graph.of_type("ReadValue"):
            types.setdefault(layer.attributes["variable_id"], model._values[Port(layer.id, 0)].type)
        return [
            VariableState(name, type, values, self._computed_type(type.element))
            for name, type in types.items()
        ]

    def reset_state(self) -> None:
        """Reset the variables of calls of the compiled model itself to their initial values."""
        self._variables.clear()

    def release_memory(self) -> None:
        """Return memory that is cached for large results to the system.

        All compiled models share this cache. It is freed with the last of them.
        """
        release_memory()

    def __reduce__(self) -> tuple[Callable[..., CompiledModel], tuple[object, ...]]:
        """Pickle the model and its settings. Unpickling compiles it again, with variables in their initial state."""
        make = partial(CompiledModel, device=self._device, limits=self.limits, strict=self.strict)
        return make, (self._model, self._requested_backend, None, self.config)

    def __repr__(self) -> str:
        return f"<CompiledModel:\n{show_ports(self._inputs, self._outputs)}>"


class InferRequest(ExplainsAbsent):
    """An inference request, which keeps its inputs and outputs between runs. As OpenVINO's ``InferRequest``.

    Inputs and outputs are accessed by index, name or port:

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> powers = ov.Model([opset1.exp(x, name="y")], [x], "powers")
    >>> request = ov.compile_model(powers).create_infer_request()
    >>> zeros, total = ov.Tensor(np.zeros(2, np.float32)), ov.Tensor(np.zeros(2, np.float32))
    >>> request.set_input_tensor(zeros)
    >>> request.set_output_tensor(0, total)
    >>> found = request.infer()
    >>> total.data, request.get_input_tensor(0) is zeros, request.input_tensors, request.output_tensors
    (array([1., 1.], dtype=float32), True, [<Tensor: shape[2] type: f32>], [<Tensor: shape[2] type: f32>])
    >>> request.set_tensor("x", ov.Tensor(np.ones(2, np.float32)))
    >>> request.set_tensors({request.model_outputs[0]: total})
    >>> request.set_input_tensors([zeros])
    >>> request.set_output_tensors({0: total})
    >>> request.model_inputs, request.get_tensor("x").data
    ([<ConstOutput: names[x] shape[2] type: f32>], array([0., 0.], dtype=float32))

    A background run calls the callback before ``wait`` returns:

    >>> ended = []
    >>> request.set_callback(ended.append, "first run")
    >>> request.start_async()
    >>> request.wait()
    >>> ended, request.results[0]
    (['first run'], array([1., 1.], dtype=float32))
    >>> print(request)  # doctest: +ELLIPSIS
    InferRequest of 'powers', run
      takes x f32[2]
      gives ... f32[2]

    Batch entries may be separate tensors if the layout of the input starts with N:

    >>> images = opset1.parameter([2, 3], np.float32, name="images")
    >>> images.set_layout(ov.Layout("NC"))
    >>> request = ov.compile_model(ov.Model([opset1.exp(images)], [images])).create_infer_request()
    >>> request.set_input_tensors([ov.Tensor(np.zeros((1, 3), np.float32)), ov.Tensor(np.zeros((1, 3), np.float32))])
    >>> request.infer()[0].shape
    (2, 3)
    """

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._input_values: list[Tensor | None] = [None] * len(compiled._inputs)
        self._output_values: dict[int, Tensor] = {}
        self._lent: set[int] = set()
        """Outputs whose tensors adopt the arrays of each run instead of being written in place."""
        self._batches: dict[int, Sequence[Tensor]] = {}
        """The tensors of the batch entries of inputs, which are concatenated before each run."""
        self._results: OVDict | None = None
        self._variables: dict[str, Held] = {}
        self._background: Background | None = None
        self._callback: Callable[[Any], object] | None = None
        self._profiles = str(compiled.config.get("PERF_COUNT")).upper() in ("TRUE", "YES")
        self._profile: Profile | None = None
        self.latency: float = 0.0
        """The duration of the last run in milliseconds."""
        self.userdata: Any = None
        register(self)

    def get_compiled_model(self) -> CompiledModel:
        """Return the compiled model that the request runs."""
        return self._compiled

    def infer(
        self,
        inputs: object = None,
        share_inputs: bool = False,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
        observers: Iterable[Observer] = (),
    ) -> OVDict:
        """Run the model. Inputs that are omitted keep their previous values.

        Args:
            inputs: as for `CompiledModel`.
            share_inputs: keep the arrays for later runs instead of copies.
            share_outputs: return the memory of `output_tensors`, which the next run overwrites only if a
                program has accessed or set these tensors.
            decode_strings: return strings as `str` instead of UTF-8 bytes.
            observers: objects notified of the inputs and outputs of every layer; disables folding and fusion.

        Raises:
            InputError: if an input is missing, unknown, or of the wrong type or shape.
            ExecutionError: if a layer fails on the data.
            LimitError: if the run exceeds the limits of memory, iterations or time.
        """
        if self._background is not None:
            self._expect_idle()
        results = self._run(self._take(inputs, share_inputs), tuple(observers))
        if share_outputs:
            results = self._lend(results)
        return self._compiled._convert_strings(results, decode_strings)

    def start_async(self, inputs: object = None, userdata: object = None, share_inputs: bool = False) -> None:
        """Start a run in the background, to be followed by `wait`.

        An exception of the run or its callback is raised once: by `wait`, or else by the next run. An
        exception of a callback becomes a `RuntimeError`, with the original as ``__cause__``.

        Args:
            inputs: as for `CompiledModel`.
            userdata: the argument of the callback.
            share_inputs: use the arrays themselves instead of copies.

        Raises:
            InputError: as for `infer`. It is raised here, not by `wait`.
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
        """Start a background run followed by ``callback``, and call ``after`` when both have ended or failed."""
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
        """Return an array for each input, and keep new inputs for later runs."""
        if self._batches:
            self._join_batches()
        tensors, binder = self._input_values, self._compiled._binder
        if inputs is None and (exact := binder.exact(tensors)) is not None:
            return exact
        arrays = binder.bind(inputs, tensors)
        for index, array in enumerate(arrays):
            tensor = tensors[index]
            if tensor is None or not _holds(tensor, array):
                shared = (
                    share and array.flags.writeable
                )  # programs may write into input tensors, as in OpenVINO
                arrays[index] = own = array if shared else np.array(array, order="C")
                tensors[index] = Tensor.of(own, _element(self._compiled._inputs[index], own))
                self._batches.pop(index, None)
        return arrays

    def _run(self, feeds: list[Array], observers: tuple[Observer, ...] = ()) -> OVDict:
        watching = observers
        if self._profiles:
            from ..executor.step import Profile

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
        """Wait for the background run, and raise its exception if it failed."""
        self.wait_for(None)

    def wait_for(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` milliseconds, and return whether the run has ended.

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
        """Call ``callback(userdata)`` after each background run.

        Raises:
            InputError: if ``callback`` is not callable.
        """
        if not callable(callback):
            type_name = type(callback).__name__
            raise ArgumentTypeError(f"callback must be a function, got {type_name}", code=Code.BAD_REQUEST)
        self._callback, self.userdata = callback, userdata

    def cancel(self) -> None:
        """Wait for the run, as it cannot be cancelled."""
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
        """Mark the background run as failed in a child process, unless its thread forked."""
        if self._background is not None:
            self._background.after_fork()

    @property
    def results(self) -> OVDict:
        """The outputs of the last run."""
        if self._results is None:
            raise InputError("nothing has run yet", code=Code.BAD_REQUEST, hint="call infer first")
        return self._compiled._convert_strings(self._results)

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """Return the time of each layer in the last run, if compiled with ``PERF_COUNT``."""
        from .profiling import profiling_info

        return [] if self._profile is None else profiling_info(self._profile, self._compiled.backend)

    @property
    def profiling_info(self) -> list[ProfilingInfo]:
        """The time of each layer in the last run, if compiled with ``PERF_COUNT``."""
        return self.get_profiling_info()

    def query_state(self) -> list[VariableState]:
        """Return the variables of this request."""
        return self._compiled._variable_states(self._variables)

    def reset_state(self) -> None:
        """Reset the variables to their initial values."""
        self._variables.clear()

    def __repr__(self) -> str:
        return repr(self._compiled).replace("CompiledModel", "InferRequest", 1)

    def __str__(self) -> str:
        compiled, results = self._compiled, self._results
        input_shapes = [None if tensor is None else tensor.shape for tensor in self._input_values]
        output_shapes = (
            [None] * len(compiled._outputs) if results is None else [a.shape for a in results.to_tuple()]
        )
        return "\n".join(
            [
                f"InferRequest of {compiled._model.friendly_name!r}, {'not run' if results is None else 'run'}",
                *(
                    f"  takes {summarize_port(*pair)}"
                    for pair in zip(compiled._inputs, input_shapes, strict=True)
                ),
                *(
                    f"  gives {summarize_port(*pair)}"
                    for pair in zip(compiled._outputs, output_shapes, strict=True)
                ),
            ]
        )

    @property
    def model_inputs(self) -> list[ConstOutput]:
        """The inputs of the model."""
        return self._compiled.inputs

    @property
    def model_outputs(self) -> list[ConstOutput]:
        """The outputs of the model."""
        return self._compiled.outputs

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensor of each input."""
        return list(map(self._input_tensor, range(len(self._input_values))))

    @property
    def output_tensors(self) -> list[Tensor]:
        """The tensor of each output."""
        return list(map(self._output_tensor, range(len(self._compiled._outputs))))

    def get_input_tensor(self, index: int | None = None) -> Tensor:
        """Return the writable tensor of an input, by index or the only one.

        Raises:
            InputError: if the index is unknown, or omitted though there are several inputs.
        """
        return self._input_tensor(find_index(self._compiled._inputs, index, "input"))

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        """Return the tensor of an output, by index or the only one.

        Raises:
            InputError: if the index is unknown, or omitted though there are several outputs.
        """
        return self._output_tensor(find_index(self._compiled._outputs, index, "output"))

    def set_input_tensor(self, index: int | Tensor | None = None, tensor: Tensor | None = None) -> None:
        """Set the tensor of an input: ``set_input_tensor(tensor)`` or ``set_input_tensor(0, tensor)``.

        Args:
            index: the index of the input, or the tensor of the only input.
            tensor: the tensor, whose memory a run reads.

        Raises:
            InputError: if the index is unknown, or the tensor does not fit the input.
            ArgumentTypeError: if no tensor is given.
        """
        number, value = _parse_index(index, tensor)
        self._set(find_index(self._compiled._inputs, number, "input"), value)

    def set_output_tensor(self, index: int | Tensor | None = None, tensor: Tensor | None = None) -> None:
        """Set the tensor that an output is written to: ``set_output_tensor(0, tensor)``.

        Args:
            index: the index of the output, or the tensor of the only output.
            tensor: the tensor, whose memory a run writes.

        Raises:
            InputError: if the index is unknown, or the tensor does not fit the output.
            ArgumentTypeError: if no tensor is given.
        """
        number, value = _parse_index(index, tensor)
        self._hold(find_index(self._compiled._outputs, number, "output"), value)

    def set_tensor(self, key: str | Output, tensor: Tensor) -> None:
        """Set the tensor of an input or output, by name or port.

        Args:
            key: the name of an input or output, or its port.
            tensor: a tensor of its element type and shape.

        Raises:
            InputError: if the name is unknown, or the tensor does not fit.
        """
        is_input, index = self._place(key)
        if is_input:
            self._set(index, tensor)
        else:
            self._hold(index, tensor)

    @overload
    def set_tensors(self, tensors: Mapping[str, Tensor]) -> None: ...
    @overload
    def set_tensors(self, tensors: Mapping[Output, Tensor]) -> None: ...
    @overload
    def set_tensors(self, tensors: Mapping[str | Output, Tensor]) -> None: ...
    @overload
    def set_tensors(self, key: str | Output, tensors: Sequence[Tensor], /) -> None: ...
    def set_tensors(self, tensors: Any, batch: Sequence[Tensor] | None = None) -> None:
        """Set the tensors of inputs and outputs by name or port, or the tensors of an input's batch entries.

        Args:
            tensors: a mapping of tensors by name or port, or the name or port of an input.
            batch: a tensor for each batch entry of that input.

        Raises:
            InputError: if a name is unknown, or a tensor does not fit.
            ArgumentTypeError: if the tensors are not a mapping.
        """
        if batch is not None:
            is_input, index = self._place(tensors)
            if not is_input:
                raise InputError("only the batch of an input is set entry by entry", code=Code.BAD_REQUEST)
            self._set_batch(index, batch)
            return
        if not isinstance(tensors, Mapping):
            type_name = type(tensors).__name__
            raise ArgumentTypeError(
                f"tensors must be a mapping of names or ports, got {type_name}", code=Code.BAD_REQUEST
            )
        for key, tensor in tensors.items():
            self.set_tensor(key, tensor)

    @overload
    def set_input_tensors(self, tensors: Mapping[int, Tensor]) -> None: ...
    @overload
    def set_input_tensors(self, tensors: Sequence[Tensor]) -> None: ...
    @overload
    def set_input_tensors(self, index: int, tensors: Sequence[Tensor], /) -> None: ...
    def set_input_tensors(self, tensors: Any, batch: Sequence[Tensor] | None = None) -> None:
        """Set the tensors of inputs by index, or the tensors of an input's batch entries.

        Args:
            tensors: a mapping of tensors by index, a tensor for each batch entry of the only input, or the
                index of an input.
            batch: a tensor for each batch entry of that input.

        Raises:
            InputError: if an index is unknown, or a tensor does not fit.
        """
        if batch is not None or not isinstance(tensors, Mapping):
            index, entries = (None, tensors) if batch is None else (tensors, batch)
            self._set_batch(find_index(self._compiled._inputs, index, "input"), entries)
            return
        for index, tensor in tensors.items():
            self.set_input_tensor(index, tensor)

    def set_output_tensors(self, tensors: Mapping[int, Tensor] | Sequence[Tensor]) -> None:
        """Set the tensors of outputs by index. A sequence of one tensor sets the only output.

        Raises:
            InputError: if a sequence is given for several outputs, or a tensor does not fit its output.
        """
        if isinstance(tensors, Mapping):
            tensors_by_index = dict(tensors)
        elif len(self.model_outputs) == len(tensors) == 1:
            tensors_by_index = dict(enumerate(tensors))
        else:
            raise InputError("tensors must be given by index: {0: tensor}", code=Code.BAD_REQUEST)
        for index, tensor in tensors_by_index.items():
            self.set_output_tensor(index, tensor)

    def _set_batch(self, index: int, tensors: object) -> None:
        """Set an input to the concatenation of one tensor per batch entry.

        Raises:
            InputError: if its layout does not start with N, or the tensors do not match.
        """
        port = self._compiled._inputs[index]
        if (
            not isinstance(tensors, list | tuple)
            or not tensors
            or not all(isinstance(t, Tensor) for t in tensors)
        ):
            raise ArgumentTypeError(
                f"the batch of input {port.label!r} must be a list of Tensors, got {tensors!r:.60}",
                code=Code.BAD_REQUEST,
            )
        if len(tensors) == 1:
            self._set(index, tensors[0])
            return
        if not port._layout.has_name("N") or port._layout.get_index_by_name("N") != 0:
            raise InputError(
                f"input {port.label!r} has no batch: its layout is {port._layout}",
                code=Code.BAD_REQUEST,
                hint='give the parameter a layout that starts with N, as in set_layout(Layout("NCHW"))',
            )
        if any(tensor._held.shape[:1] != (1,) for tensor in tensors):
            shapes = [list(tensor._held.shape) for tensor in tensors]
            raise InputError(f"each tensor of a batch must have a batch of 1, got shapes {shapes}")
        self._set(index, _concatenate(port, tensors))
        self._batches[index] = tuple(tensors)

    def _join_batches(self) -> None:
        """Concatenate the batch entries of each input again, as programs may have written to their tensors."""
        for index, tensors in self._batches.items():
            self._input_values[index] = _concatenate(self._compiled._inputs[index], tensors)

    def get_tensor(self, key: str | Output) -> Tensor:
        """Return the tensor of an input or output, by name or port."""
        is_input, index = self._place(key)
        return self._input_tensor(index) if is_input else self._output_tensor(index)

    def _place(self, key: str | Output) -> tuple[bool, int]:
        """Return whether a name or port is that of an input, and its index."""
        if not isinstance(key, str | Output):
            raise ArgumentTypeError(
                f"{key!r} is not a tensor: expected a name or a port",
                code=Code.NO_SUCH_NAME,
                hint="get_input_tensor and get_output_tensor take an index",
            )
        count = len(self._compiled._inputs)
        index = find_index([*self._compiled._inputs, *self._compiled._outputs], key, "tensor")
        return index < count, index if index < count else index - count

    def _set(self, index: int, tensor: object) -> None:
        value = tensor if isinstance(tensor, Tensor) else Tensor(tensor, shared_memory=True)
        as_array(self._compiled._inputs[index], value)
        self._batches.pop(index, None)
        self._input_values[index] = value

    def _hold(self, index: int, tensor: object) -> None:
        port = self._compiled._outputs[index]
        if not isinstance(tensor, Tensor) or tensor.element_type is not port.element_type:
            raise InputError(
                f"output {port.label!r} must be written into a Tensor of {port.element_type.label}"
            )
        shape = port._type.shape
        if shape.is_static and tensor._held.shape != shape.static:
            raise InputError(
                f"output {port.label!r} has shape {shape}, the Tensor {list(tensor._held.shape)}"
            )
        self._output_values[index] = tensor
        self._lent.discard(index)

    def _lend(self, results: OVDict) -> OVDict:
        """Return the results in the memory of the output tensors. Tensors not accessed yet adopt the result arrays."""
        for index, array in enumerate(results.to_tuple()):
            if index not in self._output_values:
                element = self._compiled._outputs[index].element_type
                self._output_values[index] = Tensor.of(array, element)
                self._lent.add(index)
        return OVDict(
            self._compiled._outputs, [self._output_values[index]._data for index in range(len(results))]
        )

    def _forget_inputs(self) -> None:
        """Drop the inputs, so that the next run must provide all of them."""
        self._input_values = [None] * len(self._input_values)
        self._batches.clear()

    def _input_tensor(self, index: int) -> Tensor:
        tensor = self._input_values[index]
        if tensor is None:
            tensor = self._input_values[index] = _blank(self._compiled._inputs[index])
        return tensor

    def _output_tensor(self, index: int) -> Tensor:
        """Return the tensor that each run writes, separate from the arrays returned to the caller."""
        self._lent.discard(index)
        if index not in self._output_values:
            self._output_values[index] = tensor = _blank(self._compiled._outputs[index])
            if self._results is not None:
                tensor.copy_from(Tensor.of(self._results[index], tensor.element_type))
        return self._output_values[index]


def _holds(tensor: Tensor, array: Array) -> bool:
    """Return whether an array is the tensor's own array, or equals its unpacked elements."""
    return tensor._held is array or (tensor._element.is_packed and np.array_equal(tensor._data, array))


def _element(port: Output, array: Array) -> ElementType:
    element = port.element_type
    return element_of(array) if element is ElementType.dynamic else element


def _concatenate(port: Output, tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors along the batch axis.

    Raises:
        InputError: if an element type differs from the input's, or their shapes differ beyond the batch.
    """
    for tensor in tensors:
        if (
            tensor.element_type is not port.element_type
            or tensor._held.shape[1:] != tensors[0]._held.shape[1:]
        ):
            raise InputError(
                f"the tensors of the batch of input {port.label!r} must be {port.element_type.label} of one shape, got "
                f"{', '.join(map(repr, tensors))}"
            )
    return Tensor.of(np.concatenate([tensor._data for tensor in tensors]), port.element_type)


def _blank(port: Output) -> Tensor:
    """Return a new tensor for a port, with length 0 for dynamic dims: `set_shape` is needed before writing."""
    shape = port._type.shape
    lengths = () if shape.rank is None else [d.min if d.is_static else 0 for d in shape]
    element = port.element_type
    if element is ElementType.dynamic:
        return Tensor.of(np.zeros(lengths, element.dtype), element)
    return Tensor(element, lengths)


def _parse_index(index: int | Tensor | None, tensor: Tensor | None) -> tuple[int | None, Tensor]:
    """Return port index and tensor for the arguments ``(tensor)`` or ``(index, tensor)``; the index is None for the former."""
    if isinstance(index, Tensor) and tensor is None:
        return None, index
    if isinstance(tensor, Tensor) and not isinstance(index, Tensor):
        return index, tensor
    message = f"expected a Tensor, or an index and a Tensor, got {index!r:.60} and {tensor!r:.60}"
    raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
