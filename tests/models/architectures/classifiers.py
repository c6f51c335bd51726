"""Image classifiers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from models.architectures.registry import image, model

if TYPE_CHECKING:
    from torch import nn


@model("small_cnn", partial(image, size=32, name="input"))
def small_cnn() -> nn.Module:
    """Build a CNN with a few layers of each kind found in image classifiers, for tests that take milliseconds."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, stride=2, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
        nn.Conv2d(16, 32, 1), nn.BatchNorm2d(32), nn.ReLU6(), nn.AvgPool2d(3, 2, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10), nn.Softmax(1),
    )  # fmt: skip


def torchvision_classifier(name: str) -> nn.Module:
    """Build a torchvision classifier by name."""
    from torchvision.models import get_model

    return get_model(name)


for _name in (
    "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "shufflenet_v2_x1_0",
    "squeezenet1_1", "convnext_tiny", "vit_b_16", "swin_t",
):  # fmt: skip
    model(_name)(partial(torchvision_classifier, _name))
