"""Chains of shape operations on dynamic inputs: our inferred shapes compared with OpenVINO's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino as ov
import pytest
from harness.oracle import Ours, answer, read
from openvino import opset15 as o

from ir_runtime.ir.shape import PartialShape

Node = Any


def ints(*numbers: int) -> Node:
    return o.constant(np.array(numbers, np.int64))


def i32(*numbers: int) -> Node:
    return o.constant(np.array(numbers, np.int32))


def scalar(number: int) -> Node:
    return o.constant(np.array(number, np.int64))


def dim(x: Node, *axes: int) -> Node:
    """Return some dims of a tensor, as a 1-D tensor."""
    return o.gather(o.shape_of(x), ints(*axes), scalar(0))


def joined(*parts: Node | int) -> Node:
    return o.concat([ints(p) if isinstance(p, int) else p for p in parts], 0)


def through_reals(x: Node, change: Callable[[Node], Node], *axes: int) -> Node:
    """Return some dims after f32 arithmetic."""
    return o.convert(change(o.convert(dim(x, *axes), "f32")), "i64")


def real(*numbers: float) -> Node:
    return o.constant(np.array(numbers, np.float32))


def filled(lengths: Node) -> Node:
    """Return a tensor with these dims."""
    return o.broadcast(scalar(1), lengths)


def shaped(x: Node, *parts: Node | int, special_zero: bool = False) -> Node:
    return o.reshape(x, joined(*parts), special_zero)


def picked(x: Node) -> Node:
    """Return the rows of a 3-D tensor whose first element is greater than 5, as ``x[x[..., 0] > 5]``."""
    mask = o.greater(o.gather(x, scalar(0), scalar(2)), o.constant(np.float32(5)))
    return o.gather_nd(x, o.transpose(o.non_zero(mask, "i64"), ints(1, 0)))


class Chain(NamedTuple):
    """Input shapes, the operations on them, and the resulting shape."""

    inputs: tuple[str, ...]
    build: Callable[..., Node]
    wanted: str
    given: int | None = None
    """What the last input holds, if it is a length."""
    sizes: tuple[tuple[int, ...], ...] = ()
    """Lengths of the inputs to run on, where not any will do."""


# Several of these shapes are more precise than OpenVINO's, which forgets which lengths are equal.
CHAINS = {
    "flatten": Chain(("?,12,64",), lambda x: o.reshape(x, ints(0, -1), True), "[?,768]"),
    "flatten all": Chain(("?,12,64",), lambda x: o.reshape(x, ints(-1), True), "[?]"),
    "flatten bounded": Chain(("1..8,12,64",), lambda x: o.reshape(x, ints(-1), False), "[768..6144]"),
    "flatten into blocks": Chain(
        ("1..8,10",), lambda x: o.reshape(x, ints(-1, 4), False), "[3..20,4]", sizes=((2, 10),)
    ),
    "split heads": Chain(("?,?,768",), lambda x: shaped(x, dim(x, 0), dim(x, 1), 12, 64), "[?,?,12,64]"),
    "split heads by zeros": Chain(
        ("?,?,768",), lambda x: o.reshape(x, ints(0, 0, 12, 64), True), "[?,?,12,64]"
    ),
    "split heads, one left": Chain(("?,?,768",), lambda x: shaped(x, dim(x, 0, 1), 12, -1), "[?,?,12,64]"),
    "split heads, batch left": Chain(("?,?,768",), lambda x: shaped(x, -1, dim(x, 1), 12, 64), "[?,?,12,64]"),
    "merge heads": Chain(
        ("?,12,?,64",),
        lambda x: shaped(o.transpose(x, ints(0, 2, 1, 3)), dim(x, 0), dim(x, 2), -1),
        "[?,?,768]",
    ),
    "merge heads, bounded": Chain(
        ("1..4,12,1..512,64",),
        lambda x: shaped(o.transpose(x, ints(0, 2, 1, 3)), dim(x, 0), dim(x, 2), -1),
        "[1..4,1..512,768]",
    ),
    "merge heads, length left": Chain(
        ("?,?,12,64",), lambda x: shaped(o.reshape(x, ints(0, -1, 768), True), dim(x, 1, 0), -1), "[?,?,768]"
    ),
    "there and back": Chain(
        ("?,?,64",), lambda x: shaped(o.reshape(x, ints(-1, 64), False), dim(x, 0, 1), 64), "[?,?,64]"
    ),
    "there and back, one left": Chain(
        ("2..4,3..5,64",),
        lambda x: shaped(o.reshape(x, ints(-1, 64), False), dim(x, 0, 1), -1),
        "[2..4,3..5,20..213]",
    ),
    "swapped by symbols": Chain(
        ("?,7,?",), lambda x: shaped(x, dim(x, 2), -1, dim(x, 0), special_zero=True), "[?,7,?]"
    ),
    "whole shape": Chain(
        ("?,5", "?,..9"), lambda x, y: o.reshape(x, o.shape_of(y), False), "[?,..9]", sizes=((3, 5), (5, 3))
    ),
    "as another": Chain(("?,4,5", "?,2..3"), lambda x, y: shaped(x, dim(y, 1), -1), "[2..3,?]"),
    "rows that a mask picks": Chain(("2,3,4",), lambda x: shaped(picked(x), -1, 2, 2), "[..6,2,2]"),
    "rows that a mask picks, of any length": Chain(
        ("?,3,4",), lambda x: shaped(picked(x), -1, 2, 2), "[?,2,2]"
    ),
    "given length": Chain(("2,12,64", "1"), lambda x, n: shaped(x, n, 64), "[24,64]", 24),
    "given length and rest": Chain(("2,12,64", "1"), lambda x, n: shaped(x, n, -1, 64), "[?,..24,64]", 6),
    "given length, twice": Chain(
        ("?,12,64", "1"), lambda x, n: shaped(x, n, 3, 256), "[?,3,256]", 2, ((2, 12, 64), (1,))
    ),
    "given length, to broadcast": Chain(
        ("1,12,64", "1"), lambda x, n: o.broadcast(x, joined(n, 12, 64)), "[?,12,64]", 5
    ),
    "given length, both ways": Chain(
        ("1,12,1", "1"),
        lambda x, n: o.broadcast(x, joined(n, 1, 64), broadcast_spec="BIDIRECTIONAL"),
        "[?,12,64]",
        5,
    ),
    "squeezed and unsqueezed": Chain(
        ("?,3,?",),
        lambda x: shaped(x, o.unsqueeze(o.squeeze(dim(x, 2), ints(0)), ints(0)), 3, dim(x, 0)),
        "[?,3,?]",
    ),
    "sliced shape": Chain(
        ("?,3,4..5,6",),
        lambda x: shaped(x, o.slice(o.shape_of(x), ints(0), ints(2), ints(1)), -1),
        "[?,3,24..30]",
    ),
    "sliced shape, backwards": Chain(
        ("?,3,4..5,6",),
        lambda x: o.broadcast(scalar(1), o.slice(o.shape_of(x), ints(-1), ints(-3), ints(-1))),
        "[6,4..5]",
    ),
    "strided slice of a shape": Chain(
        ("?,3,4..5,6",),
        lambda x: o.broadcast(scalar(1), o.strided_slice(o.shape_of(x), ints(1), ints(0), ints(2), [0], [1])),
        "[3,6]",
    ),
    "one number of a shape": Chain(
        ("?,3,4..5,6",),
        lambda x: o.broadcast(
            scalar(1),
            o.concat(
                [
                    o.unsqueeze(
                        o.strided_slice(o.shape_of(x), ints(-2), ints(0), ints(1), [0], [0], [0], [1]),
                        scalar(0),
                    ),
                    ints(2),
                ],
                0,
            ),
        ),
        "[4..5,2]",
    ),
    "split shape": Chain(
        ("?,3,4..5,6",),
        lambda x: o.broadcast(scalar(1), joined(o.split(o.shape_of(x), scalar(0), 2).output(1), dim(x, 0))),
        "[4..5,6,?]",
    ),
    "variadic split of a shape": Chain(
        ("?,3,4..5,6",),
        lambda x: o.broadcast(scalar(1), o.variadic_split(o.shape_of(x), scalar(0), ints(1, -1)).output(1)),
        "[3,4..5,6]",
    ),
    "split by a shape": Chain(
        ("2..3,12",),
        lambda x: o.variadic_split(o.concat([x, x, x], 1), scalar(1), joined(24, -1)).output(1),
        "[2..3,12]",
    ),
    "split where lengths open": Chain(
        ("10..20,6",), lambda x: o.variadic_split(x, scalar(0), ints(2, -1)).output(1), "[8..18,6]"
    ),
    "split evenly": Chain(
        ("5..10,6",), lambda x: o.split(x, scalar(0), 3).output(0), "[2..3,6]", sizes=((6, 6),)
    ),
    "table of shapes": Chain(
        ("?,3", "2..4,5"),
        lambda x, y: o.broadcast(
            scalar(1),
            o.gather(
                o.reshape(joined(o.shape_of(x), o.shape_of(y)), ints(2, 2), False), scalar(0), scalar(-1)
            ),
        ),
        "[?,2..4]",
    ),
    "tiled": Chain(("1,5", "?,2..4"), lambda x, y: o.tile(x, joined(dim(y, 0), dim(y, 1))), "[?,10..20]"),
    "tiled table": Chain(("1,1,5", "?,7"), lambda x, y: o.tile(x, joined(dim(y, 0), 3, 1)), "[?,3,5]"),
    "tiled, more axes": Chain(("?,5",), lambda x: o.tile(x, ints(2, 1, 3)), "[2,?,15]"),
    "broadcast to a shape": Chain(
        ("1,5", "?,2..4,5"), lambda x, y: o.broadcast(x, o.shape_of(y)), "[?,2..4,5]"
    ),
    "broadcast fills in": Chain(
        ("4,5", "?,?"), lambda x, y: o.broadcast(x, o.shape_of(y)), "[4,5]", sizes=((4, 5), (4, 5))
    ),
    "broadcast, mapped": Chain(
        ("?,5",),
        lambda x: o.broadcast(x, joined(dim(x, 0), 7, 5), ints(0, 2), "EXPLICIT"),
        "[?,7,5]",
    ),
    "broadcast both ways": Chain(
        ("?,1,5",),
        lambda x: o.broadcast(x, joined(1, dim(x, 0), 1), broadcast_spec="BIDIRECTIONAL"),
        "[?,?,5]",
    ),
    "positions": Chain(
        ("?,1..128",),
        lambda x: o.slice(
            o.constant(np.zeros((1, 512, 4), np.float32)), ints(0), dim(x, 1), ints(1), ints(1)
        ),
        "[1,1..128,4]",
    ),
    "positions of any length": Chain(
        ("?,?",),
        lambda x: o.slice(
            o.constant(np.zeros((1, 512, 4), np.float32)), ints(0), dim(x, 1), ints(1), ints(1)
        ),
        "[1,..512,4]",
    ),
    "positions, strided": Chain(
        ("?,1..128",),
        lambda x: o.strided_slice(
            o.constant(np.zeros((1, 512, 4), np.float32)),
            ints(0, 0),
            joined(0, dim(x, 1)),
            ints(1, 1),
            [1, 1],
            [1, 0],
        ),
        "[1,1..128,4]",
    ),
    "sliced to its own length": Chain(
        ("?,4",),
        lambda x: shaped(o.slice(x, ints(0), dim(x, 0), ints(1), ints(0)), dim(x, 0), -1),
        "[?,4]",
    ),
    "first kept whole": Chain(
        ("?,4..6",),
        lambda x: shaped(o.slice(x, ints(0), ints(2**31 - 1), ints(1), ints(0)), dim(x, 0), -1),
        "[?,4..6]",
    ),
    "last few": Chain(
        ("?,4..6",), lambda x: o.slice(x, ints(-3), ints(2**63 - 1), ints(1), ints(0)), "[..3,4..6]"
    ),
    "all but a few": Chain(("3..9,4",), lambda x: o.slice(x, ints(1), ints(-2), ints(1), ints(0)), "[..6,4]"),
    "every other": Chain(
        ("3..9,4",), lambda x: o.slice(x, ints(0), ints(2**63 - 1), ints(2), ints(0)), "[2..5,4]"
    ),
    "backwards": Chain(
        ("3..9,4",), lambda x: o.slice(x, ints(-1), ints(-(2**63)), ints(-1), ints(0)), "[3..9,4]"
    ),
    "gathered rows": Chain(("?,4",), lambda x: o.gather(x, ints(0, 0), scalar(0)), "[2,4]"),
    "new axes and an ellipsis": Chain(
        ("?,2..3,4,5",),
        lambda x: o.strided_slice(
            x,
            ints(0, 0, 0, 1),
            ints(0, 0, 0, 2),
            ints(1, 1, 1, 1),
            [0] * 4,
            [0] * 4,
            [1, 0, 0, 0],
            [0, 1, 0, 0],
            [0, 0, 1, 0],
        ),
        "[1,2..3,4,1]",
    ),
    "squeezed": Chain(("1,?,4",), lambda x: o.squeeze(x, ints(0, 1)), "[4]", sizes=((1, 1, 4),)),
    "doubled": Chain(
        ("1,?,3..5",), lambda x: o.broadcast(scalar(1), o.multiply(dim(x, 1, 2), ints(2, 3))), "[?,9..15]"
    ),
    "one less": Chain(
        ("1,?,3..5",), lambda x: o.broadcast(scalar(1), o.subtract(dim(x, 1, 2), ints(1, 3))), "[?,..2]"
    ),
    "one more, one less": Chain(
        ("1,3..5",), lambda x: shaped(x, o.subtract(o.add(dim(x, 1), ints(1)), ints(1)), 1), "[3..5,1]"
    ),
    "halved": Chain(
        ("1,?,3..8",), lambda x: o.broadcast(scalar(1), o.divide(dim(x, 1, 2), ints(2, 2))), "[?,1..4]"
    ),
    "counted": Chain(
        ("2,?,3..8,4",),
        lambda x: o.reshape(x, joined(dim(x, 1), o.reduce_prod(dim(x, 0, 2, 3), ints(0), True)), False),
        "[?,24..64]",
    ),
    "as i32": Chain(
        ("?,3..8,4",),
        lambda x: o.reshape(x, o.concat([o.gather(o.shape_of(x, "i32"), i32(0), i32(0)), i32(-1)], 0), False),
        "[?,12..32]",
    ),
    "converted": Chain(
        ("?,3..8,4",),
        lambda x: o.reshape(x, o.concat([o.convert(dim(x, 0), "i32"), i32(-1)], 0), False),
        "[?,12..32]",
    ),
    "chosen": Chain(
        ("?,3..8,4",),
        lambda x: o.reshape(
            x, o.select(o.equal(ints(0, -1), ints(-1, -1)), ints(-1, -1), joined(dim(x, 0), 5)), False
        ),
        "[?,12..32]",
    ),
    "scaled": Chain(
        ("?,3..8,4",),
        lambda x: filled(through_reals(x, lambda n: o.floor(o.multiply(n, real(1.5))), 0, 1, 2)),
        "[?,4..12,6]",
    ),
    "half in reals": Chain(
        ("?,3..8,4",),
        lambda x: filled(through_reals(x, lambda n: o.divide(n, real(2)), 0, 1, 2)),
        "[?,1..4,2]",
    ),
    "up to multiples of 32": Chain(
        ("2,3..70",),
        lambda x: filled(
            through_reals(x, lambda n: o.multiply(o.ceiling(o.divide(n, real(32))), real(32)), 0, 1)
        ),
        "[32,32..96]",
    ),
    "one less in reals": Chain(
        ("2,3..8",), lambda x: filled(through_reals(x, lambda n: o.subtract(real(9), n), 0, 1)), "[7,1..6]"
    ),
    "clamped reals": Chain(
        ("?,3..8",), lambda x: filled(through_reals(x, lambda n: o.clamp(n, 2.5, 6.5), 0, 1)), "[2..6,3..6]"
    ),
    "product in reals": Chain(
        ("2,3..8,4",),
        lambda x: filled(through_reals(x, lambda n: o.reduce_prod(n, ints(0), True), 0, 1, 2)),
        "[24..64]",
    ),
    "joined and cut in reals": Chain(
        ("2,3..8,4",),
        lambda x: filled(
            through_reals(x, lambda n: o.concat([o.slice(n, ints(1), ints(2), ints(1)), real(5.5)], 0), 0, 1)
        ),
        "[3..8,5]",
    ),
    "by a factor that may be nothing": Chain(
        ("?,3..8",), lambda x: filled(through_reals(x, lambda n: o.divide(real(6), n), 0, 1)), "[?,..2]"
    ),
    "at most as many": Chain(
        ("2,3..8",),
        lambda x: o.topk(
            x, o.reduce_min(o.concat([dim(x, 1), ints(5)], 0), ints(0), False), 1, "max", "value"
        ).output(0),
        "[2,3..5]",
    ),
    "the longest": Chain(
        ("2,3..8,5",), lambda x: filled(o.reduce_max(dim(x, 0, 1, 2), ints(0), True)), "[5..8]"
    ),
    "resized by a factor": Chain(
        ("1,2,3..8,4..5",),
        lambda x: o.interpolate(
            x,
            through_reals(x, lambda n: o.floor(o.multiply(n, real(2, 1.5))), 2, 3),
            "nearest",
            "sizes",
            axes=ints(2, 3),
        ),
        "[1,2,6..16,6..7]",
    ),
    "of as many as are not zero": Chain(
        ("2,3",), lambda x: (lambda found: shaped(found, dim(found, 1), -1))(o.non_zero(x, "i64")), "[..6,2]"
    ),
    "of as many as there are": Chain(
        ("?,3", "1"),
        lambda x, n: (lambda found: shaped(found, -1, dim(found, 0)))(o.tile(x, joined(n, 1))),
        "[3,?]",
        2,
    ),
    "scattered into a shape": Chain(
        ("?,3,4..5",),
        lambda x: o.broadcast(
            scalar(1), o.slice_scatter(o.shape_of(x), ints(7), ints(1), ints(2), ints(1), ints(0))
        ),
        "[?,7,4..5]",
    ),
}


def saved(chain: Chain, folder: Path) -> tuple[bytes, bytes]:
    """Return the chain as OpenVINO saves it."""
    lengths = None if chain.given is None else len(chain.inputs) - 1
    inputs = [
        o.parameter(ov.PartialShape(shape), np.int64 if i == lengths else np.float32, name=f"input{i}")
        for i, shape in enumerate(chain.inputs)
    ]
    model = ov.Model([chain.build(*inputs)], inputs)
    ov.serialize(model, folder / "chain.xml", folder / "chain.bin")
    return (folder / "chain.xml").read_bytes(), (folder / "chain.bin").read_bytes()


def sizes(shape: str, chosen: int) -> tuple[int, ...]:
    """Return lengths that a shape allows."""
    return tuple((d.min or 2, d.max or 3)[chosen] for d in PartialShape(shape))


@pytest.fixture(params=CHAINS, ids=str)
def chain(request: pytest.FixtureRequest) -> Chain:
    return CHAINS[request.param]


def test_the_shape_that_follows(chain: Chain, tmp_path: Path) -> None:
    xml, weights = saved(chain, tmp_path)
    ours = Ours(xml, weights)
    assert list(ours.report) == []
    (found,) = ours.types()
    assert str(found.shape) == chain.wanted
    theirs = PartialShape(str(read(xml, weights).outputs[0].get_partial_shape()))
    assert found.shape.refines(theirs), f"OpenVINO has {theirs}"


@pytest.mark.parametrize("chosen", [0, 1])
def test_the_shape_that_comes_out(chain: Chain, chosen: int, tmp_path: Path) -> None:
    xml, weights = saved(chain, tmp_path)
    ours, model = Ours(xml, weights), read(xml, weights)
    shapes = chain.sizes or tuple(sizes(s, chosen) for s in chain.inputs)
    fed = [np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes]
    if chain.given is not None:
        fed[-1] = np.full(shapes[-1], chain.given)
    (run,) = ours.run(fed)
    assert ours.types()[0].shape.contains(run.shape)
    (wanted,) = answer(model, fed)
    np.testing.assert_array_equal(run, wanted, strict=True)
