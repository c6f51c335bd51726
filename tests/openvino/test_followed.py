"""Programs that rely on undocumented behavior of OpenVINO, on both packages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.dropin import START, assert_same, run

import ir_runtime as ir

PROGRAMS = {
    "folders that do not exist": """
model = classifier()
ov.save_model(model, folder / "new" / "deep" / "m.xml"); ov.serialize(model, folder / "x" / "m.xml", folder / "m.bin")
passes.Serialize(str(folder / "pass" / "m.xml"), str(folder / "pass" / "m.bin")).run_on_model(model)
note(sorted(str(p.relative_to(folder)) for p in folder.rglob("m.*")))
tried(lambda: ov.save_model(model, folder / "pass" / "m.xml" / "m.xml"))
""",
    "jobs of a queue that are not told": """
for config in ({}, {"PERFORMANCE_HINT": "LATENCY"}, {"PERFORMANCE_HINT": "THROUGHPUT"}, {"NUM_STREAMS": 2}):
    compiled = core.compile_model(classifier(), "CPU", config)
    note(len(ov.AsyncInferQueue(compiled)) == compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
queue, order = ov.AsyncInferQueue(core.compile_model(classifier(), "CPU")), []
queue.set_callback(lambda request, number: order.append(number))
for number in range(20):
    queue.start_async([IMAGE], number)
queue.wait_all(); note(order)
""",
    "exceptions in callbacks": """
def fail(*arguments):
    raise KeyError("mine")
class Failing(passes.MatcherPass):
    def __init__(self):
        super().__init__()
        self.register_matcher(passes.Matcher(passes.WrapType("opset13.Relu"), "Failing"), fail)
manager, rewrite = passes.Manager(), passes.GraphRewrite()
manager.register_pass(Failing()); rewrite.add_matcher(Failing())
for call in (lambda: manager.run_passes(classifier()), lambda: rewrite.run_on_model(classifier())):
    try:
        call()
    except RuntimeError as reason:
        note("KeyError" in str(reason), "mine" in str(reason))
request = core.compile_model(classifier(), "CPU").create_infer_request()
request.set_callback(fail, None); request.start_async([IMAGE])
tried(request.wait)
""",
    "weights that are not told": """
path = saved(classifier())
note(core.read_model(str(path), "").inputs, core.read_model(model=str(path), weights="").outputs)
""",
    "states of another element type": """
x = parameter([2], "x"); old = ops.read_value(ops.constant(np.zeros(2, np.float32)), "v"); new = ops.add(x, old)
request = core.compile_model(ov.Model([ops.result(new)], [ops.assign(new, "v")], [x]), "CPU", CONFIG).create_infer_request()
request.infer([np.zeros(2, np.float32)]); state = request.query_state()[0]
for held in (np.float16([1.5, 300.7]), np.int32([3, -4]), np.uint8([3, 200]), np.array([True, False])):
    state.state = ov.Tensor(held); note(state.state.data, request.infer([np.float32([1, 2])])[0])
""",
    "a file of plugins and their properties": """
import importlib.util, pathlib
library = next(pathlib.Path(importlib.util.find_spec("openvino").origin).parent.rglob("*intel_cpu_plugin*"))
def configured(text):
    (folder / "plugins.xml").write_text(text); return ov.Core(str(folder / "plugins.xml"))
properties = '<properties><property key="PERF_COUNT" value="YES"/><property key="NUM_STREAMS" value="2"/></properties>'
def plugins(inside):
    return f"<ie><plugins>{inside}</plugins></ie>"
c = configured(plugins(f'<plugin name="CPU" location="{library}">{properties}</plugin>'))
note(c.get_property("CPU", "PERF_COUNT"), c.get_property("CPU", "NUM_STREAMS"), c.available_devices)
c = configured(plugins('<plugin name="OTHER" location="none.so"><properties><property key="A" value="B"/></properties></plugin>'))
note(c.get_property("CPU", "PERF_COUNT"), configured("<ie/>").available_devices)
tried(lambda: configured("no XML"), lambda: configured(plugins('<plugin location="x"/>')), lambda: ov.Core(str(folder / "none.xml")))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same(name: str, tmp_path: Path) -> None:
    notes = []
    for package in ("ir_runtime", "openvino"):
        (tmp_path / package).mkdir()
        notes.append(run(START + PROGRAMS[name], package, folder=tmp_path / package))
    assert_same(*notes)


def test_states_of_integers_refuse_fractions() -> None:
    """OpenVINO rounds or truncates them, depending on the source type."""
    ops = ir.opset13
    x = ops.parameter([2], "i32", name="x")
    new = ops.add(x, ops.read_value(ops.constant(np.zeros(2, np.int32)), "v"))
    request = ir.compile_model(
        ir.Model([ops.result(new)], [ops.assign(new, "v")], [x])
    ).create_infer_request()
    state = request.query_state()[0]
    state.state = ir.Tensor(np.float32([3, -4]))
    assert state.state.data.tolist() == [3, -4]
    for held in (np.float32([1.5, 0]), np.int64([2**40, 0]), np.array(["a", "b"])):
        with pytest.raises(ir.InputError, match=r"variable 'v' must be i32\[2\]"):
            state.state = ir.Tensor(held)
