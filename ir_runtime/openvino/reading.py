"""`read_model`, and the reading of example models on pages of the specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .._util.command_line import on_command_line
from .._util.nearest import limit_lookups
from .._util.scoped import no_collection
from ..codes import DECLARED, Code
from ..diagnostics import Diagnostics, Severity
from ..errors import InputError, ValidationError
from ..io.reader.model import load
from ..io.reader.source import Source, SourceLike, WeightsLike, open_source
from ..limits import DEFAULT, Limits, within
from .callers import warn
from .config import check_config
from .model import Model

if TYPE_CHECKING:
    from ..io.reader.fragment import Page, Values

__all__ = ["accept", "check", "contradiction", "read_fragment", "read_fragments", "read_model"]


def accept(model: Model, strict: bool | None) -> Model:
    """Return a model as read, after raising its errors and warning of contradicted declarations.

    Args:
        model: the model as read.
        strict: True also raises contradicted declarations, False raises nothing; None warns of declarations.

    Raises:
        ValidationError: if the model is not valid.
        UnsupportedError: if the only errors are unknown operations.
    """
    if strict is False:
        return model
    check(model, bool(strict))
    if message := contradiction(model, "strict=True"):
        warn(message)
    return model


def check(model: Model, strict: bool, allowed: frozenset[Code] = frozenset()) -> None:
    """Raise if a model has errors. On pages, contradicted declarations count as errors.

    Args:
        model: the model as read.
        strict: also raise for contradicted declarations, even of unused ports.
        allowed: the codes of errors to ignore.

    Raises:
        ValidationError: if the model is not valid.
        UnsupportedError: if the only errors are unknown operations.
    """
    model.raise_if_invalid(allowed if strict or model._document.is_page else allowed | DECLARED)
    contradicted = [
        replace(finding, severity=Severity.ERROR) for finding in model.report if finding.code in DECLARED
    ]
    if strict and contradicted:
        raise ValidationError.of(contradicted, model.report.more)


def contradiction(model: Model, refusing: str) -> str:
    """Return a line with the first contradicted declaration and the number of further ones, or an empty string.

    Args:
        model: the model as read.
        refusing: the option with which such models are refused, for the message.
    """
    first = next((error for error in model.report.errors if error.code in DECLARED), None)
    if first is None:
        return ""
    others = sum(model.report.count(Severity.ERROR, code) for code in DECLARED) - 1
    more = f"; {others:,} more declarations are contradicted" if others else ""
    return (
        f"{first.where}: warning[{first.code}]: {first.message}{more}; inferred types and shapes are used "
        f"('ir-runtime validate' shows all, {refusing} refuses)"
    )


# Modules that only pages and invalid files need are imported on demand, for faster startup.


def read_model(
    model: SourceLike,
    weights: WeightsLike | None = None,
    config: Mapping[str, object] | None = None,
    *,
    strict: bool | None = None,
    limits: Limits = DEFAULT,
    values: Values | None = None,
    example: int | None = None,
) -> Model:
    """Read an OpenVINO IR.

    >>> import ir_runtime as ov
    >>> xml = '''<net name="small" version="11"><layers>
    ... <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
    ... <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
    ... <layer id="1" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
    ... </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'''
    >>> ov.read_model(xml.encode()).input().shape
    <Shape: [2]>

    Args:
        model: path of the ``.xml``, its bytes, or an open file; or a page of the specification, which contains an
            example.
        weights: path of the ``.bin``, its bytes, or an open file; by default the ``.bin`` beside the
            ``.xml``. The file is memory-mapped.
        config: OpenVINO's properties, which are validated and otherwise ignored.
        strict: raise any error that is found; or with False none, leaving them to ``model.report``. By default,
            declared types of ports that contradict inference only cause a warning, as results do not depend on
            them. On pages they are errors, as the examples are meant to show them.
        limits: resource limits of reading the file, and of running the model.
        values: for a page, the contents of input ports, as for `read_fragment`.
        example: for a page with several examples, the number of the one to read, from 1.

    Raises:
        ParseError: if the file cannot be read as an IR.
        ValidationError: if the model contradicts itself or the specification.
        UnsupportedError: if the model has unknown operations.
        LimitError: if a limit is exceeded.
    """
    check_config(config)
    report = Diagnostics(limits.findings)
    with within(limits), limit_lookups(), no_collection():
        source = open_source(model, limits)
        documents = load(source, weights, report, limits, values=values, example=example)
        if len(documents) != 1:
            raise InputError(
                f"{documents[0].file} has {len(documents)} examples",
                hint=f"choose one with --example 1 … {len(documents)}"
                if on_command_line()
                else f"choose one with example=1 … {len(documents)} (--example), or call read_fragments",
            )
        net = Model._read(documents[0], report)
        if not report.ok:
            net = _drop_unneeded(net, source)
    return accept(net, strict)


def _drop_unneeded(model: Model, source: Source) -> Model:
    """Return the model without unreachable layers if that removes all errors, else the model itself."""
    from .validating import downgrade, read_needed

    report = Diagnostics(model.report.most)
    document = read_needed(model._document, source, model.report, report)
    if document is None:
        return model
    needed = Model._read(document, report)
    if not report.ok:
        return model
    downgrade(model.report, report)
    report.arrange()
    return needed


def read_fragment(
    text: str,
    *,
    values: Values | None = None,
    version: str | int | None = None,
    name: str = "<fragment>",
    example: int | None = None,
    strict: bool | None = None,
    limits: Limits = DEFAULT,
) -> Model:
    """Read bare ``<layer>`` elements in the style of the specification as a model.

    Unconnected input ports become Parameters, or Constants if they have a value, and outputs get Results. A
    comment such as ``<!-- value is [2, 3] that means … -->`` gives a port its value.

    >>> import ir_runtime as ov
    >>> model = ov.read_fragment('''<layer id="0" type="ReduceSum" version="opset1">
    ... <input><port id="0"><dim>2</dim><dim>3</dim></port><port id="1"/></input><output><port id="2"/></output>
    ... </layer>''', values={1: [0]})
    >>> model.output().shape
    <Shape: [3]>

    Args:
        text: the ``<layer>`` elements, or a page with an example.
        values: the contents of input ports, by port id, (layer id, port id) or name:
            ``values={1: [2, 3]}``.
        version: the operation set, as ``"ReduceL2-4"``, ``"opset4"`` or ``4``, if neither the element nor the
            page has it.
        name: the name of the file, for messages.
        example: the number of the example on a page with several, from 1.
        strict: as for `read_model`.
        limits: resource limits of reading the page.

    Raises:
        ParseError: if the text has no layer, or is not well-formed.
        InputError: if there are several examples and none is chosen, or a value matches no port.
        ValidationError: if the model contradicts itself or the specification.
    """
    from ..io.reader.fragment import Page

    with within(limits), limit_lookups():
        page = Page(text, values=values, version=version, name=name, limits=limits)
        if example is None and len(page) > 1:
            hint = f"choose one with example=1 … {len(page)}, or call read_fragments"
            raise InputError(f"the page has {len(page)} examples", hint=hint)
        return _example(page, 1 if example is None else example, strict, limits)


def read_fragments(
    text: str,
    *,
    version: str | int | None = None,
    name: str = "<fragment>",
    strict: bool | None = None,
    limits: Limits = DEFAULT,
) -> list[Model]:
    r"""Read every example on a page of the specification as a model, like `read_fragment`.

    >>> import ir_runtime as ov
    >>> layer = '''<layer type="ReLU" version="opset1"><input><port id="0"><dim>2</dim></port></input>
    ... <output><port id="1"/></output></layer>'''
    >>> models = ov.read_fragments(f"Small:\n\n```xml\n{layer}\n```\n\nAgain:\n\n```xml\n{layer}\n```\n")
    >>> len(models)
    2

    Args:
        text: the page, in Markdown.
        version: as for `read_fragment`.
        name: the name of the page, for messages.
        strict: as for `read_model`.
        limits: resource limits of reading the page.

    Raises:
        ParseError: if an example is not an IR.
        ValidationError: if an example is not valid, unless ``strict`` is False.
    """
    from ..io.reader.fragment import Page

    with within(limits), limit_lookups():
        page = Page(text, version=version, name=name, limits=limits)
        return [_example(page, number, strict, limits) for number in range(1, len(page) + 1)]


def _example(page: Page, number: int, strict: bool | None, limits: Limits) -> Model:
    report = Diagnostics(limits.findings)
    model = Model._read(page.read(number, report), report)
    return accept(model, strict)
