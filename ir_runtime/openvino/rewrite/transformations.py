"""OpenVINO's passes: folding, stateful models, f16 conversion, serialization, drawing."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import numpy as np

from ..._util.files import save_text
from ...ir.element import ElementType
from ...ir.evaluation import evaluate_layer, stands_alone
from ..build.control import Loop, TensorIterator
from ..build.descriptions import BodyOutputDescription, MergedInputDescription
from ..build.ends import Assign, Constant, ReadValue
from ..build.state import Pairs, make_stateful
from ..build.variables import Variable, VariableInfo
from ..model import Model
from ..node import Node, Output
from ..saving import PathLike, serialize
from .passes import ModelPass, bodies_of

__all__ = [
    "ConstantFolding",
    "ConvertFP32ToFP16",
    "LowLatency2",
    "MakeStateful",
    "Serialize",
    "Version",
    "VisualizeTree",
]


class ConvertFP32ToFP16(ModelPass):
    """Converts all f32 to f16: inputs, constants, and operations.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1, passes
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.relu(x)], [x])
    >>> passes.ConvertFP32ToFP16().run_on_model(model), model.input().element_type.to_string()
    (True, 'f16')
    """

    def run_on_model(self, model: Model) -> bool:
        """Convert the nodes, including bodies."""
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
    """Replaces the states of loops by variables, so that a sequence can be processed in several runs.

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
        use_const_initializer: whether variables are zero at first; else what the loop started from.
    """

    def __init__(self, use_const_initializer: bool = True) -> None:
        self._from_zero = use_const_initializer

    def run_on_model(self, model: Model) -> bool:
        """Add the variables."""
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
        read = ReadValue(_zeros_like(initial) if self._from_zero else initial, variable)
        last = _last_value(loop, state)
        loop.input(state.input_index).replace_source_output(read.output(0))
        model.add_sinks([Assign(last, variable)])
        model.add_variables([variable])


def _last_value(loop: Loop | TensorIterator, state: MergedInputDescription) -> Output:
    """Return the output with the state after the last iteration, adding one if necessary."""
    for entry in loop.get_output_descriptions():
        if isinstance(entry, BodyOutputDescription) and entry.body_value_index == state.body_value_index:
            return loop.output(entry.output_index)
    return loop.get_iter_value(loop.get_function().results[state.body_value_index].output(0))


def _zeros_like(value: Output) -> Node:
    zero = Constant(value.element_type, [], [0])
    return Node.create("Broadcast", 3, [zero, Node.create("ShapeOf", 3, [value])])


class VisualizeTree(ModelPass):
    """Writes the graph of a model for Graphviz.

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
        file_name: the file; one that does not end in ``.dot`` gets it added.
    """

    def __init__(self, file_name: str, nm: object = None, don_only: bool = True) -> None:
        path = Path(file_name)
        self._path = path if path.suffix == ".dot" else path.with_name(f"{path.name}.dot")

    def run_on_model(self, model: Model) -> bool:
        """Write the file."""
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
    """Versions of files that `Serialize` takes.

    >>> Version.IR_V11.value
    11
    """

    UNSPECIFIED = 0
    IR_V10 = 10
    IR_V11 = 11


class Serialize(ModelPass):
    """Saves the model unchanged.

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
        version: ``IR_V11``, which is the default.
    """

    def __init__(
        self, path_to_xml: PathLike, path_to_bin: PathLike | None = None, version: Version | str | None = None
    ) -> None:
        self._paths = path_to_xml, path_to_bin or None
        self._version = version.name if isinstance(version, Version) else version or Version.UNSPECIFIED.name

    def run_on_model(self, model: Model) -> bool:
        """Save the model.

        Raises:
            InputError: if the files cannot be written.
            ValidationError: if the model is not valid.
        """
        serialize(model, *self._paths, self._version)
        return False


class MakeStateful(ModelPass):
    """Replaces inputs by variables that hold outputs of the previous run.

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
        """Replace the inputs and outputs."""
        make_stateful(model, self._pairs)
        return True


class ConstantFolding(ModelPass):
    """Folds constants and static shapes, but not the decompression of weights.

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
        arrays = [np.empty(sources[0].shape, np.void)]  # without memory, as only its shape is used
    else:
        arrays = [source.node.elements for source in sources]
    if not stands_alone(node.layer):
        return
    results = evaluate_layer(node.layer, arrays, [source.element_type for source in sources])
    for output, array in zip(node.outputs(), results, strict=False):
        folded = Constant(output.element_type, array.shape, array)
        folded.set_friendly_name(node.friendly_name)
        output.replace(folded.output(0))
