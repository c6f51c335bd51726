"""Object detectors; the number of detections depends on the image."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from models.architectures.registry import image, model

if TYPE_CHECKING:
    from torch import nn


@model("yolo", partial(image, size=128))
def yolo() -> nn.Module:
    """Build a detector with YOLOv8's head at two scales, and per-class non-maximum suppression."""
    from models.architectures.modules import Yolo

    return Yolo(classes=4, width=16, bins=8)


@model("yolo_640", partial(image, size=640))
def yolo_640() -> nn.Module:
    """Build the same detector at the usual input size, for benchmarks."""
    from models.architectures.modules import Yolo

    return Yolo(classes=80, width=64, bins=16, likely=0.95)  # one box of ten


@model("ssdlite", partial(image, size=320))
def ssdlite() -> nn.Module:
    """Build torchvision's SSDlite on MobileNetV3, for five classes."""
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large

    from models.architectures.modules import Detector

    return Detector(
        ssdlite320_mobilenet_v3_large(
            weights_backbone=None, num_classes=5, score_thresh=0.5, topk_candidates=50, detections_per_img=20
        )
    )


@model("faster_rcnn", partial(image, size=128))
def faster_rcnn() -> nn.Module:
    """Build torchvision's Faster R-CNN on MobileNetV3 with a feature pyramid, for five classes."""
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    from models.architectures.modules import Detector

    found = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights_backbone=None, num_classes=5, min_size=128, max_size=128, rpn_pre_nms_top_n_test=100,
        rpn_post_nms_top_n_test=50, box_score_thresh=0.3, box_detections_per_img=20,
    )  # fmt: skip
    # Untrained, boxes would be moved far and stretched by orders of magnitude, and rounding errors with them.
    found.rpn.box_coder.weights = found.roi_heads.box_coder.weights = (10.0, 10.0, 10.0, 10.0)
    return Detector(found)
