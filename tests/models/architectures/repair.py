"""Lets torchvision work where its compiled operators cannot load (a CUDA wheel beside a CPU torch)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

ROI_ALIGN = (
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,"
    " int sampling_ratio, bool aligned) -> Tensor"
)


def repair_torchvision() -> None:
    """Import torchvision, giving it slow operators in place of those that cannot load.

    Its own import would stop at registering an operator that does not exist, and take transformers with it.
    """
    import torch

    try:
        import torchvision
    except ImportError:
        return
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for op in ("nms", "qnms"):
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define(ROI_ALIGN)
        import torchvision

        module = sys.modules["torchvision.ops.roi_align"]  # torchvision.ops has the function by this name
        library.impl("nms", nms, "CPU")
        library.impl("roi_align", module._roi_align.__wrapped__, "CPU")  # not compiled, which takes longer
        module._has_ops = torchvision.extension._has_ops = has_ops
        torchvision.slow_operators = library  # which would take them along when it goes


def has_ops() -> bool:
    """Say that there are operators."""
    return True


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices of boxes that no better one overlaps by more than the threshold."""
    import torch
    from torchvision.ops import box_iou

    order = scores.argsort(descending=True, stable=True)
    overlaps = box_iou(boxes, boxes) > iou_threshold
    kept: list[int] = []
    for i in order.tolist():
        if not overlaps[i, kept].any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)
