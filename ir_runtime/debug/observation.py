"""The observations of a judged execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Port
from ..ir.tensor import Array
from .reference import Reference

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["NamedArrays", "Observation", "Repeated", "Side", "SideLike"]

NamedArrays: TypeAlias = Mapping[Any, Array]
"""Tensors by name (``layer`` or ``layer:output``), and outputs by tensor name or index."""
SideLike: TypeAlias = "str | Path | Side | Repeated | NamedArrays | Sequence[Array] | Callable[[list[Array], list[str]], NamedArrays]"
"""A side: a name or path, arrays, or a function of the inputs and the names of tensors."""


@dataclass(frozen=True)
class Observation:
    """The observed results of a side.

    >>> import numpy as np
    >>> from ir_runtime.debug import Observation
    >>> Observation("device", [np.ones(2)], {}).outputs[0].shape
    (2,)

    Args:
        name: the name of the side.
        outputs: the outputs of the model, in order.
        tensors: what was seen inside.
        asked: the precision that was asked for, if any.
        ran: the precisions that it ran in, as far as it says.
        unobserved: tensors that were to be seen, but cannot be without changing the result.
        wide: the ids of layers that computed in f32 though others computed in a lower precision.
        held: likewise, of those that gave f32: what others read of it may be rounded.
        f16_in_f32: whether layers of f16 were computed in f32, and seen before their results were rounded; ``None`` if
            that is not known.
        settings: what it ran with, by the names that it has for its properties; empty if that is not known.
        absent: the numbers of outputs that were not observed; ``outputs`` has any array in their places.
        stored: the precision that the types of the arrays stand for, of a side that does not say in which it ran; empty if
            that is f32.
        steps: by tensor, the step between the numbers that it was rounded to.
        notes: how the arrays were read.
    """

    name: str
    outputs: Sequence[Array]
    tensors: Mapping[Port, Array] = field(default_factory=dict)
    asked: str = ""
    ran: tuple[str, ...] = ()
    unobserved: tuple[Port, ...] = ()
    wide: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    f16_in_f32: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[int, ...] = ()
    stored: str = ""
    steps: Mapping[Port, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@runtime_checkable
class Side(Protocol):
    """An execution of a model that can be judged.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> class Device:
    ...     def observe(self, model, reference, feeds, ports):
    ...         found = ov.compile_model(model)(list(feeds))
    ...         return debug.Observation("device", [found[0] * np.float32(1.5)])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(opset1.abs(x, name="positive"), name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.compare(model, inputs, Device()).verdict
    'unexplained'
    >>> Device().observe(model, None, inputs, ()).name
    'device'
    """

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the model.

        Args:
            model: the model.
            reference: its reference, which has the graph.
            feeds: an array for each input.
            ports: the tensors to observe.
        """
        ...


@dataclass(frozen=True)
class Repeated:
    """A side that is run several times: it is wrong if one of its results is.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from itertools import count
    >>> from ir_runtime import debug, opset1
    >>> runs = count()
    >>> def device(inputs, names):
    ...     return {0: np.exp(inputs[0]) * (2 if next(runs) == 2 else 1)}
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> report = debug.compare(model, [np.float32([0, 1])], debug.Repeated(device, 5))
    >>> report.verdict, report.notes
    ('unexplained', ('run 3 is judged: the first of its kind among 2 different results in 3 runs',))

    Args:
        side: the side.
        times: how often it is run; no more once a result is not explained.

    Raises:
        InputError: if it is not run at all.
    """

    side: SideLike
    times: int

    def __post_init__(self) -> None:
        if self.times < 1:
            raise InputError(f"a side is run at least once, not {self.times} times", code=Code.BAD_REQUEST)
