"""The input of a report: a model and its measurements."""

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
    """A model to report on, with its inferred values and findings.

    >>> import ir_runtime
    >>> from ir_runtime.openvino.model import source_of
    >>> source = source_of(ir_runtime.read_model("examples/digits/digits.xml"), constraints=False)
    >>> source.version, len(source.types), source.report.ok
    (11, 1, True)

    Args:
        graph: its layers and edges.
        values: the inferred types, shapes and contents.
        types: the types of the Parameters, by layer id.
        report: the findings.
        constraints: the constraints on the inputs, if requested.
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
        layer: the name of the layer concerned, or empty.
        command: the command to try next, with ``{file}`` for the model, or empty.
    """

    severity: str
    text: str
    layer: str = ""
    command: str = ""


@dataclass(frozen=True)
class Measures:
    """Measurements of a model, by name of the layer (outside of bodies); all are optional.

    >>> import ir_runtime
    >>> measures = Measures(times={"Multiply_2994": 1.5})
    >>> "Time by scope" in ir_runtime.read_model("examples/digits/digits.xml").report(measures=measures).html
    True

    Args:
        times: the median time of each step in milliseconds, by its first layer.
        inner: the times of layers in bodies, summed over all iterations, by body (``loop/body``) and layer.
        rates: sentences about the speed of layers, by name.
        fused: maps a layer to the layer whose step computes it.
        errors: the error of each layer, relative to the error that rounding explains (R).
        against: the name of the runtime or model compared with.
        broken: the layers that compute Inf or NaN from finite inputs, with a sentence about each.
        peaks: the largest result of a layer, relative to the largest number of its type.
        memory: the size of the outputs of each layer, in bytes.
        activations: histograms of layer outputs: counts, minimum and maximum.
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
    """An older model to show beside a newer one, with the changes; made by `ir_runtime.debug.old_model`.

    >>> import ir_runtime
    >>> old, new = (ir_runtime.read_model("examples/digits/digits.xml") for _ in range(2))
    >>> from ir_runtime.debug import old_model
    >>> old_model(old, new).changed
    {}

    Args:
        source: the older model.
        pairs: the layers of the newer model by those of the older one that correspond, by id.
        removed: the changes by layer of the older model, including removed layers.
        changed: the changes by layer of the newer model, including added layers.
    """

    source: Source
    pairs: Mapping[int, int]
    removed: Mapping[int, Sequence[str]]
    changed: Mapping[int, Sequence[str]]
