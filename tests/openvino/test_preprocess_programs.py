"""Programs like OpenVINO's samples and notebooks: images go through preprocessing that is part of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.dropin import assert_same, run
from harness.nets import Net

PROGRAMS = {
    "classification of an image of any size": """
core = ov.Core()
model = core.read_model(folder / "classifier.xml")
note(len(model.inputs), len(model.outputs))
input_tensor = np.expand_dims(image[:23, :19], 0)  # no average is halfway between two bytes
ppp = ov.preprocess.PrePostProcessor(model)
_, h, w, _ = input_tensor.shape
ppp.input().tensor().set_shape(input_tensor.shape).set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
ppp.input().preprocess().resize(ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR)
ppp.input().model().set_layout(ov.Layout("NCHW"))
ppp.output().tensor().set_element_type(ov.Type.f32)
model = ppp.build()
compiled_model = core.compile_model(model, "CPU", config)
results = compiled_model.infer_new_request({0: input_tensor})
predictions = next(iter(results.values()))
note(predictions.reshape(-1))
""",
    "classification of a batch, asynchronously": """
core = ov.Core()
model = core.read_model(folder / "classifier.xml")
resized = [image[:16, :16], image[4:20, 2:18], image[-16:, -16:]]
ppp = ov.preprocess.PrePostProcessor(model)
ppp.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
ppp.input().model().set_layout(ov.Layout("NCHW"))
ppp.output().tensor().set_element_type(ov.Type.f32)
model = ppp.build()
ov.set_batch(model, len(resized))
note(model.input().partial_shape, ov.get_batch(model))
compiled_model = core.compile_model(model, "CPU", config)
found = []
queue = ov.AsyncInferQueue(compiled_model, 1)
queue.set_callback(lambda request, names: found.append(request.get_output_tensor().data.copy()))
queue.start_async({0: np.stack(resized)}, "all")
queue.wait_all()
note(*found)
""",
    "a notebook that moves preprocessing into the model": """
from importlib import import_module
module = import_module(f"{ov.__name__}.preprocess")
PrePostProcessor, ResizeAlgorithm, ColorFormat = module.PrePostProcessor, module.ResizeAlgorithm, module.ColorFormat
Type, Layout = ov.Type, ov.Layout
model = ov.Core().read_model(model=folder / "classifier.xml")
ppp = PrePostProcessor(model)
ppp.input("image").tensor().set_element_type(Type.u8).set_shape([1, 24, 20, 3]).set_layout(Layout("NHWC"))
ppp.input("image").model().set_layout(Layout("NCHW"))
ppp.input("image").preprocess().convert_element_type(Type.f32).resize(ResizeAlgorithm.RESIZE_LINEAR).mean(
    [127.5, 127.5, 127.5]
).scale([127.5, 127.5, 127.5])
print_out = f"Dump preprocessor: {ppp}"
note(print_out)
model_with_preprocess = ppp.build()
ov.save_model(model_with_preprocess, folder / f"{ov.__name__}.xml")
compiled = ov.compile_model(folder / f"{ov.__name__}.xml", "CPU", config)
note(compiled(np.expand_dims(image, 0))[compiled.output(0)])
""",
    "a camera": """
p = ov.preprocess
model = ov.Core().read_model(folder / "classifier.xml")
ppp = p.PrePostProcessor(model)
ppp.input().tensor().set_element_type(ov.Type.u8)\\
    .set_color_format(p.ColorFormat.NV12_TWO_PLANES, ["y", "uv"])\\
    .set_spatial_static_shape(24, 20)
ppp.input().preprocess().convert_color(p.ColorFormat.BGR).resize(p.ResizeAlgorithm.RESIZE_NEAREST)
ppp.input().model().set_layout(ov.Layout("NCHW"))
compiled = ov.compile_model(ppp.build(), "CPU", config)
note(compiled.inputs, compiled.input("image/uv").shape)
planes = {"image/y": image[None, :, :, :1], "image/uv": image[None, ::2, ::2, :2]}
note(compiled(planes)[0])
""",
    "a graph of its own that keeps the aspect ratio": """
from functools import partial
from importlib import import_module
p, opset = ov.preprocess, import_module(f"{ov.__name__}.opset10")
custom_preprocess_function = import_module(f"{ov.__name__}.utils.decorators").custom_preprocess_function

def letterbox(size, pad_value, tensor):
    width, height = size
    shape = opset.shape_of(tensor, name="shape")
    lengths = [
        opset.convert(opset.gather(shape, opset.constant([axis]), axis=0), destination_type="f32") for axis in (1, 2)
    ]
    ratios = [opset.divide(np.float32(n), length) for n, length in zip((height, width), lengths)]
    ratio = opset.minimum(*ratios)
    new = [
        opset.convert(opset.round(opset.multiply(length, ratio), "half_to_even"), destination_type="i32")
        for length in lengths
    ]
    resized = opset.interpolate(
        tensor, opset.concat(new, 0), opset.constant(np.zeros(2, np.float32)), mode="linear_onnx",
        shape_calculation_mode="sizes", axes=opset.constant(np.array([1, 2], np.int32)),
    )
    missing = [opset.subtract(opset.constant(np.int32(n)), each) for n, each in zip((height, width), new)]
    none = opset.constant(np.array([0], np.int32))
    return opset.pad(
        resized, pads_begin=opset.constant(np.zeros(4, np.int32)), pads_end=opset.concat([none, *missing, none], 0),
        arg_pad_value=opset.constant(np.float32(pad_value)), pad_mode="constant",
    )

model = ov.Core().read_model(folder / "classifier.xml")
ppp = p.PrePostProcessor(model)
ppp.input(0).tensor().set_element_type(ov.Type.u8)
ppp.input(0).tensor().set_layout(ov.Layout("NHWC")).set_color_format(p.ColorFormat.BGR)
ppp.input(0).tensor().set_shape([1, -1, -1, 3])
ppp.input(0).preprocess().convert_element_type(ov.Type.f32)
ppp.input(0).preprocess().custom(custom_preprocess_function(partial(letterbox, (16, 16), 114)))
ppp.input(0).model().set_layout(ov.Layout("NCHW"))
ppp.input(0).preprocess().convert_color(p.ColorFormat.RGB)
ppp.input(0).preprocess().mean([123.675, 116.28, 103.53]).scale([58.395, 57.12, 57.375])
model = ppp.build()
note(model.inputs, model.outputs[0].element_type.to_string())
compiled = ov.compile_model(model, "CPU", config)
for part in (image, image[:12], image[:, :7]):
    note(compiled(part[None])[0])
""",
    "outputs for the user": """
p = ov.preprocess
model = ov.Core().read_model(folder / "segmenter.xml")
ppp = p.PrePostProcessor(model)
ppp.output("mask").model().set_layout(ov.Layout("NCHW"))
ppp.output("mask").tensor().set_layout(ov.Layout("NHWC")).set_element_type(ov.Type.f64)
model = ppp.build()
note(model.outputs, ov.layout_helpers.get_layout(model.output("mask")))
compiled = ov.compile_model(model, "CPU", config)
note(compiled(image[None, :16, :16].transpose(0, 3, 1, 2).astype(np.float32))["mask"])
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of 16x16 images, and a segmenter."""
    path = tmp_path_factory.mktemp("models")
    classifier, segmenter = Net(name="classifier"), Net(name="segmenter")
    for net in (classifier, segmenter):
        x = net.parameter("image", "1,3,16,16", out="FP32 1 3 16 16")
        weights = net.constant(np.cos(np.arange(4 * 3 * 9)).reshape(4, 3, 3, 3) / 9, "f32")
        how = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
        maps = net.op("Convolution", x, weights, out="FP32 1 4 16 16", name="conv", names="mask", **how)
        if net is classifier:
            maps = net.op("ReLU", maps, out="FP32 1 4 16 16", name="relu")
            axes = net.constant([2, 3])
            maps = net.op("ReduceMean", maps, axes, out="FP32 1 4", name="scores", names="scores")
        net.result(maps)
        (path / f"{net.name}.xml").write_bytes(net.xml())
        (path / f"{net.name}.bin").write_bytes(net.weights)
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, folder: Path) -> None:
    image = np.random.default_rng(5).integers(0, 255, (24, 20, 3)).astype(np.uint8)
    # Where the processor has bf16, OpenVINO computes in it.
    given = {"folder": folder, "image": image, "config": {"INFERENCE_PRECISION_HINT": "f32"}}
    assert_same(run(PROGRAMS[name], "ir_runtime", **given), run(PROGRAMS[name], "openvino", **given))
