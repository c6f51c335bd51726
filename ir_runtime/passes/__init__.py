"""Passes that change models, and the patterns that they look for. As ``openvino.passes``."""

from ..absent import answers
from ..api.rewriting.matcher import Matcher
from ..api.rewriting.passes import (
    BackwardGraphRewrite,
    ConstantFolding,
    GraphRewrite,
    MakeStateful,
    Manager,
    MatcherPass,
    ModelPass,
    PassBase,
    Serialize,
    Version,
)
from ..api.rewriting.patterns import AnyInput, Optional, Or, WrapType
from ..api.rewriting.predicates import (
    Predicate,
    attrs_match,
    consumers_count,
    has_static_dim,
    has_static_dims,
    has_static_rank,
    has_static_shape,
    rank_equals,
    shape_matches,
    type_matches,
    type_matches_any,
)
from ..api.rewriting.transformations import ConvertFP32ToFP16, LowLatency2, VisualizeTree

__all__ = [
    "AnyInput",
    "BackwardGraphRewrite",
    "ConstantFolding",
    "ConvertFP32ToFP16",
    "GraphRewrite",
    "LowLatency2",
    "MakeStateful",
    "Manager",
    "Matcher",
    "MatcherPass",
    "ModelPass",
    "Optional",
    "Or",
    "PassBase",
    "Predicate",
    "Serialize",
    "Version",
    "VisualizeTree",
    "WrapType",
    "attrs_match",
    "consumers_count",
    "has_static_dim",
    "has_static_dims",
    "has_static_rank",
    "has_static_shape",
    "rank_equals",
    "shape_matches",
    "type_matches",
    "type_matches_any",
]

__getattr__ = answers(__name__)
