"""`save_model` and `serialize`, which write models to files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from .._util.files import make_folders, replace_files
from ..analysis.validate import SAVED_WITH
from ..codes import DECLARED, Code
from ..diagnostics import Diagnostics
from ..errors import InputError, ValidationError
from ..io.reader.layers import FORMER_IR, NEWEST_IR
from ..io.writer import Content, compress, write
from ..ir.element import ElementType
from ..ir.graph import Graph
from .model import Model

if TYPE_CHECKING:
    from ..releases.release import Release

__all__ = ["save_model", "serialize"]

PathLike: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

_VERSIONS = ("UNSPECIFIED", "IR_V11")


def save_model(
    model: Model,
    output_model: PathLike,
    compress_to_fp16: bool = False,
    *,
    for_release: str | None = None,
) -> None:
    """Save a model as ``.xml`` and ``.bin`` for OpenVINO.

    Ports declare the inferred types, and thus the new shapes after `Model.reshape`. Equal constants share their bytes.
    The files are deterministic. Missing folders are created.

    Both files are replaced together or not at all, and a model may overwrite its own files. A process that opens
    the ``.xml`` meanwhile sees the old model, the new one, or briefly no file, but never the weights of another.

    A model read with ``strict=False`` can be saved if its only errors are unknown operations, which are
    written unchanged, or wrong types and dims of ports, which are corrected.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ov.save_model(ov.Model([opset1.relu(x)], [x]), Path(folder) / "small.xml")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['small.bin', 'small.xml']

    Args:
        model: the model.
        output_model: path of the ``.xml``. The ``.bin`` is written beside it.
        compress_to_fp16: store f32 and f64 weights as f16. As this changes results, the default is False, unlike
            in OpenVINO. As there, models that are quantized or have compressed weights are left unchanged, and so
            are constants most of whose values f16 cannot represent, and constants from which shapes are computed.
        for_release: a release of OpenVINO that must be able to read the files, such as ``"2021.4"``. Layers that
            it does not know are replaced with older operations that compute exactly the same. Releases before
            2022.1 get IR version 10, in which programs see f16 inputs as f32, integer outputs as i32, and other
            outputs as f32.

    Raises:
        ValidationError: if the model is not valid, or layers that the release does not read cannot be
            replaced.
        InputError: if the files cannot be written, or the release is unknown.
    """
    save_content(model, output_model, compress_to_fp16, for_release)


def save_content(
    model: Model, output_model: PathLike, compressed: bool = False, for_release: str | None = None
) -> Content:
    """Save a model as `save_model` does, and return the content written."""
    path = _xml_path(output_model)
    return _save(model, path, path.with_suffix(".bin"), compressed, for_release)


def serialize(
    model: Model, xml_path: PathLike, bin_path: PathLike | None = None, version: str = "UNSPECIFIED"
) -> None:
    """Save a model without compression, like `save_model`, with the ``.bin`` at another path.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ov.serialize(ov.Model([opset1.relu(x)], [x]), Path(folder) / "small.xml")
    ...     ov.read_model(Path(folder) / "small.xml").input().shape
    <Shape: [2]>

    Args:
        model: the model.
        xml_path: path of the ``.xml``.
        bin_path: path of the ``.bin``; by default beside the ``.xml``. If it is elsewhere, its path must be given
            for reading, too.
        version: ``IR_V11``, which is the default and the only version.

    Raises:
        ValidationError: if the model is not valid.
        InputError: if the files cannot be written.
    """
    if version not in _VERSIONS:
        raise InputError(
            f"unknown version {version!r}", code=Code.BAD_REQUEST, hint="models are saved as IR_V11"
        )
    path = _xml_path(xml_path)
    weights = _path(bin_path) if bin_path else path.with_suffix(".bin")
    if weights.resolve() == path.resolve():
        raise InputError(f"{str(path)!r} cannot hold both the XML and the weights", code=Code.BAD_REQUEST)
    _save(model, path, weights)


def _path(path: PathLike) -> Path:
    text = os.fsdecode(path)
    if "\0" in text:
        raise InputError(f"{text!r} is not a path: it contains a null character", code=Code.BAD_REQUEST)
    return Path(text)


def _xml_path(path: PathLike) -> Path:
    converted = _path(path)
    if converted.suffix != ".xml":
        raise InputError(
            f"the name of the file must end in .xml, got {converted.name!r}",
            code=Code.BAD_REQUEST,
            hint=f"such as {converted.stem or 'model'}.xml",
        )
    return converted


def _save(
    model: Model, xml: Path, weights: Path, compressed: bool = False, for_release: str | None = None
) -> Content:
    if not isinstance(model, Model):
        raise TypeError(f"expected a model, got {type(model).__name__}; ir_runtime.read_model returns one")
    # Constants of unknown version have no known extent in the weights.
    lost = any(layer.type == "Constant" and layer.op is None for layer in model._graph.everywhere())
    content = model._content(DECLARED if lost else SAVED_WITH)
    if for_release is not None:
        content = lower_for_release(model, content, for_release)
    if compressed:
        content = compress(content)
    try:
        with make_folders(xml, weights), replace_files(weights, xml) as (binary, text):
            write(content, text, binary)
    except OSError as reason:
        raise InputError(
            f"{str(xml)!r} cannot be saved: {reason.strerror or reason}",
            code=Code.BAD_REQUEST,
            hint="nothing was changed",
        ) from None
    return content


def lower_for_release(model: Model, content: Content, for_release: str) -> Content:
    """Return the content of a model lowered for a release of OpenVINO."""
    from ..analysis.infer import Inferred, infer
    from ..releases.lowering import lower
    from ..releases.release import Release

    def again(graph: Graph) -> Inferred:
        parameters = None if content.declared else model._all_parameters(model._parameters or {})
        return infer(graph, Diagnostics(), parameters)

    release = Release.of(for_release)
    version = NEWEST_IR if release.reads(f"version:{NEWEST_IR}") else FORMER_IR
    if version == FORMER_IR:
        _check_outputs(model, release)
    graph, values = lower(content.graph, content.known, release, again)
    return replace(content, graph=graph, known=values, version=version)


def _check_outputs(model: Model, release: Release) -> None:
    """Raise if an output would lose precision in IR version 10, whose outputs are f32 or i32."""
    for output in model.outputs:
        if output.element_type is ElementType.f64:
            raise ValidationError(
                f"OpenVINO {release} gives the output {output.label!r} of f64 as f32, which loses digits",
                code=Code.RELEASE_TYPE,
                where=output.node.layer.where,
                hint="convert it to f32 in the model, or save it for 2022.1 or later",
            )
