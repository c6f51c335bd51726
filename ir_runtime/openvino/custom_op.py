"""`Op`, the base class of custom operations written in Python, and their registration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import InputError, UnsupportedError
from ..ir.graph import Layer, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import TensorType, Value
from ..ops import registry
from .build.layer import new_layer, unique_name
from .custom_operation import CustomOperation, attribute_texts, collect_attributes, make_class
from .node import DiscreteTypeInfo, Node, Output
from .tensor import Tensor

__all__ = ["Extension", "Op", "OpExtension", "extend", "register"]

_EXTENSION = "extension"


class Op(Node):
    """Base class of custom operations. As OpenVINO's ``Op``.

    A subclass defines ``validate_and_infer_types``, which calls ``set_output_type`` for each output. To run, it also
    defines ``evaluate``; to be saved with attributes, ``visit_attributes``. OpenVINO also requires
    ``clone_with_new_inputs``, which is not called here. Operations declared with `ir_runtime.ops.op` also check their
    inputs.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> class Twice(ov.Op):
    ...     def __init__(self, inputs):
    ...         super().__init__(self, inputs)
    ...     def validate_and_infer_types(self):
    ...         self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))
    ...     def evaluate(self, outputs, inputs):
    ...         outputs[0].shape = inputs[0].shape
    ...         outputs[0].data[:] = inputs[0].data * 2
    ...         return True
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([Twice([x]).output(0)], [x])
    >>> ov.compile_model(model)(np.array([1, 3], np.float32))[0]
    array([2., 6.], dtype=float32)
    >>> Twice([x]).has_evaluate()
    True

    Args:
        py_obj: the node itself, as in OpenVINO.
        inputs: the operands, which may also be set later with ``set_arguments``.
    """

    layer: Layer
    class_type_info: ClassVar[DiscreteTypeInfo | None] = None
    _operations: ClassVar[dict[tuple[str, str], type[CustomOperation]]] = {}

    def __init__(self, py_obj: object = None, inputs: Sequence[object] | None = None) -> None:
        op = self._bound()
        self._build_incomplete(new_layer(op, 0, unique_name(op.name)), [])
        self.layer = replace(self.layer, version=self.get_type_info().version_id)
        if inputs:
            self.set_arguments(inputs[0] if isinstance(inputs[0], list) else inputs)
            self.constructor_validate_and_infer_types()

    def get_type_info(self) -> DiscreteTypeInfo:
        """Return the type of the operation: by default, the name of the class with version ``extension``."""
        return self.class_type_info or DiscreteTypeInfo(type(self).__name__, _EXTENSION)

    @property
    def type_info(self) -> DiscreteTypeInfo:
        """The name and version of the operation."""
        return self.get_type_info()

    def get_type_name(self) -> str:
        """Return the name of the operation."""
        return self.get_type_info().name

    def get_attributes(self) -> dict[str, Any]:
        """Return the attributes that ``visit_attributes`` passes to its visitor."""
        return collect_attributes(self)

    def visit_attributes(self, visitor: object) -> bool:
        """Pass the attributes as a dictionary to ``visitor.on_attributes``. By default, there are none."""
        return True

    def has_evaluate(self) -> bool:
        """Return whether the operation can be run: by default, whether the class defines ``evaluate``."""
        return type(self).evaluate is not Op.evaluate

    def evaluate(
        self,
        output_values: Sequence[Tensor],
        input_values: Sequence[Tensor],
        evaluationContext: object = None,  # noqa: N803  # OpenVINO's name
    ) -> bool:
        """Compute ``output_values`` from ``input_values``, and return whether that is possible."""
        return False

    def validate_and_infer_types(self) -> None:
        """Set the type of each output.

        Raises:
            UnsupportedError: if the subclass does not define the method.
        """
        raise UnsupportedError(
            f"class {type(self).__name__} must define validate_and_infer_types(self)",
            hint="it calls self.set_output_type for each output",
        )

    def _infer_types(self, inputs: Sequence[Value]) -> Sequence[TensorType]:
        """Return the types that ``validate_and_infer_types`` sets for these inputs, leaving the node unchanged."""
        before = {name: vars(self)[name] for name in _STATE if name in vars(self)}
        try:
            self._home, self._is_attached = None, False
            self._own_sources = [Output(_Operand(value), 0) for value in inputs]
            ports = tuple(map(PortSpec, range(len(inputs))))
            self.layer = replace(self.layer, inputs=ports, outputs=())
            self._own_values = ()
            self.validate_and_infer_types()
            return [value.type for value in self._values]
        finally:
            for name in _STATE:
                vars(self).pop(name, None)
            vars(self).update(before)

    def _bound(self) -> CustomOperation:
        info = self.get_type_info()
        if not isinstance(info, DiscreteTypeInfo):
            raise InputError(
                f"the type_info of class {type(self).__name__} is {info!r}, not a DiscreteTypeInfo",
                code=Code.BAD_REQUEST,
                hint='class_type_info = DiscreteTypeInfo("Name", "extension"), or leave it out',
            )
        key = info.name, info.version_id
        if key not in Op._operations:
            Op._operations[key] = make_class(*key)
        return Op._operations[key].of(self)

    def _operation(self, name: str) -> Operation | None:
        self.layer = replace(self.layer, attributes=attribute_texts(self))
        return self._bound()


class _Operand(Node):
    """A producer of a single output with a known value, for use during inference."""

    def __init__(self, value: Value) -> None:
        self._given = value

    def _value(self, index: int) -> Value:
        return self._given


# The attributes of a node that `_infer_types` changes temporarily.
_STATE = ("_home", "_is_attached", "_own_sources", "_own_values", "_edited", "layer")


class Extension:
    """An extension that registers nothing. As OpenVINO's ``Extension``.

    >>> import ir_runtime as ov
    >>> ov.Core().add_extension(ov.Extension())
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class OpExtension(Extension):
    """An extension that registers a subclass of `Op`. As OpenVINO's ``OpExtension``.

    >>> import ir_runtime as ov
    >>> ov.Core().add_extension(ov.OpExtension(type("OpOfAnotherExample", (ov.Op,), {})))

    Args:
        operation: the class.

    Raises:
        InputError: if it is no such class, or its nodes cannot be created without arguments, as reading does.
    """

    def __init__(self, operation: type[Op]) -> None:
        if not isinstance(operation, type) or not issubclass(operation, Op):
            raise InputError(f"{operation!r} is not a subclass of Op", code=Code.BAD_REQUEST)
        _info(operation)
        self._operation = operation


def _info(cls: type[Op]) -> DiscreteTypeInfo:
    """Return the type of an operation class, for which a node is created without arguments.

    Raises:
        InputError: if the class requires arguments.
    """
    try:
        return cls().get_type_info()
    except TypeError as reason:
        raise InputError(
            f"nodes of class {cls.__name__} cannot be created without arguments, as reading does: {reason}",
            code=Code.BAD_REQUEST,
            hint="let the inputs default to None, and infer types where there are some",
        ) from None


def register(cls: type[Op]) -> None:
    """Register an operation class, so that files with the operation can be read.

    Raises:
        InputError: if nodes of the class cannot be created without arguments, as reading does.
    """
    info = _info(cls)
    Op._operations[info.name, info.version_id] = make_class(info.name, info.version_id, cls)


def extend(extension: object) -> None:
    """Register the operation class of an extension. Classes declared with `ir_runtime.ops.op` are registered already.

    Raises:
        ArgumentTypeError: if it is not a class.
        InputError: if the class is no operation, or ``extension`` is the path of a compiled extension.
    """
    if isinstance(extension, Extension):
        if isinstance(extension, OpExtension):
            register(extension._operation)
    elif isinstance(extension, type) and issubclass(extension, Op):
        register(extension)
    elif isinstance(extension, str | Path):
        raise InputError(
            f"{str(extension)!r} is not available: extensions such as openvino_tokenizers are compiled against OpenVINO",
            code=Code.BAD_REQUEST,
            hint="tokenize with the package of Hugging Face; other operations are declared with ir_runtime.ops.op",
        )
    elif not isinstance(extension, type):
        message = f"an extension must be a class of an operation, got {type(extension).__name__}"
        raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
    elif extension not in list(registry):
        raise InputError(
            f"{extension!r} is not an operation declared with ir_runtime.ops.op", code=Code.BAD_REQUEST
        )
