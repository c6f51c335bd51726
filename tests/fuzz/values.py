"""Replacement values for mutations: boundaries, and values that trip readers."""

from __future__ import annotations

from random import Random

from ir_runtime.ir.element import ElementType
from ir_runtime.ops import registry

__all__ = ["MARKUP", "attribute_names", "number", "text"]

SMALL = [str(n) for n in (*range(-4, 18), 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 1000)]
LARGE = [str(sign * (2**bits + off)) for bits in (16, 31, 32, 53, 62, 63, 64, 65) for off in (-1, 0, 1) for sign in (1, -1)]  # fmt: skip
LARGE += ["65537", "1000000", "99999999999", "1000000000000", "9" * 19, "9" * 4301, "-" + "9" * 5000]
REALS = """nan inf -inf 1e400 -1e400 1e-400 -0.0 0.5 1.5 -0.5 1e9 -1e9 1e18 3.4e38 -3.5e38 1e308 1e-45 0.1 1. .5 1e
    1_000 0x10 +1 1d3 1,5""".split()  # noqa: SIM905
WORDS = """FP32 I64 f32 i64 f16 bf16 f64 u1 u2 u4 i4 nf4 f8e4m3 f8e5m2 f8e8m0 f4e2m1 string boolean BOOL dynamic undefined
    ? ... 1..8 ..8 8.. 8..1 -1..-2 ?..? true false True yes explicit valid same_upper same_lower notset auto floor ceil max
    min sum mul none numpy bidirectional pdpd symmetric reflect edge constant border zeros nearest linear cubic asymmetric
    align_corners half_pixel tanh sigmoid relu forward reverse row_major x opset1 opset6 opset14 opset15 opset99 extension
    ab,bc->ac a,b->c ...->... ii->i ->""".split()  # noqa: SIM905
ODD = ["", " ", ",", ",,", "1,,2", "1, ", "\t1", "\n", "\uff11", "\u0661\u0662", "²", "½", "Ⅷ", "é", "名前", "\U0001d518",
       "\u202eabc", "\ufeff1", "\ud7ff", "a\nb", "%s", "{0}", "../../etc/passwd", "/dev/zero", "'", '"', "<&>", "a" * 300,
       "\U0001d518" * 5000, "x" * 200_000]  # fmt: skip

MARKUP = [b"<", b">", b"/", b"--", b"-->", b"<!--", b"...", "…".encode(), b'"', b"'", "“".encode(), b"<layer", b"</layer>",
          b"<layer ", b"<edges>", b"</edges>", b"[1]", b"[", b"= 3", b'id="1"', b"<dim>", b"-1", b"99999999999", b"\0", b"\x0c",
          b"</port>", b'<port id="1">', b"&", b"&amp;", b"&#10;", b"&#0;", b"]]>", b"<![CDATA[", b"<?xml", b"<!DOCTYPE", b"<!ENTITY",
          b"<net>", b"</net>", b'name="', b'<data ', b"<rt_info>", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc0\x80", b"<body>", b"</body>",
          b"encoding='utf-16'", b"xmlns='a'", b"xmlns:a='b' a:", b"<input>", b"<output>", b"opset"]  # fmt: skip
"""Pieces that mean something to the parser of XML, or to that of pages."""


def number(rng: Random) -> str:
    """Return an integer, mostly small or at a boundary."""
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(SMALL)
    return rng.choice(LARGE) if kind < 0.95 else str(rng.randrange(-(2**70), 2**70))


def text(rng: Random) -> str:
    """Return a value for an attribute."""
    kind = rng.random()
    if kind < 0.35:
        return number(rng)
    if kind < 0.5:
        return ",".join(number(rng) for _ in range(rng.randint(2, 6)))
    if kind < 0.65:
        return rng.choice(REALS)
    if kind < 0.9:
        return rng.choice(WORDS)
    if kind < 0.92:
        return ",".join([rng.choice((*SMALL, *REALS))] * rng.choice((100, 5000, 30_000)))
    return rng.choice(ODD)


def attribute_names(rng: Random) -> str:
    """Return the name of a known or unknown attribute."""
    schema = list(rng.choice(_OPS).schema().values())
    return rng.choice(schema).xml if schema else rng.choice(("x", "a" * 300, "ключ"))


def operation(rng: Random) -> tuple[str, str]:
    """Return the type and version of an operation, which need not exist."""
    cls = rng.choice(_OPS)
    since = cls.since if rng.random() < 0.8 else rng.randint(0, 20)
    return cls.name, f"opset{since}"


def element_type(rng: Random) -> str:
    """Return an element type as spelled in ports and attributes."""
    label = rng.choice(_ELEMENTS)
    return label.upper() if rng.random() < 0.3 else label


_OPS = sorted(registry, key=lambda cls: cls.versioned_name())
_ELEMENTS = [element.label for element in ElementType]
