"""Graph passes, and patterns for the nodes they match, as ``openvino.passes``.

A pattern describes nodes by type and by predicates on their outputs; a callback rewrites each match. The passes of this
package's own compiler are in `ir_runtime.compiler`.

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

A pass also runs without a manager, and predicates constrain an output:

>>> x = ops.parameter([2, -1], np.float32, "x")
>>> sums = ops.add(ops.constant(np.float32(1)), ops.constant(np.float32(2)))
>>> y = ops.add(x, sums)
>>> model = ov.Model([y], [x])
>>> matcher = passes.Matcher(passes.WrapType("opset13.Add", passes.type_matches(ov.Type.f32)), "adds")
>>> matcher.match(y), matcher.get_name(), matcher.get_match_value() == y.output(0), matcher.get_symbols()
(True, 'adds', True, {})
>>> matcher.get_match_nodes() == [y], len(matcher.get_match_values()), len(matcher.get_pattern_value_map())
(True, 1, 1)
>>> conditions = passes.has_static_rank(), passes.has_static_shape(), passes.has_static_dim(0), passes.has_static_dims([0, 1])
>>> [condition(y.output(0)) for condition in conditions]
[True, False, True, False]
>>> passes.consumers_count(1)(sums.output(0)), passes.type_matches_any([ov.Type.f16])(y.output(0))
(True, False)
>>> passes.shape_matches("[2,?]")(y.output(0)), passes.attrs_match({"auto_broadcast": "numpy"})(y.output(0))
(True, True)
>>> passes.Predicate(lambda output: output.get_index() == 0)(y.output(0))
True
>>> passes.ConstantFolding().run_on_model(model), len(model.get_ops())
(True, 4)
>>> either = passes.Or([passes.WrapType("opset13.Relu"), passes.WrapType("opset13.Add")])
>>> maybe = passes.Optional("opset13.Exp", either)
>>> maybe.fits(y), len(either.sources), passes.Matcher(maybe, "either").match(y)
(False, 2, True)
"""

from .._util.absent import explain_absent
from ..openvino.rewrite.matcher import Matcher
from ..openvino.rewrite.passes import (
    BackwardGraphRewrite,
    GraphRewrite,
    Manager,
    MatcherPass,
    ModelPass,
    PassBase,
)
from ..openvino.rewrite.patterns import (
    AnyInput,
    Optional,
    Or,
    Predicate,
    WrapType,
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
from ..openvino.rewrite.transformations import (
    ConstantFolding,
    ConvertFP32ToFP16,
    LowLatency2,
    MakeStateful,
    Serialize,
    Version,
    VisualizeTree,
)

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

explain_absent(__name__)
