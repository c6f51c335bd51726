"""Messages for files of IR versions 2 to 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness.legacy import Dims, LegacyNet
from harness.refusals import Call, said_of

FOLDER = "messages"


def layer(type: str, *inputs: Dims, out: tuple[Dims, ...] = ((1, 2),), **how: Any) -> LegacyNet:
    """A model of one layer."""
    net = LegacyNet()
    ends = [net.input(f"x{index}", *dims) for index, dims in enumerate(inputs)]
    net.layer(type, ends, *out, name="it", **how)
    return net


def said(name: str, net: LegacyNet | Callable[[], LegacyNet], *changes: tuple[str, str]) -> Call:
    """A case; its findings are shown without the note that all such files get."""

    class Case(Call):
        def said(self) -> str:
            made = net if isinstance(net, LegacyNet) else net()
            text = made.xml().decode()
            for old, new in changes:
                assert old in text
                text = text.replace(old, new, 1)
            changed = LegacyNet(weights=made.weights)
            changed.xml = lambda: text.encode()  # type: ignore[method-assign]
            return said_of(changed)  # type: ignore[arg-type]

    return Case(name, lambda: None)


ROW, IMAGE = (1, 2), (1, 2, 4, 4)
WINDOW = {"kernel": "2,2", "output": 2}
HALF = {"weights": np.zeros(16), "biases": np.zeros(2)}
MEAN = '<pre-process reference-layer-name="x0"><channel id="0"><mean value="1"/></channel></pre-process>\n'


def statistics() -> LegacyNet:
    net = layer("ReLU", ROW, engine="caffe")
    net.more = "<statistics><layer><name>it</name><min>0</min><max>1</max></layer></statistics>\n"
    return net


def means(text: str, *dims: int) -> LegacyNet:
    net = layer("ReLU", dims or IMAGE, out=(dims or IMAGE,))
    net.more = text
    return net


def unread() -> LegacyNet:
    net = layer("ReLU", ROW, slope=0.5)
    net.layer("ReLU", [net.input("y", 1)], (1,), name="other", slope=0.25)
    return net


def loop() -> LegacyNet:
    """A TensorIterator over the rows of x[2, 3], without edges in its body."""
    body = LegacyNet()
    body.layer("ReLU", (), (1, 3), name="relu", unfed=[(1, 3)])
    inside = (
        '<port_map>\n<input external_port_id="0" internal_layer_id="0" internal_port_id="0" axis="0"/>\n'
        '<output external_port_id="1" internal_layer_id="0" internal_port_id="1" axis="0"/>\n</port_map>\n'
        f"<body>\n{body.graph()}</body>"
    )
    return layer("TensorIterator", (2, 3), out=((2, 3),), inside=inside)


REFUSALS = [
    said("statistics are left out", statistics()),
    said("attribute that a type has not", unread()),
    said("unknown layer type", layer("Relo", ROW)),
    said("custom layer", layer("Zyxwv", ROW)),
    said("layer of no certain meaning", layer("SimplerNMS", ROW)),
    said("too many inputs", layer("ReLU", ROW, ROW)),
    said("too few inputs", layer("PriorBox", IMAGE, out=((1, 2, 8),))),
    said("no inputs", layer("Concat")),
    said("too many outputs", layer("ReLU", ROW, out=(ROW, ROW))),
    said("no outputs", layer("Pooling", IMAGE, out=(), kernel="2,2")),
    said("precision of a layer", layer("ReLU", ROW, precision="Q78")),
    said("precision of weights", layer("ScaleShift", ROW, blobs={"weights": np.ones(2)}), ("<weights ", '<weights precision="Q78" ')),
    said("missing attribute", layer("Power", ROW, power=1)),
    said("attribute that is no number", layer("Tile", ROW, axis="one", tiles=2)),
    said("attribute that is too large", layer("Permute", ROW, order="1,18000000000000000000")),
    said("missing weights", layer("Convolution", IMAGE, **WINDOW)),
    said("weights of another size", layer("Convolution", IMAGE, blobs={"weights": np.zeros(3)}, **WINDOW)),
    said("weights beyond the end", layer("ScaleShift", ROW, blobs={"weights": np.ones(2)}), ('offset="0"', 'offset="4"')),
    said("weights for other channels", layer("ScaleShift", ROW, blobs={"weights": np.ones(3)})),
    said("open dims", layer("Flatten", ROW), ("<dim>2</dim></port></input>", "<dim>-1</dim></port></input>")),
    said("too few dims", layer("FullyConnected", (3,), out__size=2, blobs=HALF)),
    said("too many dims", layer("GRUCell", IMAGE, IMAGE, hidden_size=2)),
    said("dims of an output", layer("Split", ROW, out=((1,), (1,)))),
    said("axis that the input lacks", layer("Concat", ROW, ROW, axis=2)),
    said("axis that is before another", layer("Flatten", ROW, axis=1, end_axis=0)),
    said("lists of other lengths", layer("Pooling", IMAGE, kernel="2,2", strides="2", out=(IMAGE,))),
    said("kernel of another rank", layer("Pooling", IMAGE, kernel="2,2,2", out=(IMAGE,))),
    said("lengths for other axes", layer("Crop", IMAGE, axis="2,3", offset="1", out=(IMAGE,))),
    said("groups that do not divide", layer("Convolution", IMAGE, group=3, blobs=HALF, **WINDOW)),
    said("padding of bits", layer("BinaryConvolution", IMAGE, auto_pad="same_upper", pad_value=-1, blobs=HALF, **WINDOW)),
    said("unknown activation function", layer("Activation", ROW, type_="swash")),
    said("unknown operation of two tensors", layer("Eltwise", ROW, ROW, operation="minus")),
    said("coefficients for other inputs", layer("Eltwise", ROW, ROW, operation="sum", coeff="1,2,3")),
    said("padding of an image that is resized", layer("Interp", IMAGE, pad_beg=1, out=(IMAGE,))),
    said("boxes with a step of their own", layer("PriorBox", IMAGE, IMAGE, min_size=2, offset=0.5, step_h=8.0, out=((1, 2, 64),))),
    said("proposals of deformable networks", layer("Proposal", (1, 2, 1, 1), (1, 4, 1, 1), (1, 3), out=((1, 5),), base_size=16, pre_nms_topn=1, post_nms_topn=1, nms_thresh=0.7, feat_stride=16, min_size=1, ratio=1, scale=1, for_deformable=1)),
    said("sequence in both directions", layer("RNNSequence", (1, 2, 3), (1, 2), out=((1, 2, 2), (1, 2)), hidden_size=2, direction="Bidirectional")),
    said("state of three layers", layer("Memory", ROW, out=(), id="r", index=0, size=3)),
    said("means for no input", means(MEAN.replace("x0", "y"))),
    said("means for a row", means(MEAN, 1, 2)),
    said("means of an unknown type", means(MEAN.replace("<pre-process", '<pre-process mean-precision="half"'))),
    said("means for another channel", means(MEAN.replace('id="0"', 'id="2"'))),
    said("mean that is no number", means(MEAN.replace('value="1"', 'value="one"'))),
    said("scale of an input", means(MEAN.replace("</channel>", '<scale value="0.5"/></channel>'))),
    said("layer that the body lacks", loop(), ('internal_layer_id="0"', 'internal_layer_id="7"')),
    said("port that the body lacks", loop(), ('internal_port_id="1"', 'internal_port_id="7"')),
    said("no body", loop(), ("<body>", "<corpus>"), ("</body>", "</corpus>")),
]  # fmt: skip
