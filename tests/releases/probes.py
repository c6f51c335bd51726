"""Small models to probe releases with: every sample, every operation in every opset, every element type."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from harness.examples import EXAMPLE_MODELS
from harness.files import model_of
from harness.legacy import LegacyNet
from harness.sample import Sample, all_samples

import ir_runtime as ir
from ir_runtime import opset1
from ir_runtime.io.reader.layers import NEWEST
from ir_runtime.io.writer import write
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.signature import port_at
from ir_runtime.ops import Op, registry
from ir_runtime.releases.needs import features_of

__all__ = ["Probe", "probe_of", "probe_lines", "probes"]

_SPECIAL = (ElementType.string, ElementType.dynamic)
"""Types that numbers are not converted to."""
LEGACY = (2, 3, 4, 5, 6, 7)
OFTEN = 2
"""How many probes have a feature: one may be refused for another reason."""


class Probe(NamedTuple):
    """A model, its features, and the layer that a release must write back unchanged."""

    features: tuple[str, ...]
    xml: bytes
    weights: bytes
    type: str = ""
    attributes: tuple[str, ...] = ()
    """The attributes of the layer that a release must not lose."""


def probes() -> Iterator[Probe]:
    """Yield all probes."""
    for version in (*LEGACY, 10, 11):
        yield _of_version(version)
    yield from (_ends(element) for element in ElementType if element is not ElementType.dynamic)
    yield from (_shaped(shape) for shape in ("?,2", "1..4,2", "...", "0,2", "0,?"))
    for example in EXAMPLE_MODELS.values():
        yield _probe(example.xml.encode(), example.weights)
    plain: set[str] = set()
    for sample, probe in _of_samples():
        yield probe
        if sample.op not in plain:
            plain.add(sample.op)
            yield from _bounded(sample)
            yield from _in_later_opsets(sample.cls, probe)
            yield from _of_other_types(sample)


def _of_samples() -> Iterator[tuple[Sample, Probe]]:
    """Yield samples such that each feature occurs `OFTEN` times; first those with few features."""
    found = [(sample, probe_of(sample)) for sample in all_samples()]
    seen: Counter[str] = Counter()
    for sample, probe in sorted(
        found, key=lambda pair: ("shape:0" in pair[1].features, len(pair[1].features))
    ):
        if any(seen[feature] < OFTEN for feature in probe.features):
            seen.update(probe.features)
            yield sample, probe


def probe_of(sample: Sample) -> Probe:
    """Return a sample as a probe."""
    xml, weights = model_of(sample, sample.constant)
    return _probe(xml, weights, sample.cls.name, tuple(sample.attributes))


def _bounded(sample: Sample) -> Iterator[Probe]:
    """Yield the sample with upper bounds instead of dynamic dims, as in version 10."""
    xml, weights = model_of(sample, sample.constant)
    for type in sample.layer().infer_types(*sample.values()):
        if type.shape.rank is None or any(dim.max is None for dim in type.shape):
            return
        declared, longest = (
            "".join(f"<dim>{text(dim)}</dim>" for dim in type.shape)
            for text in (lambda dim: dim if dim.is_static else -1, lambda dim: dim.max)
        )
        xml = xml.replace(declared.encode(), longest.encode())
    probe = _probe(xml, weights)
    if "shape:?" not in probe.features:
        yield probe


def _of_other_types(sample: Sample) -> Iterator[Probe]:
    """Yield the sample with each element type that a type variable of its inputs allows."""
    values, ports = sample.values(), sample.cls.inputs
    variables = [port.element for i in range(len(values)) if (port := port_at(ports, i)) is not None]
    for variable in dict.fromkeys(variables):
        for element in variable.allowed:
            if element is values[variables.index(variable)].element or element in _SPECIAL:
                continue
            cast = {i: element for i, other in enumerate(variables) if other == variable}
            with np.errstate(invalid="ignore"):
                arrays = tuple(
                    x.astype(element.dtype) if i in cast else x for i, x in enumerate(sample.inputs)
                )
            other = replace(sample, inputs=arrays, types={**sample.types, **cast})
            try:
                xml, weights = model_of(other, sample.constant)
            except ir.IRError:  # attributes go with the type
                continue
            yield _probe(xml, weights)


def _in_later_opsets(cls: type[Op], probe: Probe) -> Iterator[Probe]:
    """Yield the probe in each opset that still has this version of the operation."""
    newer = [other.since for other in registry.versions(cls.name) if other.since > cls.since]
    for opset in range(cls.since + 1, min([(cls.until or NEWEST) + 1, *newer])):
        own, later = (f'type="{cls.name}" version="opset{number}"'.encode() for number in (cls.since, opset))
        yield _probe(probe.xml.replace(own, later), probe.weights)


def _of_version(version: int) -> Probe:
    if version in LEGACY:
        net = LegacyNet(version=version)
        net.layer("ReLU", [net.input("x", 1, 2)], (1, 2))
        return Probe((f"version:{version}",), net.xml(), net.weights)
    probe = _shaped("1,2")
    return probe._replace(
        features=(f"version:{version}",), xml=probe.xml.replace(b'version="11"', b'version="%d"' % version)
    )


def _ends(element: ElementType) -> Probe:
    """An input and a constant of an element type, both of them outputs."""
    x = opset1.parameter([2], element, name="x")
    values = ["a", "b"] if element is ElementType.string else [0, 1]
    c = opset1.constant(np.array(values).astype(element.dtype), element, name="c")
    return _saved(ir.Model([opset1.result(x), opset1.result(c)], [x]))


def _shaped(shape: str) -> Probe:
    """An input of a shape."""
    x = opset1.parameter(PartialShape(f"[{shape}]"), ElementType.f32, name="x")
    return _saved(ir.Model([opset1.relu(x)], [x]))


def _saved(model: ir.Model) -> Probe:
    xml, weights = io.BytesIO(), io.BytesIO()
    write(model._content(), xml, weights)
    return _probe(xml.getvalue(), weights.getvalue())


def _probe(xml: bytes, weights: bytes, type: str = "", given: tuple[str, ...] = ()) -> Probe:
    """Return a probe with the features that the package derives."""
    model = ir.read_model(xml, weights, strict=False)
    layers = list(features_of(model._graph, model._values))
    names = sorted({name for found in layers for name in found.names})
    kept: tuple[str, ...] = ()
    for layer, *_ in layers:
        if type and layer.type == type and layer.op is not None:
            fields = layer.op.schema().items()
            kept = tuple(a.xml for f, a in fields if a.xml in given and vars(layer.op)[f] != a.default)
    return Probe(tuple(names), xml, weights, type, kept)


def probe_lines(every: int = 1) -> Iterator[str]:
    """Yield probes as lines of a file; optionally one of every ``n``."""
    for probe in islice(probes(), 0, None, every):
        weights = base64.b64encode(probe.weights).decode()
        yield json.dumps(probe._asdict() | {"xml": probe.xml.decode(), "weights": weights})
