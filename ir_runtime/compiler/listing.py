"""The text of a program after a pass: one line for each executed layer.

::

    "conv" = Convolution-1("image", const f32[16,1,3,3]) : f32[?,16,28,28]
      + "relu" = ReLU-1("conv") : f32[?,16,28,28]

A line with ``+`` is computed by the kernel of the line above it.
"""

from __future__ import annotations

from collections.abc import Iterator

from .._util.escaping import cut, visible
from ..ir.graph import Layer, Port
from .program import Group, Program

__all__ = ["listing"]


def listing(program: Program) -> str:
    """Return the text of a program."""
    return "\n".join(_lines(program))


def _lines(program: Program) -> Iterator[str]:
    for layer in program.graph.of_type("Parameter"):
        yield _line(program, layer)
    if program.groups:
        for group in program.groups:
            yield from _group_lines(program, group)
        return
    for layer in program.layers:
        if layer.type not in ("Parameter", "Constant") and not _is_constant(program, layer):
            fusion = program.fusions.get(layer.id)
            yield _line(program, layer) + (f"  # matches {fusion.pattern}" if fusion else "")


def _group_lines(program: Program, group: Group) -> Iterator[str]:
    first, *others = group.layers
    yield _line(program, first) + (f"  # matches {group.pattern}" if group.pattern else "")
    for layer in others:
        yield f"  + {_line(program, layer)}"


def _line(program: Program, layer: Layer) -> str:
    operation = layer.operation
    inputs = ", ".join(_input(program, port) for port in program.reads(layer))
    outputs = ", ".join(str(program.type(port)) for port in layer.output_ports)
    return f"{_quote(layer.name)} = {operation}({inputs}) : {outputs or 'nothing'}"


def _input(program: Program, port: Port) -> str:
    if port in program.packed:
        return f"quantized {program.type(port)}"
    if program.is_fixed(port):
        return f"const {program.type(port)}"
    layer = program.graph[port.layer]
    return _quote(layer.name) + (f":{port.number}" if len(layer.outputs) > 1 else "")


def _is_constant(program: Program, layer: Layer) -> bool:
    ports = layer.output_ports
    return bool(ports) and all(program.is_fixed(port) for port in ports)


def _quote(name: str) -> str:
    """Return a name in quotes on one line."""
    return '"' + visible(cut(name).encode("unicode_escape").decode().replace('"', '\\"')) + '"'
