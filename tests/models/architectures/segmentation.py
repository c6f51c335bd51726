"""Segmentation networks for images and volumes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from models.architectures.registry import image, model

if TYPE_CHECKING:
    from torch import nn


@model("unet", partial(image, size=64), (1, 3, -1, -1))
def unet() -> nn.Module:
    """Build a fully convolutional U-Net with three levels."""
    from models.architectures.modules import UNet

    return UNet(2, channels=3, widths=(8, 16, 32), classes=4)


@model("unet_256", partial(image, size=256))
def unet_256() -> nn.Module:
    """Build a U-Net with four levels of realistic width, for benchmarks."""
    from models.architectures.modules import UNet

    return UNet(2, channels=3, widths=(32, 64, 128, 256), classes=4)


@model("unet_3d", partial(image, size=16, channels=1, dims=3))
def unet_3d() -> nn.Module:
    """Build a 3-D U-Net with three levels."""
    from models.architectures.modules import UNet

    return UNet(3, channels=1, widths=(4, 8, 16), classes=3)
