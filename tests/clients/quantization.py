"""NNCF, and optimum-intel with a ``quantization_config``: quantized models must have the same layers and values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import numpy as np

__all__ = [
    "accuracy_control",
    "optimum_static_quantization",
    "optimum_weights",
    "quantization",
    "quantization_of_transformers",
    "weight_compression",
    "weight_compression_with_data",
]

Arrays = dict[str, np.ndarray[Any, Any]]
PRECISE = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
LENGTH = 12


def quantization(models: Path) -> Arrays:
    """NNCF: quantize convolutions, with fast and with accurate bias correction."""
    import nncf

    found: Arrays = {}
    for fast in (True, False):
        model = nncf.quantize(
            _read(models / "classifier.xml"), nncf.Dataset(_images(4)), fast_bias_correction=fast
        )
        found |= _described(f"fast {fast} ", model, _images(3, seed=9))
    return found


def quantization_of_transformers(models: Path) -> Arrays:
    """NNCF: quantize with SmoothQuant, to 8-bit integers and 8-bit floats."""
    import nncf

    found: Arrays = {}
    for mode in (None, nncf.QuantizationMode.FP8_E4M3):
        model = nncf.quantize(
            _read(models / "vit/openvino_model.xml"),
            nncf.Dataset(_images(4)),
            mode=mode,
            model_type=nncf.ModelType.TRANSFORMER,
        )
        # Smoothed weights lie between two integers wherever rounding of the activations decides.
        found |= _described(f"{mode} ", model, _images(3, seed=9), integers=False)
    return found


def accuracy_control(models: Path) -> Arrays:
    """NNCF: revert layers to floating point until the accuracy drop is within a limit."""
    import nncf
    import openvino

    model = _read(models / "classifier.xml")
    compiled = openvino.compile_model(model, "CPU", PRECISE)
    images = _images(6, seed=9)
    wanted = [np.array(compiled(image)[0]) for image in images]

    def validate(model: Any, data: Any) -> tuple[float, None]:
        pairs = zip(data, wanted, strict=False)  # NNCF also asks for parts of the data
        errors = [np.abs(np.asarray(model(image)[0]) - right).max() for image, right in pairs]
        return 1 - float(np.mean(errors)), None

    quantized = nncf.quantize_with_accuracy_control(
        model,
        nncf.Dataset(_images(4)),
        nncf.Dataset(images),
        validation_fn=validate,
        max_drop=1e-4,
    )
    return _described("", quantized, images)


def weight_compression(models: Path) -> Arrays:
    """NNCF: compress weights in every data-free mode."""
    import nncf

    found: Arrays = {}
    for mode in nncf.CompressWeightsMode:
        if mode in ("codebook", "adaptive_codebook"):  # the first needs a codebook, the second is k-means
            continue
        settings = (
            {} if mode in ("int8_sym", "int8_asym", "mxfp4", "mxfp8_e4m3", "nvfp4") else {"group_size": 16}
        )
        # Weights of f16 are computed in f32 by both, but in f16 by OpenVINO for nvfp4, and for embeddings in nf4.
        settings |= {} if mode in ("int8_sym", "int8_asym", "nf4") else {"all_layers": True}
        inputs = [] if mode == "nvfp4" else [_tokens(9)]
        model = nncf.compress_weights(_read(models / "llama/openvino_model.xml"), mode=mode, **settings)
        found |= _described(f"{mode} ", model, inputs)
    return found


def weight_compression_with_data(models: Path) -> Arrays:
    """NNCF: AWQ, scale estimation, GPTQ, and mixed precision by the variance of activations.

    The choices of the first three depend on the last bits of activations, so types and shapes are compared, but not values.
    """
    import nncf

    common = {"mode": nncf.CompressWeightsMode.INT4_SYM, "group_size": 16}
    kinds: dict[str, dict[str, Any]] = {
        "mixed": {"ratio": 0.5, "sensitivity_metric": nncf.SensitivityMetric.MAX_ACTIVATION_VARIANCE},
        "awq": {"awq": True},
        "scales": {"scale_estimation": True},
        "gptq": {"gptq": True},
    }
    found: Arrays = {}
    for name, settings in kinds.items():
        data = nncf.Dataset([_tokens(seed) for seed in range(4)])
        model = _read(models / "llama/openvino_model.xml")
        model = nncf.compress_weights(model, dataset=data, **common, **settings)
        found |= _described(f"{name} ", model, [], integers=name == "mixed")
    return found


def optimum_weights(models: Path) -> Arrays:
    """optimum-intel: load with 8-bit and with 4-bit weights, and generate."""
    import torch
    from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig

    ids = torch.tensor(_tokens(9)["input_ids"])
    found: Arrays = {}
    for config in (
        OVWeightQuantizationConfig(bits=8),
        OVWeightQuantizationConfig(bits=4, sym=True, group_size=16, ratio=0.6),
    ):
        model = OVModelForCausalLM.from_pretrained(
            models / "llama", quantization_config=config, ov_config=PRECISE
        )
        found |= _described(f"{config.bits} bits ", model.model, [])
        tokens = model.generate(ids, max_new_tokens=8, min_new_tokens=8, do_sample=False, pad_token_id=0)
        found[f"{config.bits} bits tokens"] = tokens.numpy()
    return found


def optimum_static_quantization(models: Path) -> Arrays:
    """optimum-intel: quantize weights and activations of an image classifier."""
    import nncf
    import torch
    from optimum.intel import OVConfig, OVModelForImageClassification, OVQuantizationConfig, OVQuantizer

    model = OVModelForImageClassification.from_pretrained(models / "vit", ov_config=PRECISE)
    quantizer = OVQuantizer(model)
    data = nncf.Dataset([{"pixel_values": image} for image in _images(4)])
    config = OVConfig(quantization_config=OVQuantizationConfig(bits=8, num_samples=4))
    quantizer.quantize(calibration_dataset=data, ov_config=config)
    model.compile()
    logits = model(pixel_values=torch.tensor(_images(1, seed=9)[0])).logits
    return _described("", model.model, [], integers=False) | {"logits": logits.numpy()}


def _read(path: Path) -> Any:
    import openvino

    return openvino.Core().read_model(path)


def _images(count: int, seed: int = 0) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(1, 3, 32, 32)).astype(np.float32) for _ in range(count)]


def _tokens(seed: int) -> Arrays:
    return {
        "input_ids": np.random.default_rng(seed).integers(3, 99, (1, LENGTH)),
        "attention_mask": np.ones((1, LENGTH), np.int64),
        "position_ids": np.arange(LENGTH)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def _described(name: str, model: Any, inputs: list[Any], integers: bool = True) -> Arrays:
    """Return the layers of a saved model, its constants, and its results.

    Args:
        name: the prefix of the names of arrays.
        model: of either package.
        inputs: for each run.
        integers: whether integer and sub-16-bit constants are compared, too.
    """
    import openvino

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        openvino.save_model(model, path, compress_to_fp16=False)
        lines, constants = [], {}
        for number, (line, element, data) in enumerate(_layers(path)):
            lines.append(line)
            if data is not None and (integers or element in FLOATS):
                constants[f"{name}constant {number}"] = data
    request = openvino.Core().compile_model(model, "CPU", PRECISE).create_infer_request()
    scores = {}
    for run, values in enumerate(inputs):
        request.reset_state()
        results = request.infer(values)
        scores |= {
            f"{name}run {run} {output}": np.array(results[output]) for output in range(len(model.outputs))
        }
    text = np.frombuffer("\n".join(lines).encode(), np.uint8)
    return {f"{name}layers": text} | constants | scores


def _layers(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield the type and ports of each layer, its element type, and the data of a constant; backwards from the results."""
    root, weights = ElementTree.parse(path).getroot(), path.with_suffix(".bin").read_bytes()  # noqa: S314 - saved above
    layers = {layer.get("id"): layer for layer in root.iterfind("layers/layer")}
    sources: dict[str | None, list[str | None]] = {}
    edges = sorted(root.iterfind("edges/edge"), key=lambda edge: int(edge.get("to-port", "0")))
    for edge in edges:
        sources.setdefault(edge.get("to-layer"), []).append(edge.get("from-layer"))
    ends = [id for kind in ("Result", "Assign") for id, layer in layers.items() if layer.get("type") == kind]
    seen = set()
    while ends:
        if (id := ends.pop()) in seen:
            continue
        seen.add(id)
        ends += sources.get(id, [])
        layer = layers[id]
        ports = [
            f"{port.get('precision')}[{','.join(dim.text or '' for dim in port.iterfind('dim'))}]"
            for port in layer.iterfind("output/port")
        ]
        data, element, array = layer.find("data"), "", None
        if layer.get("type") == "Const" and data is not None:
            element, start = data.get("element_type", ""), int(data.get("offset", "0"))
            raw = weights[start : start + int(data.get("size", "0"))]
            array = np.frombuffer(raw, FLOATS.get(element, np.uint8))
        yield f"{layer.get('type')} {layer.get('version')} {' '.join(ports)}", element, array
