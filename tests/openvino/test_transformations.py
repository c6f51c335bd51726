"""Transformations of ``_offline_transformations`` have the effects of OpenVINO's."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from harness.dropin import assert_same, run

import ir_runtime
from ir_runtime import _offline_transformations as offline

START = """
import importlib
package = ov.__name__
ops = importlib.import_module(package + ".opset13")
util = importlib.import_module(package + ".op.util")
offline = importlib.import_module(package + "._offline_transformations")
draw = np.random.default_rng(0)

def real(*shape):
    return draw.normal(size=shape).astype(np.float32)

def parameter(name, shape, type=np.float32):
    made = ops.parameter(shape, type, name=name)
    made.output(0).set_names({name})
    return made

def computed(model, feeds):
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    return [np.array(x) for x in ov.compile_model(model, "CPU", config)(feeds).to_tuple()]

def kinds(model):
    shown = [n for n in model.get_ordered_ops() if n.get_type_name() != "Constant"]
    return sorted((n.get_type_name(), [str(o.get_partial_shape()) for o in n.outputs()]) for n in shown)
"""

SEQUENCE = """
def sequence(kind, direction, lengths, constant):
    steps, sizes = 5, {"lstm": 4, "gru": 3, "rnn": 1}
    states = [parameter(name, [2, 1, 4]) for name in ("h", "c")[: 2 if kind == "lstm" else 1]]
    x, ends = parameter("x", [2, -1 if lengths == "open" else steps, 3]), [parameter("ends", [2], np.int32)]
    if lengths != "open":
        ends = [ops.constant(np.int32(lengths))]
    given = [real(1, sizes[kind] * 4, 3), real(1, sizes[kind] * 4, 4), real(1, sizes[kind] * 4)]
    weights = [ops.constant(w) if constant else parameter(f"w{i}", w.shape) for i, w in enumerate(given)]
    node = getattr(ops, kind + "_sequence")(x, *states, *ends, *weights, 4, direction)
    node.set_friendly_name("seq")
    inputs = [x, *states] + ([] if constant else weights) + (ends if lengths == "open" else [])
    model = ov.Model([ops.result(o, name=f"r{i}") for i, o in enumerate(node.outputs())], inputs, "m")
    feeds = {"x": real(2, steps, 3), "h": real(2, 1, 4), "c": real(2, 1, 4), "ends": np.int32([2, 4])}
    feeds.update({f"w{i}": w for i, w in enumerate(given)})
    return model, {p.friendly_name: feeds[p.friendly_name] for p in inputs}

for kind, direction, lengths, constant in CASES:
    model, feeds = sequence(kind, direction, lengths, constant)
    before = computed(model, feeds)
    offline.convert_sequence_to_tensor_iterator_transformation(model)
    found = computed(model, feeds)
    note(kinds(model), [n.get_friendly_name() for n in model.get_ops() if n.get_friendly_name().startswith("seq")][-4:])
    note(found)
    # OpenVINO's kernel of a reverse GRU ignores lengths, so that its results change.
    assert package == "openvino" or all(np.allclose(a, b, atol=1e-5) for a, b in zip(before, found))
"""

CASES = [
    ("lstm", "forward", [5, 5], True),
    ("lstm", "reverse", [5, 5], True),
    ("gru", "forward", [3, 5], True),
    ("lstm", "reverse", [3, 5], True),
    ("rnn", "forward", [5, 5], False),
    ("gru", "reverse", "open", True),
]

STATELESS = """
def decoder(ids, beams=True):
    x, b = parameter("x", [-1, -1, 8]), parameter("beam_idx", [-1], np.int32)
    results, sinks = [], []
    for id in ids:
        info = util.VariableInfo()
        info.data_shape, info.data_type, info.variable_id = ov.PartialShape([-1, -1, 8]), ov.Type.f32, id
        variable = util.Variable(info)
        batch = ops.gather(ops.shape_of(x), ops.constant([0]), ops.constant(0))
        empty = ops.broadcast(ops.constant(np.float32(0)), ops.concat([batch, ops.constant([0]), ops.constant([8])], 0))
        read = ops.read_value(empty, variable)
        past = ops.gather(read, b, ops.constant(np.int64(0))) if beams else read
        every = ops.concat([past, x], 1)
        results.append(ops.result(ops.reduce_mean(every, ops.constant([1])), name="mean_" + id))
        sinks.append(ops.assign(every, variable))
    return ov.Model(results, sinks, [x, b] if beams else [x], "decoder")

KEYS = [f"past_key_values.{n}.{p}present.{n}.{p}" for n, p in ((10, "key"), (0, "value"), (2, "key"), (0, "key"))]
for ids in (KEYS, ["b", "a"], ["past_key_values.xyz"], ["past_key_values.0.decoder.keypresent.0.decoder.key"]):
    model = decoder(ids)
    offline.stateful_to_stateless_transformation(model)
    for ports in (model.inputs, model.outputs):
        note([(p.get_node().get_friendly_name(), sorted(p.names)[-1], str(p.get_partial_shape())) for p in ports])
    note(model.get_sinks(), model.get_variables(), kinds(model))
    feeds = [real(2, 1, 8), *(real(2, 3, 8) for _ in ids)]
    note(computed(model, feeds))
try:
    offline.stateful_to_stateless_transformation(decoder(["a"], beams=False))
except RuntimeError:
    note("refused")
"""

QUANTIZED = """
def quantized(levels, low, high, out_low, out_high, type=np.float32, stored=None):
    x, weights = parameter("x", [1, 3, 4, 4], type), draw.uniform(-1, 1, (2, 3, 3, 3))
    w = ops.constant(weights.astype(stored or type))
    limits = [ops.constant(np.asarray(limit, type)) for limit in (low, high, out_low, out_high)]
    fq = ops.fake_quantize(ops.convert(w, "f32") if stored else w, *limits, levels, name="fq")
    conv = ops.convolution(x, fq, [1, 1], [0, 0], [0, 0], [1, 1])
    return ov.Model([ops.result(conv, name="r")], [x], "m")

each = lambda *limits: np.array(limits).reshape(2, 1, 1, 1)
CASES = [(levels, -1.0, 1.0, -1.0, 1.0) for levels in (2, 3, 4, 15, 16, 17, 128, 255, 256, 257)] + [
    (256, -1.0, 0.5, -1.0, 0.5), (256, 0, 1, 0, 1), (256, -1, 1, -2, 2), (256, -1, 1, 0, 2), (256, 0, 0, 0, 0),
    (256, 1, 3, 1, 3), (255, each(-1, -2), each(1, 2), each(-1, -2), each(1, 2)),
    (256, each(0, 0), each(1, 1), each(0, -1), each(1, 1)), (255, -1, 1, -1, 1, np.float32, np.float16),
]
for case in CASES:
    model = quantized(*case)
    offline.compress_quantize_weights_transformation(model)
    note(kinds(model), [n.get_friendly_name() for n in model.get_ops() if n.get_friendly_name() == "fq"])
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Constant":
            note(node.get_element_type().get_type_name(), str(node.get_output_shape(0)))
            note(np.array(node.get_data()) if node.get_element_type().get_type_name()[0] == "f" else "integers")
note(computed(model, [real(1, 3, 4, 4)]))
"""

CONVERTED = """
def converted(kind, stored, limits):
    x, weights = parameter("x", [1, 6]), draw.uniform(-3, 3, (5, 6))
    w = ops.constant(weights.astype(stored))
    fc = ops.fake_convert(ops.convert(w, "f32"), *map(ops.constant, limits), destination_type=kind, name="fc")
    return ov.Model([ops.result(ops.matmul(x, fc, False, True), name="r")], [x], "m")

one, row, zeros = np.float32(7), np.float32([[1], [3], [0.1], [100], [0.3]]), np.zeros((5, 1), np.float32)
for kind in ("f8e4m3", "f8e5m2"):
    for stored in (np.float32, np.float16):
        for limits in ([one], [row], [row, zeros], [one, one], [row, row]):
            model = converted(kind, stored, limits)
            before = computed(model, [real(1, 6)])
            offline.compress_quantize_weights_transformation(model)
            note(kinds(model), [n.get_friendly_name() for n in model.get_ops() if n.get_friendly_name() == "fc"])
            for node in model.get_ordered_ops():
                if node.get_type_name() == "Constant":
                    note(node.get_element_type().get_type_name(), node.get_data(dtype=np.float32))
            note(before, computed(model, [real(1, 6)]))
"""

# NNCF quantizes the bodies of an If one by one.
IN_BODIES = """
def body(seed):
    x, weights = parameter("x", [2, 6]), np.random.default_rng(seed).uniform(-1, 1, (5, 6)).astype(np.float32)
    fq = ops.fake_quantize(ops.constant(weights), *map(np.float32, (-1, 1, -1, 1)), 255)
    result = ops.result(ops.matmul(x, fq, False, True))
    return ov.Model([result], [x]), x, result

x, flag = parameter("data", [2, 6]), parameter("flag", [], bool)
(then, x1, r1), (other, x2, r2) = body(1), body(2)
node = ops.if_op(flag)
node.set_then_body(then); node.set_else_body(other); node.set_input(x.output(0), x1, x2); y = node.set_output(r1, r2)
model = ov.Model([ops.result(y)], [x, flag])
offline.compress_quantize_weights_transformation(model)
(node,) = [n for n in model.get_ops() if n.get_type_name() == "If"]
note(*(kinds(node.get_function(i)) for i in range(2)))
note(*(computed(model, [real(2, 6), np.array(flag)]) for flag in (True, False)))
"""

PROGRAMS = {
    "sequences": f"CASES = {CASES}\n{SEQUENCE}",
    "sequences of both directions are kept": """
x, h, ends = parameter("x", [2, 5, 3]), parameter("h", [2, 2, 4]), ops.constant(np.int32([5, 5]))
node = ops.gru_sequence(x, h, ends, *map(ops.constant, (real(2, 12, 3), real(2, 12, 4), real(2, 12))), 4, "bidirectional")
model = ov.Model([ops.result(o) for o in node.outputs()], [x, h])
offline.convert_sequence_to_tensor_iterator_transformation(model); note(kinds(model))
""",
    "caches as inputs": STATELESS,
    "quantized weights": QUANTIZED,
    "weights of 8-bit floating point": CONVERTED,
    "weights in bodies": IN_BODIES,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_transformations(name: str) -> None:
    theirs, ours = (run(START + PROGRAMS[name], package) for package in ("openvino", "ir_runtime"))
    assert len(ours) == len(theirs) > 0
    for mine, right in zip(ours, theirs, strict=True):
        assert_same(mine, right)


def refusing() -> set[str]:
    """The transformations that always raise an error."""
    every = {name: getattr(offline, name) for name in offline.__all__}
    return {name for name, each in every.items() if "NoReturn" in str(inspect.signature(each))}


@pytest.mark.parametrize("name", sorted(refusing()))
def test_other_transformations_refuse_when_they_are_called(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name} is not available"):
        getattr(offline, name)(None)


def test_the_guide_names_what_refuses() -> None:
    guide = Path(ir_runtime.__file__).with_name("guides").joinpath("openvino.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| .*_offline_transformations.*$", guide, re.M)
    named = set(re.findall(r"`(\w+_transformation)`", row))
    assert named == refusing() != set()
