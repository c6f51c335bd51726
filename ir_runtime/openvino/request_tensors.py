"""The input and output tensors of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from .._util.absent import ExplainsAbsent
from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from .casting import as_array
from .const_ports import ConstOutput
from .executable import Executable
from .names import find_index
from .nodes import Output
from .results import OVDict
from .tensor import Tensor

__all__ = ["RequestTensors"]


class RequestTensors(ExplainsAbsent):
    """The inputs and outputs of a request by index, name or port, kept between runs.

    Inputs and outputs are set and read by index, name or port:

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> request = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x])).create_infer_request()
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

    The entries of a batch may be tensors of their own, where the layout of the input starts with N:

    >>> images = opset1.parameter([2, 3], np.float32, name="images")
    >>> images.set_layout(ov.Layout("NC"))
    >>> request = ov.compile_model(ov.Model([opset1.exp(images)], [images])).create_infer_request()
    >>> request.set_input_tensors([ov.Tensor(np.zeros((1, 3), np.float32)), ov.Tensor(np.zeros((1, 3), np.float32))])
    >>> request.infer()[0].shape
    (2, 3)
    """

    def __init__(self, compiled: Executable) -> None:
        self._compiled = compiled
        self._input_values: list[Tensor | None] = [None] * len(compiled._inputs)
        self._output_values: dict[int, Tensor] = {}
        self._lent: set[int] = set()
        """Outputs whose tensors alias the arrays of the last run instead of being written in place."""
        self._batches: dict[int, Sequence[Tensor]] = {}
        """Per-entry tensors of batched inputs; joined before each run."""
        self._results: OVDict | None = None

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
        """Return the tensor of an input, to write into; without an index, of the only one.

        Raises:
            InputError: if the model has no input of that index, or several and none is given.
        """
        return self._input_tensor(find_index(self._compiled._inputs, index, "input"))

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        """Return the tensor of an output; without an index, of the only one.

        Raises:
            InputError: if the model has no output of that index, or several and none is given.
        """
        return self._output_tensor(find_index(self._compiled._outputs, index, "output"))

    def set_input_tensor(self, index: int | Tensor | None = None, tensor: Tensor | None = None) -> None:
        """Give an input its tensor: ``set_input_tensor(tensor)`` or ``set_input_tensor(0, tensor)``.

        Args:
            index: the index of the input, or the tensor of the only one.
            tensor: the tensor; a run reads its memory.

        Raises:
            InputError: if the index is unknown, or the tensor does not fit the input.
            ArgumentTypeError: if no tensor is given.
        """
        number, given = _numbered(index, tensor)
        self._set(find_index(self._compiled._inputs, number, "input"), given)

    def set_output_tensor(self, index: int | Tensor | None = None, tensor: Tensor | None = None) -> None:
        """Have an output written into a tensor: ``set_output_tensor(0, tensor)``.

        Args:
            index: the index of the output, or the tensor of the only one.
            tensor: the tensor; a run writes to its memory.

        Raises:
            InputError: if the index is unknown, or the tensor does not fit the output.
            ArgumentTypeError: if no tensor is given.
        """
        number, given = _numbered(index, tensor)
        self._hold(find_index(self._compiled._outputs, number, "output"), given)

    def set_tensor(self, key: str | Output, tensor: Tensor) -> None:
        """Give an input its tensor, or an output one to be written into, by name or port.

        Args:
            key: the name of an input or output, or its port.
            tensor: of its element type and shape.

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
        """Give several inputs and outputs their tensors, by name or port; or one input a tensor for each of its batch.

        Args:
            tensors: a tensor by name or port; or the name or port of the input.
            batch: the tensors of the batch of that input.

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
            got = type(tensors).__name__
            raise ArgumentTypeError(
                f"tensors must be a mapping of names or ports, got {got}", code=Code.BAD_REQUEST
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
        """Give several inputs their tensors, by index; or one input a tensor for each of its batch.

        Args:
            tensors: a tensor by index; or the tensors of the batch of the only input; or the index of an input.
            batch: the tensors of the batch of that input.

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
        """Set the tensors that outputs are written to, by index; a sequence of one tensor sets the only output.

        Raises:
            InputError: if a sequence is given for several outputs, or a tensor does not fit its output.
        """
        if isinstance(tensors, Mapping):
            given = dict(tensors)
        elif len(self.model_outputs) == len(tensors) == 1:
            given = dict(enumerate(tensors))
        else:
            raise InputError("tensors must be given by index: {0: tensor}", code=Code.BAD_REQUEST)
        for index, tensor in given.items():
            self.set_output_tensor(index, tensor)

    def _set_batch(self, index: int, tensors: object) -> None:
        """Give an input a tensor for each entry of its batch.

        Raises:
            InputError: if the input has no batch as its first dimension, or the tensors do not fit it.
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
        self._set(index, _joined(port, tensors))
        self._batches[index] = tuple(tensors)

    def _join_batches(self) -> None:
        """Concatenate the per-entry tensors of each batched input."""
        for index, tensors in self._batches.items():
            self._input_values[index] = _joined(self._compiled._inputs[index], tensors)

    def get_tensor(self, key: str | Output) -> Tensor:
        """Return the tensor of an input or output, by name or port."""
        is_input, index = self._place(key)
        return self._input_tensor(index) if is_input else self._output_tensor(index)

    def _place(self, key: str | Output) -> tuple[bool, int]:
        """Return whether a tensor is an input, and its index among the inputs or outputs."""
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
        held = tensor if isinstance(tensor, Tensor) else Tensor(tensor, shared_memory=True)
        as_array(self._compiled._inputs[index], held)
        self._batches.pop(index, None)
        self._input_values[index] = held

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
        """Return results in the memory of output tensors: tensors that no program has yet hold the results themselves."""
        for index, array in enumerate(results.to_tuple()):
            if index not in self._output_values:
                element = self._compiled._outputs[index].element_type
                self._output_values[index] = Tensor.of(array, element)
                self._lent.add(index)
        return OVDict(
            self._compiled._outputs, [self._output_values[index]._data for index in range(len(results))]
        )

    def _forget_inputs(self) -> None:
        """Require all inputs for the next run."""
        self._input_values = [None] * len(self._input_values)
        self._batches.clear()

    def _input_tensor(self, index: int) -> Tensor:
        tensor = self._input_values[index]
        if tensor is None:
            tensor = self._input_values[index] = _blank(self._compiled._inputs[index])
        return tensor

    def _output_tensor(self, index: int) -> Tensor:
        """Return a tensor that each run writes into. It is not an array that a run returned: those belong to the caller."""
        self._lent.discard(index)
        if index not in self._output_values:
            self._output_values[index] = tensor = _blank(self._compiled._outputs[index])
            if self._results is not None:
                tensor.copy_from(Tensor.of(self._results[index], tensor.element_type))
        return self._output_values[index]


def _joined(port: Output, tensors: Sequence[Tensor]) -> Tensor:
    """Return one tensor for a batch.

    Raises:
        InputError: if the tensors are of another element type or length than the input.
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
    """Return a tensor for a port; lengths that are open are 0, so that writing into it needs `set_shape` first."""
    shape = port._type.shape
    lengths = () if shape.rank is None else [d.min if d.is_static else 0 for d in shape]
    element = port.element_type
    if element is ElementType.dynamic:
        return Tensor.of(np.zeros(lengths, element.dtype), element)
    return Tensor(element, lengths)


def _numbered(index: int | Tensor | None, tensor: Tensor | None) -> tuple[int | None, Tensor]:
    """Return the index of a port, None for the only one, and its tensor: both may be given, or the tensor alone."""
    if isinstance(index, Tensor) and tensor is None:
        return None, index
    if isinstance(tensor, Tensor) and not isinstance(index, Tensor):
        return index, tensor
    message = f"expected a Tensor, or an index and a Tensor, got {index!r:.60} and {tensor!r:.60}"
    raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
