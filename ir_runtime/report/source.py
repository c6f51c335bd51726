"""The model that a report shows, and the measurements of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..analysis.constraints.constraint import Constraints
from ..analysis.infer import Inferred
from ..diagnostics import Diagnostics
from ..ir.array import Array
from ..ir.graph import Graph
from ..ir.tensor import TensorType
from .feature_maps import FeatureMaps

__all__ = ["Conclusion", "Measures", "OldModel", "Source"]


@dataclass(frozen=True)
class Source:
    """The input of a report: a model with its inferred values and findings.

    >>> import ir_runtime
    >>> from ir_runtime.openvino.model import source_of
    >>> source = source_of(ir_runtime.read_model("examples/digits/digits.xml"), constraints=False)
    >>> source.version, len(source.types), source.report.ok
    (11, 1, True)

    Args:
        graph: its layers and edges.
        values: the inferred types, shapes and contents.
        types: the types of the Parameters, by layer.
        report: the findings.
        constraints: the constraints of the inputs, if they were searched.
        file: the path of the model.
        name: its name.
        version: the version of the IR.
    """

    graph: Graph
    values: Inferred
    types: Mapping[int, TensorType]
    report: Diagnostics
    constraints: Constraints | None = None
    file: str = ""
    name: str = ""
    version: int = 0


@dataclass(frozen=True)
class Conclusion:
    """A conclusion from a measurement, in one sentence.

    >>> Conclusion("error", "In f16, 'exp' makes Inf of finite inputs.", "exp").layer
    'exp'

    Args:
        severity: ``error``, ``warning`` or ``note``.
        text: the sentence.
        layer: the name of the layer that it is about, or empty.
        command: the command to try next, with ``{file}`` for the model, or empty.
    """

    severity: str
    text: str
    layer: str = ""
    command: str = ""


@dataclass(frozen=True)
class Measures:
    """Measurements of a model, by the names of layers outside of bodies; all are optional.

    >>> import ir_runtime
    >>> measures = Measures(times={"Multiply_2994": 1.5})
    >>> "Time by scope" in ir_runtime.read_model("examples/digits/digits.xml").report(measures=measures).html
    True

    Args:
        times: the median time of each step, in milliseconds, by the first of its layers.
        inner: the same times of layers in bodies, all passes together, by the body (``loop/body``) and the layer.
        rates: sentences about the speed of layers, by name.
        fused: the layer whose step computes another layer.
        errors: the error of each layer, relative to the error that rounding explains (R).
        against: the runtime or model compared with.
        broken: the layers that compute Inf or NaN from finite inputs, with a sentence about each.
        peaks: the part of the largest number of the type that the results of a layer reach.
        memory: bytes of the outputs of each layer in a run.
        activations: histograms of the outputs of layers in a run: counts, the smallest and the largest value.
        tensors: inputs and outputs of a run, by name.
        histograms: whether to draw histograms of the weights.
        pictures: the outputs of layers as pictures.
        conclusions: conclusions from the measurements, the most serious first.
    """

    times: Mapping[str, float] = field(default_factory=dict)
    inner: Mapping[tuple[str, str], float] = field(default_factory=dict)
    rates: Mapping[str, str] = field(default_factory=dict)
    fused: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    against: str = ""
    broken: Mapping[str, str] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    activations: Mapping[str, tuple[Sequence[int], float, float]] = field(default_factory=dict)
    tensors: Sequence[tuple[str, Array]] = ()
    histograms: bool = False
    pictures: Mapping[str, FeatureMaps] = field(default_factory=dict)
    conclusions: Sequence[Conclusion] = ()


@dataclass(frozen=True)
class OldModel:
    """An older model to show beside a newer one, and the changes. `ir_runtime.debug.old_model` compares two.

    >>> import ir_runtime
    >>> old, new = (ir_runtime.read_model("examples/digits/digits.xml") for _ in range(2))
    >>> from ir_runtime.debug import old_model
    >>> old_model(old, new).changed
    {}

    Args:
        source: the older model.
        pairs: its layers and those of the newer one that are the same, by id.
        removed: the changes, by layers of the older model, including removed layers.
        changed: the changes, by layers of the newer model, including added layers.
    """

    source: Source
    pairs: Mapping[int, int]
    removed: Mapping[int, Sequence[str]]
    changed: Mapping[int, Sequence[str]]
