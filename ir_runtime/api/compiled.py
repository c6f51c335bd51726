"""A model with kernels chosen, ready to run any number of times, also at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..backends import awaited, load
from ..backends.core.threads import at_most
from ..codes import DECLARED, Code
from ..executor.compile import compile_plan
from ..executor.context import State
from ..executor.plan import ExecutionPlan, Observer
from ..forks import registered
from ..ir.tensor import Array
from ..limits import Limits
from .config import check_config, describe_device, wants_f16
from .feeding import bind
from .model import Model
from .names import find_port
from .ports import ConstOutput, Output, show_ports
from .results import OVDict, owned
from .state import VariableState, variable_states
from .streams import Streams
from .tensor import Tensor

if TYPE_CHECKING:
    from .request import InferRequest

__all__ = ["CompiledModel"]

# A model may be read without being valid. Compiling looks only at layers that are needed, and refuses those
# without an operation; what outputs declare has no effect on what they are.
_HARMLESS = frozenset(
    {
        Code.BAD_ATTRIBUTE,
        *DECLARED,
        Code.UNKNOWN_OPERATION,
        Code.WEIGHTS_MISSING,
        Code.WEIGHTS_RANGE,
    }
)


class CompiledModel:
    """A model compiled for a backend. As OpenVINO's ``CompiledModel``.

    Args:
        model: what to run; later changes to it do not matter.
        backend: ``reference``, ``numpy`` or ``numba``; by default what ``IR_RUNTIME_BACKEND`` says, else numba
            for models of more than a megabyte where it is installed, else numpy.
        outputs: further tensors to return: tensor names, layer names, globs, (layer name, output).
        config: OpenVINO's properties.
        limits: bounds on what running it may ask for; by default those the model was read with.
    """

    def __init__(
        self,
        model: Model,
        backend: str | None = None,
        outputs: Iterable[str | tuple[str, int] | Output] | str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
    ) -> None:
        self.config = check_config(config)
        self.limits = limits or model.limits
        self._model = model.raise_if_invalid(_HARMLESS).clone()
        self._model.correct()
        if wants_f16(self.config):
            self._model.narrow()
        self._asked = backend or self.config.get("BACKEND")
        self.backend, self._chain = load(self._asked, self._model._is_large)
        self._model.add_outputs([outputs] if isinstance(outputs, str) else outputs or ())
        self._inputs = list(map(ConstOutput.of, self._model.inputs))
        self._outputs = list(map(ConstOutput.of, self._model.outputs))
        self._streams = Streams.of(self.config)
        self._model._document.weights.check()
        self._plan = self._compile(fold=self.backend != "reference")
        self._every: ExecutionPlan | None = None
        self._running: dict[object, int] = {}
        """The runs that go on, and the thread of each."""
        self._variables: dict[str, Array] = {}
        self._lock = threading.Lock()
        registered(self)

    @property
    def inputs(self) -> list[ConstOutput]:
        """The inputs, in the order of the file."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[ConstOutput]:
        """The outputs, in the order of the file, then those asked for."""
        return list(self._outputs)

    @property
    def provisional(self) -> bool:
        """Whether another backend answers once its kernels are compiled, and numpy serves until then.

        Results of two backends differ by rounding. A ``backend`` that is asked for is waited for.
        """
        return self.backend != awaited(self._asked, self._model._is_large)

    def input(self, key: int | str | None = None) -> ConstOutput:
        """An input by index or name; without a key, the only one."""
        return find_port(self._inputs, key, "input")

    def output(self, key: int | str | None = None) -> ConstOutput:
        """An output by index or name; without a key, the only one."""
        return find_port(self._outputs, key, "output")

    def __call__(
        self,
        inputs: Any = None,
        share_inputs: bool = True,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
        observers: Sequence[Observer] = (),
    ) -> OVDict:
        """Run on inputs: a mapping by index, name or port; a sequence; or the only array.

        Args:
            inputs: the data.
            share_inputs: for OpenVINO's signature; inputs are never changed.
            share_outputs: for OpenVINO's signature; results are always the caller's own.
            decode_strings: for OpenVINO's signature.
            observers: see every layer's inputs and outputs. Then nothing is folded or fused.

        Raises:
            InputError: if an input is missing, unknown, or has another type or shape.
            ExecutionError: if a layer fails on the data.
            LimitError: if it takes more memory, iterations or time than the limits allow.
        """
        return self._run(inputs, {}, observers, every_layer=bool(observers), variables=self._variables)

    def infer_new_request(self, inputs: Any = None) -> OVDict:
        """Run once, on a request of its own."""
        return self._run(inputs, {})

    def create_infer_request(self) -> InferRequest:
        """A request that keeps its inputs and outputs between runs."""
        from .request import InferRequest

        return InferRequest(self)

    def get_property(self, name: str) -> Any:
        """The value of a property."""
        if name in self.config:
            return self.config[name]
        known = {
            "INFERENCE_NUM_THREADS": self._streams.threads,
            "NETWORK_NAME": self._model.friendly_name,
            "NUM_STREAMS": self._streams.count,
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS": self._streams.count,
        }
        return known[name] if name in known else describe_device(name, self.backend)

    def set_property(self, properties: Mapping[str, Any]) -> None:
        """Set properties; those that would change what is compiled have no effect any more."""
        self.config |= check_config(properties)

    def get_runtime_model(self) -> Model:
        """The model that runs."""
        return self._model

    def query_state(self) -> list[VariableState]:
        """The variables that calls of the compiled model itself read and assign."""
        return variable_states(self._model, self._variables)

    def reset_state(self) -> None:
        """Give those variables their initial values."""
        self._variables.clear()

    def release_memory(self) -> None:
        """For OpenVINO's API: nothing is held between runs."""

    def _compile(self, fold: bool) -> ExecutionPlan:
        ports = [output._port for output in self._outputs]
        with at_most(self._streams.threads):
            return compile_plan(
                self._model._graph, self._model._values, ports, self._chain, fold, self.limits
            )

    def _every_layer(self) -> ExecutionPlan:
        with self._lock:
            if self._every is None:
                self._every = self._compile(fold=False)
            return self._every

    def _run(
        self,
        inputs: Any,
        kept: Mapping[Output, Tensor],
        observers: Sequence[Observer] = (),
        every_layer: bool = False,
        variables: dict[str, Array] | None = None,
    ) -> OVDict:
        return self._run_arrays(bind(self._inputs, inputs, kept), observers, every_layer, variables)

    def _run_arrays(
        self,
        feeds: Sequence[Array],
        observers: Sequence[Observer] = (),
        every_layer: bool = False,
        variables: dict[str, Array] | None = None,
    ) -> OVDict:
        plan = self._every_layer() if every_layer else self._plan
        if self.backend != "reference":  # which has all that it reads in memory
            self._model._document.weights.check()
        state = State({} if variables is None else variables)
        with self._sharing():
            arrays = plan.run(feeds, observers, state, self.limits)
        state.commit(feeds)
        return OVDict(self._outputs, owned(arrays, [*feeds, *state.values.values()], plan.roots))

    @contextmanager
    def _sharing(self) -> Iterator[None]:
        """Around a run: it has its share of the threads, which is less while others are going on."""
        run, me = object(), get_ident()
        try:
            with self._lock:
                self._running[run] = me
                count = len(self._running)
            with at_most(self._streams.share(count)):
                yield
        finally:
            if run in self._running:
                del self._running[run]

    def after_fork(self) -> None:
        """In a child process, no other thread compiles or runs it."""
        self._lock, me = threading.Lock(), get_ident()
        self._running = {run: thread for run, thread in self._running.items() if thread == me}

    def __repr__(self) -> str:
        return f"<CompiledModel:\n{show_ports(self._inputs, self._outputs)}>"
