"""Models of IR versions before 10, and a case for each of their layer types, with values from its specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from harness.files import precision
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["CASES", "Case", "loop", "ramp"]

Dims = tuple[int, ...]


class End(NamedTuple):
    """An output port of a layer, and its dims."""

    layer: int
    port: int
    dims: Dims


@dataclass
class LegacyNet:
    """A model with one layer or edge per line; layer 0 is on line 4."""

    version: int = 5
    precision: str = "FP32"
    """Of the layers, and of their data in the .bin."""
    name: str = "net"
    more: str = ""
    """What stands behind the edges."""
    head: str = ""
    """More attributes of the net."""
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    weights: bytes = b""

    def input(self, name: str, *dims: int, precision: str = "") -> End:
        """Add an input."""
        return self.layer("Input", (), dims, name=name, precision=precision)

    def const(self, values: ArrayLike, dtype: str = "FP32", name: str | None = None) -> End:
        """Add a constant."""
        array = np.asarray(values, ElementType.of_port(dtype).dtype)
        return self.layer("Const", (), array.shape, blobs={"custom": array}, name=name, precision=dtype)

    def layer(
        self,
        type: str,
        sources: Sequence[End] = (),
        *outputs: Dims,
        name: str | None = None,
        blobs: Mapping[str, ArrayLike] | None = None,
        precision: str = "",
        data_tag: str = "data",
        inside: str = "",
        out: str = "",
        unfed: Sequence[Dims] = (),
        **data: object,
    ) -> End:
        """Add a layer and return its first output; the others follow it.

        Args:
            type: of the layer.
            sources: the outputs that it reads.
            outputs: the dims of its outputs.
            name: of the layer; by default its type in lower case, with its number.
            blobs: its data in the .bin, as f32 or with the dtype of the array.
            precision: of the layer.
            data_tag: the name of the element that holds the attributes.
            inside: XML that follows the ports.
            out: the precision of output ports.
            unfed: the dims of further inputs, which have no edge.
            data: attributes; a trailing ``_`` of a name is dropped, ``__`` becomes a hyphen.
        """
        number = len(self.layers)
        for index, source in enumerate(sources):
            self.edges.append(
                f'<edge from-layer="{source.layer}" from-port="{source.port}" '
                f'to-layer="{number}" to-port="{index}"/>'
            )
        read = [*(source.dims for source in sources), *unfed]
        first = len(read)
        ends = [End(number, first + index, dims) for index, dims in enumerate(outputs)]
        said = "".join(f" {_named(key)}={quoteattr(_text(value))}" for key, value in data.items())
        title = f"{type.lower()}{number}" if name is None else name
        given = f' precision="{out}"' if out else ""
        self.layers.append(
            f'<layer id="{number}" name={quoteattr(title)} precision="{precision or self.precision}" type="{type}">'
            f"{f'<{data_tag}{said}/>' if data else ''}"
            f"{_side('input', [(i, dims, '') for i, dims in enumerate(read)])}"
            f"{_side('output', [(e.port, e.dims, given) for e in ends])}"
            f"{inside}{self._blobs(blobs or {}, precision or self.precision)}</layer>"
        )
        return ends[0] if ends else End(number, 0, ())

    def _blobs(self, blobs: Mapping[str, ArrayLike], label: str) -> str:
        found = []
        for name, values in blobs.items():
            array = self._stored(values, label)
            said = f'<{name} offset="{len(self.weights)}" size="{array.nbytes}"'
            if self.version >= 7:
                said += f' precision="{precision(ElementType.from_dtype(array.dtype))}"'
            found.append(f"{said}/>")
            self.weights += array.tobytes()
        if self.version == 2:
            return "".join(found)
        return f"<blobs>{''.join(found)}</blobs>" if found else ""

    def _stored(self, values: ArrayLike, label: str) -> Array:
        """Return values as stored in the .bin: numbers in the precision of the layer, arrays unchanged."""
        array = np.asarray(values)
        if array.dtype in (np.float32, np.float64):
            return np.ascontiguousarray(array, np.float16 if label == "FP16" else np.float32)
        return np.ascontiguousarray(array)

    def other(self, end: End, index: int, dims: Dims) -> End:
        """Return another output of a layer."""
        return End(end.layer, end.port + index, dims)

    def graph(self) -> str:
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return f"<layers>\n{layers}\n</layers>\n<edges>\n{edges}\n</edges>\n"

    def xml(self) -> bytes:
        """The .xml."""
        return (
            f'<?xml version="1.0" ?>\n<net batch="1" name="{self.name}" version="{self.version}"{self.head}>\n'
            f"{self.graph()}{self.more}</net>\n"
        ).encode()


def _named(key: str) -> str:
    return key.replace("__", "-").rstrip("_")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(map(_text, value)) if isinstance(value, tuple | list) else str(value)


def _side(side: str, ports: Sequence[tuple[int, Dims, str]]) -> str:
    if not ports:
        return ""
    said = "".join(
        f'<port id="{number}"{given}>{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'
        for number, dims, given in ports
    )
    return f"<{side}>{said}</{side}>"


@dataclass(frozen=True)
class Case:
    """A layer: its inputs including constants, its declaration, and its expected outputs."""

    type: str
    inputs: tuple[ArrayLike, ...]
    expected: ArrayLike | tuple[ArrayLike, ...]
    data: dict[str, Any] = field(default_factory=dict)
    blobs: dict[str, ArrayLike] = field(default_factory=dict)
    constant: tuple[int, ...] = ()
    """The inputs that are constants; those of integers are, in I32."""
    version: int = 5
    how: dict[str, Any] = field(default_factory=dict)

    def net(self) -> LegacyNet:
        net = LegacyNet(self.version)
        ends = []
        for index, values in enumerate(self.inputs):
            array = np.asarray(values)
            if array.dtype.kind in "iu" or index in self.constant:
                ends.append(net.const(array, "I32" if array.dtype.kind in "iu" else "FP32"))
            else:
                ends.append(net.input(f"x{index}", *array.shape))
        outputs = [np.asarray(each).shape for each in self.results]
        net.layer(self.type, ends, *outputs, blobs=self.blobs, name="it", **self.data, **self.how)
        return net

    @property
    def results(self) -> tuple[ArrayLike, ...]:
        return self.expected if isinstance(self.expected, tuple) else (self.expected,)

    @property
    def fed(self) -> list[Array]:
        arrays = [np.asarray(values) for values in self.inputs]
        return [
            array.astype(np.float32)
            for index, array in enumerate(arrays)
            if array.dtype.kind == "f" and index not in self.constant
        ]


def ramp(*dims: int, start: float = 0) -> Array:
    return (np.arange(np.prod(dims), dtype=np.float32) + start).reshape(dims)


X = ramp(1, 1, 3, 3)
"""0 to 8."""
SIGNS = [-1.0, 0.0, 2.0]
HALF = 1 / (1 + np.exp(np.float64(SIGNS) * -1))
NEW = 0.5 * np.tanh(1)
"""What a step adds to the half of a state that a gate of 0 leaves."""
NEAREST, LINEAR = (f"caffe.ResampleParameter.{name}" for name in ("NEAREST", "LINEAR"))
FUNCTIONS = {
    "Abs": (SIGNS, np.abs),
    "Acos": ([-1.0, 0.5], np.arccos),
    "Acosh": ([1.0, 2.0], np.arccosh),
    "Asin": ([-1.0, 0.5], np.arcsin),
    "Asinh": (SIGNS, np.arcsinh),
    "Atan": (SIGNS, np.arctan),
    "Atanh": ([-0.5, 0.25], np.arctanh),
    "Ceil": ([-1.5, 1.25], np.ceil),
    "Ceiling": ([-1.5, 1.25], np.ceil),
    "Cos": (SIGNS, np.cos),
    "Cosh": (SIGNS, np.cosh),
    "Exp": (SIGNS, np.exp),
    "Floor": ([-1.5, 1.25], np.floor),
    "Log": ([1.0, 2.0], np.log),
    "Neg": (SIGNS, np.negative),
    "Reciprocal": ([-2.0, 4.0], np.reciprocal),
    "Sigmoid": (SIGNS, lambda x: 1 / (1 + np.exp(-x))),
    "Sign": (SIGNS, np.sign),
    "Sin": (SIGNS, np.sin),
    "Sinh": (SIGNS, np.sinh),
    "Softplus": (SIGNS, lambda x: np.log1p(np.exp(x))),
    "Softsign": (SIGNS, lambda x: x / (1 + np.abs(x))),
    "Tan": (SIGNS, np.tan),
    "TanH": (SIGNS, np.tanh),
}
BINARY: dict[str, tuple[float, float, float]] = {  # of 3 and 2, 2 and 3, 2 and 2
    "sum": (5, 5, 4),
    "": (5, 5, 4),
    "sub": (1, -1, 0),
    "mul": (6, 6, 4),
    "prod": (6, 6, 4),
    "div": (1.5, 2 / 3, 1),
    "max": (3, 3, 2),
    "min": (2, 2, 2),
    "squared_diff": (1, 1, 0),
    "floor_mod": (1, 2, 0),
    "pow": (9, 8, 4),
    "less": (0, 1, 0),
    "less_equal": (0, 1, 1),
    "greater": (1, 0, 0),
    "greater_equal": (1, 0, 1),
    "equal": (0, 0, 1),
    "not_equal": (1, 1, 0),
    "logical_and": (1, 1, 1),
    "logical_or": (1, 1, 1),
    "logical_xor": (0, 0, 0),
}
REDUCTIONS = {  # of 3, 0 and 4
    "ReduceAnd": 0,
    "ReduceL1": 7,
    "ReduceL2": 5,
    "ReduceMax": 4,
    "ReduceMean": 7 / 3,
    "ReduceMin": 0,
    "ReduceOr": 1,
    "ReduceProd": 0,
    "ReduceSum": 7,
}


def box(left: float, top: float, right: float, bottom: float) -> list[float]:
    return [left, top, right, bottom]


CASES = [
    *(Case(type, (x,), f(np.float64(x))) for type, (x, f) in FUNCTIONS.items()),
    Case("Erf", ([0.0, 0.5],), [0, 0.5204999]),
    *(
        Case("Eltwise", ([3.0, 2.0, 2.0], [2.0, 3.0, 2.0]), list(values), {"operation": name})
        for name, values in BINARY.items()
    ),
    Case("Eltwise", ([1.0], [2.0], [3.0]), [6], {"operation": "sum"}),
    Case("Eltwise", ([1.0], [2.0], [4.0]), [8], {"operation": "prod"}),
    Case("Eltwise", ([1.0], [2.0], [4.0]), [1 + 4 - 2], {"operation": "sum", "coeff": "1,2,-0.5"}),
    Case("Eltwise", ([[1.0], [2.0]], [[10.0, 20]]), [[11, 21], [12, 22]], {"coeff": ""}),
    Case("Eltwise", ([2.0, 3.0], [4, 5]), [8, 15], {"operation": "mul"}),  # the second are integers
    Case("ReLU", (SIGNS,), [0, 0, 2]),
    Case("ReLU", (SIGNS,), [-0.5, 0, 2], {"negative_slope": 0.5, "engine": "caffe.ReLUParameter.DEFAULT"}),
    Case("ReLU6", ([-1.0, 3.0, 8.0],), [0, 3, 6]),
    Case("Clamp", ([-1.0, 3.0, 8.0],), [1, 3, 5], {"min": 1, "max": 5}),
    Case("ELU", (SIGNS,), [0.5 * np.expm1(-1), 0, 2], {"alpha": 0.5}),
    Case("PReLU", ([[-1.0, -2.0]],), [[-0.5, -0.5]], {"channel_shared": 0}, {"weights": [0.5, 0.25]}),
    Case("PReLU", ([[-1.0, -2.0]],), [[-0.5, -1]], {"channel_shared": 1}, {"weights": [0.5]}),
    Case("Selu", ([-1.0, 2.0],), [3 * 2 * np.expm1(-1), 6], {"alpha": 2, "gamma": 3}),
    Case("HardSigmoid", ([-9.0, 0.5, 9.0],), [0, 0.6, 1]),
    Case("Not", ([0.0, 2.0],), [1, 0]),
    *(
        Case("Activation", (SIGNS,), wanted, {"type_": name} | more)
        for name, wanted, more in (
            ("sigmoid", HALF, {}),
            ("tanh", np.tanh(SIGNS), {}),
            ("elu", [np.expm1(-1), 0, 2], {"alpha": 1.0}),
            ("relu6", [0, 0, 2], {}),
            ("relu", [-0.5, 0, 2], {"negative_slope": 0.5}),
            ("clamp", [0, 0, 1], {"min": 0, "max": 1}),
            ("not", [0, 1, 0], {}),
            ("exp", np.exp(SIGNS), {}),
        )
    ),
    Case("SoftMax", ([[0.0, np.log(3)]],), [[0.25, 0.75]]),
    Case("SoftMax", ([[0.0], [np.log(3)]],), [[0.25], [0.75]], {"axis": 0}),
    Case("LogSoftmax", ([[0.0, np.log(3)]],), [np.log([0.25, 0.75])]),
    Case("Power", ([1.0, 2.0],), [25, 49], {"power": 2, "scale": 2, "shift": 3}),
    Case("Power", ([1.0, 4.0],), [1, 0.5], {"power": -0.5, "scale": 1, "shift": 0}),
    Case("Power", ([1.0, 4.0],), [1, 4], {"power": 1, "scale": 1.0, "shift": 0}),  # nothing
    Case("ScaleShift", ([[[[1.0, 2.0]], [[3.0, 4.0]]]],), [[[[3, 5]], [[8, 11]]]], {}, {"weights": [2.0, 3.0], "biases": [1.0, -1.0]}),
    Case("ScaleShift", ([[1.0, 2.0]],), [[3, 1]], {}, {"biases": [2.0, -1.0]}),
    Case("ScaleShift", ([[1.0, 2.0]],), [[2, 4]], {"broadcast": 0}, {"weights": [2.0]}),
    Case("Select", ([1.0, 0.0], [1.0, 2.0], [3.0, 4.0]), [1, 4]),
    Case("Gemm", ([[1.0, 2.0]], [[3.0], [4.0]], [[100.0]]), [[0.5 * 11 + 200]], {"alpha": 0.5, "beta": 2}),
    Case("Gemm", ([[1.0], [2.0]], [[3.0, 4.0]]), [[11]], {"transpose_a": "true", "transpose_b": "True"}),
    Case("FakeQuantize", ([0.4, 0.6], [0.0], [1.0], [-1.0], [1.0]), [-1, 1], {"levels": 2}, version=6),
    Case("Quantize", ([0.4, 0.6], [0.0], [1.0], [-1.0], [1.0]), [-1, 1], {"levels": 2}),
    # Convolutions: the kernel 1 2 / 3 4 on 0 to 8.
    Case("Convolution", (X,), [[[[27, 37], [57, 67]]]], {"kernel": "2,2", "output": 1}, {"weights": [1.0, 2, 3, 4]}),
    Case("Convolution", (X,), [[[[28, 38], [58, 68]]]], {"kernel": "2,2", "output": 1, "strides": "1,1", "dilations": "1,1", "group": 1}, {"weights": [1.0, 2, 3, 4], "biases": [1.0]}),
    Case("Convolution", (X,), [[[[4 * 0, 3 * 1 + 4 * 2], [2 * 3 + 4 * 6, 67]]]], {"kernel": "2,2", "output": 1, "strides": "2,2", "pads_begin": "1,1", "pads_end": "0,0"}, {"weights": [1.0, 2, 3, 4]}),
    Case("Convolution", (X,), [[[[27, 37, 7 + 15 - 5], [57, 67, 5 + 24], [20, 23, 8]]]], {"kernel": "2,2", "output": 1, "auto_pad": "same_upper", "pads_begin": "1,1", "pads_end": "0,0"}, {"weights": [1.0, 2, 3, 4]}),
    Case("Convolution", (ramp(1, 2, 1, 2),), [[[[0, 2]], [[6, 9]]]], {"kernel": "1,1", "output": 2, "group": 2}, {"weights": [2.0, 3.0]}),
    Case("Convolution", (X,), [[[[4 * 0, 3 * 1 + 4 * 2], [2 * 3 + 4 * 6, 67]]]], {"kernel__x": 2, "kernel__y": 2, "output": 1, "stride__x": 2, "stride__y": 2, "pad__x": 1, "pad__y": 1, "pad__r": 0, "pad__b": 0, "stride": "1,1,2,2"}, {"weights": [1.0, 2, 3, 4]}, version=2),
    Case("Convolution", (ramp(1, 1, 1, 3),), [[[[2 * 0, 2 * 1, 1 + 2 * 2, 2]]]], {"kernel__x": 2, "kernel__y": 1, "output": 1, "pad__x": 1}, {"weights": [1.0, 2.0]}, version=2),
    Case("Convolution", (X, [[[[1.0, 2], [3, 4]]]], [1.0]), [[[[28, 38], [58, 68]]]], {"kernel": "2,2", "output": 1}, constant=(1, 2), version=7),
    Case("Convolution", (ramp(1, 2, 1, 2), [[[[2.0]]], [[[3.0]]]]), [[[[0, 2]], [[6, 9]]]], {"kernel": "1,1", "output": 2, "group": 2}, constant=(1,), version=7),
    Case("Deconvolution", (ramp(1, 1, 2, 2, start=1),), [[[[1, 2, 2, 4], [3, 4, 6, 8], [3, 6, 4, 8], [9, 12, 12, 16]]]], {"kernel": "2,2", "output": 1, "strides": "2,2"}, {"weights": [1.0, 2, 3, 4]}),
    Case("Deconvolution", (ramp(1, 2, 1, 1, start=1),), [[[[3]], [[6]]]], {"kernel": "1,1", "output": 2, "group": 2}, {"weights": [2.0, 2.0], "biases": [1.0, 2.0]}),
    Case("Deconvolution", (ramp(1, 2, 1, 1, start=1),), [[[[1 * 1 + 2 * 3]], [[1 * 2 + 2 * 4]]]], {"kernel": "1,1", "output": 2}, {"weights": [1.0, 2, 3, 4]}),
    Case("Deconvolution", (ramp(1, 1, 1, 2, start=1),), [[[[1, 2, 3 + 2, 4]]]], {"kernel": "1,3", "output": 1, "strides": "1,2", "auto_pad": "same_upper"}, {"weights": [1.0, 2, 3]}),
    Case("Deconvolution", (ramp(1, 1, 1, 2, start=1),), [[[[2, 3 + 2, 4, 6]]]], {"kernel": "1,3", "output": 1, "strides": "1,2", "auto_pad": "same_lower"}, {"weights": [1.0, 2, 3]}),
    Case("Deconvolution", (ramp(1, 1, 1, 2, start=1),), [[[[1, 2, 2, 4, 0]]]], {"kernel": "1,2", "output": 1, "strides": "1,2"}, {"weights": [1.0, 2]}),  # one more is declared
    Case("DeformableConvolution", (X, np.zeros((1, 8, 2, 2))), [[[[28, 38], [58, 68]]]], {"kernel": "2,2", "output": 1, "deformable_group": 1}, {"weights": [1.0, 2, 3, 4], "biases": [1.0]}, version=7),
    # Bits 1, 0, 1, 0 from the lowest: 1, -1, 1, -1; of the input, 0 is -1.
    Case("BinaryConvolution", ([[[[0.0, 1], [1, 1]]]],), [[[[-1 - 1 + 1 - 1]]]], {"kernel": "2,2", "output": 1, "input": 1, "mode": "xnor-popcount", "pad_value": 0}, {"weights": np.uint8([0b0101])}),
    Case("BinaryConvolution", ([[[[1.0, -1]]]],), [[[[-1 - 1, 1 + 1, -1 + 1]]]], {"kernel": "1,2", "output": 1, "input": 1, "pad_value": -1, "pads_begin": "0,1", "pads_end": "0,1"}, {"weights": np.uint8([0b01])}),
    Case("Pooling", (X,), [[[[4, 5], [7, 8]]]], {"kernel": "2,2", "strides": "1,1", "pool__method": "max", "exclude__pad": "true"}),
    Case("Pooling", (X,), [[[[4, 5], [7, 8]]]], {"kernel": "2,2", "strides": "2,2", "pool__method": "max", "rounding__type": "ceil"}),
    Case("Pooling", (X,), [[[[4, 5], [7, 8]]]], {"kernel": "2,2", "strides": "2,2", "pool__method": "max", "rounding_type": "floor"}),  # the output says ceil
    Case("Pooling", (X,), [[[[4]]]], {"kernel": "2,2", "strides": "2,2", "pool__method": "max", "rounding_type": "ceil"}),  # the output says floor
    Case("Pooling", (X,), [[[[2, 3.5], [6.5, 8]]]], {"kernel": "2,2", "strides": "2,2", "pool__method": "avg", "exclude__pad": "false"}),  # which counts what is inside
    Case("Pooling", (X,), [[[[0, 0.75], [2.25, 6]]]], {"kernel": "2,2", "strides": "2,2", "pads_begin": "1,1", "pads_end": "0,0", "pool__method": "avg", "exclude__pad": "false"}),
    Case("Pooling", (X,), [[[[0, 1.5], [4.5, 6]]]], {"kernel": "2,2", "strides": "2,2", "pads_begin": "1,1", "pads_end": "0,0", "pool__method": "avg", "exclude__pad": "true"}),
    Case("Pooling", (X,), [[[[4]]]], {"kernel__x": 3, "kernel__y": 3, "pool__method": "avg", "exclude__pad": "false", "stride__x": 1, "stride__y": 1, "pad__x": 0, "pad__y": 0}, version=2, how={"data_tag": "pooling_data"}),
    Case("FullyConnected", (ramp(1, 2, 1, 2, start=1),), [[1 + 2 + 3 + 4 + 1, 1 - 2 + 3 - 4]], {"out__size": 2, "alpha": 0, "beta": 0}, {"weights": [1.0, 1, 1, 1, 1, -1, 1, -1], "biases": [1.0, 0.0]}),
    Case("InnerProduct", ([[1.0, 2.0]],), [[11]], {"out__size": 1}, {"weights": [3.0, 4.0]}, version=2, how={"data_tag": "fc"}),
    Case("FullyConnected", ([[[1.0, 2.0], [3.0, 4.0]]],), [[[11], [25]]], {"out__size": 1}, {"weights": [3.0, 4.0]}, version=7),
    Case("Norm", (ramp(1, 3, 1, 1),), [[[[0]], [[1 / (1 + 5 / 3)]], [[2 / (1 + 5 / 3)]]]], {"alpha": 1, "beta": 1, "local__size": 3, "region": "across", "k": 1}),
    Case("LRN", (ramp(1, 1, 1, 3),), [[[[0, 1 / (1 + 5 / 9), 2 / (1 + 5 / 9)]]]], {"alpha": 1, "beta": 1, "local_size": 3, "region": "same"}),
    Case("BatchNormalization", ([[3.0, 5.0]],), [[(3 - 1) / 2, (5 - 2) / 3]], {"epsilon": 1}, {"weights": [3.0, 8.0], "biases": [1.0, 2.0]}),
    Case("GRN", ([[3.0, 4.0]],), [[3 / np.sqrt(26), 4 / np.sqrt(26)]], {"bias": 1.0}),
    Case("MVN", ([[[[1.0, 3.0]]]],), [[[[-1, 1]]]], {"across_channels": 0, "normalize_variance": 1, "eps": 0.0}),
    Case("MVN", ([[[[1.0, 3.0]]]],), [[[[-1, 1]]]], {"across_channels": 1, "normalize_variance": 0, "eps": 1e-9}),
    Case("Normalize", (ramp(1, 2, 1, 1, start=3),), [[[[3 / 5 * 10]], [[4 / 5 * 20]]]], {"across_spatial": 0, "channel_shared": 0, "eps": 0}, {"weights": [10.0, 20.0]}),
    Case("Normalize", ([[[[3.0, 4.0]]]],), [[[[6, 8]]]], {"across_spatial": 1, "channel_shared": 1, "eps": 0}, {"weights": [10.0]}),
    Case("Reshape", (ramp(2, 3),), ramp(3, 2), {"dim": "-1,2", "axis": 0, "num_axes": -1}),
    Case("Reshape", (ramp(2, 1, 3),), ramp(2, 3), {"dim": "0,3"}),
    Case("Reshape", (ramp(2, 6, 1),), ramp(2, 3, 2, 1), {"dim": "3,2", "axis": 1, "num_axes": 1}),
    Case("Reshape", (ramp(2, 6),), ramp(2, 3, 2), {"dim": "3,-1", "axis": 1, "num_axes": -1}),
    Case("Reshape", (ramp(2, 3),), ramp(6)),
    Case("Reshape", (ramp(2, 3),), ramp(1, 6), {"dim": "0,-1"}),  # which would give 2 and 3
    Case("Reshape", (ramp(2, 3), [0, -1, 1]), ramp(2, 3, 1)),
    Case("Reshape", (ramp(2, 3), [3.0, 2.0]), ramp(3, 2), constant=(1,)),  # in f32
    Case("Flatten", (ramp(2, 3, 2),), ramp(2, 6), {"axis": 1, "end_axis": -1}),
    Case("Flatten", (ramp(2, 3, 2),), ramp(12)),
    Case("Flatten", (ramp(2, 3, 2),), ramp(6, 2), {"axis": 0, "end_axis": 1}),
    Case("Squeeze", (ramp(1, 2, 1), [0, 2]), ramp(2)),
    Case("Squeeze", (ramp(1, 2, 1), [-1.0]), ramp(1, 2), constant=(1,)),
    Case("Unsqueeze", (ramp(2), [0, 2]), ramp(1, 2, 1)),
    Case("Shape", (ramp(2, 3),), [2, 3]),
    Case("ShapeOf", (ramp(2, 3),), [2, 3]),
    Case("Broadcast", ([[1.0], [2.0]], [2, 2]), [[1, 1], [2, 2]]),
    Case("Fill", ([2, 1], [5.0]), [[5], [5]]),
    Case("Range", ([1.0], [2.0], [0.5]), [1, 1.5], constant=(0, 1, 2)),
    Case("Concat", ([[1.0]], [[2.0]]), [[1, 2]]),
    Case("Concat", ([[1.0]], [[2.0]], [[3.0]]), [[1], [2], [3]], {"axis": 0}),
    Case("Concat", ([[1.0]],), [[1]]),
    Case("Permute", (ramp(1, 2, 2),), [[[0, 2], [1, 3]]], {"order": "0,2,1"}),
    Case("Tile", ([[1.0, 2.0]],), [[1, 2, 1, 2]], {"axis": 1, "tiles": 2}),
    Case("Split", (ramp(1, 4),), ([[0, 1]], [[2, 3]]), {"axis": 1, "num_split": 2}),
    Case("Slice", (ramp(1, 4),), ([[0]], [[1, 2, 3]]), {"axis": 1}),
    Case("Crop", (X,), [[[[4, 5], [7, 8]]]], {"axis": "2,3", "offset": "1,1", "dim": "2,2"}),
    Case("Crop", (X, ramp(1, 1, 2, 2)), [[[[1, 2], [4, 5]]]], {"axis": "2,3", "offset": "0,1"}),
    Case("Crop", (X,), [[[[4]]]], {"axis": "2,3", "crop_begin": "1,1", "crop_end": "1,1"}),
    Case("Crop", (X,), [[[[4, 5]]]], {"axis": "2,3", "crop_begin": "1,1", "crop_end": "1,0"}),
    Case("Crop", (X,), [[[[4, 5], [7, 8]]]], {"axis": "2,3", "offset": "1,1"}),  # as long as declared
    Case("StridedSlice", (ramp(3, 4), [1, 1], [9, 3], [1, 1]), [[5, 6], [9, 10]], {"begin_mask": "1,1", "end_mask": "0,1"}),
    Case("StridedSlice", (ramp(3, 4), [1, 1], [2, 3]), [5, 6], {"begin_mask": "1,1", "end_mask": "1,1", "shrink_axis_mask": "1,0", "new_axis_mask": "0,0", "ellipsis_mask": "0,0"}),
    Case("Gather", (ramp(3, 2), [2, 0]), [[4, 5], [0, 1]], {"axis": 0}),
    Case("Gather", ([2, 0, 1], ramp(3, 2)), [[4, 5], [0, 1], [2, 3]], {"axis": 0}),
    Case("Gather", ([1, 1], ramp(2, 2)), [[2, 3], [2, 3]], {"axis": 0}),  # the dims fit both ways
    Case("Pad", ([[1.0]],), [[7, 1, 7]], {"pads_begin": "0,1", "pads_end": "0,1", "pad_mode": "constant", "pad_value": 7.0}),
    Case("Pad", ([[1.0, 2.0]],), [[2, 1, 2]], {"pads_begin": "0,1", "pads_end": "0,0", "pad_mode": "reflect"}),
    Case("OneHot", ([0, 2],), [[1, 0, 0], [0, 0, 1]], {"axis": -1, "depth": 3}),
    Case("OneHot", ([1.0],), [[5, 9]], {"depth": 2, "on_value": 9.0, "off_value": 5.0}),
    Case("ReverseSequence", (ramp(1, 3), [2.0]), [[1, 0, 2]], {"batch_axis": 0, "seq_axis": 1}),
    Case("ShuffleChannels", (ramp(1, 4),), [[0, 2, 1, 3]], {"axis": 1, "group": 2}),
    Case("DepthToSpace", (ramp(1, 4, 1, 1),), [[[[0, 1], [2, 3]]]], {"block_size": 2}),
    Case("DepthToSpace", (ramp(1, 8, 1, 1),), [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]], {"block_size": 2}),
    Case("SpaceToDepth", (ramp(1, 1, 2, 2),), ramp(1, 4, 1, 1), {"block_size": 2}),
    Case("TopK", ([[1.0, 3.0, 2.0]], 2), ([[3, 2]], [[1, 2]]), {"axis": 1, "mode": "max", "sort": "value"}),
    Case("TopK", ([[1.0, 3.0, 2.0]], [2]), ([[1, 2]], [[0, 2]]), {"axis": 1, "mode": "min", "sort": "index"}),
    Case("ArgMax", ([[1.0, 3.0, 2.0]],), [[[1, 2]]], {"top_k": 2, "out_max_val": 0}),
    Case("ArgMax", ([[1.0, 3.0, 2.0]],), [[[1, 2], [3, 2]]], {"top_k": 2, "out_max_val": 1}),
    Case("ArgMax", (ramp(1, 2, 1, 2),), [[[[1, 1]]]], {"top_k": 1, "out_max_val": 0, "axis": 1}),
    Case("ArgMax", (ramp(1, 2, 1, 2),), [[[[2, 3]]]], {"top_k": 1, "out_max_val": 1, "axis": -3}),
    Case("DepthToSpace", (ramp(1, 8, 1, 1),), ramp(1, 2, 2, 2), {"block_size": 2, "mode": "depth_first"}, version=7),
    Case("SpaceToDepth", (ramp(1, 2, 2, 2),), ramp(1, 8, 1, 1), {"block_size": 2, "mode": "depth_first"}, version=7),
    Case("Interp", (ramp(1, 1, 1, 2),), [[[[0, 0.5, 1]]]], {"height": 1, "width": 3, "align_corners": 1, "pad_beg": 0, "pad_end": 0}),
    Case("Interp", (ramp(1, 1, 1, 2),), [[[[0, 0.5, 1, 1], [0, 0.5, 1, 1]]]], {"factor": 2, "align_corners": 0}),
    Case("Interp", (ramp(1, 1, 1, 2),), [[[[0, 0.5, 1]]]]),  # as long as declared
    Case("Interp", (ramp(1, 1, 1, 2), [1, 3]), [[[[0, 0.5, 1]]]]),
    Case("Interp", (ramp(1, 1, 1, 2), ramp(1, 1, 1, 3)), [[[[0, 0.5, 1]]]]),
    Case("Interp", (X,), [[[[4, 4.5, 5], [7, 7.5, 8]]]], {"height": 2, "width": 3, "align_corners": 1, "pad_beg": -1, "pad_end": 0}),
    Case("Interp", (X,), [[[[0, 2 / 3, 1], [3, 11 / 3, 4]]]], {"width": 3, "height": 2, "align_corners": 0, "pad_beg": 0, "pad_end": -1}),
    Case("Interp", (X,), np.repeat(np.repeat([[[[4.0]]]], 2, 2), 2, 3), {"factor": 2, "pad_beg": -1, "pad_end": -1}),
    Case("Resample", (ramp(1, 1, 1, 2),), [[[[0, 0, 1, 1], [0, 0, 1, 1]]]], {"type_": NEAREST, "factor": 2, "antialias": 0}),
    Case("Resample", (ramp(1, 1, 1, 4),), [[[[1, 3]]]], {"type_": NEAREST, "factor": 0.5}),  # 0.5 and 2.5, rounded
    Case("Resample", (ramp(1, 1, 1, 2),), [[[[0, 0.25, 0.75, 1], [0, 0.25, 0.75, 1]]]], {"type_": LINEAR, "factor": 2}),
    Case("Resample", (ramp(1, 1, 1, 2), [1, 1, 1, 4]), [[[[0, 0, 1, 1]]]], {"type_": NEAREST, "factor": 1}),
    # A map of 1 by 1 in an image of 4 by 4: one box of 2 by 2 around the middle, and its variances.
    Case("PriorBox", (ramp(1, 1, 1, 1), ramp(1, 1, 4, 4)), [[box(0.25, 0.25, 0.75, 0.75), [0.1, 0.1, 0.2, 0.2]]], {"min_size": 2, "max_size": "", "aspect_ratio": "", "flip": 1, "clip": 0, "step": 0, "offset": 0.5, "variance": "0.1,0.1,0.2,0.2"}),
    Case("PriorBoxClustered", (ramp(1, 1, 1, 1), ramp(1, 1, 4, 4)), [[box(0, 0.25, 1, 0.75), [0.1] * 4]], {"width": 4, "height": 2, "clip": 0, "step": 4.0, "offset": 0.5, "variance": "0.1,0.1,0.1,0.1", "flip": 0}),
    # An image of 8 by 8, whatever the second input has: one box of 4 by 2 around the middle.
    Case("PriorBoxClustered", (ramp(1, 1, 1, 1), ramp(1, 1, 4, 4)), [[box(0.25, 0.375, 0.75, 0.625), [0.1] * 4]], {"width": 4, "height": 2, "clip": 0, "step": 0, "offset": 0.5, "variance": "0.1,0.1,0.1,0.1", "img_h": 8, "img_w": 8}),
    Case("PriorBoxClustered", (ramp(1, 1, 1, 1), ramp(1, 1, 8, 4)), [[box(0.25, 0.375, 0.75, 0.625), [0.1] * 4]], {"width": 4, "height": 2, "clip": 0, "step": 0, "offset": 0.5, "variance": "0.1,0.1,0.1,0.1", "img_w": 8}),
    # Two boxes, of which the second is found: logits of 0 leave it as it is.
    Case("DetectionOutput", (np.zeros((1, 4, 2, 1)), [[0.9, 0.1, 0.2, 0.8]], [[[0.0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1], [0.1] * 8]]), [[[[0, 1, 0.8, 0.5, 0.5, 1, 1], [-1, 0, 0, 0, 0, 0, 0]]]], {"num_classes": 2, "nms_threshold": 0.45, "confidence_threshold": 0.5, "top_k": 2, "keep_top_k": 2, "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": "True", "background_label_id": 0, "normalized": 1, "input_height": -1, "input_width": -1, "variance_encoded_in_target": "0"}),
    # One cell with one anchor of 16, which covers the image: clipped to it.
    Case("Proposal", (np.float32([[[[0.1]], [[0.9]]]]), np.zeros((1, 4, 1, 1)), [[16.0, 16.0, 1.0]]), [[0, 0, 0, 15, 15]], {"base_size": 16, "pre_nms_topn": 1, "post_nms_topn": 1, "nms_thresh": 0.7, "feat_stride": 16, "min_size": 1, "ratio": "1", "scale": "1"}),
    Case("Proposal", (np.float32([[[[0.1]], [[0.9]]]]), np.zeros((1, 4, 1, 1)), [[16.0, 16.0, 1.0, 1.0, 8.0, 8.0]]), [[0, 0, 0, 15, 15]], {"base_size": 16, "pre_nms_topn": 1, "post_nms_topn": 1, "nms_thresh": 0.7, "feat_stride": 16, "min_size": 1, "ratio": "1", "scale": "1", "for_deformable": 0}),
    Case("ROIPooling", (ramp(1, 1, 2, 2), [[0.0, 0, 0, 1, 1]]), [[[[3]]]], {"pooled_h": 1, "pooled_w": 1, "spatial_scale": 1.0, "method": "max"}),
    Case("PSROIPooling", (ramp(1, 1, 2, 2), [[0.0, 0, 0, 1, 1]]), [[[[1.5]]]], {"output_dim": 1, "group_size": 1, "spatial_scale": 1.0, "mode": "average"}),
    Case("ExperimentalDetectronROIFeatureExtractor", ([[0.0, 0, 1, 1]], np.full((1, 1, 4, 4), 3.0)), [[[[3]]]], {"output_size": 1, "sampling_ratio": 2, "pyramid_scales": "4"}, version=7),
    Case("RegionYolo", (np.zeros((1, 6, 1, 1)),), [[0.5, 0.5, 0, 0, 0.5, 1]], {"coords": 4, "classes": 1, "num": 1, "do_softmax": 1, "axis": 1, "end_axis": 3}),
    Case("RegionYolo", (np.zeros((1, 6, 1, 1)),), [[[[0.5]], [[0.5]], [[0]], [[0]], [[0.5]], [[0.5]]]], {"coords": 4, "classes": 1, "num": 3, "do_softmax": 0, "mask": "1"}),
    Case("ReorgYolo", (ramp(1, 4, 2, 2),), np.reshape([0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15], (1, 16, 1, 1)), {"stride": 2}),
    Case("NonMaxSuppression", ([[[0.0, 0, 1, 1], [0, 0, 1, 1]]], [[[0.5, 0.9]]], [2], [0.5], [0.0]), [[0, 0, 1], [-1, -1, -1]], {"center_point_box": 0}, constant=(2, 3, 4), version=7),
    Case("CTCGreedyDecoder", (np.float32([[[0.9, 0.1, 0]], [[0.9, 0.1, 0]], [[0, 0.9, 0.1]]]), np.ones((3, 1))), [[[[0]], [[1]], [[-1]]]], {"ctc_merge_repeated": 1}),
    Case("CTCGreedyDecoder", (np.float32([[[0.9, 0.1, 0]], [[0.9, 0.1, 0]], [[0, 0.9, 0.1]]]),), [[[[0]], [[0]], [[1]]]], {"ctc_merge_repeated": 0, "stride": 1}),
    # Cells with weights of the data 1 and of the state 0, so that gates are functions of the data.
    Case("RNNCell", ([[0.5]], [[9.0]]), [[np.tanh(0.5)]], {"hidden_size": 1}, {"weights": [[1.0, 0]], "biases": [0.0]}),
    Case("RNNCell", ([[0.5]], [[9.0]]), [[2.5]], {"hidden_size": 1, "activations": "relu"}, {"weights": [[1.0, 0]], "biases": [2.0]}),
    Case("GRUCell", ([[0.0]], [[4.0]]), [[0.5 * 4 + 0.5 * np.tanh(1)]], {"hidden_size": 1}, {"weights": [[1.0, 0], [1, 0], [1, 0]], "biases": [0.0, 0, 1]}),
    Case("GRUCell", ([[0.0]], [[4.0]]), [[0.5 * 4 + 0.5 * np.tanh(1 + 0.5 * 2)]], {"hidden_size": 1, "linear_before_reset": 1}, {"weights": [[1.0, 0], [1, 0], [1, 0]], "biases": [0.0, 0, 1, 2]}),
    Case("LSTMCell", ([[0.0]], [[9.0]], [[4.0]]), ([[0.5 * np.tanh(0.5 * 4 + 0.5 * np.tanh(1))]], [[0.5 * 4 + 0.5 * np.tanh(1)]]), {"hidden_size": 1}, {"weights": [[1.0, 0]] * 4, "biases": [0.0, 0, 1, 0]}),
    # Sums of a sequence and 10 from either end, with the batch first or second.
    Case("RNNSequence", (np.float32([[[1], [2], [3]]]), [[10.0]]), ([[[11], [13], [16]]], [[16]]), {"hidden_size": 1, "activations": "relu", "direction": "Forward", "axis": 1}, {"weights": [[1.0, 1]], "biases": [0.0]}),
    Case("RNNSequence", (np.float32([[[1]], [[2]], [[3]]]), [[10.0]]), ([[[16]], [[15]], [[13]]], [[16]]), {"hidden_size": 1, "activations": "relu", "direction": "Backward", "axis": 0}, {"weights": [[1.0, 1]], "biases": [0.0]}),
    Case("GRUSequence", (np.zeros((1, 2, 1)), [[4.0]]), ([[[2 + NEW], [1 + 1.5 * NEW]]], [[1 + 1.5 * NEW]]), {"hidden_size": 1, "direction": "Forward"}, {"weights": [[1.0, 0], [1, 0], [1, 0]], "biases": [0.0, 0, 1]}),
    Case("GRUSequence", (np.zeros((1, 1, 1)), [[4.0]]), ([[[2 + 0.5 * np.tanh(2)]]], [[2 + 0.5 * np.tanh(2)]]), {"hidden_size": 1, "direction": "Backward", "linear_before_reset": 1}, {"weights": [[1.0, 0], [1, 0], [1, 0]], "biases": [0.0, 0, 1, 2]}),
    Case("LSTMSequence", (np.zeros((1, 2, 1)), [[9.0]], [[4.0]]), ([[[0.5 * np.tanh(2 + NEW)], [0.5 * np.tanh(1 + 1.5 * NEW)]]], [[0.5 * np.tanh(1 + 1.5 * NEW)]], [[1 + 1.5 * NEW]]), {"hidden_size": 1, "direction": "Forward"}, {"weights": [[1.0, 0]] * 4, "biases": [0.0, 0, 1, 0]}),
    *(Case(type, ([[3.0, 0.0, 4.0]], [1]), [[wanted]], {"keep_dims": "true"}) for type, wanted in REDUCTIONS.items()),
    Case("ReduceSum", ([[3.0, 0.0, 4.0]], [1.0]), [7], {"keep_dims": "false"}, constant=(1,)),
    Case("SparseToDense", ([[0, 1], [1, 0]], [2, 2], [5.0, 6.0], 9.0), [[9, 5], [6, 9]], constant=(3,), version=7),
    Case("SparseToDense", ([[0, 1]], [1, 2], [5.0]), [[0, 5]], version=7),
    Case("Bucketize", ([0.5, 1.0, 2.0], [1.0, 2.0]), [0, 0, 1], {"with_right_bound": "True"}, version=7),
    Case("Bucketize", ([0.5, 1.0, 2.0], [1.0, 2.0]), [0, 1, 2], {"with_right_bound": "False"}, version=7),
]  # fmt: skip


def loop(version: int = 5) -> LegacyNet:
    """A GRU over x[1, 3, 2] along axis 1, backwards; the cell's state is the sum of its former state and the input."""
    body = LegacyNet(version)
    flat = body.layer("Reshape", (), (1, 2), name="flat", unfed=[(1, 1, 2)], dim="1,2")
    sum = body.layer("Eltwise", [flat], (1, 2), name="sum", unfed=[(1, 2)], operation="sum")
    scaled = body.layer("ScaleShift", [sum], (1, 2), name="scaled", blobs={"weights": [1.0, 1.0]})
    out = body.layer("Reshape", [scaled], (1, 1, 2), name="out", dim="1,1,2")
    net = LegacyNet(version, weights=body.weights)
    x = net.input("x", 1, 3, 2)
    start = net.input("start", 1, 2)
    inside = (
        '<port_map><input external_port_id="0" internal_layer_id="0" internal_port_id="0" axis="1" '
        'start="-1" end="0" stride="-1"/>\n'
        '<input external_port_id="1" internal_layer_id="1" internal_port_id="1" axis="-1"/>\n'
        f'<output external_port_id="2" internal_layer_id="{out.layer}" internal_port_id="{out.port}" axis="1" '
        'start="-1" end="0" stride="-1"/>\n'
        f'<output external_port_id="3" internal_layer_id="{scaled.layer}" internal_port_id="{scaled.port}"/>'
        "</port_map>\n"
        f'<back_edges><edge from-layer="{scaled.layer}" from-port="{scaled.port}" to-layer="1" to-port="1"/></back_edges>\n'
        f"<body>\n{body.graph()}</body>\n"
    )
    net.layer("TensorIterator", [x, start], (1, 3, 2), (1, 2), name="loop", inside=inside)
    return net
