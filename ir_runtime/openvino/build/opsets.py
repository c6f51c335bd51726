"""The factory functions of opsets, generated on first use.

Each function is compiled from generated source: its parameters come from `FACTORIES` and the declaration of the
operation, its docstring from the declaration. Calls are as fast as those of handwritten functions, and
Python's errors for wrong arguments name the function and the parameter. Type checkers read ``opset1.pyi`` …
``opset17.pyi``, which ``make index`` writes from the same source.
"""

from __future__ import annotations

import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ...ops import Op
    from ...ops._define.attributes import Attribute

__all__ = [
    "FACTORIES",
    "Factory",
    "Parameter",
    "attach",
    "factories_of",
    "origins",
]


# The factories of OpenVINO's opsets, with their parameters if these differ from the operation's declaration.
#
# An opset has the factories of the previous one, and those listed here. A row names factories with the same
# parameters. A name is that of the operation, ignoring case and underscores, or ``name>Operation``; the version
# is the newest in the opset. Without parameters, a factory takes the inputs of the operation and then its
# attributes, as declared. A parameter is the attribute or input of that name, or else the next remaining input;
# ``name>attribute`` is an attribute with another name, ``*name`` any number of inputs, ``**name`` a dictionary
# of attributes. Rows with ``@`` list the handwritten factories in `factories`, under that name or
# ``name>other``.

FACTORIES = {
    1: """
        @ constant>constant_1 parameter result tensor_iterator>TensorIterator
        convert convert_like elu gather grn hard_sigmoid normalize_l2 one_hot prelu range shape_of sigmoid split tile unsqueeze variadic_split
        abs absolute>Abs acos asin atan ceil>Ceiling ceiling cos cosh erf exp floor log logical_not negative relu sign sin sinh sqrt tan tanh (node)
        add divide equal floor_mod greater greater_equal less less_equal logical_and logical_or logical_xor maximum minimum mod multiply not_equal power subtract (left_node, right_node, auto_broadcast='NUMPY')
        avg_pool (data_batch, strides, pads_begin, pads_end, kernel_shape>kernel, exclude_pad, rounding_type='floor', auto_pad=None)
        batch_norm_inference (data, gamma, beta, mean, variance, epsilon)
        binary_convolution (data, filters, strides, pads_begin, pads_end, dilations, mode, pad_value, auto_pad='EXPLICIT')
        broadcast (data, target_shape, axes_mapping=None, mode='NUMPY')
        clamp (data, min_value>min, max_value>max)
        concat (*nodes, axis)
        convolution group_convolution (data, filters, strides, pads_begin, pads_end, dilations, auto_pad='EXPLICIT')
        convolution_backprop_data (data, filters, strides, output_shape=None, pads_begin=None, pads_end=None, dilations=None, auto_pad=None, output_padding=None)
        ctc_greedy_decoder (data, sequence_mask, merge_repeated>ctc_merge_repeated=True)
        deformable_convolution (data, deformable_values, filters, strides, pads_begin, pads_end, dilations, auto_pad='EXPLICIT', group=1, deformable_group=1)
        deformable_psroi_pooling (feature_maps, coords, output_dim, spatial_scale, group_size=1, mode='bilinear_deformable', spatial_bins_x=1, spatial_bins_y=1, trans_std=1.0, part_size=1, offsets=None)
        depth_to_space (node, mode, block_size=1)
        detection_output (box_logits, class_preds, proposals, **attrs, aux_class_preds=None, aux_box_preds=None)
        fake_quantize (data, input_low, input_high, output_low, output_high, levels, auto_broadcast='NUMPY')
        gather_tree (step_ids, parent_idx, max_seq_len, end_token)
        group_convolution_backprop_data (data, filters, strides, output_shape=None, pads_begin=None, pads_end=None, dilations=None, auto_pad='EXPLICIT', output_padding=None)
        interpolate (image, output_shape, **attrs)
        lrn (data, axes, alpha=1, beta=0.5, bias=1, size=5)
        lstm_cell (X, initial_hidden_state, initial_cell_state, W, R, B, hidden_size, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
        matmul (data_a, data_b, transpose_a, transpose_b)
        max_pool (data, strides, pads_begin, pads_end, kernel_shape>kernel, rounding_type='floor', auto_pad=None)
        non_max_suppression (boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, box_encoding='corner', sort_result_descending=True)
        pad (arg, pads_begin, pads_end, pad_mode, arg_pad_value=None)
        prior_box (layer_shape, image_shape, **attrs)
        prior_box_clustered (output_size, image_size, **attrs)
        proposal (class_probs, bbox_deltas, image_shape, **attrs)
        psroi_pooling (input, coords, output_dim, group_size, spatial_scale, spatial_bins_x, spatial_bins_y, mode)
        reduce_logical_and reduce_logical_or reduce_max reduce_mean reduce_min reduce_prod reduce_sum (node, reduction_axes, keep_dims=False)
        region_yolo (input, coords, classes, num, do_softmax, mask, axis, end_axis, anchors=None)
        reshape (node, output_shape, special_zero)
        reverse_sequence (input, seq_lengths, batch_axis, seq_axis)
        select (cond, then_node, else_node, auto_broadcast='numpy')
        selu (data, alpha, lambda_value)
        softmax (data, axis)
        space_to_depth (data, mode, block_size=1)
        squared_difference (x1, x2, auto_broadcast='NUMPY')
        squeeze (data, axes)
        strided_slice (data, begin, end, strides, begin_mask, end_mask, new_axis_mask=None, shrink_axis_mask=None, ellipsis_mask=None)
        topk (data, k, axis, mode, sort)
        transpose (data, input_order)
    """,
    2: """
        @ roi_pooling
        batch_to_space space_to_batch
        gelu (node)
        mvn (data, across_channels=False, normalize_variance=False, eps=1e-09)
        reorg_yolo (input, stride)
    """,
    3: """
        assign bucketize embedding_bag_offsets_sum embedding_bag_packed_sum non_zero roi_align scatter_elements_update scatter_update shape_of topk
        broadcast (data, target_shape, axes_mapping=None, broadcast_spec>mode='NUMPY')
        cum_sum cumsum (arg, axis, exclusive=False, reverse=False)
        embedding_segments_sum (emb_table, indices, segment_ids, num_segments=None, default_index=None, per_sample_weights=None)
        extract_image_patches (image, sizes, strides, rates, auto_pad)
        gru_cell (X, initial_hidden_state, W, R, B, hidden_size, activations=None, activations_alpha=None, activations_beta=None, clip=0.0, linear_before_reset=False)
        non_max_suppression (boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        read_value (init_value, variable_id)
        rnn_cell (X, initial_hidden_state, W, R, B, hidden_size, activations, activations_alpha, activations_beta, clip=0.0)
        shuffle_channels (data, axis, group)
    """,
    4: """
        ctc_loss hswish mish scatter_nd_update softplus swish
        acosh asinh atanh (node)
        lstm_cell (X, initial_hidden_state, initial_cell_state, W, R, B, hidden_size, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
        non_max_suppression (boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        proposal (class_probs, bbox_deltas, image_shape, **attrs)
        reduce_l1 reduce_l2 (node, reduction_axes, keep_dims=False)
    """,
    5: """
        @ loop>Loop
        batch_norm_inference gather_nd hsigmoid round
        gru_sequence (X, initial_hidden_state, sequence_lengths, W, R, B, hidden_size, direction, activations=None, activations_alpha=None, activations_beta=None, clip=0.0, linear_before_reset=False)
        log_softmax (data, axis)
        lstm_sequence (X, initial_hidden_state, initial_cell_state, sequence_lengths, W, R, B, hidden_size, direction, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
        non_max_suppression (boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, soft_nms_sigma=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        rnn_sequence (X, initial_hidden_state, sequence_lengths, W, R, B, hidden_size, direction, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
    """,
    6: """
        @ assign>Assign read_value
        ctc_greedy_decoder_seq_len mvn
        gather_elements (data, indices, axis=0)
    """,
    7: """
        dft gather idft roll
        einsum (*inputs, equation)
        gelu (data, approximation_mode)
    """,
    8: """
        @ if_op>If
        gather gather_nd slice
        adaptive_avg_pool (data, output_shape)
        adaptive_max_pool (data, output_shape, index_element_type='i64')
        deformable_convolution (data, offsets, filters, strides, pads_begin, pads_end, dilations, mask=None, auto_pad='EXPLICIT', group=1, deformable_group=1, bilinear_interpolation_pad=False)
        detection_output (box_logits, class_preds, proposals, **attrs, aux_class_preds=None, aux_box_preds=None)
        i420_to_bgr i420_to_rgb (arg, arg_u=None, arg_v=None)
        matrix_nms (boxes, scores, sort_result_type='none', sort_result_across_batch=False, output_type='i64', score_threshold=0.0, nms_top_k=-1, keep_top_k=-1, background_class=-1, decay_function='linear', gaussian_sigma=2.0, post_threshold=0.0, normalized=True)
        max_pool (data, strides, dilations, pads_begin, pads_end, kernel_shape>kernel, rounding_type='floor', auto_pad=None, index_element_type='i64', axis=0)
        multiclass_nms (boxes, scores, sort_result_type='none', sort_result_across_batch=False, output_type='i64', iou_threshold=0.0, score_threshold=0.0, nms_top_k=-1, keep_top_k=-1, background_class=-1, nms_eta=1.0, normalized=True)
        nv12_to_bgr nv12_to_rgb (arg, arg_uv=None)
        prior_box (layer_shape, image_shape, **attrs)
        random_uniform (output_shape, min_val, max_val, output_type, global_seed=0, op_seed=0, alignment='tensorflow')
        softmax (data, axis)
    """,
    9: """
        generate_proposals irdft rdft roi_align
        eye (num_rows, num_columns, diagonal_index, output_type, batch_shape=None)
        grid_sample (data, grid, **attributes)
        multiclass_nms (boxes, scores, roisnum=None, sort_result_type='none', sort_result_across_batch=False, output_type='i64', iou_threshold=0.0, score_threshold=0.0, nms_top_k=-1, keep_top_k=-1, background_class=-1, nms_eta=1.0, normalized=True)
        non_max_suppression (boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, soft_nms_sigma=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        softsign (node)
    """,
    10: """
        is_finite is_nan unique
        interpolate (image, output_shape, scales, mode, shape_calculation_mode, pads_begin=None, pads_end=None, coordinate_transformation_mode='half_pixel', nearest_mode='round_prefer_floor', antialias=False, cube_coeff=-0.75, axes=None)
        is_inf (data, **attributes=None)
    """,
    11: """
        topk
        interpolate (image, scales_or_sizes, mode, shape_calculation_mode, pads_begin=None, pads_end=None, coordinate_transformation_mode='half_pixel', nearest_mode='round_prefer_floor', antialias=False, cube_coeff=-0.75, axes=None)
    """,
    12: """
        group_normalization range
        pad (arg, pads_begin, pads_end, pad_mode, arg_pad_value=None)
        scatter_elements_update (data, indices, updates, axis, reduction='None', use_init_val=True)
    """,
    13: """
        @ constant
        nms_rotated
        bitwise_and bitwise_or bitwise_xor (left_node, right_node, auto_broadcast='NUMPY')
        bitwise_not (node)
        fake_convert (data, scale, shift=None, destination_type='f8e4m3')
        fake_quantize (data, input_low, input_high, output_low, output_high, levels, auto_broadcast='NUMPY')
        multinomial (probs, num_samples, convert_type, with_replacement, log_probs, global_seed=0, op_seed=0)
        scaled_dot_product_attention (query, key, value, attention_mask=None, scale=None, causal=False)
    """,
    14: """
        inverse
        avg_pool (data_batch, strides, pads_begin, pads_end, kernel_shape>kernel, exclude_pad, rounding_type='floor', auto_pad=None)
        convert_promote_types (left_node, right_node, promote_unsafe=False, pytorch_scalar_promotion=False, u64_integer_promotion_target='f32')
        max_pool (data, strides, dilations, pads_begin, pads_end, kernel_shape>kernel, rounding_type='floor', auto_pad=None, index_element_type='i64', axis=0)
    """,
    15: """
        embedding_bag_offsets embedding_bag_packed slice_scatter squeeze string_tensor_pack string_tensor_unpack
        bitwise_left_shift bitwise_right_shift (arg0, arg1, auto_broadcast='NUMPY')
        col2im (data, output_size, kernel_size, strides=None, dilations=None, pads_begin=None, pads_end=None)
        roi_align_rotated (data, rois, batch_indices, pooled_h, pooled_w, sampling_ratio, spatial_scale, clockwise_mode)
        scatter_nd_update (data, indices, updates, reduction=None)
        search_sorted (sorted_sequence, values, right_mode=False)
        stft (data, window, frame_size, frame_step, transpose_frames)
    """,
    16: """
        identity sparse_fill_empty_rows
        avg_pool (data_batch, strides, pads_begin, pads_end, kernel_shape>kernel, exclude_pad, rounding_type='floor', auto_pad=None, dilations=None)
        istft (data, window, frame_size, frame_step, center, normalized, signal_length=None)
        one_hot (indices, depth, on_value, off_value, axis, negative_indices_mode=None)
        segment_max (data, segment_ids, num_segments=None, fill_mode=None)
    """,
    17: """
        grouped_matmul
        erfinv (node)
    """,
}


_PACKAGE = __name__.partition(".")[0]
_WIDTH = 110
_ROW = re.compile(r"(?P<mark>@ )?(?P<names>[\w> ]+?)(?: \((?P<parameters>.*)\))?")
_PARAMETER = re.compile(r"(?P<stars>\**)(?P<name>\w+)(?:>(?P<target>\w+))?(?:=(?P<default>.*))?")


def attach(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for the module of an opset.

    The module becomes a package and its own submodule ``ops``, in which OpenVINO defines the functions that an
    opset adds.
    """
    opset = int(module.rpartition("opset")[2])
    opsets = origins(opset)
    namespace = vars(sys.modules[module])
    namespace["__path__"] = []
    namespace["ops"] = sys.modules[f"{module}.ops"] = sys.modules[module]

    def get(name: str) -> Any:
        added_by = opsets.get(name)
        if added_by is None:
            from ..._util.absent import explaining_getattr

            explaining_getattr(module)(name)
        if added_by == opset:
            function = _create(opset, name)
        else:
            function = getattr(import_module(f"{_PACKAGE}.opset{added_by}"), name)
        return namespace.setdefault(name, function)  # if threads race, all get the first one

    return get, lambda: list(opsets), list(opsets)


def origins(opset: int) -> dict[str, int]:
    """Return the opset that added each factory of an opset, keyed by factory name.

    >>> origins(8)["softmax"], origins(7)["softmax"]
    (8, 1)
    """
    added_by = {name: number for number in range(1, opset + 1) for name in _rows(number)}
    return dict(sorted(added_by.items()))


@dataclass
class Parameter:
    """A parameter of a factory, which stands for an input, an attribute, or a variable number of either."""

    name: str
    target: str
    kind: str
    """``input``, ``inputs``, ``attribute`` or ``attributes``."""
    default: str | None
    annotation: str
    doc: str

    @property
    def text(self) -> str:
        """The source of the parameter in the signature."""
        quoted = None if self.default is None else self.default.replace("'", '"')
        default = "" if quoted is None else f" = {quoted}"
        optional = self.default == "None" and self.annotation != "Any"
        return f"{self.name}: {self.annotation}{' | None' if optional else ''}{default}"


@dataclass
class Factory:
    """A factory function of an opset, and its source."""

    name: str
    cls: type[Op] | None
    """The operation; None if the function is written by hand."""
    parameters: list[Parameter] = field(default_factory=list)
    by_hand: str = ""
    """The name in `factories` of a function that is written by hand."""

    def definition(self) -> str:
        """Return the source of the signature and docstring."""
        assert self.cls is not None
        parameters = [*(p.text for p in self.parameters), "name: str | None = None"]
        line = f"def {self.name}({', '.join(parameters)}) -> Node:"
        lines = [line]
        if len(line) > _WIDTH:
            lines = [f"def {self.name}(", *(f"    {text}," for text in parameters), ") -> Node:"]
        return "\n".join([*lines, *_doc(self.cls, self.parameters), ""])

    def body(self) -> str:
        """Return the source of the body, a call of `factories.make`."""
        assert self.cls is not None
        names = {p.target: p.name for p in self.parameters if p.kind == "input"}
        names |= {p.target: f"*{p.name}" for p in self.parameters if p.kind == "inputs"}
        inputs = [names[port.name] for port in self.cls.inputs if port.name in names]
        attributes = [
            f"**({p.name} or {{}})" if p.default else f"**{p.name}"
            for p in self.parameters
            if p.kind == "attributes"
        ]
        attributes += [f'"{p.target}": {p.name}' for p in self.parameters if p.kind == "attribute"]
        arguments = [f'"{self.cls.name}"', str(self.cls.since), f"[{', '.join(inputs)}]"]
        arguments += [f"{{{', '.join(attributes)}}}", "name"]
        return f"    return make({', '.join(arguments)})\n"


def _create(opset: int, name: str) -> Any:
    """Create a factory that an opset adds."""
    from . import factories

    factory = _factory(opset, name)
    if factory.cls is None:
        return getattr(factories, factory.by_hand)
    text, file = factory.definition() + factory.body(), f"<{_PACKAGE}.opset{opset}.{name}>"
    linecache.cache[file] = (
        len(text),
        None,
        text.splitlines(keepends=True),
        file,
    )  # so that debuggers and tracebacks show the source
    namespace: dict[str, Any] = {}
    # compile inherits the import of annotations from this module: they stay text, as in a stub.
    exec(compile(text, file, "exec"), vars(factories), namespace)  # noqa: S102
    function = namespace[name]
    function.__module__ = f"{_PACKAGE}.opset{opset}.ops"
    return function


def factories_of(opset: int) -> list[Factory]:
    """Return the factories that an opset adds."""
    return [_factory(opset, name) for name in _rows(opset)]


class _Row(NamedTuple):
    """The entry of `FACTORIES` for a factory."""

    target: str
    """The operation, or the function in `factories`; empty if it has the name of the factory."""
    parameters: str | None
    by_hand: bool


@cache
def _rows(opset: int) -> dict[str, _Row]:
    """Return the table entries of the factories that an opset adds, by name."""
    rows = {}
    for text in FACTORIES[opset].strip().split("\n"):
        match = _ROW.fullmatch(text.strip())
        assert match is not None, text
        for word in match["names"].split():
            name, _, target = word.partition(">")
            rows[name] = _Row(target, match["parameters"], bool(match["mark"]))
    return rows


def _factory(opset: int, name: str) -> Factory:
    from ...ops import registry

    row = _rows(opset)[name]
    if row.by_hand:
        return Factory(name, None, by_hand=row.target or name)
    versions = registry.versions(row.target or name.replace("_", ""))
    cls = [version for version in versions if version.since <= opset and registry.is_own(version)][-1]
    return Factory(name, cls, _parameters(cls, row.parameters))


def _parameters(cls: type[Op], listed: str | None) -> list[Parameter]:
    """Return the parameters of a factory: those listed in the table, or else those declared by the operation."""
    texts = _declared_parameters(cls) if listed is None else re.split(r", (?=\*|\w)", listed)
    matches = [_PARAMETER.fullmatch(text) for text in texts]
    names = [m["target"] or m["name"] for m in matches if m]
    left = [port.name for port in cls.inputs if port.name not in map(str.lower, names)]
    return [_parameter(cls, match, left) for match in matches if match is not None]


def _declared_parameters(cls: type[Op]) -> list[str]:
    """Return the inputs and attributes of an operation in the notation of the table."""
    inputs = [
        f"{port.name}=None" if port.optional else f"*{port.name}" if port.variadic else port.name
        for port in cls.inputs
    ]
    attributes = {name: a for name, a in cls.schema().items() if not a.external}
    return inputs + [name if a.required else f"{name}={_default(a)}" for name, a in attributes.items()]


def _parameter(cls: type[Op], match: re.Match[str], left: list[str]) -> Parameter:
    """Return the parameter for an entry of the table, given as the match of its parts.

    A name that the operation does not declare stands for the first input in ``left``, which is removed from there.
    """
    name, target, default = match["name"], match["target"] or match["name"], match["default"]
    inputs = {port.name: port for port in cls.inputs}
    if match["stars"] == "**":
        return Parameter(name, name, "attributes", default, "Mapping[str, Any]", "the attributes by name")
    if match["stars"] == "*":
        port = cls.inputs[-1]
        return Parameter(name, port.name, "inputs", default, "Sequence[NodeInput]", port.doc)
    if target in cls.schema() and target.lower() not in inputs:
        attribute = cls.schema()[target]
        doc = attribute.doc or attribute.allows().removeprefix("must be ")
        return Parameter(name, target, "attribute", default, _annotation(attribute.type), doc)
    own = target.lower() if target.lower() in inputs else left.pop(0)
    return Parameter(name, own, "input", default, "NodeInput", inputs[own].doc)


def _default(attribute: Attribute) -> str:
    from ...ir.element import ElementType
    from ...ops._define.attributes import MISSING

    value = attribute.default
    if isinstance(value, ElementType):
        return f"'{value.label}'"
    return "None" if value == () or value is MISSING else repr(value)


def _annotation(type: object) -> str:
    from ...ir.element import ElementType

    simple: Mapping[Any, str] = {
        int: "int",
        float: "float",
        bool: "bool",
        str: "str",
        ElementType: "TypeLike",
    }
    if type in simple:
        return simple[type]
    text = str(type)
    if text.startswith("tuple["):
        item = text.removeprefix("tuple[").split(",")[0]
        return f"Sequence[{item if item in ('int', 'float', 'bool') else 'str'}]"
    return "str" if "Literal" in text else "Any"


def _doc(cls: type[Op], parameters: list[Parameter]) -> list[str]:
    """Return the lines of the docstring, taken from the declaration of the operation."""
    summary = next((c.__doc__ for c in cls.__mro__ if "__doc__" in vars(c) and c.__doc__), "") or ""
    first = " ".join(summary.strip().split("\n\n")[0].split())
    first = first if first.endswith(".") else first + "."
    whole = f'    """{cls.versioned_name()}: {first}'
    lines = [whole]
    if len(whole) > _WIDTH:
        lines = [f'    """Create {cls.versioned_name()}.', "", *_wrap(first, "    ", "    ")]
    lines += ["", "    Args:"]
    for name, doc in (*((p.name, p.doc) for p in parameters), ("name", "the name of the node")):
        text = " ".join(doc.split()) or "see the specification"
        lines += _wrap(f"{name}: {text}.", " " * 8, " " * 12)
    return [*lines, '    """']


def _wrap(text: str, first: str, later: str) -> list[str]:
    if len(first + text) <= _WIDTH:
        return [first + text]
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=later)
