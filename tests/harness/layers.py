"""Single layers and their inputs in a few characters; counters of their FLOPs and of function calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from types import FrameType
from typing import Any

import numpy as np

import ir_runtime
from ir_runtime.executor.step import Step
from ir_runtime.ir.dimension import Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.operation import Operands
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value, objects
from ir_runtime.ops import registry


def layer(name: str, **attributes: str) -> Any:
    """Return one version of an operation, such as ``Pad-12``, from attributes as strings."""
    kind, _, since = name.rpartition("-")
    cls = registry.resolve(kind, int(since))
    assert cls is not None
    assert cls.versioned_name() == name
    return cls.parse(attributes)


def value(x: Any) -> Value:
    """Return a known value from an array, or an unknown one from ``"f32 2,?"``."""
    if isinstance(x, str):
        element, _, shape = x.partition(" ")
        return Value.unknown(ElementType.parse(element), PartialShape(shape))
    return x if isinstance(x, Value) else Value.constant(np.asarray(x))


def values(inputs: Iterable[Any]) -> list[Value]:
    """Return the values of a layer's inputs."""
    return [value(x) for x in inputs]


def bounded(*numbers: int | Interval) -> Value:
    """Return a 1-D integer tensor; elements given as intervals are known only by bounds."""
    return Value.bounded(ElementType.i64, objects(numbers, (len(numbers),)))


def deformable_layer(version: str, steps: tuple[int, int], pads: int, parts: int) -> Any:
    """Return a deformable convolution with one group: ``"1"``, ``"8"``, or ``"8 with zeros"`` outside the image.

    Args:
        version: of the operation.
        steps: strides; the second one is also the dilation of rows.
        pads: at all edges.
        parts: the number of deformable groups.
    """
    return layer(
        f"DeformableConvolution-{version[0]}", strides=f"{steps[0]},{steps[1]}", dilations=f"{steps[1]},1",
        pads_begin=f"{pads},{pads}", pads_end=f"{pads},{pads}", auto_pad="explicit", group="1",
        deformable_group=str(parts), **({"bilinear_interpolation_pad": "true"} if "zeros" in version else {}),
    )  # fmt: skip


class Counter:
    """An observer that sums the FLOPs of each layer, from the shapes that it receives."""

    def __init__(self) -> None:
        self.flops: dict[str, int] = {}
        self._inputs: list[Sequence[Array]] = []

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        self._inputs.append(inputs)

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        inputs, op = self._inputs.pop(), step.layer.op
        if op is None or step.layer.bodies():
            return
        shapes = Operands(
            tuple(x.shape for x in inputs),
            tuple(x.shape for x in outputs),
            tuple(inputs),
        )
        found = op.flops(shapes)
        assert isinstance(found, int)
        self.flops[step.layer.name] = self.flops.get(step.layer.name, 0) + found


def counted(model: ir_runtime.Model, inputs: Sequence[Array]) -> dict[str, int]:
    """Return the FLOPs of each layer in a run with these inputs; bodies count for each iteration."""
    counter = Counter()
    ir_runtime.compile_model(model)(list(inputs), observers=[counter])
    return counter.flops


def calls(action: Callable[[], object], kinds: Collection[str] = ("call", "c_call")) -> int:
    """Return how many functions an action calls: by default of Python and of C, but for NumPy's ufuncs.

    The number does not depend on the load of the machine. ``kinds`` are events of `sys.setprofile`.
    """
    count = 0

    def event(frame: FrameType, kind: str, argument: object) -> None:
        nonlocal count
        count += kind in kinds

    before = sys.getprofile()
    sys.setprofile(event)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
