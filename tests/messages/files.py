"""Messages for files that cannot be read, beyond those of tests/io/test_messages.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir

FOLDER = "messages"


def body() -> str:
    """The layers and edges of a body that returns its input: Parameter 0, Result 1."""
    inner = Net()
    inner.result(inner.parameter("part", "1,3", out="FP32 1 3"))
    text = inner.xml().decode()
    return text[text.index("<layers>") : text.index("</net>")]


def looping(old: str = "", new: str = "") -> Net:
    """A TensorIterator over the rows of x[2,3], with one change."""
    net = Net()
    x = net.parameter("x", "2,3", out="FP32 2 3")
    inside = (
        '<port_map>\n<input external_port_id="0" internal_layer_id="0" axis="0"/>\n'
        '<output external_port_id="1" internal_layer_id="1" axis="0"/>\n</port_map>\n'
        f'<back_edges>\n<edge from-layer="1" to-layer="0"/>\n</back_edges>\n<body>{body()}</body>'
    )
    assert old in inside
    rows = net.layer("TensorIterator", [x], ["FP32 2 3"], inside=inside.replace(old, new, 1), name="rows")
    net.result(rows[0])
    return net


def port_that_the_layer_lacks() -> Net:
    return looping('external_port_id="0"', 'external_port_id="7"')


def layer_that_the_body_lacks() -> Net:
    return looping('internal_layer_id="0"', 'internal_layer_id="7"')


def result_for_a_parameter() -> Net:
    return looping('internal_layer_id="0"', 'internal_layer_id="1"')


def back_edge_from_a_parameter() -> Net:
    return looping('from-layer="1"', 'from-layer="0"')


def port_map_without_a_port() -> Net:
    return looping('external_port_id="0"', "")


def axis_that_is_no_number() -> Net:
    return looping('axis="0"', 'axis="rows"')


def no_body() -> Net:
    return looping(f"<body>{body()}</body>")


def constant(changes: dict[str, str]) -> Net:
    """A model of one constant, with changes."""
    net = Net()
    net.result(net.constant([1.0, 2.0], "f32", name="weights"))
    for old, new in changes.items():
        assert old in net.layers[0]
        net.layers[0] = net.layers[0].replace(old, new)
    return net


def constant_with_too_many_bytes() -> Net:
    net = constant({'size="8"': 'size="12"'})
    net.weights += b"rest"
    return net


def constant_of_any_type() -> Net:
    return constant({'element_type="f32"': 'element_type="dynamic"'})


def constant_of_any_length() -> Net:
    return constant({'shape="2"': 'shape="?"'})


def texts(raw: bytes) -> Net:
    """A constant of two strings, decoded from given bytes."""
    net = Net()
    net.result(net.constant(["a", "bc"], "string", name="words"))
    net.weights = raw.ljust(len(net.weights), b"\0")
    return net


def texts_of_another_number() -> Net:
    return texts(b"\3\0\0\0")


def texts_that_lie_elsewhere() -> Net:
    return texts(b"\2\0\0\0" + b"\0\0\0\0" + b"\x63\0\0\0")


def read(xml: str | bytes) -> Callable[[], ir.Model]:
    return lambda: ir.read_model(xml.encode() if isinstance(xml, str) else xml)


def fragment(text: str, **how: object) -> Callable[[], object]:
    return lambda: ir.read_fragment(text, **how)  # type: ignore[arg-type]


def file_that_is_cut_off() -> None:
    with TemporaryDirectory() as folder, chdir(folder):
        net = constant({})
        Path("model.xml").write_bytes(net.xml())
        Path("model.bin").write_bytes(net.weights)
        model = ir.read_model("model.xml")
        os.truncate("model.bin", 3)
        ir.compile_model(model)


SUM = (
    '<layer type="ReduceSum" version="opset1">\n<input>\n<port id="0"><dim>2</dim></port>\n'
    '<port id="1"><dim>1</dim></port>\n</input>\n<output>\n<port id="2"/>\n</output>\n</layer>\n'
)
TWICE = SUM + SUM.replace("<layer ", '<layer id="00" ')
# In a body; one of the page itself is an input.
CONSTANT = (
    '<layer type="TensorIterator" version="opset1">\n<input>\n<port id="0"><dim>2</dim></port>\n</input>\n<output>\n'
    '<port id="1"/>\n</output>\n<port_map>\n<input external_port_id="0" internal_layer_id="0" axis="0"/>\n'
    '<output external_port_id="1" internal_layer_id="3" axis="0"/>\n</port_map>\n<body>\n<layers>\n'
    '<layer id="0" type="Parameter" version="opset1">\n<data element_type="f32" shape="1"/>\n'
    '<output>\n<port id="0"/>\n</output>\n</layer>\n'
    '<layer id="1" type="Const" version="opset1">\n<data element_type="f32" shape="1" offset="0" size="4"/>\n'
    '<output>\n<port id="0"/>\n</output>\n</layer>\n'
    '<layer id="2" type="Add" version="opset1">\n<input>\n<port id="0"/>\n<port id="1"/>\n</input>\n'
    '<output>\n<port id="2"/>\n</output>\n</layer>\n'
    '<layer id="3" type="Result" version="opset1">\n<input>\n<port id="0"/>\n</input>\n</layer>\n</layers>\n<edges>\n'
    '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>\n'
    '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>\n'
    '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>\n</edges>\n</body>\n</layer>\n'
)


def repeated() -> str:
    """Return the text of repeated findings."""
    net = Net()
    for number in range(5):
        x = net.parameter(f"x{number}", "2", out="FP32 2")
        net.result(net.op("ReLU", x, out="FP32 2", name="relu", names="y", slope="1"), f"result{number}")
    return str(ir.validate(net.xml()))


REFUSALS = [
    repeated,
    port_that_the_layer_lacks,
    layer_that_the_body_lacks,
    result_for_a_parameter,
    back_edge_from_a_parameter,
    port_map_without_a_port,
    axis_that_is_no_number,
    no_body,
    constant_with_too_many_bytes,
    constant_of_any_length,
    constant_of_any_type,
    texts_of_another_number,
    texts_that_lie_elsewhere,
    Call("document type in utf-16", read('<!DOCTYPE net><net version="11"/>'.encode("utf-16"))),
    Call("elements too deep", read("<net>" + "<a>" * 300 + "</a>" * 300 + "</net>")),
    Call("another root", read('<model version="11"/>')),
    Call("no layer", fragment("<p>no layer</p>")),
    Call("layer without an end", fragment(SUM.replace("</layer>", ""))),
    Call("several examples", fragment(SUM + "and\n" + SUM)),
    Call("example that there is not", fragment(SUM, example=3)),
    Call("page of several examples", lambda: ir.read_model((SUM + "and\n" + SUM).encode())),
    Call("folder", lambda: ir.read_model("/")),
    Call(
        "values for several examples", lambda: ir.read_model((SUM + "and\n" + SUM).encode(), values={1: [0]})
    ),
    Call("no version", fragment(SUM, version="newest")),
    Call(
        "version that is guessed", fragment(SUM.replace(' version="opset1"', "").replace("<dim>1", "<dim>x"))
    ),
    Call("same id twice", fragment(TWICE)),
    Call(
        "value of another length",
        fragment(SUM.replace("<dim>1</dim>", "<dim>1</dim><!-- axes is [0, 1] -->")),
    ),
    Call("value of another type", fragment(SUM, values={1: [0.5]})),
    Call("value for no port", fragment(SUM, values={7: [0]})),
    Call("constant on a page", fragment(CONSTANT)),
    Call("file that is cut off", file_that_is_cut_off),
]
