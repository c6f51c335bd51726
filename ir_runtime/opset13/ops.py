"""The operations that opset13 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, TypeLike, constant, make
from ..api.nodes import Node

__all__ = [
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "constant",
    "fake_convert",
    "fake_quantize",
    "multinomial",
    "nms_rotated",
    "scaled_dot_product_attention",
]


def bitwise_and(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """BitwiseAnd-13: The bits set in both ``a`` and ``b``.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "BitwiseAnd",
        13,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def bitwise_not(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """BitwiseNot-13: The bits of ``data``, each turned over.

    Args:
        node: integers, or booleans, which have one bit.
        name: the name of the node.
    """
    return make(
        "BitwiseNot",
        13,
        [node],
        {},
        name,
    )


def bitwise_or(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """BitwiseOr-13: The bits set in ``a`` or ``b``, or both.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "BitwiseOr",
        13,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def bitwise_xor(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """BitwiseXor-13: The bits set in either ``a`` or ``b``, but not both.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "BitwiseXor",
        13,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def fake_convert(
    data: NodeInput,
    scale: NodeInput,
    shift: NodeInput | None = None,
    destination_type: str = "f8e4m3",
    name: str | None = None,
) -> Node:
    """Create FakeConvert-13.

    Round ``data``, scaled and shifted, to what an 8-bit float can hold; then scale and shift back.

    Args:
        data: tensor to round.
        scale: factor before rounding, divisor after it, of a shape that broadcasts to that of data.
        shift: subtracted before rounding, added after it, of the shape of scale; absent, 0.
        destination_type: the type whose numbers to round to.
        name: the name of the node.
    """
    return make(
        "FakeConvert",
        13,
        [data, scale, shift],
        {
            "destination_type": destination_type,
        },
        name,
    )


def fake_quantize(
    data: NodeInput,
    input_low: NodeInput,
    input_high: NodeInput,
    output_low: NodeInput,
    output_high: NodeInput,
    levels: int,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Create FakeQuantize-1.

    Move ``data`` to the nearest of evenly spaced levels between two limits, then to other limits.

    Args:
        data: tensor to quantize.
        input_low: where levels begin, of a shape that broadcasts to that of data.
        input_high: where levels end, of a shape that broadcasts to that of data; where it equals input_low
            there are two levels.
        output_low: what the first level becomes, of a shape that broadcasts to that of data.
        output_high: what the last level becomes, of a shape that broadcasts to that of data.
        levels: number of levels, those at both ends included.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "FakeQuantize",
        1,
        [data, input_low, input_high, output_low, output_high],
        {
            "levels": levels,
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def multinomial(
    probs: NodeInput,
    num_samples: NodeInput,
    convert_type: TypeLike,
    with_replacement: bool,
    log_probs: bool,
    global_seed: int = 0,
    op_seed: int = 0,
    name: str | None = None,
) -> Node:
    """Create Multinomial-13.

    Indices of classes, drawn at random by their probabilities ``probs``; the same for the same seeds.

    Args:
        probs: [batch, classes], not negative; they need not add up to 1.
        num_samples: how many to draw for each batch entry, one number.
        convert_type: element type of the output, i64 or i32.
        with_replacement: whether a class may be drawn again.
        log_probs: whether probs are logarithms of probabilities.
        global_seed: first seed; if both are 0, the numbers are others each time.
        op_seed: second seed.
        name: the name of the node.
    """
    return make(
        "Multinomial",
        13,
        [probs, num_samples],
        {
            "convert_type": convert_type,
            "with_replacement": with_replacement,
            "log_probs": log_probs,
            "global_seed": global_seed,
            "op_seed": op_seed,
        },
        name,
    )


def nms_rotated(
    boxes: NodeInput,
    scores: NodeInput,
    max_output_boxes_per_class: NodeInput,
    iou_threshold: NodeInput,
    score_threshold: NodeInput,
    sort_result_descending: bool = True,
    output_type: TypeLike = "i64",
    clockwise: bool = True,
    name: str | None = None,
) -> Node:
    """Create NMSRotated-13.

    Which of rotated ``boxes`` are left of each class, when those with the best scores suppress what they
    overlap.

    Args:
        boxes: [batches, boxes, 5]: x and y of the centre, width, height, angle in radians.
        scores: [batches, classes, boxes].
        max_output_boxes_per_class: one number.
        iou_threshold: one number: the overlap that is still allowed.
        score_threshold: one number: what scores must be above.
        sort_result_descending: order by score; if not, by batch entry and class, and by score within.
        output_type: element type of the indices, i64 or i32.
        clockwise: whether angles turn clockwise.
        name: the name of the node.
    """
    return make(
        "NMSRotated",
        13,
        [boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold],
        {
            "sort_result_descending": sort_result_descending,
            "output_type": output_type,
            "clockwise": clockwise,
        },
        name,
    )


def scaled_dot_product_attention(
    query: NodeInput,
    key: NodeInput,
    value: NodeInput,
    attention_mask: NodeInput | None = None,
    scale: NodeInput | None = None,
    causal: bool = False,
    name: str | None = None,
) -> Node:
    """Create ScaledDotProductAttention-13.

    Mean of ``value``, weighted by the softmax over keys of ``query @ key.T * scale + mask``.

    Args:
        query: [N, ..., L, E].
        key: [N, ..., S, E]; batch axes broadcast.
        value: [N, ..., S, Ev].
        attention_mask: [..., L or 1, S or 1]: numbers to add to the scores, or whether a query sees a key; a
            scalar masks nothing; ignored when causal.
        scale: factor of the scores, one number; 1 / sqrt(E) when absent.
        causal: whether query i sees the keys 0 to i only, of however many keys.
        name: the name of the node.
    """
    return make(
        "ScaledDotProductAttention",
        13,
        [query, key, value, attention_mask, scale],
        {
            "causal": causal,
        },
        name,
    )
