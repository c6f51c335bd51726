"""``Dimension``, ``PartialShape`` and ``Shape`` on both packages: results and errors of expressions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from harness.dropin import IMPORTS

import ir_runtime as ir
from ir_runtime.ir import shape as engine

SAME = """
D() D(-1) D(3) D(1,8) D(1,-1) D(-1,8) D(-1,-1) D("?") D("1..8") D("..8") D("3..") D("x") D("-1") D(1.5) D(None)
D(3)==3 D(3)==D(3) D(1,8)==D(1,8) D()==-1 D(1,8)==-1 D()==D() D(3)=="3" D(3)!=4 D()!=-1 D(3)==None hash(D(3))
str(D()) len(D(3)) len(D()) bool(D(0)) bool(D(3)) bool(D()) D(3)<4
D(3).get_length() D().get_length() D(1,8).get_min_length() D(1,8).get_max_length() D().get_max_length() D().max_length
D(2,-1).max_length D(3).max_length D(3).min_length D(3).is_static D().is_dynamic D.dynamic() D(3).to_string()
D(3).compatible(D()) D(3).refines(D()) D().relaxes(D(3)) D(3).same_scheme(D(3)) D().same_scheme(D(3))
D(3).has_symbol() bool(D().get_symbol()) D().get_symbol()==ov.Symbol() bool(ov.Symbol()) ov.Symbol()==ov.Symbol()
symbol(D()).has_symbol() symbol(D())==D() P([symbol(D())])[0].has_symbol() P([symbol(D()),3])==P("?,3")
S() S([1,3]) S((1,3)) S("1,3") S("[1,3]") S("[1, 3]") S("") S("[]") S("1,3,") S([1,-3]) S([1.5]) S(3) S(S([1])) S(None)
S(range(2)) S(np.array([1,3])) S([1,3])==[1,3] S([1,3])==(1,3) S([1,3])==S([1,3]) S([1,3])!=[1,3] S([1,3])!=(1,4)
S([1,3])==P([1,3]) P([1,3])==S([1,3]) S([1])=="1" S([1])==None [1,3]==S([1,3]) (1,3)==S([1,3]) hash(S([1]))
str(S([1,3])) len(S([1,3])) S([1,3])[0] S([1,3])[-1] S([1,2,3,4])[1:3] S([1,2,3,4])[::-1] S([1,2])["a"]
list(S([1,3])) tuple(S([1,3])) S([1,3]).to_string() (3 in S([1,3])) np.zeros(S([1,3])).shape np.array(S([1,3]))
np.prod(S([2,3])) np.zeros(6).reshape(S([2,3])).shape [*S([1,2])] max(S([1,3])) list(reversed(S([1,3]))) bool(S())
f"{S([1,3])}" put(S([1,3]),0,5) put(S([1,3]),0,D(4)) put(S([1,3]),0,D()) put(S([1,3]),0,1.5)
P([1,3]) P((1,-1)) P([]) P("?,3") P("[?,3]") P("1,..8,2..") P("...") P("") P("[]") P("[...]") P("x,3") P("1,,3")
P("?,3,") P("[1,3") P("-1,3") P([1,"?"]) P([1,"2..8"]) P([1,"x"]) P([(1,8),3]) P([[1,8],3]) P([(1,8,9)]) P([D(),3])
P([1.5]) P([None]) P(3) P(S([1,3])) P(P([1,-1])) P(D(3))
P([1,3])==P([1,3]) P([1,-1])==P([1,-1]) P([1,3])==[1,3] P([1,3])==(1,3) P("1,3")=="1,3" P([1])==None P([1])!=[2]
P.dynamic()==P.dynamic() [1,3]==P([1,3]) hash(P([1]))
P([1,3]).rank P.dynamic().rank P.dynamic().rank.is_dynamic P.dynamic().rank.is_static P([1,3]).rank.get_length()
P.dynamic().rank.get_length() P([1,3]).rank==2 P.dynamic(3) P.dynamic(D(2)) P.dynamic(D()) P.dynamic(-1)
P.dynamic(rank=2) P.dynamic() P.dynamic(D(1,3)) P([]).rank P([1,3]).is_static P([1,-1]).is_dynamic
P.dynamic().is_dynamic P([1,3]).to_shape() P([1,-1]).to_shape() P([1,3]).get_shape() P([-1]).get_shape()
P([1,(2,8),-1]).get_min_shape() P([1,(2,8),-1]).get_max_shape() P.dynamic().get_min_shape() P.dynamic().get_max_shape()
P.dynamic().to_shape() P([1,3]).get_dimension(1) P([1,3]).get_dimension(5) P([1,3]).all_non_negative
P.dynamic().all_non_negative P([1,3]).to_string() P.dynamic().to_string() type(P([1]).to_shape()).__name__
type(P([1]).rank).__name__ type(P([1])[0]).__name__ type(next(iter(P([1])))).__name__
len(P([1,3])) len(P.dynamic()) P([1,3])[0] P([1,3])[-1] P([1,3])[2] P([1,2,3])[0:2] P([1,2,3])[::-1]
P.dynamic()[0] P.dynamic()[0:1] list(P([1,-1])) list(P.dynamic()) [d.get_length() for d in P([1,3])] (3 in P([1,3]))
bool(P([])) bool(P.dynamic()) str(P([1,-1])) repr(P("?,1..8")) str(P([])) f"{P([1,-1])}" list(reversed(P([1,3])))
put(P([1,3]),0,-1) put(P([1,3]),5,1) put(P([1,3]),0,D(1,8)) put(P([1,3]),0,1.5) put(P.dynamic(),0,1)
put(P([1,3]),0,None) put(P([1,3]),1,7).is_static put(P([1,-1]),1,7).to_shape() put(P([1,3]),0,-1)==P([-1,3])
P([1,-1]).compatible(P([1,3])) P([1,2]).compatible(P([1,3])) P([1,3]).refines(P([1,-1])) P([1,-1]).relaxes(P([1,3]))
P([1,-1]).same_scheme(P([1,-1])) P([1,-1]).same_scheme(P([1,3])) P.dynamic().same_scheme(P.dynamic())
P([1,3]).refines(P.dynamic()) P.dynamic().compatible(P([1])) P.dynamic().relaxes(P([1])) P([1]).refines(P([1,2]))
copy.copy(P([1,-1])) copy.deepcopy(P([1,-1])) put(copy.copy(P([1,-1])),0,5) P([1])+P([2])
"""


def put(shape: Any, index: int, length: Any) -> Any:
    shape[index] = length
    return shape


def outcome(expression: str, package: str) -> str:
    """Return the value of an expression as text, or the kind of its error."""
    names: dict[str, Any] = {"np": np, "copy": copy, "put": put}
    exec(IMPORTS[package], names)

    def symbol(dimension: Any) -> Any:
        dimension.set_symbol(names["ov"].Symbol())
        return dimension

    exec("D, P, S = ov.Dimension, ov.PartialShape, ov.Shape", names)
    try:
        return repr(eval(expression, names | {"symbol": symbol}))
    except (TypeError, RuntimeError) as problem:
        return f"raises {next(k.__name__ for k in (TypeError, RuntimeError) if isinstance(problem, k))}"


@pytest.mark.parametrize("line", SAME.strip().splitlines(), ids=lambda line: line[:30])
def test_expressions(line: str) -> None:
    pytest.importorskip("openvino")
    expressions = _split(line)
    ours, theirs = ([(e, outcome(e, package)) for e in expressions] for package in ("ir_runtime", "openvino"))
    assert ours == theirs


def _split(line: str) -> list[str]:
    """Split at spaces outside brackets and quotes."""
    found, depth, quoted, start = [], 0, False, 0
    for i, letter in enumerate(f"{line} "):
        quoted ^= letter == '"'
        depth += (letter in "([{") - (letter in ")]}")
        if letter == " " and not depth and not quoted:
            found.append(line[start:i])
            start = i + 1
    return found


@pytest.mark.parametrize(
    "refused",
    [lambda: ir.PartialShape("8..1"), lambda: ir.PartialShape("-2"), lambda: ir.Dimension(8, 1), lambda: ir.Dimension(""),
     lambda: ir.Shape("x"), lambda: ir.Shape("1,?"), lambda: ir.Shape("1,-3"), lambda: ir.PartialShape([1])[-2]],
)  # fmt: skip
def test_what_openvino_reads_as_something_else_is_refused(refused: Any) -> None:
    with pytest.raises(ir.InputError):
        refused()


def test_indices_beyond_a_shape() -> None:
    """OpenVINO accesses memory outside the shape."""
    shape = ir.Shape([1, 3])
    for index in (2, -3):
        with pytest.raises(IndexError):
            shape[index]
        with pytest.raises(IndexError):
            shape[index] = 1
    with pytest.raises(TypeError, match="at least 0"):
        shape[0] = -1
    shape[-1], shape[:1] = 5, [7, 8]
    assert shape == [7, 8, 5]


def test_dimensions_can_be_computed_with() -> None:
    found = ir.Dimension(1, 8) + 2, 2 * ir.Dimension(3), ir.Dimension(7) // 2, ir.Dimension(3) - 1
    assert [str(each) for each in found] == ["3..10", "6", "3", "2"]
    assert all(isinstance(each, ir.Dimension) for each in found)


def test_shapes_take_what_else_stands_for_one() -> None:
    shape = ir.PartialShape([1, -1])
    shape[1] = "1..8"
    shape[-2] = (2, 3)
    assert str(shape) == "[2..3,1..8]"
    assert shape.compatible([2, 4])
    assert shape == [(2, 3), "1..8"] != ["x"]
    assert ir.PartialShape(np.array([1, 3])) == [np.int64(1), 3]
    assert ir.Dimension(3).compatible(3)
    assert np.zeros(ir.PartialShape([2, 3])).shape == (2, 3)


def test_changing_a_shape_changes_nothing_else() -> None:
    model = ir.read_fragment(
        '<layer id="0" type="ReLU" version="opset1"><input><port id="0"><dim>-1</dim><dim>3</dim></port></input>'
        '<output><port id="1"/></output></layer>'
    )
    mine = model.input().partial_shape
    mine[0] = 4
    assert str(model.input().partial_shape) == "[?,3]"
    model.reshape(mine)
    mine[0] = 7
    assert str(model.input().partial_shape) == "[4,3]"
    assert model.output().shape == [4, 3]
    model.output().shape[0] = 9
    assert model.output().shape == (4, 3)


def test_what_a_model_keeps_is_immutable() -> None:
    """Caches hash shapes, so models must not store mutable shapes or dimensions."""
    dimension = ir.Dimension(1, 8)
    kept = engine.PartialShape([dimension, 3])
    hash(kept)
    dimension.set_symbol(ir.Symbol("late"))
    assert not kept[0].has_symbol()
    given = ir.PartialShape([1, 2])
    copied = engine.PartialShape(given)
    given[0] = 9
    assert copied == [1, 2]
    with pytest.raises(TypeError, match="unhashable"):
        hash(given)
