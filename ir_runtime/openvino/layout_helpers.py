"""Functions that query layouts, and get and set those of inputs and outputs. As ``openvino.layout_helpers``.

>>> from ir_runtime import layout_helpers as layouts, opset1
>>> from ir_runtime import Layout
>>> image = Layout("NCHW")
>>> layouts.has_batch(image), layouts.has_channels(image), layouts.has_height(image), layouts.has_width(image)
(True, True, True, True)
>>> layouts.batch_idx(image), layouts.channels_idx(image), layouts.height_idx(image), layouts.width_idx(image)
(0, 1, 2, 3)
>>> layouts.has_depth(image), layouts.depth_idx(Layout("NCDHW"))
(False, 2)
>>> x = opset1.parameter([1, 3, 8, 8], "f32", name="x")
>>> layouts.set_layout(x.output(0), image)
>>> layouts.get_layout(x.output(0))
<Layout: [N,C,H,W]>
"""

from __future__ import annotations

from .._util.absent import list_public
from ..codes import Code
from ..errors import InputError
from ..ir.graph import IO_TYPES
from .const_ports import ConstOutput
from .layout import Layout
from .node import Output

__all__ = [
    "batch_idx",
    "channels_idx",
    "depth_idx",
    "get_layout",
    "has_batch",
    "has_channels",
    "has_depth",
    "has_height",
    "has_width",
    "height_idx",
    "set_layout",
    "width_idx",
]


def has_batch(layout: Layout) -> bool:
    """Return whether the layout names a batch."""
    return _check_name(layout).has_name("N")


def batch_idx(layout: Layout) -> int:
    """Return the index of the batch, negative if counted from the end."""
    return _check_name(layout).get_index_by_name("N")


def has_channels(layout: Layout) -> bool:
    """Return whether the layout names channels."""
    return _check_name(layout).has_name("C")


def channels_idx(layout: Layout) -> int:
    """Return the index of the channels, negative if counted from the end."""
    return _check_name(layout).get_index_by_name("C")


def has_depth(layout: Layout) -> bool:
    """Return whether the layout names a depth."""
    return _check_name(layout).has_name("D")


def depth_idx(layout: Layout) -> int:
    """Return the index of the depth, negative if counted from the end."""
    return _check_name(layout).get_index_by_name("D")


def has_height(layout: Layout) -> bool:
    """Return whether the layout names a height."""
    return _check_name(layout).has_name("H")


def height_idx(layout: Layout) -> int:
    """Return the index of the height, negative if counted from the end."""
    return _check_name(layout).get_index_by_name("H")


def has_width(layout: Layout) -> bool:
    """Return whether the layout names a width."""
    return _check_name(layout).has_name("W")


def width_idx(layout: Layout) -> int:
    """Return the index of the width, negative if counted from the end."""
    return _check_name(layout).get_index_by_name("W")


def get_layout(port: Output) -> Layout:
    """Return the layout of an input or output, empty if it has none."""
    if not isinstance(port, Output):
        raise TypeError(f"expected an output of a node or of a model, got {port!r}")
    return port._layout


def set_layout(port: Output, layout: Layout) -> None:
    """Set the layout of a model input or output, or remove it with an empty one.

    Raises:
        InputError: if the port is not that of a Parameter or Result, or the layout does not fit its shape.
    """
    if not isinstance(port, Output) or isinstance(port, ConstOutput):
        raise TypeError(f"expected an input or an output of a model, got {port!r}")
    node = port.node
    if node.get_type_name() not in IO_TYPES:
        raise InputError(
            f"only Parameters and Results have a layout, not {node.friendly_name!r}",
            code=Code.BAD_REQUEST,
            hint="give the inputs or outputs of the model one",
        )
    port._layout = layout


def _check_name(layout: Layout) -> Layout:
    if not isinstance(layout, Layout):
        raise TypeError(f"expected a Layout, got {layout!r}; ir_runtime.Layout({str(layout)!r}) is one")
    return layout


list_public(__name__)
