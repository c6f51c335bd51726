"""Bare layers become models: their inputs, versions and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.ir.element import ElementType

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def dims(text: str) -> str:
    return "".join(f"<dim>{d}</dim>" for d in text.split())


def reduction(
    tag: str = 'type="ReduceSum" version="opset1"',
    data: str = "",
    x: str = "2 3",
    axes: str = "1",
    comment: str = "",
    precision: str = "",
    out: str = "2",
) -> str:
    return (
        f"<layer {tag}>\n{data}\n<input>\n<port id=\"0\"{precision}>{dims(x)}</port>\n"
        f'<port id="1">{dims(axes)} {comment}</port>\n</input>\n'
        f'<output>\n<port id="2">{dims(out)}</port>\n</output>\n</layer>'
    )  # fmt: skip


def run(model: ir.Model, *inputs: object) -> np.ndarray:
    return ir.compile_model(model)(list(inputs))[0]


def test_a_comment_makes_a_constant() -> None:
    model = ir.read_fragment(reduction(comment="<!-- value is [1] -->"))
    assert [p.any_name for p in model.inputs] == ["data"]
    assert [p.any_name for p in model.outputs] == ["reduced"]
    np.testing.assert_array_equal(run(model, X), [3, 12])


def test_without_a_value_a_port_is_an_input() -> None:
    model = ir.read_fragment(reduction())
    assert [(p.any_name, p.element_type.label, str(p.partial_shape)) for p in model.inputs] == [
        ("data", "f32", "[2,3]"),
        ("axes", "i64", "[1]"),
    ]
    np.testing.assert_array_equal(run(model, X, [1]), [3, 12])


@pytest.mark.parametrize("key", [1, (0, 1), "axes"])
@pytest.mark.parametrize("value", [[1], [-1], 1, np.int32([1]), np.array(-1), (1.0,)])
def test_values_are_given_by_port_by_layer_and_port_or_by_name(key: object, value: object) -> None:
    model = ir.read_fragment(reduction(), values={key: value})
    assert len(model.inputs) == 1
    np.testing.assert_array_equal(run(model, X), [3, 12])


def test_a_value_that_is_given_wins_over_the_comment() -> None:
    text = reduction(comment="<!-- value is [0] -->", out="-1")
    np.testing.assert_array_equal(run(ir.read_fragment(text), X), [3, 5, 7])
    np.testing.assert_array_equal(run(ir.read_fragment(text, values={1: [1]}), X), [3, 12])


@pytest.mark.parametrize(
    ("comment", "place"),
    [("<!-- value is [1] -->", "inside"), ("</port><!-- value is [1] --><port>", "behind")],
)
def test_where_comments_stand(comment: str, place: str) -> None:
    text = reduction(comment=comment).replace("<port></port>", "")
    assert len(ir.read_fragment(text).inputs) == 1, place


def test_a_comment_inside_dim_counts() -> None:
    text = reduction().replace("<dim>1</dim> ", "<dim>1<!-- value is [1] --></dim>")
    assert len(ir.read_fragment(text).inputs) == 1


def test_a_comment_on_the_next_line_is_another_matter() -> None:
    text = reduction().replace("</port>\n</input>", "</port>\n<!-- value is [1] --></input>")
    assert len(ir.read_fragment(text).inputs) == 2


@pytest.mark.parametrize(
    ("data", "comment"),
    [("2 3", "<!-- shape is [2, 3] -->"), ("6", "<!-- rank is 1 -->")],
)
def test_comments_on_data_are_no_values(data: str, comment: str) -> None:
    text = reduction(x=data, axes="1", out="-1" if data == "2 3" else "").replace(
        dims(data), dims(data) + comment, 1
    )
    assert len(ir.read_fragment(text, values={1: [0]}).inputs) == 1


def test_scalars() -> None:
    """``axis = 1`` after a port without dims is a scalar, as on the pages of Gather."""
    text = (
        '<layer id="1" type="Gather" version="opset8"><input><port id="0"><dim>2</dim><dim>3</dim></port>'
        '<port id="1"><dim>2</dim></port><port id="2"/> <!-- axis = 1 --></input>'
        '<output><port id="3"><dim>2</dim><dim>2</dim></port></output></layer>'
    )
    model = ir.read_fragment(text)
    assert [p.any_name for p in model.inputs] == ["data", "indices"]
    np.testing.assert_array_equal(run(model, X, [2, 0]), X[:, [2, 0]])


@pytest.mark.parametrize(
    ("axes", "value", "says"),
    [("2", [1], "[1], but dims [2]"), ("1", [0, 1], "[0, 1], but dims [1]"), ("3", [[0, 1]], "[[0, 1]], but dims [3]")],
)  # fmt: skip
def test_values_that_contradict_dims(axes: str, value: object, says: str) -> None:
    model = ir.read_fragment(reduction(axes=axes, out="-1"), values={1: value}, strict=False)
    found = [d for d in model.report if d.code == Code.PORT_VALUE]
    assert [(d.line, d.layer) for d in found] == [(5, "ReduceSum_0")]
    assert f"input port 1 has the value {says}" in found[0].message
    with pytest.raises(ir.ValidationError):
        ir.read_fragment(reduction(axes=axes, out="-1"), values={1: value})


def test_comments_that_contradict_dims() -> None:
    text = reduction(axes="3", comment="<!-- value is [0, 1] -->", out="-1")
    codes = [d.code for d in ir.read_fragment(text, strict=False).report.errors]
    assert Code.PORT_VALUE in codes


@pytest.mark.parametrize(
    "value", [[1.5], ["one"], [None], [1e30], [float("nan")], [1j], [[1], [1, 2]], object(), [2**70]]
)
def test_values_that_the_element_type_cannot_hold(value: object) -> None:
    with pytest.raises(ir.InputError, match="input port 1 is of type i64, which cannot represent the value"):
        ir.read_fragment(reduction(), values={1: value})


def test_integers_do_not_wrap() -> None:
    text = reduction().replace('<port id="1">', '<port id="1" precision="I8">')
    assert len(ir.read_fragment(text, values={1: [1]}).inputs) == 1
    with pytest.raises(ir.InputError, match="is of type i8, which cannot represent"):
        ir.read_fragment(text, values={1: [257]})


def test_values_for_no_port() -> None:
    with pytest.raises(ir.InputError, match="unknown input port 7, which is given a value") as caught:
        ir.read_fragment(reduction(), values={7: [1]})
    assert caught.value.hint == "available are 0 (data), 1 (axes)"


@pytest.mark.parametrize(
    ("precision", "label"), [("", "f32"), ("FP16", "f16"), ("I32", "i32"), ("f64", "f64"), ("BF16", "bf16")]
)
def test_precisions_of_ports(precision: str, label: str) -> None:
    said = f' precision="{precision}"' if precision else ""
    model = ir.read_fragment(reduction(precision=said), values={1: [1]})
    assert model.input().element_type is model.output().element_type is ElementType.parse(label)


def test_ports_of_one_type_variable_share_it() -> None:
    text = (
        '<layer type="Add" version="opset1"><input><port id="0"><dim>2</dim></port>'
        '<port id="1" precision="FP16"><dim>2</dim></port></input><output><port id="2"/></output></layer>'
    )
    assert [p.element_type.label for p in ir.read_fragment(text).inputs] == ["f16", "f16"]


@pytest.mark.parametrize(
    ("how", "name", "since"),
    [
        ({"version": "ReduceL2-4"}, "ReduceL2", 4),
        ({"version": "opset4"}, "ReduceL2", 4),
        ({"version": 4}, "ReduceL2", 4),
        ({"version": "4"}, "ReduceL2", 4),
        ({"version": 15}, "ReduceL2", 4),
        ({"name": "/docs/ReduceL2-4.html"}, "ReduceL2", 4),
        ({"name": "reducel2-4.txt"}, "ReduceL2", 4),
        ({"version": 1}, "Gather", 1),
        ({"version": "Gather-7"}, "Gather", 7),
        ({"version": "gather-8", "name": "Gather-1.txt"}, "Gather", 8),
        ({"name": "Gather-7"}, "Gather", 7),
    ],
)
def test_versions(how: dict[str, object], name: str, since: int) -> None:
    text = reduction(tag=f'id="1" type="{name}" ...', out="")
    values = None
    if name == "Gather":
        text = text.replace("</input>", '<port id="3"/></input>').replace(
            '<port id="2"></port>', '<port id="4"/>'
        )
        values = {3: 0}
    model = ir.read_fragment(text, values=values, **how)  # type: ignore[arg-type]
    assert model._graph.layers[1].op.since == since
    assert list(model.report) == []


@pytest.mark.parametrize(
    "page",
    [
        "Versioned name : Gather-7\n",
        "バージョン名:Gather-7です\n",
        "**Gather-7** and Gather-8",
        "名前Gather-7。",
    ],
)
def test_the_page_says_the_version(page: str) -> None:
    text = (
        f'{page}<layer id="1" type="Gather" ...><input><port id="0"><dim>3</dim></port><port id="1"><dim>2</dim>'
        '</port><port id="2"/><!-- axis = 0 --></input><output><port id="3"><dim>2</dim></port></output></layer>'
    )
    assert ir.read_fragment(text)._graph.layers[1].op.since == 7


def test_the_tag_wins() -> None:
    text = reduction(tag='type="ReduceSum" version="opset8"')
    layer = ir.read_fragment(text, version="opset1", name="ReduceSum-3")._graph.layers[0]
    assert layer.version == "opset8"


@pytest.mark.parametrize("how", [{}, {"version": "ReduceSum-1"}, {"name": "Softmax-1.txt"}])
def test_a_version_that_nobody_says_is_guessed(how: dict[str, str]) -> None:
    text = '\n<layer id="3" type="Softmax"><data axis="1"/><input><port id="0"/></input><output><port id="1"/></output></layer>'
    model = ir.read_fragment(text, **how)  # type: ignore[arg-type]
    if "name" in how:
        assert list(model.report) == []
        return
    (found,) = model.report
    assert (found.code, found.severity, found.line) == (Code.GUESSED_VERSION, ir.Severity.WARNING, 2)
    assert "assuming SoftMax-8, the newest" in found.message
    assert "version='SoftMax-8'" in found.hint


@pytest.mark.parametrize("version", ["", "new", "ReduceL2-", "-4", "opset", "4.0", "opset12345"])
def test_what_is_no_version(version: str) -> None:
    with pytest.raises(ir.InputError, match="is not a version"):
        ir.read_fragment(reduction(tag='type="ReduceSum"'), version=version)


def test_an_unknown_operation() -> None:
    with pytest.raises(ir.UnsupportedError, match="unknown operation 'Mystery'\n") as caught:
        ir.read_fragment(reduction(tag='type="Mystery"'))
    assert caught.value.where == ir.Location("<fragment>", 1, "Mystery_0", "Mystery")


CHAIN = """
<layer id="4" name="sum" type="Add" version="opset1">
  <input><port id="0"><dim>2</dim><dim>3</dim></port><port id="1"><dim>3</dim></port></input>
  <output><port id="2"><dim>2</dim><dim>3</dim></port></output>
</layer>
<layer id="7" type="ReduceSum" version="opset1">
  <input><port id="0"><dim>2</dim><dim>3</dim></port><port id="1"><dim>1</dim></port></input>
  <output><port id="2"><dim>2</dim></port></output>
</layer>
<edges><edge from-layer="4" from-port="2" to-layer="7" to-port="0"/></edges>
"""


def test_several_layers_with_edges() -> None:
    model = ir.read_fragment(CHAIN, values={(7, 1): [1]})
    assert [p.any_name for p in model.inputs] == ["sum.a", "sum.b"]
    assert [p.any_name for p in model.outputs] == ["ReduceSum_7.reduced"]
    np.testing.assert_array_equal(run(model, X, np.float32([1, 1, 1])), [6, 15])


def test_names_of_ports_name_the_layer_where_there_are_several() -> None:
    model = ir.read_fragment(CHAIN, values={"ReduceSum_7.axes": [1], "sum.b": [0, 0, 0]})
    np.testing.assert_array_equal(run(model, X), [3, 12])


def test_a_port_with_an_edge_takes_no_value() -> None:
    with pytest.raises(ir.InputError, match=r"unknown input port \(7, 0\)"):
        ir.read_fragment(CHAIN, values={(7, 0): X})


def test_layers_without_edges_stand_side_by_side() -> None:
    model = ir.read_fragment(CHAIN[: CHAIN.index("<edges>")])
    assert len(model.inputs) == 4
    assert len(model.outputs) == 2


def test_bad_edges_are_reported_with_their_line() -> None:
    text = CHAIN.replace('to-layer="7"', 'to-layer="8"')
    (found,) = ir.read_fragment(text, strict=False).report.errors
    assert (found.code, found.line) == (Code.DANGLING_EDGE, 10)


@pytest.mark.parametrize(
    "tags",
    [('type="ReduceSum"', 'type="ReduceSum"'), ('id="0" type="ReduceSum"', 'type="ReduceSum"'),
     ('type="ReduceSum"', 'id="0" type="ReduceSum"')],
)  # fmt: skip
def test_layers_without_ids(tags: tuple[str, str]) -> None:
    text = "\n".join(reduction(tag=f'{tag} version="opset1"') for tag in tags)
    assert len(ir.read_fragment(text).outputs) == 2


def test_ids_that_are_the_same_number_in_other_letters() -> None:
    text = "\n".join(reduction(tag=f'id="{n}" type="ReduceSum" version="opset1"') for n in ("1", "１"))  # noqa: RUF001
    assert Code.DUPLICATE_ID in [d.code for d in ir.read_fragment(text, strict=False).report]


def test_smart_quotes_and_literal_dots_anywhere() -> None:
    text = reduction(tag="… id=\u201c1\u201d ... type=\u201cReduceSum\u201d version=\u2018opset1\u2019 ...")
    assert ir.read_fragment(text, values={1: 1}).report.ok


def test_japanese_comments() -> None:
    text = reduction(comment="<!-- 値は [1] であり、これは各チャネル—空間次元…を意味します -->")
    np.testing.assert_array_equal(run(ir.read_fragment(text), X), [3, 12])


def test_ports_without_dims_may_have_any_shape() -> None:
    text = reduction(x="", axes="", out="")
    model = ir.read_fragment(text, values={1: [1]})
    np.testing.assert_array_equal(run(model, X), [3, 12])
    np.testing.assert_array_equal(run(model, X[None]), [[3, 5, 7]])


def test_wrong_dims_are_reported_where_they_stand() -> None:
    model = ir.read_fragment(reduction(out="7", comment="<!-- [1] -->"), name="page.txt", strict=False)
    (found,) = model.report
    first, *causes, hint = str(found).splitlines()
    assert first == (
        "page.txt:8: layer 'ReduceSum_0' (ReduceSum-1): error[IR303]: output port 2 declares dims [7], "
        "but the operation gives [2]"
    )
    assert [cause.rpartition(" ")[2] for cause in causes] == ["1)", "4)", "5)"]  # the lines they are on
    assert hint == "  hint: correct the port, or the attribute or input that decides it"


def test_text_that_is_no_layer() -> None:
    for text in ("", "no layers here", "<layers></layers>", "<!-- <layer/> -->"):
        with pytest.raises(ir.ParseError, match="no <layer> element found"):
            ir.read_fragment(text)


def test_malformed_layers_are_reported_at_their_line() -> None:
    with pytest.raises(ir.ParseError) as caught:
        ir.read_fragment(f"text\n\n{reduction().replace('</input>', '')}")
    assert caught.value.code == Code.BAD_XML
    assert caught.value.where is not None
    assert caught.value.where.line == 12


PAGE = f"first\n{reduction(comment='<!-- [0] -->', out='3')}\nsecond\n{reduction(comment='<!-- [1] -->')}\n"


def test_pages_with_several_examples(tmp_path: Path) -> None:
    first, second = ir.read_fragments(PAGE)
    np.testing.assert_array_equal(run(first, X), [3, 5, 7])
    np.testing.assert_array_equal(run(second, X), [3, 12])
    np.testing.assert_array_equal(run(ir.read_fragment(PAGE, example=2), X), [3, 12])
    with pytest.raises(ir.InputError, match="the page has 2 examples") as caught:
        ir.read_fragment(PAGE, values={9: 1})
    assert "example=1 … 2" in caught.value.hint
    for number in (0, 3, -1):
        with pytest.raises(ir.InputError, match=f"unknown example {number}"):
            ir.read_fragment(PAGE, example=number)
    file = tmp_path / "page.txt"
    file.write_text(PAGE, encoding="utf-8")
    assert ir.validate(file).ok
    with pytest.raises(ir.InputError, match="has 2 examples"):
        ir.read_model(file)
    np.testing.assert_array_equal(run(ir.read_model(file, example=1), X), [3, 5, 7])
    np.testing.assert_array_equal(
        run(ir.read_model(file, example=1, values={1: [1]}, strict=False), X), [3, 12]
    )
    with pytest.raises(ir.InputError, match="has 2 examples"):
        ir.read_model(file, values={1: [1]})


def test_examples_do_not_share_findings() -> None:
    first, second = ir.read_fragments(
        PAGE.replace("<dim>3</dim></port>\n</output>", "<dim>4</dim></port>\n</output>"), strict=False
    )
    assert [d.line for d in first.report] == [9]
    assert list(second.report) == []


def test_whole_models_have_no_examples() -> None:
    from harness.nets import Net

    net = Net()
    net.result(net.parameter("x", "2"))
    for how in ({"example": 1}, {"values": {1: 2}}):
        with pytest.raises(ir.InputError, match="is a whole model"):
            ir.read_model(net.xml(), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "before", ["", "<!-- a --><!-- b -->\n", '<?xml version="1.0"?>\n<!-- a -->', "\ufeff"]
)
def test_bytes_of_bare_layers_are_a_page(before: str) -> None:
    text = before + reduction(comment="<!-- [1] --><!-- and more -->")
    np.testing.assert_array_equal(run(ir.read_model(text.encode()), X), [3, 12])


@pytest.mark.parametrize("type", ["Const", "Constant"])
def test_a_constant_is_an_input(type: str) -> None:
    """The page of Constant-1 writes the type Const, which OpenVINO's reader lacks."""
    data = '<data offset="1000" size="24" element_type="f32" shape="2,3"/>'
    text = f'<layer type="{type}" version="opset1">{data}<output><port id="1">{dims("2 3")}</port></output></layer>'
    model = ir.read_fragment(text)
    assert list(ir.validate(text.encode())) == []
    assert str(model.input().partial_shape) == "[2,3]"
    assert run(model, np.ones((2, 3), np.float32)).shape == (2, 3)


def test_an_assign_without_output_stands_alone() -> None:
    """As on its page, which has no ReadValue."""
    text = f'<layer type="Assign" version="opset3"><data variable_id="v"/><input><port id="0">{dims("1 3")}</port></input></layer>'
    assert list(ir.validate(text.encode())) == []
    assert [str(x.partial_shape) for x in ir.read_fragment(text).inputs] == ["[1,3]"]
