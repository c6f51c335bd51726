"""Resolve the type and version of a layer to an operation, as OpenVINO's reader does."""

from __future__ import annotations

import re

from ..._util.nearest import did_you_mean, suggestion
from ...ops import Op, registry

__all__ = ["EXACT", "FORMER", "NEWEST", "opset_of", "resolve", "unknown_operation"]

NEWEST = 17
"""The newest opset."""

EXACT = {"Constant": "Const", "Parameter": "Parameter", "Result": "Result", "Assign": "Assign"}
"""Types that OpenVINO compares case-sensitively; all others are case-insensitive."""

# The opset of operations that files declare as outside of opsets: OpenVINO accepts this for those of opset6; those of
# opset15 belonged to openvino_tokenizers before.
FORMER = ("experimental", "extension")
_FORMERLY_OUTSIDE = {
    "ExperimentalDetectronDetectionOutput": 6,
    "ExperimentalDetectronGenerateProposalsSingleImage": 6,
    "ExperimentalDetectronPriorGridGenerator": 6,
    "ExperimentalDetectronROIFeatureExtractor": 6,
    "ExperimentalDetectronTopKROIs": 6,
    "GRUCell": 6,
    "Proposal": 6,
    "RNNCell": 6,
    "StringTensorPack": 15,
    "StringTensorUnpack": 15,
}


def resolve(type: str, version: str, on_page: bool = False) -> type[Op] | None:
    """Return the operation of a ``<layer>``; ``None`` if it is unknown.

    Third-party operations may have any version: files name their own set. Pages of the specification write
    ``Constant``, files ``Const``.
    """
    name = registry.name(type)
    if EXACT.get(name or "", type) != type and not (on_page and name == type):
        return None
    if version in FORMER and name in _FORMERLY_OUTSIDE:
        return registry.resolve(type, _FORMERLY_OUTSIDE[name])
    opset = opset_of(version)
    operation = registry.resolve(type, opset)
    if operation is None or opset is not None or not registry.is_own(operation):
        return operation
    return None


def opset_of(version: str) -> int | None:
    """Return the number of an opset, or ``None`` if the name is unknown."""
    match = re.fullmatch(r"opset([1-9][0-9]?)", version)
    number = int(match.group(1)) if match else 0
    return number if 0 < number <= NEWEST else None


_TOKENIZERS = (
    "openvino_tokenizers has such operations, compiled against OpenVINO's library: tokenize with Hugging Face's package "
    "instead, and feed the ids to the model; one of your own is declared with ir_runtime.ops.op, see examples/custom_op"
)
_OF_YOUR_OWN = "declare an operation of your own with ir_runtime.ops.op; see examples/custom_op"


def unknown_operation(type: str, version: str) -> tuple[str, str]:
    """Return the message and the hint for an unknown operation."""
    versions = registry.versions(type)
    if not versions:
        return _no_such_type(type, version)
    name, opset = versions[0].name, opset_of(version)
    if EXACT.get(name, type) != type:
        return f"unknown operation {type!r} ({version})", suggestion(EXACT[name])
    if opset is None:
        return f"unknown opset {version!r}, expected opset1 to opset{NEWEST}", _opset_for(versions, version)
    return f"{version} has no {name}; {_span(versions, opset)}", ""


def _opset_for(versions: list[type[Op]], version: str) -> str:
    """Return the nearest opset name, or the first opset that has the operation."""
    first = f"{versions[0].name} starts with opset{versions[0].since}"
    names = [f"opset{number}" for number in range(1, NEWEST + 1)]
    return first if re.fullmatch(r"opset\d+", version) else did_you_mean(version.lower()[:20], names) or first


def _span(versions: list[type[Op]], opset: int) -> str:
    """Describe the opsets that have an operation."""
    first, last = versions[0].since, versions[-1].until
    return f"it starts with opset{first}" if opset < first else f"the last to have it is opset{last}"


def _no_such_type(type: str, version: str) -> tuple[str, str]:
    if version == "extension":
        return f"{type!r} is an operation of {version!r}, which is outside OpenVINO's opsets", _TOKENIZERS
    near = registry.near(type)
    hint = suggestion(near, after=" Otherwise ") + _OF_YOUR_OWN
    if version and not version.startswith("opset"):
        return f"{type!r} is an operation of {version!r}, which is outside OpenVINO's opsets", hint
    opset = f" ({version})" if version else ""
    return f"unknown operation {type!r}{opset}", hint
