"""Omitted attributes of legacy files have the defaults of their specification.

Attributes without a documented default, such as the strides of a Convolution, are not listed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.io.reader.legacy.declaration import declared
from ir_runtime.io.reader.legacy.net import read_legacy

assert read_legacy  # whose module registers the declarations

REDUCTIONS = ("and", "l1", "l2", "max", "mean", "min", "or", "prod", "sum")
DEFAULTS: dict[str, dict[str, Any]] = {
    **{f"reduce{name}": {"keep_dims": True} for name in REDUCTIONS},
    "activation": {"negative_slope": 0.0, "alpha": 1.0, "min": 0.0, "max": 0.0},
    "argmax": {"out_max_val": False},
    "binaryconvolution": {"group": 1, "input": 0, "mode": "xnor-popcount", "pad_value": 0.0},
    "concat": {"axis": 1},
    "convolution": {"group": 1},
    "crop": {"axis": (1,)},
    "ctcgreedydecoder": {"ctc_merge_repeated": True},
    "deconvolution": {"group": 1},
    "deformableconvolution": {"group": 1, "deformable_group": 1},
    "depthtospace": {"block_size": 1, "mode": "blocks_first"},
    "detectionoutput": {
        "background_label_id": 0,
        "top_k": -1,
        "variance_encoded_in_target": False,
        "keep_top_k": (-1,),
        "code_type": "caffe.PriorBoxParameter.CORNER",
        "share_location": True,
        "confidence_threshold": -float(np.finfo(np.float32).max),
        "clip": False,
        "clip_after_nms": False,
        "clip_before_nms": False,
        "decrease_label_id": False,
        "normalized": True,
        "input_height": 1,
        "input_width": 1,
        "objectness_score": 0.0,
    },
    "eltwise": {"operation": "sum"},
    "elu": {"alpha": 1.0},
    "experimentaldetectronroifeatureextractor": {"sampling_ratio": 0},
    "flatten": {"axis": 0, "end_axis": -1},
    "gather": {"axis": 0},
    "gemm": {"alpha": 1.0, "beta": 1.0, "transpose_a": False, "transpose_b": False},
    "grn": {"bias": 0.0},
    "grucell": {"clip": 0.0, "linear_before_reset": False},
    "grusequence": {"clip": 0.0, "axis": 1, "linear_before_reset": False},
    "hardsigmoid": {"alpha": 0.2, "beta": 0.5},
    "interp": {
        "height": 0,
        "width": 0,
        "factor": 0.0,
        "shrink_factor": 1.0,
        "zoom_factor": 1.0,
        "align_corners": True,
        "pad_beg": 0,
        "pad_end": 0,
    },
    "logsoftmax": {"axis": 1},
    "lrn": {"region": "across", "k": 1.0},
    "lstmcell": {"clip": 0.0},
    "lstmsequence": {"clip": 0.0, "axis": 1},
    "memory": {"index": 1, "size": 2},
    "mvn": {"across_channels": False, "normalize_variance": True, "eps": 1e-09},
    "nonmaxsuppression": {"center_point_box": False, "sort_result_descending": True},
    "normalize": {"across_spatial": False, "channel_shared": False},
    "onehot": {"axis": -1, "on_value": 1.0, "off_value": 0.0},
    "pad": {"pad_mode": "constant", "pad_value": 0.0},
    "pooling": {"method": "max", "exclude_pad": False},
    "prelu": {"channel_shared": False},
    "priorbox": {"flip": False, "clip": False, "step": 0.0, "offset": 0.5, "scale_all_sizes": True},
    "priorboxclustered": {
        "clip": False,
        "step": 0.0,
        "step_w": 0.0,
        "step_h": 0.0,
        "offset": 0.5,
        "img_h": 0,
        "img_w": 0,
    },
    "proposal": {
        "clip_before_nms": True,
        "clip_after_nms": False,
        "normalize": False,
        "box_size_scale": 1.0,
        "box_coordinate_scale": 1.0,
    },
    "psroipooling": {"group_size": 1, "mode": "average", "spatial_bins_x": 1, "spatial_bins_y": 1},
    "regionyolo": {"axis": 1, "end_axis": 3, "do_softmax": True},
    "relu": {"negative_slope": 0.0},
    "relu6": {"n": 6.0},
    "resample": {"antialias": False, "factor": 0.0},
    "reshape": {"axis": 0, "num_axes": -1},
    "reversesequence": {"batch_axis": 0, "seq_axis": 1},
    "rnncell": {"clip": 0.0},
    "rnnsequence": {"clip": 0.0, "axis": 1},
    "roipooling": {"method": "max"},
    "scaleshift": {"broadcast": 0},
    "selu": {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323},
    "shufflechannels": {"axis": 1, "group": 1},
    "slice": {"axis": 1, "num_split": 0},
    "softmax": {"axis": 1},
    "spacetodepth": {"block_size": 1, "mode": "blocks_first"},
}
"""By type, in lower case."""


@pytest.mark.parametrize("type", DEFAULTS)
def test_an_attribute_that_is_left_out_has_the_value_of_the_catalogue(type: str) -> None:
    schema = declared()[type].schema()
    assert {name: schema[name].default for name in DEFAULTS[type]} == DEFAULTS[type]


def test_every_default_is_listed() -> None:
    said = {
        (type, name)
        for type, cls in declared().items()
        for name, attribute in cls.schema().items()
        if not attribute.required and attribute.default not in ((), None, "")
    }
    listed = {(type, name) for type, defaults in DEFAULTS.items() for name in defaults}
    other_names = {type for type, cls in declared().items() if type not in DEFAULTS and cls in _classes()}
    assert {entry for entry in said if entry[0] not in other_names} == listed


def _classes() -> set[Any]:
    return {declared()[type] for type in DEFAULTS}
