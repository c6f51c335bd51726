"""Passes that change models, and the patterns that they look for. As ``openvino.passes``.

A pattern describes nodes by their types and by conditions on their outputs; what to do where it matches is a function.

>>> import numpy as np, ir_runtime as ov
>>> from ir_runtime import opset13 as ops, passes
>>> x = ops.parameter([2, 3], np.float32, "x")
>>> model = ov.Model([ops.exp(ops.relu(ops.relu(x)))], [x])
>>> inner = passes.WrapType("opset13.Relu", passes.AnyInput(passes.rank_equals(2)))
>>> outer = passes.WrapType("opset13.Relu", inner)
>>> def drop(matcher):
...     twice = matcher.get_match_root()
...     ov.utils.replace_node(twice, twice.input_value(0).get_node())
...     return True
>>> manager = passes.Manager()
>>> _ = manager.register_pass(passes.MatcherPass(passes.Matcher(outer, "ReluTwice"), drop))
>>> _ = manager.register_pass(passes.ConvertFP32ToFP16())
>>> _ = manager.run_passes(model)
>>> [node.get_type_name() for node in model.get_ordered_ops()], model.input().element_type.to_string()
(['Parameter', 'Relu', 'Exp', 'Result'], 'f16')
"""

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
