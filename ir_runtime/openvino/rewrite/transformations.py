"""OpenVINO's model passes: constant folding, f16 conversion, stateful models, sequence loops, weight compression, saving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path

import numpy as np

from ..._util.files import save_text
from ...ir.element import ElementType
from ...ir.evaluation import evaluate_layer, stands_alone
from ...ir.tensor import Array
from ..build.control import Loop, TensorIterator
from ..build.descriptions import BodyOutputDescription, MergedInputDescription
from ..build.ends import Assign, Constant, Parameter, ReadValue, Result
from ..build.state import Pairs, make_stateful
from ..build.variables import Variable, VariableInfo
from ..model import Model
from ..node import Node, Output
from ..saving import PathLike, serialize
from .passes import ModelPass, bodies_of

__all__ = [
    "CompressQuantizeWeights",
    "ConstantFolding",
    "ConvertFP32ToFP16",
    "ConvertSequenceToTensorIterator",
    "LowLatency2",
    "MakeStateful",
    "Serialize",
    "Version",
    "VisualizeTree",
]


# Folding, stateful models, f16 conversion, serialization and drawing.


class ConvertFP32ToFP16(ModelPass):
    """Converts a model from f32 to f16, including its inputs and constants.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1, passes
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.relu(x)], [x])
    >>> passes.ConvertFP32ToFP16().run_on_model(model), model.input().element_type.to_string()
    (True, 'f16')
    """

    def run_on_model(self, model: Model) -> bool:
        """Convert the nodes of the model and of its bodies."""
        for node in model.get_ordered_ops():
            for body in bodies_of(node):
                self.run_on_model(body)
            self._narrow(node)
        model.validate_nodes_and_infer_types()
        return True

    def _narrow(self, node: Node) -> None:
        if isinstance(node, Constant):
            if node.element_type is ElementType.f32:
                with np.errstate(over="ignore"):  # values beyond f16 become infinite, as in OpenVINO
                    narrow = Constant(node.elements.astype(np.float16))
                narrow.set_friendly_name(node.friendly_name)
                node.output(0).replace(narrow.output(0))
        elif node.layer.op is not None:
            for name, value in node.layer.op.attributes().items():
                if value is ElementType.f32:
                    node.set_attribute(name, ElementType.f16)


class LowLatency2(ModelPass):
    """Replaces the states of loops with variables, so that a sequence can be processed in several runs.

    Loops are kept, even with one iteration, which OpenVINO unrolls; the results are the same.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1, passes
    >>> row, total = opset1.parameter([1, 2], np.float32, name="row"), opset1.parameter([1, 2], np.float32, name="total")
    >>> added = opset1.result(opset1.add(row, total))
    >>> loop = ov.op.tensor_iterator()
    >>> loop.set_body(ov.Model([added], [row, total]))
    >>> x = opset1.parameter([3, 2], np.float32, name="x")
    >>> loop.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    >>> loop.set_merged_input(total, opset1.constant(np.zeros((1, 2), np.float32)).output(0), added.output(0))
    >>> model = ov.Model([loop.get_iter_value(added.output(0))], [x])
    >>> passes.LowLatency2().run_on_model(model), len(model.variables)
    (True, 1)

    Args:
        use_const_initializer: initialize the variables with zero, instead of with the initial states of the
            loop.
    """

    def __init__(self, use_const_initializer: bool = True) -> None:
        self._from_zero = use_const_initializer

    def run_on_model(self, model: Model) -> bool:
        """Replace the states of all loops, and return whether there were any."""
        loops = [node for node in model.get_ordered_ops() if isinstance(node, Loop | TensorIterator)]
        for loop in loops:
            for number, entry in enumerate(loop.get_input_descriptions()):
                if isinstance(entry, MergedInputDescription):
                    self._keep(model, loop, entry, number)
        if loops:
            model.validate_nodes_and_infer_types()
        return bool(loops)

    def _keep(
        self, model: Model, loop: Loop | TensorIterator, state: MergedInputDescription, number: int
    ) -> None:
        initial = loop.input_value(state.input_index)
        parameter = loop.get_function().parameters[state.body_parameter_index]
        id = f"{loop.friendly_name}/{parameter.friendly_name}/variable_{number}"
        variable = Variable(VariableInfo.of(id, initial.element_type, initial.partial_shape))
        read_value = ReadValue(_zeros_like(initial) if self._from_zero else initial, variable)
        last = _last_value(loop, state)
        loop.input(state.input_index).replace_source_output(read_value.output(0))
        model.add_sinks([Assign(last, variable)])
        model.add_variables([variable])


def _last_value(loop: Loop | TensorIterator, state: MergedInputDescription) -> Output:
    """Return the loop output with the state after the last iteration, which is added if necessary."""
    for entry in loop.get_output_descriptions():
        if isinstance(entry, BodyOutputDescription) and entry.body_value_index == state.body_value_index:
            return loop.output(entry.output_index)
    return loop.get_iter_value(loop.get_function().results[state.body_value_index].output(0))


def _zeros_like(value: Output) -> Node:
    zero = Constant(value.element_type, [], [0])
    return Node.create("Broadcast", 3, [zero, Node.create("ShapeOf", 3, [value])])


class VisualizeTree(ModelPass):
    """Writes the graph of a model to a DOT file for Graphviz.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1, passes
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = passes.VisualizeTree(f"{folder}/model.dot").run_on_model(ov.Model([opset1.relu(x)], [x]))
    ...     print(Path(folder, "model.dot").read_text().splitlines()[0])
    digraph ngraph

    Args:
        file_name: the file, to which ``.dot`` is added if it does not end in it.
    """

    def __init__(self, file_name: str, nm: object = None, don_only: bool = True) -> None:
        path = Path(file_name)
        self._path = path if path.suffix == ".dot" else path.with_name(f"{path.name}.dot")

    def run_on_model(self, model: Model) -> bool:
        """Write the file, and return False, as the model is unchanged."""
        lines = [*_draw(model.get_ordered_ops())]
        text = "\n".join(["digraph ngraph", "{", *(f"    {line}" for line in lines), "}"])
        save_text(self._path, text + "\n")
        return False


_FORMS = {"Constant": "ellipse", "Parameter": "invhouse", "Result": "house"}


def _draw(nodes: list[Node]) -> Iterator[str]:
    """Yield a line for each node, then one for each edge."""
    numbers = {node: f"n{number}" for number, node in enumerate(nodes)}
    for node, number in numbers.items():
        shapes = [
            f"{output.element_type.label}{output.partial_shape.to_string()}" for output in node.outputs()
        ]
        label = _escape("\n".join([node.friendly_name, node.get_type_name(), *shapes]))
        yield f'{number} [shape={_FORMS.get(node.type, "box")} label="{label}"]'
    for node, number in numbers.items():
        for index, source in enumerate(node.input_values()):
            yield f'{numbers[source.node]} -> {number} [label="{source.index} -> {index}"]'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Version(Enum):
    """OpenVINO's enumeration of IR versions. Models are saved as ``IR_V11``.

    >>> Version.IR_V11.value
    11
    """

    UNSPECIFIED = 0
    IR_V10 = 10
    IR_V11 = 11


class Serialize(ModelPass):
    """Saves the model without compression.

    >>> import tempfile
    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1, passes
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save = passes.Serialize(f"{folder}/model.xml", version=passes.Version.IR_V11)
    ...     _ = save.run_on_model(ov.Model([opset1.relu(x)], [x]))
    ...     ov.read_model(f"{folder}/model.xml").inputs
    [<Output: names[x] shape[2] type: f32>]

    Args:
        path_to_xml: path of the ``.xml``.
        path_to_bin: path of the ``.bin``.
        version: the IR version: ``IR_V11``, which is the default.
    """

    def __init__(
        self, path_to_xml: PathLike, path_to_bin: PathLike | None = None, version: Version | str | None = None
    ) -> None:
        self._paths = path_to_xml, path_to_bin or None
        self._version = version.name if isinstance(version, Version) else version or Version.UNSPECIFIED.name

    def run_on_model(self, model: Model) -> bool:
        """Save the model, and return False, as it is unchanged.

        Raises:
            InputError: if the files cannot be written.
            ValidationError: if the model is not valid.
        """
        serialize(model, *self._paths, self._version)
        return False


class MakeStateful(ModelPass):
    """Replaces pairs of inputs and outputs with variables, which carry an output over to the next run.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1, passes
    >>> x, past = opset1.parameter([2], np.float32, name="x"), opset1.parameter([2], np.float32, name="past")
    >>> total = opset1.add(x, past)
    >>> total.output(0).set_names(["total"])
    >>> model = ov.Model([total, opset1.relu(total)], [x, past])
    >>> passes.MakeStateful({"past": "total"}).run_on_model(model), len(model.inputs), len(model.variables)
    (True, 1, 1)
    """

    def __init__(self, pairs_to_replace: Pairs) -> None:
        self._pairs = pairs_to_replace

    def run_on_model(self, model: Model) -> bool:
        """Replace the inputs and outputs, and return True."""
        make_stateful(model, self._pairs)
        return True


class ConstantFolding(ModelPass):
    """Folds operations on constants, and ShapeOf of static shapes, but not the decompression of weights.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset3, passes
    >>> x = opset3.parameter([2, 3], np.float32)
    >>> model = ov.Model([opset3.reshape(x, opset3.shape_of(x), False)], [x])
    >>> passes.ConstantFolding().run_on_model(model), [node.get_type_name() for node in model.get_ordered_ops()]
    (True, ['Parameter', 'Constant', 'Reshape', 'Result'])
    """

    def run_on_model(self, model: Model) -> bool:
        """Replace the nodes."""
        changed = False
        for node in model.get_ordered_ops():
            if _can_fold(node):
                _fold(node)
                changed = True
        return changed


def _can_fold(node: Node) -> bool:
    op, sources = node.layer.op, node._sources
    if op is None or not op.pure or node.layer.bodies() or "decompression" in node.layer.rt_info:
        return False
    if any(source is None for source in sources) or not sources or node.type == "Result":
        return False
    if node.type == "ShapeOf":
        return node.input_value(0).partial_shape.is_static
    return all(source.node.type == "Constant" for source in node.input_values())


def _fold(node: Node) -> None:
    sources = node.input_values()
    if node.type == "ShapeOf":
        arrays = [np.empty(sources[0].shape, np.void)]  # takes no memory, as only its shape is used
    else:
        arrays = [source.node.elements for source in sources]
    if not stands_alone(node.layer):
        return
    results = evaluate_layer(node.layer, arrays, [source.element_type for source in sources])
    for output, array in zip(node.outputs(), results, strict=False):
        folded = Constant(output.element_type, array.shape, array)
        folded.set_friendly_name(node.friendly_name)
        output.replace(folded.output(0))


# Conversion of recurrent sequences to loops over their cells.


# The cell operation of each sequence, its opset, and the number of its states.
_CELLS = {
    "LSTMSequence": ("LSTMCell", 4, 2),
    "GRUSequence": ("GRUCell", 3, 1),
    "RNNSequence": ("RNNCell", 1, 1),
}
_BATCH, _TIME = 0, 1


class ConvertSequenceToTensorIterator(ModelPass):
    """Replaces unidirectional LSTMSequence, GRUSequence and RNNSequence with a TensorIterator over the cell."""

    def run_on_model(self, model: Model) -> bool:
        """Replace the sequences, and return whether there were any."""
        sequences = [node for node in model.get_ordered_ops() if _can_convert(node)]
        for node in sequences:
            _Conversion(node).replace()
        return bool(sequences)


def _can_convert(node: Node) -> bool:
    op = node.layer.op
    if op is None or node.type not in _CELLS or op.since < 5:
        return False
    has_time = node.input_value(0)._type.shape.rank == 3
    return has_time and node.get_attributes()["direction"] != "bidirectional"


class _Conversion:
    """The conversion of one sequence to a loop."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cell, self.opset, states = _CELLS[node.type]
        values = node.input_values()
        self.data, self.lengths = values[0], values[1 + states]
        self.first = [_squeeze(value, 1) for value in values[1 : 1 + states]]
        self.weights = [_squeeze(value, 0) for value in values[2 + states :]]
        self.attributes = node.get_attributes()
        self.is_reverse = self.attributes.pop("direction") == "reverse"
        self.is_masked = not _is_whole(self.data, self.lengths)
        self.states = [Parameter(state.element_type, state.partial_shape) for state in self.first]
        self.invariant: list[tuple[Parameter, Output]] = []

    def replace(self) -> None:
        """Build the loop, and connect the sequence's consumers to it."""
        name, flips = self.node.friendly_name, self.is_reverse and self.is_masked
        data = _reverse(self.data, self.lengths) if flips else self.data
        loop, (every, *last) = self._loop(data)
        loop.set_friendly_name(f"{name}/tensor_iterator" if flips else name)
        values = [_reverse(every, self.lengths) if flips else every, *last]
        for number, (former, value) in enumerate(zip(self.node.outputs(), values, strict=True)):
            unsqueezed = Node.create("Unsqueeze", 1, [value, np.array([1], np.int64)])
            unsqueezed.set_friendly_name(f"{name}.{number}")
            former.replace(unsqueezed.output(0))

    def _loop(self, data: Output) -> tuple[TensorIterator, list[Output]]:
        """Return the loop and its outputs: the outputs of all steps concatenated, and the final states."""
        shape = data.partial_shape
        shape[_TIME] = 1
        step = Parameter(data.element_type, shape)
        inputs = [_squeeze(step.output(0), _TIME), *self.states, *map(self._inside, self.weights)]
        states = Node.create(self.cell, self.opset, inputs, self.attributes).outputs()
        output, first = states[0], self.first
        if self.is_masked:
            output, states, first = self._mask_ended(states)
        results = [Result.with_names(state) for state in states]
        every = Result.with_names(Node.create("Unsqueeze", 1, [output, np.array([_TIME], np.int64)]))
        parameters = [step, *self.states, *(parameter for parameter, _ in self.invariant)]
        loop = TensorIterator()
        loop.set_body(Model([every, *results], parameters, "body"))
        start, stride, end = (-1, -1, 0) if self.is_reverse and not self.is_masked else (0, 1, -1)
        loop.set_sliced_input(step, data, start, stride, 1, end, _TIME)
        for parameter, value, result in zip(self.states, first, results, strict=True):
            loop.set_merged_input(parameter, value, result.output(0))
        for parameter, value in self.invariant:
            loop.set_invariant_input(parameter, value)
        outputs = [loop.get_concatenated_slices(every.output(0), start, stride, 1, end, _TIME)]
        outputs += [loop.get_iter_value(result.output(0)) for result in results[: len(self.first)]]
        return loop, outputs

    def _inside(self, value: Output) -> Node:
        """Return a node that stands for a tensor in the body: a Constant itself, or a Parameter for an invariant input."""
        if isinstance(value.node, Constant):
            return value.node
        parameter = Parameter(value.element_type, value.partial_shape)
        self.invariant.append((parameter, value))
        return parameter

    def _mask_ended(self, states: Sequence[Output]) -> tuple[Output, list[Output], list[Output]]:
        """Hold the states of sequences that have ended and zero their outputs, counting steps in an additional state."""
        lengths = self._inside(self.lengths)
        one = Constant(self.lengths.element_type, [1], [1])
        count = Parameter(one.element_type, [1])
        runs = Node.create(
            "Unsqueeze", 1, [Node.create("LessEqual", 1, [count, lengths]), np.array([1], np.int64)]
        )
        held = [
            Node.create("Select", 1, [runs, *pair]).output(0)
            for pair in zip(states, self.states, strict=True)
        ]
        zero = Constant(states[0].element_type, [], [0])
        self.states.append(count)
        output = Node.create("Select", 1, [runs, states[0], zero]).output(0)
        return output, [*held, Node.create("Add", 1, [count, one]).output(0)], [*self.first, one.output(0)]


def _squeeze(value: Output, axis: int) -> Output:
    """Remove an axis of length 1: from the array of a Constant, or by a Squeeze."""
    if isinstance(value.node, Constant):
        array = value.node.elements.squeeze(axis)
        return Constant(value.element_type, array.shape, array).output(0)
    return Node.create("Squeeze", 1, [value, np.array([axis], np.int64)]).output(0)


def _reverse(data: Output, lengths: Output) -> Output:
    axes = {"batch_axis": _BATCH, "seq_axis": _TIME}
    return Node.create("ReverseSequence", 1, [data, lengths], axes).output(0)


def _is_whole(data: Output, lengths: Output) -> bool:
    """Return whether all sequences of the batch are known to have full length."""
    time = data._type.shape[_TIME]
    values = lengths.node._value(lengths.index).known()
    return time.is_static and values is not None and bool((values == time.get_length()).all())


# Compression of weights that FakeQuantize or FakeConvert quantizes.


# More levels do not fit into a byte. With two, OpenVINO keeps the FakeQuantize, too.
_LEVELS = range(3, 257)
_LEVELS_OF_4_BITS = 16
# Zero points are rounded if they are this close to an integer.
_ROUNDING = 1e-4


class CompressQuantizeWeights(ModelPass):
    """Replaces FakeQuantize and FakeConvert of constants with low-bit constants, Convert, Subtract and Multiply.

    Bodies of branches and loops are included. FakeQuantize with up to 16 levels gives 4-bit integers, with
    more levels 8-bit ones; FakeConvert gives its own 8-bit type. The Subtract is omitted if the zero point or
    shift is 0.
    """

    def run_on_model(self, model: Model) -> bool:
        """Replace the nodes."""
        changed = False
        for node in model.get_ordered_ops():
            for body in bodies_of(node):
                changed = self.run_on_model(body) or changed
            replace = _replacement(node)
            arrays = _constants(node) if replace else None
            if replace and arrays:
                replace(node, arrays)
                changed = True
        return changed


def _replacement(node: Node) -> Callable[[Node, list[Array]], None] | None:
    """Return the function that replaces a node if its inputs are constant, or None for other operations."""
    if node.type == "FakeConvert":
        return _replace_convert
    return (
        _replace_quantize
        if node.type == "FakeQuantize" and node.get_attributes()["levels"] in _LEVELS
        else None
    )


def _constants(node: Node) -> list[Array] | None:
    """Return the contents of all inputs if they are constant, else None."""
    arrays = [_constant(source) for source in node.input_values()]
    return None if any(array is None for array in arrays) else [a for a in arrays if a is not None]


def _constant(source: Output) -> Array | None:
    """Return the contents of a Constant or of a Convert of one, None for other nodes."""
    node = source.node
    if node.type == "Convert" and node.input_value(0).node.type == "Constant":
        return node.input_value(0).node.elements.astype(source.element_type.dtype)
    return node.elements if node.type == "Constant" else None


def _replace_quantize(node: Node, arrays: list[Array]) -> None:
    weights, input_low, input_high, low, high = arrays
    levels = node.get_attributes()["levels"]
    first = 0 if low.min() >= 0 else -(levels // 2)
    limits = [np.full(low.shape, limit, low.dtype) for limit in (first, first + levels - 1)]
    types = [source.element_type for source in node.input_values()]
    integers = np.rint(evaluate_layer(node.layer, [weights, input_low, input_high, *limits], types)[0])
    scale = (high - low) / np.asarray(levels - 1, low.dtype)
    with np.errstate(all="ignore"):
        zero_point = np.where(scale == 0, 0, first - low / scale).astype(low.dtype)
    near = np.abs(zero_point - np.rint(zero_point)) < _ROUNDING
    zero_point = np.where(near, np.rint(zero_point), zero_point)
    stored = Constant(_element(levels, signed=first < 0), integers.shape, integers)
    _dequantize(node, stored, zero_point, scale)


def _replace_convert(node: Node, arrays: list[Array]) -> None:
    weights, scale, *shifts = arrays
    shift = shifts[0] if shifts else np.zeros((), scale.dtype)
    scaled = _compute("Multiply", [weights, scale])
    if shift.any():
        scaled = _compute("Subtract", [scaled, shift])
    stored = _compute("Convert", [scaled], node.get_attributes())
    inverse = _compute("Power", [scale, np.asarray(-1, scale.dtype)])
    _dequantize(node, stored, -shift, inverse)


def _dequantize(node: Node, stored: Constant, zero_point: Array, scale: Array | Constant) -> None:
    """Replace a node with ``(stored - zero_point) * scale``."""
    real = node.output(0).element_type
    value = Node.create("Convert", 1, [stored], {"destination_type": real})
    if zero_point.any():
        value = Node.create("Subtract", 1, [value, zero_point])
    value = Node.create("Multiply", 1, [value, scale])
    value.set_friendly_name(node.friendly_name)
    node.output(0).replace(value.output(0))


def _compute(
    type: str, sources: list[Array | Constant], attributes: Mapping[str, object] | None = None
) -> Constant:
    """Evaluate an operation of opset1 on constants, and return the result as a Constant."""
    node = Node.create(type, 1, sources, dict(attributes or {}))
    arrays = [source.node.get_data() for source in node.input_values()]
    result = evaluate_layer(node.layer, arrays, [source.element_type for source in node.input_values()])[0]
    return Constant(node.output(0).element_type, result.shape, result)


def _element(levels: int, signed: bool) -> ElementType:
    """Return the integer type of 4 bits if it suffices for this number of levels, else that of 8 bits."""
    if levels <= _LEVELS_OF_4_BITS:
        return ElementType.i4 if signed else ElementType.u4
    return ElementType.i8 if signed else ElementType.u8
