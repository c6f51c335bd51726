"""The properties of a layer: its name, operation, attributes and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.shape import PartialShape
from ..ir.tensor import Array

__all__ = ["LayerInfo"]

# Where files spell an operation differently from OpenVINO's API.
_SPELLED = {"PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}


class LayerInfo:
    """A layer by itself, without what it is connected to."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    @property
    def friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    def get_friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    def get_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def type(self) -> str:
        """The operation as files spell it, such as ``ReLU``."""
        return self.layer.type

    def get_type_name(self) -> str:
        """The operation as OpenVINO spells it, such as ``Relu``."""
        return _SPELLED.get(self.layer.type, self.layer.type)

    def get_attributes(self) -> dict[str, Any]:
        """The attributes of the operation with their defaults, as numbers, texts and lists."""
        if self.layer.op is None:
            return dict(self.layer.attributes)
        found = self.layer.op.attributes()
        stored = ("offset", "size") if self.layer.type == "Constant" else ()
        return {name: _plain(value) for name, value in found.items() if name not in stored}

    @property
    def rt_info(self) -> Mapping[str, Any]:
        """The runtime information in the file."""
        return self.layer.rt_info

    def get_rt_info(self) -> Mapping[str, Any]:
        """The runtime information in the file."""
        return self.layer.rt_info

    @property
    def data(self) -> Array:
        """The contents of a Constant."""
        return self.get_data()

    def get_data(self) -> Array:
        """The contents of a Constant.

        Raises:
            InputError: for other layers.
        """
        if self.layer.type != "Constant" or self.layer.op is None:
            raise InputError(
                f"layer {self.friendly_name!r} is a {self.layer.type}; only a Constant holds data",
                code=Code.BAD_REQUEST,
            )
        return self.layer.op.evaluate()  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, PartialShape):
        return [-1] if value.rank is None else [d.min if d.is_static else -1 for d in value]
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, ElementType) else value
