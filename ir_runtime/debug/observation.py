"""The interface of judged executions (`Side`), and their observed results (`Observation`)."""

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

__all__ = ["NamedArrays", "Observation", "Repeated", "Side", "SideLike", "observe_faithfully", "same_bits"]

NamedArrays: TypeAlias = Mapping[Any, Array]
"""Tensors by name (``layer`` or ``layer:output``), and outputs by tensor name or index."""
SideLike: TypeAlias = "str | Path | Side | Repeated | NamedArrays | Sequence[Array] | Callable[[list[Array], list[str]], NamedArrays]"
"""A side: a name or path, arrays, or a function of the inputs and the names of tensors."""


@dataclass(frozen=True)
class Observation:
    """The results observed from one execution of a model by a side.

    >>> import numpy as np
    >>> from ir_runtime.debug import Observation
    >>> Observation("device", [np.ones(2)], {}).outputs[0].shape
    (2,)

    Args:
        name: the name of the side.
        outputs: the outputs of the model, in order.
        tensors: the observed tensors between layers.
        asked: the precision requested from the side, if any.
        ran: the precisions that the side reports.
        unobserved: tensors that cannot be observed without changing the result.
        wide: the ids of layers that computed in f32 although the requested precision is lower.
        held: the ids of layers with f32 outputs, which consumers may round.
        f16_in_f32: whether f16 layers were computed in f32, and observed before rounding; ``None`` if unknown.
        settings: the properties of the side, by its own names; empty if unknown.
        absent: the indices of missing outputs; ``outputs`` has arbitrary arrays at these indices.
        stored: the precision implied by the types of the arrays, if the side does not report one; empty for f32.
        steps: the quantization step of tensors stored as scaled integers.
        notes: notes on how the arrays were read, for the report.
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
    """Something that can execute models and whose results can be judged, such as a runtime or a device.

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
            reference: the reference of the model, which has the graph.
            feeds: an array for each input.
            ports: the tensors to observe.
        """
        ...


@dataclass(frozen=True)
class Repeated:
    """A side that is run several times, and is wrong if any run is wrong.

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
        side: the side to run.
        times: the maximum number of runs; the first unexplained result ends them.

    Raises:
        InputError: if the number of runs is below 1.
    """

    side: SideLike
    times: int

    def __post_init__(self) -> None:
        if self.times < 1:
            raise InputError(f"a side is run at least once, not {self.times} times", code=Code.BAD_REQUEST)


Look = Callable[[Sequence[Port]], Mapping[Port, Array] | None]
"""A function from tensors to their values, or ``None`` if observing changes the result."""


def observe_faithfully(ports: Sequence[Port], look: Look, tries: int) -> dict[Port, Array]:
    """Observe all tensors at once; if that changes the results, bisect the tensors to find those that can be observed.

    Args:
        ports: the tensors.
        look: runs the model and observes tensors; returns ``None`` if that changes the results.
        tries: the maximum number of calls; remaining tensors stay unobserved.
    """
    tensors: dict[Port, Array] = {}
    waiting = [ports] if ports else []
    while waiting and tries > 0:
        selection = waiting.pop(0)
        tries -= 1
        if (seen := look(selection)) is not None:
            tensors |= seen
        elif len(selection) > 1:
            middle = len(selection) // 2
            waiting += [selection[:middle], selection[middle:]]
    return tensors


def same_bits(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """Return whether two sequences of arrays are bitwise equal."""
    pairs = zip(ours, theirs, strict=True)
    return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
