"""IR files made from samples, in OpenVINO's format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import quoteattr

import numpy as np

from harness.sample import Sample, text
from ir_runtime.ir.element import ElementType, pack
from ir_runtime.ir.tensor import Array, TensorType, Value
from ir_runtime.ops.kernels.strings import pack_strings


class Writer:
    """Collects layers, edges and constants; ids are assigned in order."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = b""

    def layer(
        self,
        type: str,
        version: str,
        attributes: dict[str, str],
        sources: Sequence[tuple[int, int]] = (),
        outputs: Sequence[TensorType] = (),
        inputs: Sequence[TensorType] = (),
        name: str = "",
        inside: str = "",
    ) -> int:
        """Add a layer fed by (layer, port id) pairs; return its id. ``inside`` follows the ports."""
        number = len(self.layers)
        data = " ".join(f"{k}={quoteattr(v)}" for k, v in attributes.items())
        ports = _ports("input", inputs, 0) + _ports("output", outputs, len(inputs))
        self.layers.append(
            f'<layer id="{number}" name="{name or type.lower()}{number}" type="{type}" version="{version}">'
            f"{f'<data {data}/>' if data else ''}{ports}{inside}</layer>"
        )
        for port, (layer, source) in enumerate(sources):
            self.edges.append(
                f'<edge from-layer="{layer}" from-port="{source}" to-layer="{number}" to-port="{port}"/>'
            )
        return number

    def constant(self, value: Array | Value) -> int:
        """Add a constant; return its id."""
        known = value if isinstance(value, Value) else Value.constant(value)
        element, array = known.element, known.known()
        assert array is not None
        raw = packed(array, element) or b"\0"  # OpenVINO gives those without numbers a byte, too
        attributes = {
            "element_type": element.label,
            "shape": text(array.shape),
            "offset": str(len(self.weights)),
            "size": str(len(raw)),
        }
        self.weights += raw
        return self.layer("Const", "opset1", attributes, outputs=[known.type])

    def parameter(self, element: ElementType, shape: str, type: TensorType) -> int:
        """Add an input; return its id."""
        attributes = {"element_type": element.label, "shape": shape}
        return self.layer("Parameter", "opset1", attributes, outputs=[type])

    def graph(self) -> str:
        """Return the layers and edges as in a model or a body."""
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return f"<layers>\n{layers}\n</layers>\n<edges>\n{edges}\n</edges>\n"

    def xml(self) -> bytes:
        return f'<?xml version="1.0"?>\n<net name="sample" version="11">\n{self.graph()}</net>\n'.encode()


def model_of(
    sample: Sample,
    constant: Iterable[int] = (),
    dynamic: bool = False,
    outputs: Sequence[TensorType] | None = None,
) -> tuple[bytes, bytes]:
    """Return a sample as a model: its inputs are Parameters, except those listed in ``constant``.

    With ``dynamic``, all dims of Parameters are dynamic. ``outputs`` declares output types instead of inferring them.
    """
    writer = Writer()
    add_sample(writer, sample, constant, dynamic, outputs)
    return writer.xml(), writer.weights


def add_sample(
    writer: Writer,
    sample: Sample,
    constant: Iterable[int] = (),
    dynamic: bool = False,
    outputs: Sequence[TensorType] | None = None,
) -> None:
    """Add a sample with its own inputs and outputs to a model."""
    fixed, sources = set(constant), []
    for index, value in enumerate(sample.values()):
        if index in fixed:
            layer = writer.constant(value)
        else:
            shape = text(tuple("?" if dynamic else n for n in value.shape.static))
            layer = writer.parameter(value.element, shape, _type(value, dynamic))
        sources.append((layer, 0))
    outputs = sample.layer().infer_types(*sample.values()) if outputs is None else outputs
    if dynamic:
        outputs = tuple(TensorType(t.element, type(t.shape).dynamic(t.shape.rank)) for t in outputs)
    attributes = {k: text(v) for k, v in sample.attributes.items()}
    types = [_type(value, dynamic) for value in sample.values()]
    layer = writer.layer(sample.cls.name, f"opset{sample.cls.since}", attributes, sources, outputs, types)
    for index, found in enumerate(outputs):
        writer.layer("Result", "opset1", {}, [(layer, len(types) + index)], inputs=[found])


def packed(array: Array, element: ElementType) -> bytes:
    """Return the bytes of a constant as stored in a file."""
    if element is ElementType.string:
        return pack_strings(array).tobytes()
    if element.bits >= 8:
        return array.tobytes()
    return pack(array.view(np.uint8) & ((1 << element.bits) - 1), element.bits).tobytes()


def _type(value: Value, dynamic: bool = False) -> TensorType:
    shape = value.shape
    return TensorType(value.element, type(shape).dynamic(shape.rank)) if dynamic else value.type


def _ports(side: str, types: Sequence[TensorType], first: int) -> str:
    if not types:
        return ""
    ports = (
        f'<port id="{first + i}" precision="{precision(t.element)}">'
        f"{''.join(f'<dim>{d.get_max_length() if d.is_static else -1}</dim>' for d in t.shape)}</port>"
        for i, t in enumerate(types)
    )
    return f"<{side}>{''.join(ports)}</{side}>"


def precision(element: ElementType) -> str:
    """Return the spelling of an element type in ports."""
    if element.label in ("f16", "f32", "f64"):
        return element.label.replace("f", "FP")
    return "BOOL" if element is ElementType.boolean else element.label.upper()
