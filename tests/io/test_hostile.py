"""Malicious files: each gives an error of this package, and no other file is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.io.reader import document
from ir_runtime.io.reader.document import parse

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.xml"
SECRET = "the secret of the file"


def summing() -> Net:
    net = Net()
    x = net.parameter("x", "2,3", out="FP32 2 3")
    net.result(net.op("ReduceSum", x, net.constant([1]), out="FP32 2"))
    return net


def refused(xml: bytes, weights: bytes | None = None) -> ir.IRError:
    with pytest.raises(ir.IRError) as caught:
        ir.read_model(xml, weights)
    return caught.value


def with_type(declaration: str, body: str = "") -> str:
    return f'<!DOCTYPE net [{declaration}]><net name="n" version="11">{body}</net>'


LAUGHS = '<!ENTITY l0 "lol">' + "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize(
    "xml",
    [
        with_type(""),
        with_type('<!ENTITY a "b">', "&a;"),
        with_type(LAUGHS, "<layers>&l11;</layers>"),
        with_type(LAUGHS, '<layers><layer name="&l11;"/></layers>'),
        with_type('<!ATTLIST net version CDATA "11">'),
        '<!DOCTYPE net PUBLIC "-//X//Y" "http://127.0.0.1:9/x.dtd"><net version="11"/>',
    ],
    ids=["doctype", "entity", "laughs", "laughs in an attribute", "default", "public"],
)
def test_document_types_are_refused(xml: str, codec: str) -> None:
    problem = refused(xml.encode(codec))
    assert problem.code in (Code.FORBIDDEN_XML, Code.LIMIT, Code.BAD_XML)
    if codec == "utf-8":
        assert problem.code == Code.FORBIDDEN_XML
        assert problem.where == ir.Location("<bytes>", 1)


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_external_entities_are_never_read(tmp_path: Path, codec: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    dtd = tmp_path / "x.dtd"
    dtd.write_text(f'<!ENTITY e "{SECRET}">')
    for declaration in (
        f'<!ENTITY e SYSTEM "{secret.as_uri()}">',
        f'<!ENTITY % p SYSTEM "{dtd.as_uri()}"> %p;',
    ):
        xml = with_type(declaration, "<rt_info><a>&e;</a></rt_info>").encode(codec)
        problem = refused(xml)
        assert problem.code in (Code.FORBIDDEN_XML, Code.BAD_XML)
        assert SECRET not in str(problem)


def test_inclusions_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    uri = (tmp_path / "secret.txt").as_uri()
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{uri}" parse="text"/>'
    root = parse(f"<net>{include}</net>".encode(), "m.xml")
    assert SECRET not in "".join(root.itertext())


@pytest.mark.parametrize(
    ("xml", "says"),
    [
        (b"<a>" * 100_000, "Excessive depth"),
        (b"<net>" * 300 + b"</net>" * 300, "Excessive depth"),
        (b'<net name="' + b"x" * (11 << 20) + b'"/>', "limit exceeded"),
        (b"<net>" + b"x" * (11 << 20) + b"</net>", "limit exceeded"),
        (b"<" + b"n" * (11 << 20) + b"/>", "limit exceeded"),
    ],
    ids=["open", "nested", "attribute", "text", "name"],
)
def test_depth_and_length_are_limited(xml: bytes, says: str) -> None:
    problem = refused(xml)
    assert problem.code in (Code.LIMIT, Code.BAD_XML)
    assert says in problem.message or problem.code == Code.BAD_XML
    assert "XML_PARSE_HUGE" not in str(problem), "what libxml2 advises is no advice to users"


@pytest.mark.parametrize(
    "xml",
    [b"<net", b"<net>", b"<net></nte>", b"<net a='1' a='2'/>", b"<net>\0</net>", b"<net a='\xff\xfe'/>",
     b"<net>&undefined;</net>", b"<net a='&#0;'/>", b"<net/><net/>", b"<net/>text", b"<?xml?><net/>",
     b"<?xml version='1.0' encoding='none'?><net/>", b"\xff\xfe", b"\xff\xfe<\0n\0", b"<!-- -- --><net/>",
     b"<net xmlns:a='b' a:c='1' a:c='2'/>", b"<![CDATA[x]]><net/>", b"<net><!-- </net>"],
)  # fmt: skip
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_malformed_xml(xml: bytes, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "_AT_ONCE", at_once)
    problem = refused(xml)
    assert isinstance(problem, ir.ParseError)
    assert problem.code == Code.BAD_XML
    assert "\n" not in problem.message
    assert ", line " not in problem.message, "the line is said once, in front"


def cut_points(length: int) -> list[int]:
    return [length * part // 50 for part in range(50)]


@pytest.mark.parametrize("part", range(50))
def test_a_truncated_xml(part: int) -> None:
    xml, weights = DIGITS.read_bytes(), DIGITS.with_suffix(".bin").read_bytes()
    problem = refused(xml[: len(xml) * part // 50], weights)
    assert isinstance(problem, ir.ParseError | ir.ValidationError)
    assert problem.code in (Code.BAD_XML, Code.UNREADABLE)


def test_a_truncated_page() -> None:
    page = (Path(__file__).parent / "pages" / "ReduceSum-1.ja.txt").read_text(encoding="utf-8")
    start = page.index("<layer")
    for at in cut_points(len(page))[1:]:
        report = ir.validate(page[:at].encode(), None)
        assert at < start or len(report) <= 1
        for found in report:
            assert found.code in (Code.BAD_XML, Code.UNREADABLE)


@pytest.mark.parametrize("part", [0, 1, 25, 49])
def test_a_truncated_bin(part: int, tmp_path: Path) -> None:
    weights = DIGITS.with_suffix(".bin").read_bytes()
    cut = len(weights) * part // 50
    (tmp_path / "m.xml").write_bytes(DIGITS.read_bytes())
    (tmp_path / "m.bin").write_bytes(weights[:cut])
    found = list(ir.validate(tmp_path / "m.xml"))
    assert found
    assert {d.code for d in found} == {Code.WEIGHTS_RANGE}
    assert all(f"m.bin ends at {cut}" in d.message and d.layer and d.line for d in found)
    with pytest.raises(ir.ValidationError):
        ir.read_model(tmp_path / "m.xml")


NUMBERS = ["-1", "99999999999999999999", "9" * 5000, "1.5", "1e3", "0x10", "", " ", "1 2", "nan", "+1", "²"]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    ("where", "layer"), [(' id="2"', "reducesum"), ('<port id="1">', "reducesum"), ('to-layer="2"', None)]
)
def test_ids_are_whole_numbers(where: str, layer: str | None, number: str) -> None:
    """The message quotes the invalid id, truncated, with its line."""
    quoted = where.rpartition('="')[0]
    end = ">" if where.endswith(">") else ""
    net = summing()
    xml = net.xml().decode().replace(where, f'{quoted}="{number}"{end}', 1).encode()
    problem = refused(xml, net.weights)
    assert problem.code == Code.BAD_ELEMENT
    assert problem.where is not None
    assert problem.where.line
    assert problem.where.layer == layer
    assert len(str(problem)) < 300


@pytest.mark.parametrize(
    "dim", ["-2", str(1 << 63), "9" * 5000, "1.5", "x", "", "1..2..3", "5..2", "..", "-5..3", "1e3"]
)
def test_dims_are_lengths(dim: str) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2"), out="FP32 2"))
    xml = net.xml().decode().replace("<dim>2</dim>", f"<dim>{dim}</dim>", 1).encode()
    found = list(ir.validate(xml))
    if dim == "..":  # no bound on either side
        assert not found
        return
    assert [(d.code, d.line, d.layer) for d in found] == [(Code.BAD_ELEMENT, 5, "relu")]
    assert len(str(found[0])) < 500


@pytest.mark.parametrize(
    "dims", ["1000000000000", "1000000 1000000", " ".join(["2"] * 40), str((1 << 63) - 1)]
)
def test_tensors_are_limited(dims: str) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "..."), out=f"FP32 {dims}"))
    problem = refused(net.xml())
    assert isinstance(problem, ir.LimitError)
    assert problem.code == Code.LIMIT
    assert (problem.where and (problem.where.line, problem.where.layer)) == (5, "relu")
    shapes = Net()
    shapes.result(shapes.parameter("x", dims.replace(" ", ",")))
    assert isinstance(refused(shapes.xml()), ir.LimitError)


def test_limits_can_be_raised_and_lowered() -> None:
    net = Net()
    net.result(net.parameter("x", "1000000,1000000"))
    assert ir.read_model(net.xml(), limits=ir.Limits(elements=10**12)).report.ok
    with pytest.raises(ir.LimitError, match="the model has 2 layers; the limit is 1"):
        ir.read_model(net.xml(), limits=ir.Limits(layers=1))
    with pytest.raises(ir.LimitError, match="a tensor has 2 dimensions; the limit is 1"):
        ir.read_model(net.xml(), limits=ir.Limits(rank=1))


def test_many_small_mistakes_are_all_reported() -> None:
    net = Net()
    x = net.parameter("x", "2")
    for _ in range(2000):
        net.op("Nothing", x)
    report = ir.validate(net.xml(), limits=ir.Limits(findings=10_000))
    assert len(report.errors) == 2000
    assert "1999 more layers have unknown operations: Nothing" in refused(net.xml()).message, (
        "those not kept, too"
    )


@pytest.mark.parametrize(
    "text",
    [
        "<layer>" * 200_000,
        "<!-- " * 400_000 + "<layer>",
        '<layer id="1" type="ReLU"/>' + "<edges>" * 200_000,
        '<layer id="1" type="ReLU"/><edges><edge ' * 40_000,
        "<layer " + "id " * 500_000,
        "<layer " + " " * 500_000 + "id",
        '<layer id="1" ' + "." * 1_000_000,
    ],
    ids=["open layers", "open comments", "open edges", "examples", "ids", "blanks", "dots"],
)
def test_no_page_takes_long(text: str) -> None:
    """These pages would take hours if time were quadratic in their size."""
    assert not ir.validate(text.encode()).ok


def test_pages_are_limited() -> None:
    with pytest.raises(ir.LimitError, match="the page has"):
        ir.read_model(b"<layer/>" + b"\n" * (5 << 20))
    with pytest.raises(ir.LimitError, match="the page has 3 examples; the limit is 2"):
        ir.read_model(b"<layer/> and " * 5, limits=ir.Limits(examples=2))


def test_text_from_files_is_not_markup_of_messages() -> None:
    """Messages quote names, which therefore cannot imitate lines of a message."""
    net = Net()
    net.layer("ReLU", [net.parameter("x", "2")], name="a\nm.xml:1: error[IR999]: gotcha")
    net.layers[-1] = net.layers[-1].replace("\n", "&#10;")
    found = list(map(str, ir.validate(net.xml())))
    assert found
    assert [text for text in found if "\n" in text.replace("\n  hint", "")] == []
