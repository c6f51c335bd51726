"""Resolve the type and version of a layer to an operation, as OpenVINO's reader does."""

from __future__ import annotations

import re

from ...ops import Op, registry

__all__ = ["EXACT", "FORMER", "NEWEST", "opset_of", "resolve"]

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
