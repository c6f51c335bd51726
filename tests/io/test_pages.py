"""Finding examples on a specification page, and values in comments."""

from __future__ import annotations

import pytest

import ir_runtime as ir
from ir_runtime.io.reader.fragment import excerpts, value_in


def found(text: str) -> list[tuple[int, str]]:
    return [(e.line, e.text) for e in excerpts(text, "page")]


@pytest.mark.parametrize(
    ("comment", "value"),
    [
        (" value is [2, 3] that means independent reduction in each channel and batch ", [2, 3]),
        (" axes list [1] means normalization over channel dimension ", [1]),
        (" axes list [1, 2, 3] means normalization ", [1, 2, 3]),
        (" 値は [2, 3] であり、これは各チャネルとバッチで独立したリダクションを意味します ", [2, 3]),
        (" 値は [-2] で、各チャネル ", [-2]),
        ("[ 1 , 2 ]", [1, 2]),
        ("[1,2,]", [1, 2]),
        ("[]", []),
        ("value is [0.5, -1e-3]", [0.5, -1e-3]),
        (" axis = -1 ", -1),
        ("axis: 2", 2),
        ("value is 3.", 3),
        ("値は 1 です", 1),
        ("値は2であり", 2),
        (" value is  that means independent reduction ", None),
        ("any text", None),
        ("is 4-dimensional", None),
        ("is 2nd", None),
        ("shape [N, C]", None),
        ("see x[1]", [1]),
        ("", None),
    ],
)
def test_values_in_comments(comment: str, value: object) -> None:
    assert value_in(comment) == value


def test_layers_in_a_row_belong_together() -> None:
    text = (
        'a\n<layer id="1" type="A">x</layer>\n  <layer id="2" type="B"/>\nb <layer id="3" type="C"></layer>'
    )
    assert found(text) == [
        (2, '<layers><layer id="1" type="A">x</layer>\n  <layer id="2" type="B"/></layers>'),
        (4, '<layers><layer id="3" type="C"></layer></layers>'),
    ]


@pytest.mark.parametrize("again", ["1", "01", " 1 "])
def test_an_id_that_comes_again_starts_the_next_example(again: str) -> None:
    text = f'<layer id="1" type="A"/>\n<layer id="{again}" type="A"/>'
    assert [line for line, _ in found(text)] == [1, 2]


def test_comments_between_layers_do_not_part_them() -> None:
    assert len(found('<layer id="1"/><!-- <layer id="9"> --> <layer id="2"/>')) == 1
    assert len(found('<layer id="1"/> and <layer id="2"/>')) == 2


def test_edges_behind_the_layers_belong_to_them() -> None:
    edges = '<edges>\n<edge from-layer="1" from-port="0" to-layer="2" to-port="0"/>\n<!-- c --></edges>'
    for text in (f'<layers><layer id="1"/></layers>\n{edges}', f'<layer id="1"/> {edges}'):
        ((_, example),) = found(text)
        assert example.count("<edge ") == 1
        assert example.count("\n") == text.count("\n"), "lines stay where they are"
    assert "<edge " not in found(f'<layer id="1"/> then {edges}')[0][1]


def test_bodies_are_part_of_their_layer() -> None:
    body = '<body><layers><layer id="0" type="A"><input/></layer><layer id="1" type="B"/></layers></body>'
    text = f'<layer id="5" type="If">{body}{body}</layer>'
    assert found(text) == [(1, f"<layers>{text}</layers>")]


@pytest.mark.parametrize(
    ("tag", "cleaned"),
    [
        ('<layer id="1" type="A" ...>', '<layer id="1" type="A"  >'),
        ('<layer ... id="1" type="A">', '<layer   id="1" type="A">'),
        ('<layer id="1" ... type="A" …>', '<layer id="1"   type="A"  >'),
        ('<layer id="1" name="a...b" type="A" ...>', '<layer id="1" name="a...b" type="A"  >'),
        ("<layer id='1' name='a...b' type='A'>", "<layer id='1' name='a...b' type='A'>"),
        ("<layer id=\u201c1\u201d type=\u201dA\u201d>", '<layer id="1" type="A">'),
        ("<layer id=\u20181\u2019 type=\u2018A\u2019>", "<layer id='1' type='A'>"),
        ('<layer\u00a0id="1"\u3000type="A">', '<layer\u00a0id="1"\u3000type="A">'),
    ],
)
def test_tags_are_made_well_formed(tag: str, cleaned: str) -> None:
    ((_, text),) = found(f"{tag}</layer>")
    cleaned = cleaned.replace("\u00a0", " ").replace("\u3000", " ")
    assert text == f"<layers>{cleaned}</layer></layers>"


@pytest.mark.parametrize("comment", ["a -- b", "a ---> b", "--", "a -", "---"])
def test_comments_are_made_well_formed(comment: str) -> None:
    model = ir.read_fragment(f'<layer id="1" type="ReLU" version="opset1"><!-- {comment} --><input>'
                             '<port id="0"/></input><output><port id="1"/></output></layer>')  # fmt: skip
    assert model.report.ok


def test_control_characters_of_copied_text_do_not_matter() -> None:
    text = '\x0c<layer id="1" type="ReLU" version="opset1">\x0b<input><port id="0"/></input>\x00<output><port id="1"/></output></layer>'
    assert ir.read_fragment(text).report.ok


def test_a_layer_that_does_not_end() -> None:
    with pytest.raises(ir.ParseError, match="a <layer> element is not closed") as caught:
        found('text\n<layer id="1">\n<layer id="2"></layer>')
    assert caught.value.where == ir.Location("page", 2)


def test_ends_without_a_start_are_text() -> None:
    assert [line for line, _ in found('</layer>\n</layer><layer id="1"/>')] == [2]
