"""OpenVINO's helpers, as far as programs use them."""

from __future__ import annotations

from ..absent import answers
from ..api.building.replacing import replace_node, replace_output_update_name
from . import data_helpers, decorators, node_factory, types

__all__ = [
    "data_helpers",
    "decorators",
    "node_factory",
    "replace_node",
    "replace_output_update_name",
    "types",
]

__getattr__ = answers(__name__)
