"""Scripts that run models: queues, states, shared memory, sub-byte weights; on both packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dropin import START, assert_same, run

PROGRAMS = {
    "a benchmark that fills tensors in place": """
compiled = core.compile_model(saved(classifier()), "CPU", {**CONFIG, "PERFORMANCE_HINT": "THROUGHPUT"})
get_dtype = of("utils.types").get_dtype
def fill(tensor):
    dtype = get_dtype(tensor.element_type)
    low, high = (0, 1) if dtype == bool else (np.iinfo(np.uint8).min, np.iinfo(np.uint8).max)
    tensor.data[:] = np.random.default_rng(3).uniform(low, high, list(tensor.shape)).astype(dtype)
request = compiled.create_infer_request()
for port in compiled.inputs:
    fill(request.get_tensor(port))
request.infer(); note(request.get_tensor(compiled.output(0)).data, request.latency > 0)
requests = ov.AsyncInferQueue(compiled, 3)
for each in requests:
    for port in compiled.inputs:
        fill(each.get_tensor(port))
for _ in requests:
    requests.start_async()
requests.wait_all()
note([each.get_output_tensor().data for each in requests], [each.latency > 0 for each in requests])
for _ in range(6):
    index = requests.get_idle_request_id()
    requests[index].set_input_tensor(ov.Tensor(IMAGE)); requests.start_async()
requests.wait_all(); note(len(requests), requests.is_ready())
tried(lambda: requests.start_async({"nope": IMAGE}), lambda: requests.start_async([IMAGE, IMAGE]))
tried(lambda: requests.start_async({0: IMAGE[:, :1]}), lambda: ov.AsyncInferQueue(compiled, -1), lambda: ov.AsyncInferQueue(compiled, "2"), lambda: ov.AsyncInferQueue(compiled, 1.5))
requests.wait_all()
""",
    "results of a queue in the order of the frames": """
compiled = core.compile_model(classifier(), "CPU", CONFIG)
found, seen = {}, []
def keep(request, userdata):
    number, frame = userdata
    note_later = request.get_output_tensor(0).data[:]
    found[number] = (note_later.copy(), frame.shape, request.model_outputs[0].any_name, request.model_inputs[0].any_name)
    seen.append(type(request).__name__)
queue = ov.AsyncInferQueue(compiled, 2); queue.set_callback(keep)
for number in range(5):
    frame = IMAGE * number
    queue.start_async({"image": frame}, (number, frame))
queue.wait_all()
note([found[n] for n in range(5)], set(seen), len(queue.userdata))
queue.set_callback(lambda request, userdata: seen.clear()); queue.start_async([IMAGE]); queue.wait_all(); note(seen)
queue.set_callback(lambda request, userdata: found.update(keys=[k.any_name for k in request.results], tensor=next(iter(request.results.values()))))
queue.start_async(IMAGE, userdata=None, share_inputs=True); queue.wait_all(); note(found["keys"], found["tensor"])
queue.start_async(inputs=ov.Tensor(IMAGE), userdata={"a": 1}); queue.wait_all(); note(found["tensor"])
def failing(request, userdata):
    raise ValueError("no frame")
queue.set_callback(failing); queue.start_async([IMAGE])
try:
    queue.wait_all()
except Exception as reason:
    note("no frame" in str(reason))
""",
    "a language model whose past goes in and out by name": """
def decoder():
    ids = parameter([-1, -1], "input_ids", np.int64)
    table = ops.constant(np.random.default_rng(2).normal(size=(20, 4)).astype(np.float32))
    words = ops.gather(table, ids, ops.constant(np.int64(0))); inputs, results = [ids], []
    for layer in range(2):
        for kind in ("key", "value"):
            past = parameter([-1, -1, 4], f"past_key_values.{layer}.{kind}")
            now = ops.concat([past, words], 1); now.output(0).set_names({f"present.{layer}.{kind}"})
            inputs.append(past); results.append(now)
        words = ops.matmul(ops.softmax(ops.matmul(words, results[-2], False, True), 2), results[-1], False, False)
    logits = ops.matmul(words, table, False, True); logits.output(0).set_names({"logits"})
    return ov.Model([logits, *results], inputs, "decoder")
path = saved(decoder()); model = core.read_model(path)
names = {"inputs": [p.any_name for p in model.inputs], "outputs": [p.get_any_name() for p in model.outputs]}
note(names, model.inputs, model.outputs)
pasts = [n for n in names["inputs"] if n.startswith("past")]; presents = [n.replace("past_key_values", "present") for n in pasts]
model.reshape({p: [1, -1] if "past" not in p.any_name else [1, -1, 4] for p in model.inputs})
note([str(p.partial_shape) for p in model.outputs])
request = core.compile_model(model, "CPU", CONFIG).create_infer_request()
tokens = [3, 1, 4]; past = {n: np.zeros((1, 0, 4), np.float32) for n in pasts}; given = np.array([tokens], np.int64)
for share in (False, True, True):
    request.start_async({"input_ids": given, **past}, share_inputs=share); request.wait()
    logits = request.get_tensor("logits").data
    past = {n: np.copy(request.get_tensor(m).data) for n, m in zip(pasts, presents)}
    given = logits[:, -1].argmax(-1)[:, None]; tokens.append(int(given[0, 0])); note(logits)
note(tokens, {n: p.shape for n, p in past.items()})
out = request.infer({"input_ids": given, **past}, share_inputs=True, share_outputs=True)
note([k.get_any_name() for k in out], out["logits"], tuple(out[m].shape for m in presents))
tried(lambda: request.infer({"input_ids": given.astype(np.float32), **past}, share_inputs=True)["logits"], lambda: request.infer({"input_ids": given[0], **past})["logits"])
""",
    "states that are read, cut and put back": """
x = parameter([1, -1, 2], "x"); info = of("op.util").VariableInfo(); info.variable_id = "past"
info.data_shape, info.data_type = ov.PartialShape([1, -1, 2]), ov.Type.f32; variable = of("op.util").Variable(info)
empty = ops.constant(np.zeros((1, 0, 2), np.float32)); now = ops.concat([ops.read_value(empty, variable), x], 1)
model = ov.Model([ops.result(now, name="y")], [ops.assign(now, variable)], [x], "cache")
model = core.read_model(saved(model)); compiled = core.compile_model(model, "CPU", {**CONFIG, "KV_CACHE_PRECISION": "f32"})
one, two = compiled.create_infer_request(), compiled.create_infer_request()
word = np.float32([[[1, 2]]])
for n in range(3):
    note(one.infer([word * n])[0])
note(two.infer([word])[0], [s.name for s in one.query_state()], [s.state.shape for s in one.query_state()])
for state in one.query_state():
    old = state.state.data[:]; state.state = ov.Tensor(np.ascontiguousarray(old[:, :-1])); note(state.state.data, state.state)
note(one.infer([word * 9])[0]); two.query_state()[0].reset(); note(two.infer([word * 5])[0])
state = one.query_state()[0]; state.state = ov.Tensor(np.zeros((1, 4, 2), np.float32)); note(one.infer([word])[0].shape)
one.reset_state(); note(one.infer([word * 7])[0], one.query_state()[0].state.data.shape)
note(compiled([word])[0], compiled([word])[0].shape, compiled.query_state()[0].name if hasattr(compiled, "query_state") else "past")
""",
    "memory that a request shares with arrays": """
compiled = core.compile_model(classifier(), "CPU", CONFIG); request = compiled.create_infer_request()
array = IMAGE.copy(); shared = ov.Tensor(array, shared_memory=True); request.set_input_tensor(shared); request.infer()
first = request.get_output_tensor().data.copy(); array *= 2; request.infer(); second = request.get_output_tensor().data.copy()
note(first, second, np.shares_memory(shared.data, array))
out = np.zeros((1, 5), np.float32); request.set_output_tensor(ov.Tensor(out, shared_memory=True)); request.infer(); note(out)
whole = np.zeros((4, 5), np.float32); row = ov.Tensor(ov.Tensor(whole, shared_memory=True), [2, 0], [3, 5])
note(row.shape, row.data, row.is_continuous()); request.set_output_tensor(row); request.infer(); note(whole)
live = request.get_output_tensor().data; array[:] = 0; request.infer(); note(live, np.shares_memory(live, whole))
tried(lambda: ov.Tensor(IMAGE[:, :, ::2]).data, lambda: ov.Tensor(IMAGE.T).shape)
copied = ov.Tensor(array); array[:] = 7; note(copied.data.max(), shared.data.max())
tensor = ov.Tensor(ov.Type.f32, ov.Shape([1, 3, 8, 8])); tensor.data[:] = IMAGE; note(request.infer({"image": tensor})[0])
tensor.data[...] = 1; note(request.infer({compiled.input(): tensor}, share_inputs=True)[0])
note(request.infer(tensor)[0], request.infer([tensor])[0], compiled(tensor)[0], compiled({"image": tensor}, share_inputs=False)[0])
frozen = IMAGE.copy(); frozen.flags.writeable = False
tried(lambda: compiled(frozen)[0], lambda: request.infer([frozen], share_inputs=True)[0], lambda: request.infer([frozen], share_inputs=False)[0])
""",
    "an input that becomes a constant": """
x, k = parameter([2, 3], "x"), parameter([3], "k")
y = ops.multiply(x, k, name="scaled"); y.output(0).set_names({"y"}); model = core.read_model(saved(ov.Model([y], [x, k], "two")))
param = next(p for p in model.get_parameters() if p.friendly_name == "k")
fixed = ops.constant(np.float32([1, 10, 100]), name="fixed"); param.output(0).replace(fixed.output(0)); model.remove_parameter(param)
model.validate_nodes_and_infer_types(); note(model.inputs, types(model), sorted(fixed.output(0).names))
note(computed(model, np.ones((2, 3), np.float32)), len(param.output(0).get_target_inputs()))
again = core.read_model(saved(model, "fixed")); note(again.inputs, again.outputs, computed(again, np.ones((2, 3), np.float32)))
wide = parameter([2, 3], "wide", np.uint8); model.replace_parameter(0, wide)
tried(lambda: model.validate_nodes_and_infer_types())
model = core.read_model(saved(classifier())); source = model.get_parameters()[0]; nodes = named(model)
half = ops.parameter([1, 3, 8, 8], np.float16, name="half"); cast = ops.convert(half, "f32")
nodes["conv"].input(0).replace_source_output(cast.output(0)); model.add_parameters([half]); model.remove_parameter(source)
model.validate_nodes_and_infer_types(); note(model.inputs, types(model), computed(model, IMAGE.astype(np.float16)))
tried(lambda: model.remove_parameter(source), lambda: model.get_parameter_index(source), lambda: model.replace_parameter(3, half))
""",
    "models that are joined end to end": """
first, second = core.read_model(saved(classifier())), None
x = parameter([-1, 5], "scores"); top = ops.topk(x, ops.constant(np.int64(2)), 1, "max", "value", name="top")
for index, name in enumerate(("values", "indices")):
    top.output(index).set_names({name})
second = core.read_model(saved(ov.Model(top.outputs(), [x], "top"), "top"))
second.get_parameters()[0].output(0).replace(first.get_results()[0].input_value(0))
joined = ov.Model(second.get_results(), first.get_parameters(), "joined"); joined.validate_nodes_and_infer_types()
note(joined.inputs, joined.outputs, types(joined), computed(joined, IMAGE), joined.get_friendly_name())
note(sorted(joined.output(0).names), sorted(joined.output("indices").names), joined.output("values").get_index())
both = ov.Model([*joined.get_results(), ops.result(named(joined)["pool"], name="pool")], joined.get_parameters(), "both")
note(both.outputs, computed(both, IMAGE)); again = core.read_model(saved(both, "both")); note(again.outputs, computed(again, IMAGE))
part = ov.Model([named(again)["relu"].output(0)], again.get_parameters(), "part"); note(part.outputs[0].shape, types(part), computed(part, IMAGE))
results = again.get_results(); turned = ov.Model(results[::-1], again.get_parameters(), "turned"); note([o.names for o in turned.outputs])
note(computed(turned, IMAGE))
""",
    "weights that are stored in few bits": """
def compressed(weight, kind):
    old = weight.data; peak = np.abs(old).max(axis=tuple(range(1, old.ndim)), keepdims=True)
    levels = {"i8": 127, "u8": 127, "i4": 7, "u4": 7}[kind]; scale = (peak / levels).astype(np.float32)
    numbers = np.clip(np.round(old / scale), -levels, levels).astype(np.int8); zero = 0 if kind[0] == "i" else levels + 1
    stored = ops.constant((numbers.astype(np.int16) + zero).astype(np.int8 if kind[0] == "i" else np.uint8), dtype=getattr(ov.Type, kind), name=f"{weight.friendly_name}/q")
    wide = ops.convert(stored, "f32")
    if zero:
        wide = ops.subtract(wide, ops.convert(ops.constant(np.uint8([zero]), dtype=getattr(ov.Type, kind)), "f32"))
    result = ops.multiply(wide, scale, name=f"{weight.friendly_name}/fq")
    for target in weight.output(0).get_target_inputs():
        target.replace_source_output(result.output(0))
    return stored
for kind in ("i8", "u8", "i4", "u4"):
    model = core.read_model(saved(classifier())); before = computed(model, IMAGE)[0]
    stored = [compressed(n, kind) for n in model.get_ordered_ops() if n.get_type_name() == "Constant" and n.get_output_partial_shape(0).rank.get_length() in (2, 4) and "w" in n.friendly_name]
    model.set_rt_info(kind, ["nncf", "weight_compression", "mode"]); model.validate_nodes_and_infer_types()
    note(kind, [(s.get_element_type(), s.shape, s.get_byte_size()) for s in stored], types(model), computed(model, IMAGE))
    again = core.read_model(saved(model, kind)); note(computed(again, IMAGE), again.get_rt_info(["nncf", "weight_compression", "mode"]).value)
    note([n.get_element_type() for n in again.get_ordered_ops() if n.get_type_name() == "Constant"])
    note(np.abs(before - computed(again, IMAGE)[0]).max() < np.abs(before).max())
""",
    "constants by every way to make one": """
C, T, S = ov.op.Constant, ov.Type, ov.Shape
def shown(c):
    note(c.get_element_type(), c.get_output_shape(0), c.data, c.get_byte_size(), c.get_vector(), c.shape, c.get_output_size(), c.get_type_name())
    note(c.get_data(), c.get_data(dtype=np.float64), c.get_tensor_view().shape, c.get_all_data_elements_bitwise_identical(), c.get_value_strings())
a = np.float32([[1, 2], [3, 4]])
for make in (lambda: C(a), lambda: C(a, True), lambda: C(a, shared_memory=True), lambda: C(ov.Tensor(a)), lambda: C(ov.Tensor(a), shared_memory=True), lambda: C(T.f32, S([2, 2]), [1, 2, 3, 4]),
             lambda: C(T.f32, S([2, 2]), a.ravel().tolist()), lambda: C(T.i64, S([3]), [7]), lambda: C(T.f64, S([]), [7]), lambda: C(T.i32, S([0]), []), lambda: C(C(a)), lambda: C(T.boolean, S([2]), [True, False]),
             lambda: ops.constant(5), lambda: ops.constant(5.5), lambda: ops.constant(True), lambda: ops.constant([1, 2]), lambda: ops.constant([1.5, 2]), lambda: ops.constant([[1], [2]], np.int32), lambda: ops.constant([1, 2], dtype=np.float64),
             lambda: ops.constant(a, T.f16), lambda: ops.constant(a, dtype=np.float16), lambda: ops.constant(a, shared_memory=True), lambda: ops.constant(np.array(3, np.uint16)), lambda: ops.constant(np.int8(3)), lambda: ops.constant(a.T),
             lambda: ops.constant(a[:, ::2]), lambda: ops.constant(ov.Tensor(a)), lambda: ops.constant(ov.Tensor(a), shared_memory=True), lambda: ops.constant(np.zeros((2, 0), np.float32)), lambda: ops.constant([True, False]), lambda: ops.constant(2**40),
             lambda: ops.constant(value=3, dtype=np.uint8, name="three"), lambda: ops.constant(-1, np.int64), lambda: ops.constant(3.9, np.int32), lambda: ops.constant(a, np.uint8)):
    try:
        shown(make())
    except Exception as reason:
        note(reason)
tried(lambda: ops.constant(None), lambda: ops.constant({}), lambda: ops.constant(1j), lambda: C(T.f32, S([2]), [1, 2, 3]), lambda: ops.constant([[1], [1, 2]]))
shared = a.copy(); c = ops.constant(shared, shared_memory=True); shared[:] = 0; note(c.data, ops.constant(shared).data is shared, np.shares_memory(c.data, shared))
note(ops.constant(a, name="x").get_friendly_name(), ops.constant(a).get_friendly_name().split("_")[0], C(a).get_name().split("_")[0])
""",
}


@pytest.mark.filterwarnings("ignore:Data of string type will be copied")
@pytest.mark.parametrize("title", PROGRAMS)
def test_programs(title: str, tmp_path: Path) -> None:
    program = START + PROGRAMS[title]
    noted = []
    for package in ("openvino", "ir_runtime"):
        folder = tmp_path / package
        folder.mkdir()
        noted.append(run(program, package, folder=folder))
    theirs, ours = noted
    assert theirs
    assert len(ours) == len(theirs)
    for number, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        try:
            assert_same(mine, its)
        except AssertionError as reason:
            reason.add_note(f"in what is noted as number {number}")
            raise
