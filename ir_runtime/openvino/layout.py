"""`Layout`, which names the dimensions of a tensor: batch, channels, height and so on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from .._util.absent import ExplainsAbsent
from ..codes import Code
from ..errors import InputError
from ..ir.graph import Layer
from ..ir.shape import PartialShape

__all__ = [
    "Layout",
    "check_layout",
    "layout_of",
    "with_layout",
]


_ELLIPSIS = "..."
_UNKNOWN = "?"
_SCALAR = "**SCALAR**"
_ALIASES = {
    "BATCH": "N", "B": "N", "CHANNELS": "C", "CHANNEL": "C", "HEIGHT": "H", "WIDTH": "W", "DEPTH": "D",
}  # fmt: skip
_EXPECTED = 'expected a layout such as "NCHW", "N...C" or "[batch,?,width]"'


class Layout(ExplainsAbsent):
    """The names of the dimensions of a tensor, in order.

    A letter per dimension, ``NCHW``, or names in brackets, ``[batch,channels,height,width]``. ``?`` is an
    unnamed dimension, ``...`` any number of them. Case is ignored. Layouts are immutable.

    >>> Layout("nchw"), Layout("N...C").get_index_by_name("channels"), Layout("[batch,?]") == "N?"
    (<Layout: [N,C,H,W]>, -1, True)
    >>> layout = Layout("N...C")
    >>> layout.has_name("batch"), layout.is_dynamic, layout.least_rank, layout.fits(4), layout.names(4)
    (True, True, 2, True, ('N', '?', '?', 'C'))
    >>> Layout().empty, Layout.scalar(), Layout.of(("N", "?")).to_string()
    (True, <Layout: **SCALAR**>, '[N,?]')
    """

    __slots__ = ("_left", "_right")
    _left: tuple[str, ...] | None
    _right: tuple[str, ...] | None

    def __init__(self, layout_str: str = "") -> None:
        if not isinstance(layout_str, str):
            raise TypeError(f"the text of a layout must be a str, got {layout_str!r}")
        self._left, self._right = _parse(layout_str)
        names = [name for name in self if name != _UNKNOWN]
        for name in names:
            if names.count(name) > 1:
                raise _refusal(layout_str, f"more than one dimension is named {name!r}")

    @classmethod
    def scalar(cls) -> Layout:
        """Return the layout of a tensor without dimensions."""
        return cls(_SCALAR)

    @classmethod
    def of(cls, names: tuple[str, ...]) -> Layout:
        """Return the layout with one name per dimension, ``?`` for an unnamed one."""
        layout = cls()
        layout._left, layout._right = names, None
        return layout

    @property
    def empty(self) -> bool:
        """Whether the layout is empty, that is, unspecified."""
        return (self._left, self._right) == ((), ())

    @property
    def is_dynamic(self) -> bool:
        """Whether the layout has an ellipsis, so that it fits several ranks."""
        return self._right is not None

    @property
    def least_rank(self) -> int:
        """The number of listed dimensions, which is the rank unless the layout has an ellipsis."""
        return len(self._left or ()) + len(self._right or ())

    def names(self, rank: int) -> tuple[str, ...]:
        """Return one name per dimension of a tensor of ``rank`` dimensions, ``?`` for unnamed ones."""
        unknown = rank - self.least_rank if self.is_dynamic else 0
        return (*(self._left or ()), *[_UNKNOWN] * unknown, *(self._right or ()))

    def fits(self, rank: int | None) -> bool:
        """Return whether the layout fits a tensor of this rank. It fits an unknown rank."""
        return rank is None or rank == self.least_rank or (self.is_dynamic and rank > self.least_rank)

    def has_name(self, dimension_name: str) -> bool:
        """Return whether a dimension has this name or an alias of it, as ``n``, ``B`` and ``batch`` are."""
        return _canonical(dimension_name) in (name for name in self if name != _UNKNOWN)

    def get_index_by_name(self, dimension_name: str) -> int:
        """Return the index of the dimension, negative if counted from the end.

        Raises:
            InputError: if no dimension has this name.
        """
        if not self.has_name(dimension_name):
            message = f"layout {self} has no dimension {dimension_name!r}"
            raise InputError(message, code=Code.NO_SUCH_NAME)
        name, left = _canonical(dimension_name), self._left or ()
        if name in left:
            return left.index(name)
        right = self._right or ()
        return right.index(name) - len(right)

    def to_string(self) -> str:
        """Return the layout as a string with one name per dimension in brackets."""
        if self._left is None:
            return _SCALAR
        middle = (_ELLIPSIS,) if self.is_dynamic else ()
        return f"[{','.join((*self._left, *middle, *(self._right or ())))}]"

    def __iter__(self) -> Iterator[str]:
        yield from self._left or ()
        yield from self._right or ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            other = Layout(other)
        if not isinstance(other, Layout):
            return NotImplemented
        return (self._left, self._right) == (other._left, other._right)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # it equals strings of the same meaning

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<Layout: {self}>"


def _parse(text: str) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the names before and after the ellipsis. The former are None for a scalar, the latter without an ellipsis."""
    if not text:
        return (), ()
    layout = text.strip()
    if layout == _SCALAR:
        return None, None
    if layout in ("", "[]"):
        raise _refusal(text, "it names nothing")
    bracketed = layout.startswith("[") and layout.endswith("]") and len(layout) > 1
    left, ellipsis, right = (layout[1:-1] if bracketed else layout).partition(_ELLIPSIS)
    if not bracketed:
        return _names(left, text), _names(right, text) if ellipsis else None
    if not ellipsis:
        return _names(_split_names(left), text), None
    before, after = left.strip(), right.strip()
    if (before and not before.endswith(",")) or (after and not after.startswith(",")):
        raise _refusal(text, f"{_ELLIPSIS!r} must be between commas")
    return (
        _names(_split_names(before[:-1]), text) if before else (),
        _names(_split_names(after[1:], _UNKNOWN), text) if after else (),
    )


def _split_names(names: str, *last: str) -> list[str]:
    """Split names at commas. As in OpenVINO, ``last`` replaces the empty name after a trailing comma."""
    parts = names.split(",")
    return [*parts[:-1], *last] if len(parts) > 1 and not parts[-1] else parts


def _names(names: str | list[str], text: str) -> tuple[str, ...]:
    return tuple(_canonical(_check_name(name.strip() or name, text)) for name in names)


def _check_name(name: str, text: str) -> str:
    if name == _UNKNOWN:
        return name
    if not name:
        raise _refusal(text, "a name is empty")
    allowed = all(c == "_" or (c.isascii() and c.isalnum()) for c in name)
    if not allowed or not name.strip("_"):
        raise _refusal(text, f"{name!r} is not a name of letters, digits and underscores")
    return name


def _canonical(name: str) -> str:
    return _ALIASES.get(name.upper(), name.upper())


def _refusal(text: str, reason: str) -> InputError:
    return InputError(f"{text!r} is not a layout: {reason}", code=Code.BAD_REQUEST, hint=_EXPECTED)


# Layouts of layer outputs, stored in the rt_info of ports.

_ENTRY = "layout"


def layout_of(layer: Layer, index: int) -> Layout:
    """Return the layout of an output, empty if the file has none."""
    specs = layer.outputs[index : index + 1]
    entry = specs[0].rt_info.get(_ENTRY, "") if specs else ""
    return Layout(str(entry.get(_ENTRY, "") if isinstance(entry, Mapping) else entry))


def with_layout(layer: Layer, index: int, layout: Layout) -> Layer:
    """Return the layer with the layout of an output replaced, or removed if ``layout`` is empty."""
    specs = list(layer.outputs)
    info = {key: entry for key, entry in specs[index].rt_info.items() if key != _ENTRY}
    if not layout.empty:
        info[_ENTRY] = {"version": "0", _ENTRY: str(layout)}
    specs[index] = replace(specs[index], rt_info=info)
    return replace(layer, outputs=tuple(specs))


def check_layout(layout: Layout, shape: PartialShape, name: str) -> None:
    """Raise unless the layout is empty or fits a tensor of this shape.

    Raises:
        InputError: if the number of dimensions differs.
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"expected a Layout, got {layout!r}; ir_runtime.Layout({str(layout)!r}) is one")
    if not layout.empty and not layout.fits(shape.rank):
        raise InputError(
            f"layout {layout} does not fit {name!r}, which has shape {shape}",
            code=Code.BAD_REQUEST,
            hint=f"a layout must name {shape.rank} dimensions, or have an ellipsis",
        )
