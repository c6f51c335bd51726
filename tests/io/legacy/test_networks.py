"""Well-known networks as their converters wrote them, with random weights, against the same networks built with OpenVINO.

Both are built layer by layer in parallel, and must give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino as ov
import pytest
from harness.legacy import CASES, Case, Dims, End, LegacyNet
from harness.oracle import plugin
from harness.oracle import read as theirs
from openvino import opset1 as op
from openvino import opset2

import ir_runtime as ir
from ir_runtime.ir.tensor import Array

Node = Any


class Both(NamedTuple):
    """A tensor of the old file, and of the modern network."""

    old: End
    new: Node

    @property
    def dims(self) -> Dims:
        return self.old.dims


class Twin:
    """An old file and a modern network that compute the same.

    Args:
        version: of the old file.
        precision: of the weights in both.
    """

    def __init__(self, version: int, precision: str = "FP32") -> None:
        self.net = LegacyNet(version, precision)
        self.random = np.random.default_rng(version)
        self.parameters: list[Node] = []
        self.outputs: list[Node] = []

    def input(self, name: str, *dims: int) -> Both:
        node = op.parameter(list(dims), np.float32, name=name)
        self.parameters.append(node)
        return Both(self.net.input(name, *dims), node)

    def numbers(self, *dims: int, scale: float = 1.0) -> Array:
        """Return random weights as stored in the file."""
        values = (self.random.standard_normal(dims) * scale).astype(np.float32)
        return values.astype(np.float16).astype(np.float32) if self.net.precision == "FP16" else values

    def add(self, type: str, sources: Sequence[Both], new: Node, **how: Any) -> Both:
        """Add a layer to the old file, with the dims that OpenVINO infers."""
        dims = tuple(new.output(0).shape)
        return Both(self.net.layer(type, [source.old for source in sources], dims, **how), new)

    def window(self, kernel: Dims, stride: int, pad: int) -> dict[str, object]:
        """Return the attributes of a window in the version's spelling."""
        if self.net.version == 2:
            named = {"kernel__y": kernel[0], "kernel__x": kernel[1], "stride": f"1,1,{stride},{stride}"}
            return named | {"stride__x": stride, "stride__y": stride, "pad__x": pad, "pad__y": pad}
        pads = {"pads_begin": (pad, pad), "pads_end": (pad, pad)}
        return {"kernel": kernel, "strides": (stride, stride), **pads}

    def conv(self, x: Both, output: int, kernel: Dims = (3, 3), stride: int = 1, pad: int = 0, group: int = 1, biased: bool = True) -> Both:  # fmt: skip
        channels = x.dims[1]
        weights = self.numbers(
            output, channels // group, *kernel, scale=(channels * kernel[0] / group) ** -0.5
        )
        settings = [[stride, stride], [pad, pad], [pad, pad], [1, 1]]
        if group == 1:
            new = op.convolution(x.new, weights, *settings)
        else:
            grouped = weights.reshape(group, output // group, channels // group, *kernel)
            new = op.group_convolution(x.new, grouped, *settings)
        blobs = {"weights": weights}
        if biased:
            blobs["biases"] = self.numbers(output)
            new = op.add(new, blobs["biases"].reshape(1, -1, 1, 1))
        more = {} if self.net.version == 2 else {"dilations": (1, 1)}
        window = self.window(kernel, stride, pad)
        return self.add("Convolution", [x], new, blobs=blobs, output=output, group=group, **window, **more)

    def relu(self, x: Both, slope: float = 0.0) -> Both:
        new = op.prelu(x.new, np.float32([slope])) if slope else op.relu(x.new)
        return self.add("ReLU", [x], new, negative_slope=slope)

    def pool(
        self, x: Both, kernel: int, stride: int, pad: int = 0, method: str = "max", rounding: str = "ceil"
    ) -> Both:
        settings = ([stride, stride], [pad, pad], [pad, pad], [kernel, kernel])
        new = (
            op.max_pool(x.new, *settings, rounding)
            if method == "max"
            else op.avg_pool(x.new, *settings, False, rounding)
        )
        window = self.window((kernel, kernel), stride, pad)
        return self.add(
            "Pooling", [x], new, pool__method=method, exclude__pad="false", rounding_type=rounding, **window
        )

    def scale_shift(self, x: Both) -> Both:
        scale, shift = self.numbers(x.dims[1]) + 1, self.numbers(x.dims[1])
        scale = scale.astype(np.float16).astype(np.float32) if self.net.precision == "FP16" else scale
        shape = (1, -1, *(1,) * (len(x.dims) - 2))
        new = op.add(op.multiply(x.new, scale.reshape(shape)), shift.reshape(shape))
        return self.add("ScaleShift", [x], new, blobs={"weights": scale, "biases": shift})

    def dense(self, x: Both, output: int) -> Both:
        rows = int(np.prod(x.dims[1:]))
        weights, biases = self.numbers(output, rows, scale=rows**-0.5), self.numbers(output)
        flat = op.reshape(x.new, np.int64([x.dims[0], rows]), False)
        new = op.add(op.matmul(flat, weights, False, True), biases.reshape(1, -1))
        return self.add(
            "FullyConnected", [x], new, blobs={"weights": weights, "biases": biases}, out__size=output
        )

    def concat(self, *parts: Both, axis: int = 1) -> Both:
        return self.add("Concat", parts, op.concat([part.new for part in parts], axis), axis=axis)

    def sum(self, *parts: Both) -> Both:
        new = parts[0].new
        for part in parts[1:]:
            new = op.add(new, part.new)
        return self.add("Eltwise", parts, new, operation="sum", coeff="")

    def softmax(self, x: Both, axis: int = 1, name: str | None = None) -> Both:
        return self.add("SoftMax", [x], op.softmax(x.new, axis), axis=axis, name=name)

    def permute(self, x: Both, *order: int) -> Both:
        return self.add("Permute", [x], op.transpose(x.new, np.int64(order)), order=order)

    def flatten(self, x: Both) -> Both:
        new = op.reshape(x.new, np.int64([x.dims[0], -1]), False)
        return self.add("Flatten", [x], new, axis=1, end_axis=-1)

    def reshape(self, x: Both, *dims: int, said: str) -> Both:
        return self.add("Reshape", [x], op.reshape(x.new, np.int64(dims), False), dim=said)

    def ends(self, *tensors: Both) -> Twin:
        self.outputs = [tensor.new for tensor in tensors]
        return self


def squeezenet() -> Twin:
    """Version 2, f16: two fire modules of SqueezeNet 1.1."""
    net = Twin(2, "FP16")
    x = net.pool(net.relu(net.conv(net.input("data", 1, 3, 35, 35), 16, stride=2)), 3, 2)
    for squeezed, wide in ((4, 16), (6, 24)):
        s = net.relu(net.conv(x, squeezed, (1, 1)))
        x = net.concat(net.relu(net.conv(s, wide, (1, 1))), net.relu(net.conv(s, wide, pad=1)))
    x = net.relu(net.conv(x, 10, (1, 1)))
    x = net.pool(x, x.dims[2], 1, method="avg")
    return net.ends(net.softmax(x))


def resnet() -> Twin:
    """Version 3: a stem, a downsampling block, and an identity block."""
    net = Twin(3)
    x = net.scale_shift(net.input("data", 2, 3, 32, 32))
    x = net.pool(net.relu(net.conv(x, 8, (7, 7), 2, 3)), 3, 2)
    for channels, stride in ((16, 2), (16, 1)):
        inner = net.relu(net.scale_shift(net.conv(x, channels, stride=stride, pad=1, biased=False)))
        inner = net.conv(inner, channels, pad=1)
        side = net.conv(x, channels, (1, 1), stride) if stride == 2 else x
        x = net.relu(net.sum(inner, side))
    x = net.pool(x, x.dims[2], 1, method="avg")
    return net.ends(net.softmax(net.dense(x, 5)))


def age_gender() -> Twin:
    """Version 4: LRN and two outputs, a scalar and two probabilities."""
    net = Twin(4)
    x = net.relu(net.conv(net.input("data", 1, 3, 30, 30), 12, (3, 3), 2))
    x = net.pool(_lrn(net, x), 3, 2)
    x = net.relu(net.conv(x, 16, pad=1))
    age = net.conv(net.relu(net.conv(x, 8, (7, 7))), 1, (1, 1))
    gender = net.softmax(net.conv(x, 2, (7, 7)), name="prob")
    return net.ends(age, gender)


def _lrn(net: Twin, x: Both) -> Both:
    new = op.lrn(x.new, np.int64([1]), alpha=1e-3, beta=0.75, bias=1.0, size=5)
    return net.add("Norm", [x], new, alpha=1e-3, beta=0.75, local__size=5, region="across", k=1)


def tiny_yolo() -> Twin:
    """Version 5, f16: leaky ReLU, pooling with stride 1 and padding at the end, RegionYolo."""
    net = Twin(5, "FP16")
    x = net.input("input", 1, 3, 32, 32)
    for channels in (8, 16):
        x = net.relu(net.conv(x, channels, pad=1), 0.1)
        x = net.pool(x, 2, 2, rounding="floor")
    new = op.max_pool(x.new, [1, 1], [0, 0], [1, 1], [2, 2], "floor", "same_upper")
    x = net.add("Pooling", [x], new, kernel=(2, 2), strides=(1, 1), pads_begin=(0, 0), pads_end=(1, 1), pool__method="max", exclude__pad="true", auto_pad="same_upper", rounding_type="floor")  # fmt: skip
    passed = net.add("ReorgYolo", [x], opset2.reorg_yolo(x.new, [2]), stride=2)
    x = net.pool(net.relu(net.conv(x, 16, pad=1), 0.1), 2, 2, rounding="floor")
    x = net.conv(net.concat(passed, x), 2 * (4 + 1 + 3), (1, 1))
    new = op.region_yolo(x.new, 4, 3, 2, True, [], 1, 3)
    more = {"coords": 4, "classes": 3, "num": 2, "do_softmax": 1, "axis": 1, "end_axis": 3, "mask": ""}
    return net.ends(net.add("RegionYolo", [x], new, **more))


def mobilenet_ssd() -> Twin:
    """Version 6: depthwise convolutions, two heads, PriorBox and PriorBoxClustered, DetectionOutput."""
    net = Twin(6)
    data = net.input("data", 1, 3, 32, 32)
    x = net.relu(net.conv(data, 8, stride=2, pad=1))
    x = _clamped(net, net.conv(net.relu(net.conv(x, 8, pad=1, group=8)), 16, (1, 1), 2))
    deep = _clamped(net, net.conv(_clamped(net, net.conv(x, 16, stride=2, pad=1, group=16)), 16, (1, 1)))
    first = {"min_size": [6.0], "max_size": [12.0], "aspect_ratio": [2.0], "flip": True, "clip": False, "step": 0.0, "offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2]}  # fmt: skip
    second = {
        "width": [8.0, 12.0],
        "height": [10.0, 6.0],
        "clip": False,
        "step": 16.0,
        "offset": 0.5,
        "variance": [0.1, 0.1, 0.2, 0.2],
    }
    boxes, classes, priors = [], [], []
    for head, count, kind, settings in ((x, 4, "PriorBox", first), (deep, 2, "PriorBoxClustered", second)):
        boxes.append(net.flatten(net.permute(net.conv(head, 4 * count, pad=1), 0, 2, 3, 1)))
        classes.append(net.flatten(net.permute(net.conv(head, 3 * count, pad=1), 0, 2, 3, 1)))
        priors.append(_priors(net, kind, head, data, settings))
    scores = net.concat(*classes)
    rows = net.softmax(net.reshape(scores, 1, -1, 3, said="0,-1,3"), 2)
    settings = {
        "num_classes": 3, "background_label_id": 0, "top_k": 20, "keep_top_k": [10], "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
        "share_location": True, "nms_threshold": 0.45, "confidence_threshold": 0.2, "variance_encoded_in_target": False, "normalized": True,
    }  # fmt: skip
    sources = [net.concat(*boxes), net.flatten(rows), net.concat(*priors, axis=2)]
    new = op.detection_output(*(source.new for source in sources), settings)
    said = {name: value[0] if isinstance(value, list) else value for name, value in settings.items()}
    return net.ends(net.add("DetectionOutput", sources, new, **said, input_height=-1, input_width=-1))


def _clamped(net: Twin, x: Both) -> Both:
    return net.add("Clamp", [x], op.clamp(x.new, 0.0, 6.0), min=0, max=6)


def _priors(net: Twin, kind: str, x: Both, image: Both, settings: dict[str, Any]) -> Both:
    build = op.prior_box if kind == "PriorBox" else op.prior_box_clustered
    sizes = [op.constant(np.int64(tensor.dims[2:])) for tensor in (x, image)]
    new = op.unsqueeze(build(*sizes, settings), np.int64([0]))
    said = {name: int(value) if isinstance(value, bool) else value for name, value in settings.items()}
    return net.add(kind, [x, image], new, **said)


def lprnet() -> Twin:
    """Version 7: PReLU, a mean over columns, Tile, Power, and CTC decoding."""
    net = Twin(7)
    data, mask = net.input("data", 1, 3, 24, 48), net.input("seq_ind", 12, 1)
    x = net.conv(data, 16, stride=2, pad=1)
    slopes = net.numbers(16)
    x = net.add("PReLU", [x], op.prelu(x.new, slopes), channel_shared=0, blobs={"weights": slopes})
    x = net.conv(x, 10, (1, 12), 2)
    x = net.conv(x, 10, (6, 1)) if x.dims[2] == 6 else x
    new = op.power(op.add(op.multiply(x.new, np.float32(0.5)), np.float32(1.0)), np.float32(2.0))
    x = net.add("Power", [x], new, power=2, scale=0.5, shift=1)
    x = net.reshape(x, 1, 10, x.dims[3], said="0,10,-1")
    doubled = net.add("Tile", [x], op.tile(x.new, np.int64([1, 1, 2])), axis=2, tiles=2)
    new = op.strided_slice(
        doubled.new, np.int64([0, 0, 1]), np.int64([1, 10, 13]), np.int64([1, 1, 1]), [0] * 3, [0] * 3
    )
    x = net.add("Crop", [doubled], new, axis=2, offset=1, dim=12)
    x = net.permute(net.softmax(x), 2, 0, 1)
    return net.ends(
        net.add(
            "CTCGreedyDecoder", [x, mask], op.ctc_greedy_decoder(x.new, mask.new, True), ctc_merge_repeated=1
        )
    )


def segmenter() -> Twin:
    """Version 5: Deconvolution with groups, Crop to another tensor, Interp, ELU, and Resample."""
    net = Twin(5)
    data = net.input("data", 1, 3, 17, 17)
    x = net.add(
        "Activation", [c := net.conv(data, 8, stride=2, pad=1)], op.elu(c.new, 1.0), type_="elu", alpha=1.0
    )
    weights = net.numbers(8, 2, 4, 4, scale=0.3)
    new = op.group_convolution_backprop_data(x.new, weights.reshape(4, 2, 2, 4, 4), strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1])  # fmt: skip
    x = net.add(
        "Deconvolution",
        [x],
        new,
        kernel=(4, 4),
        strides=(2, 2),
        pads_begin=(1, 1),
        pads_end=(1, 1),
        output=8,
        group=4,
        blobs={"weights": weights},
    )
    new = op.strided_slice(
        x.new, np.int64([0, 0, 1, 0]), np.int64([1, 8, 18, 17]), np.int64([1] * 4), [0] * 4, [0] * 4
    )
    cropped = net.add("Crop", [x, data], new, axis=(2, 3), offset=(1, 0))
    settings = {"axes": [2, 3], "mode": "linear", "align_corners": True}
    new = op.interpolate(cropped.new, np.int64([33, 33]), settings)
    x = net.add("Interp", [cropped], new, height=33, width=33, align_corners=1, pad_beg=0, pad_end=0)
    new = op.interpolate(
        x.new, np.int64([66, 66]), {"axes": [2, 3], "mode": "nearest", "align_corners": False}
    )
    x = net.add("Resample", [x], new, factor=2, type_="caffe.ResampleParameter.NEAREST", antialias=0)
    return net.ends(net.softmax(net.conv(x, 4, (1, 1))))


NETWORKS: list[Callable[[], Twin]] = [
    squeezenet,
    resnet,
    age_gender,
    tiny_yolo,
    mobilenet_ssd,
    lprnet,
    segmenter,
]


@pytest.mark.parametrize("build", NETWORKS)
def test_an_old_file_gives_what_its_sibling_of_today_gives(build: Callable[[], Twin], tmp_path: Path) -> None:
    twin = build()
    random = np.random.default_rng(7)
    inputs = [random.random(tuple(p.output(0).shape), np.float32) for p in twin.parameters]
    inputs = [
        np.ones_like(x) if p.get_friendly_name() == "seq_ind" else x
        for x, p in zip(inputs, twin.parameters, strict=True)
    ]
    wanted = plugin(ov.Model(twin.outputs, twin.parameters, "new"), inputs)
    model = ir.read_model(twin.net.xml(), twin.net.weights)
    assert [str(found.code) for found in model.report] == ["IR010"]
    found = ir.compile_model(model)(inputs).to_tuple()
    assert all(array.any() for array in found)
    for array, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-4, atol=2e-6)
    ir.save_model(model, tmp_path / "new.xml")
    upgraded = theirs((tmp_path / "new.xml").read_bytes(), (tmp_path / "new.bin").read_bytes())
    assert [o.get_any_name() for o in upgraded.outputs] == [port.any_name for port in model.outputs]
    for array, other in zip(found, plugin(upgraded, inputs), strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("build", [squeezenet, resnet, age_gender, mobilenet_ssd])
def test_the_batch_of_an_old_file_can_be_changed(build: Callable[[], Twin]) -> None:
    twin = build()
    model = ir.read_model(twin.net.xml(), twin.net.weights)
    first, *others = twin.parameters[0].output(0).shape
    x = np.random.default_rng(1).random((first, *others), np.float32)
    before = [array[0] for array in ir.compile_model(model)(x).to_tuple()]
    model.reshape([first + 2, *others])
    after = ir.compile_model(model)(np.concatenate([x, x[:1], x[:1]])).to_tuple()
    if build is not mobilenet_ssd:  # whose rows are of all images
        for one, many in zip(before, after, strict=True):
            np.testing.assert_allclose(many[0], one, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(many[-1], one, rtol=1e-4, atol=1e-6)


def cost(net: LegacyNet, weights: bytes | None) -> dict[str, Any]:
    """Return the costs of a file, without the note on declared shapes."""
    record = ir.cost(ir.read_model(net.xml(), weights, strict=False)).record()
    for layer in record["layers"]:
        del layer["is_declared"]
    return record


@pytest.mark.parametrize("build", NETWORKS)
def test_the_cost_is_that_of_the_file_with_its_weights(build: Callable[[], Twin]) -> None:
    net = build().net
    assert cost(net, None) == cost(net, bytes(net.weights))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type} {case.data}"[:80])
def test_missing_weights_are_the_only_error_of_a_layer(case: Case) -> None:
    net = case.net()
    model = ir.read_model(net.xml(), strict=False)
    assert {str(found.code) for found in model.report.errors} <= {"IR004"}
    with_weights = ir.read_model(net.xml(), net.weights)
    assert [port.partial_shape for port in model.outputs] == [
        port.partial_shape for port in with_weights.outputs
    ]
    assert [la.type for la in model._graph] == [la.type for la in with_weights._graph]


def test_such_a_file_is_neither_run_nor_written() -> None:
    net = NETWORKS[0]().net
    model = ir.read_model(net.xml(), strict=False)
    with pytest.raises(ir.UnsupportedError, match="have no data"):
        ir.compile_model(model)
    with pytest.raises(ir.IRError, match="no weights were found"):
        ir.save_model(model, "never.xml")
