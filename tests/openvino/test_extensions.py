"""Extensions and custom operations: what is accepted, refused and computed, on both packages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.dropin import assert_same, run

PACKAGES = ("ir_runtime", "openvino")

CLASSES = """
def infer(self):
    self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

class Simple(ov.Op):
    def __init__(self, *inputs):
        super().__init__(self, inputs)
    validate_and_infer_types = infer

class Noted(ov.Op):
    class_type_info = ov.DiscreteTypeInfo("Noted", "extension")
    def __init__(self, inputs=None, **attributes):
        super().__init__(self, inputs)
        self._attributes = attributes
    validate_and_infer_types = infer
    @staticmethod
    def get_type_info():
        return Noted.class_type_info
    def visit_attributes(self, visitor):
        if self._attributes:
            visitor.on_attributes(self._attributes)
        return True

class Thrice(Simple):
    def evaluate(self, outputs, inputs):
        outputs[0].shape = inputs[0].shape
        outputs[0].data[:] = inputs[0].data * 3
        return True

class Reluctant(Simple):
    def evaluate(self, outputs, inputs):
        return False
"""

PROGRAMS = {
    "extensions": """
class Empty(ov.Extension):
    def __init__(self):
        super().__init__()
core = ov.Core()
note(core.add_extension(Empty()), core.add_extension([Empty(), ov.Extension()]), repr(ov.Extension()))
note(core.add_extension(Simple), core.add_extension(ov.OpExtension(Noted)), core.add_extension([ov.OpExtension(Noted)]))
note(issubclass(ov.OpExtension, ov.Extension), [name for name in dir(ov.OpExtension(Noted)) if name[0] != "_"])
""",
    "refused": """
class Told(ov.Op):
    def __init__(self, inputs):
        super().__init__(self, inputs)
    validate_and_infer_types = infer
class Misnamed(ov.Op):
    class_type_info = "Misnamed"
    def __init__(self, inputs=None):
        super().__init__(self, inputs)
    def get_type_info(self):
        return self.class_type_info
for extension in (bool, Told, Misnamed, ov.Extension):
    for add in (ov.Core().add_extension, ov.OpExtension):
        try:
            add(extension)
        except RuntimeError:
            note("refused")
try:
    ov.Core().add_extension(object())
except TypeError:
    note("no extension")
""",
    "read again": """
core = ov.Core()
core.add_extension([ov.OpExtension(Simple), ov.OpExtension(Noted)])
x, y = ops.parameter([2, 1], np.float32, name="x"), ops.parameter([2, 1], np.float32, name="y")
simple = Simple(x, y)
model = ov.Model(ops.result(Noted([simple], text="a", numbers=[1, 2])), [x, y], "custom")
with tempfile.TemporaryDirectory() as folder:
    ov.serialize(model, f"{folder}/a.xml", f"{folder}/a.bin")
    found = core.read_model(f"{folder}/a.xml")
note([op.get_type_name() for op in found.get_ordered_ops()], simple.get_type_name())
note([op.get_type_name() for op in model.clone().get_ordered_ops()])
""",
    "computed": """
x = ops.parameter([2], np.float32, name="x")
note(ov.compile_model(ov.Model([Thrice(x).output(0)], [x]), "CPU")(np.float32([1, 2]))[0])
try:
    ov.compile_model(ov.Model([Reluctant(x).output(0)], [x]), "CPU")(np.float32([1, 2]))
except RuntimeError:
    note("does not compute")
""",
    "factories": """
from PACKAGE.utils.node_factory import NodeFactory, _get_node_factory
x = ops.parameter([2, 4], np.float32, name="x")
factory = NodeFactory("opset13")
note(len(NodeFactory._arguments_as_outputs([ops.split(x, 1, 2), x.output(0)])), factory.add_extension([ov.Extension()]))
late = factory.create("TopK")
note(late.get_type_name(), late.get_output_size())
late.set_arguments([x.output(0), ops.constant(1).output(0)])
late.set_attribute("axis", 1)
late.set_attribute("mode", "min")
late.set_attribute("sort", "value")
late.constructor_validate_and_infer_types()
note([output.get_partial_shape() for output in late.outputs()], _get_node_factory().create("Relu", [x]).get_type_name())
for wrong in (lambda: factory.create("Nothing", [x]), lambda: NodeFactory("opset99"), lambda: factory.add_extension("none.so")):
    try:
        wrong()
    except RuntimeError:
        note("refused")
try:
    factory.create("TopK", None, {"axis": 1})
except UserInputError:
    note("no arguments")
""",
}

HEAD = """
import tempfile
import numpy as np
import PACKAGE as ov
import PACKAGE.opset13 as ops
from PACKAGE.exceptions import UserInputError
"""


def program(name: str, package: str) -> list[Any]:
    return run((HEAD + CLASSES + PROGRAMS[name]).replace("PACKAGE", package), package)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    ours, theirs = (program(name, package) for package in PACKAGES)
    assert_same(ours, theirs)
    assert ours


def test_missing_attributes_of_a_node_are_named() -> None:
    import ir_runtime as ir
    from ir_runtime import opset13
    from ir_runtime.utils.node_factory import NodeFactory

    x = opset13.parameter([2, 4], np.float32)
    with pytest.raises(ir.InputError, match="missing a required argument: 'axis'"):
        NodeFactory().create("TopK", [x, opset13.constant(1)])
    node = NodeFactory().create("TopK")
    with pytest.raises(ir.ValidationError, match="no attribute 'axes'"):
        node.set_attribute("axes", 1)


def test_a_model_of_an_operation_that_does_not_compute_says_what_is_missing() -> None:
    import ir_runtime as ir
    from ir_runtime import opset13

    class Idle(ir.Op):
        def validate_and_infer_types(self) -> None:
            self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    x = opset13.parameter([2], np.float32)
    node = Idle(None, [x])
    assert not node.has_evaluate()
    with pytest.raises(ir.ExecutionError, match="must define evaluate"):
        ir.compile_model(ir.Model([node.output(0)], [x]))(np.zeros(2, np.float32))
