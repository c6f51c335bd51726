"""The operations that opset3 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "roi_align",
]


def roi_align(
    data: NodeInput,
    rois: NodeInput,
    batch_indices: NodeInput,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    mode: str,
    name: str | None = None,
) -> Node:
    """Create ROIAlign-3.

    Divide each region of ``data`` into bins, and give the mean or the largest of points in each.

    Args:
        data: [N, C, H, W]: feature maps.
        rois: [regions, 4]: x1, y1, x2, y2 before spatial_scale.
        batch_indices: [regions]: the batch entry of each; none from the first -1 on.
        pooled_h: height of the result.
        pooled_w: width of the result.
        sampling_ratio: points along each axis of a bin; 0 means as many as there are elements.
        spatial_scale: what coordinates of regions are multiplied by.
        mode: what becomes of the samples of a bin; max is 0 at least.
        name: the name of the node.
    """
    return make(
        "ROIAlign",
        3,
        [data, rois, batch_indices],
        {
            "pooled_h": pooled_h,
            "pooled_w": pooled_w,
            "sampling_ratio": sampling_ratio,
            "spatial_scale": spatial_scale,
            "mode": mode,
        },
        name,
    )
