"""What scripts that run on both packages begin with."""

from __future__ import annotations

__all__ = ["START"]

START = """
import importlib, io, copy
package = ov.__name__
def of(name):
    return importlib.import_module(f"{package}.{name}")
ops, preprocess, passes, util = of("opset13"), of("preprocess"), of("passes"), of("utils")
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
core = ov.Core()

def tried(*calls):
    for number, call in enumerate(calls):
        try:
            note(number, call())
        except Exception as reason:
            note(number, reason)

def parameter(shape, name, type=np.float32):
    made = ops.parameter(shape, type, name=name); made.output(0).set_names({name}); return made

def classifier():
    draw = np.random.default_rng(0)
    x = parameter([1, 3, 8, 8], "image")
    w = ops.constant(draw.normal(size=(4, 3, 3, 3)).astype(np.float32), name="w")
    c = ops.convolution(x, w, [2, 2], [1, 1], [1, 1], [1, 1], name="conv")
    b = ops.add(c, ops.constant(draw.normal(size=(1, 4, 1, 1)).astype(np.float32), name="b"), name="bias")
    pool = ops.reduce_mean(ops.relu(b, name="relu"), ops.constant(np.array([2, 3]), name="axes"), keep_dims=False, name="pool")
    fcw = ops.constant(draw.normal(size=(5, 4)).astype(np.float32), name="fcw")
    fc = ops.matmul(pool, fcw, False, True, name="fc"); fc.output(0).set_names({"logits"})
    return ov.Model([ops.result(fc, name="out")], [x], "classifier")

def saved(model, name="model"):
    path = folder / f"{package}_{name}.xml"; ov.save_model(model, path, compress_to_fp16=False); return path

def named(model):
    return {n.get_friendly_name(): n for n in model.get_ops()}

def types(model):
    return [n.get_type_name() for n in model.get_ordered_ops()]

def computed(model, *inputs):
    return [np.array(x) for x in ov.compile_model(model, "CPU", CONFIG)(list(inputs)).to_tuple()]

IMAGE = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
"""
"""Modules by their names in either package, a small classifier, and what is done with models again and again."""
