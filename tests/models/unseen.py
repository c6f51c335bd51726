"""Small networks on which no threshold of `ir_runtime.debug` was tuned, for the study of faults (tests/bench/faults.py).

They are registered when this module is imported, and are not part of the zoo.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from models.architectures import ZOO
from models.architectures.registry import MODELS, Arrays, image, model, normal, tokens

if TYPE_CHECKING:
    from torch import nn

_picture = partial(image, size=64)
_text = partial(tokens, vocabulary=300, length=24)


@model("regnet", _picture)
def regnet() -> nn.Module:
    """RegNet Y 400MF: grouped convolutions, squeeze and excitation."""
    from torchvision.models import regnet_y_400mf

    return regnet_y_400mf(num_classes=10)


@model("mnasnet", _picture)
def mnasnet() -> nn.Module:
    """MNASNet 0.5: depthwise convolutions."""
    from torchvision.models import mnasnet0_5

    return mnasnet0_5(num_classes=10)


@model("googlenet", _picture)
def googlenet() -> nn.Module:
    """GoogLeNet: branches, and pooling with rounding up."""
    from torchvision.models import googlenet as build

    return build(num_classes=10, aux_logits=False, init_weights=False)


@model("resnext", _picture)
def resnext() -> nn.Module:
    """ResNeXt with one block in each stage."""
    from torchvision.models.resnet import Bottleneck, ResNet

    return ResNet(Bottleneck, [1, 1, 1, 1], num_classes=10, groups=8, width_per_group=4)


@model("maxvit", _picture)
def maxvit() -> nn.Module:
    """MaxViT with two stages: convolutions, and attention in windows and grids."""
    from torchvision.models.maxvit import MaxVit

    return MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10)


@model("deeplab", partial(image, size=96))
def deeplab() -> nn.Module:
    """DeepLab v3 on MobileNet v3: dilated convolutions, and resizing."""
    from torch import Tensor
    from torch.nn import Module
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    class Classes(Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.net(x)["out"]
            return found

    return Classes()


@model("vit", _picture)
def vit() -> nn.Module:
    """Vision transformer of three layers."""
    from torchvision.models import VisionTransformer

    return VisionTransformer(64, 16, 3, 4, 64, 128, num_classes=10)


@model("distilbert", _text)
def distilbert() -> nn.Module:
    """DistilBERT of two layers."""
    from transformers import DistilBertConfig, DistilBertModel

    return DistilBertModel(DistilBertConfig(vocab_size=300, dim=64, n_layers=2, n_heads=4, hidden_dim=128))


@model("electra", partial(_text, segments=True))
def electra() -> nn.Module:
    """ELECTRA with two layers and projected embeddings."""
    from transformers import ElectraConfig, ElectraModel

    return ElectraModel(ElectraConfig(**_sizes(), embedding_size=32))


@model("opt", _text)
def opt() -> nn.Module:
    """OPT with two layers and a language head: a decoder with ReLU."""
    from transformers import OPTConfig, OPTForCausalLM

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128}
    return OPTForCausalLM(OPTConfig(**sizes, vocab_size=300, word_embed_proj_dim=64, use_cache=False))


def _sound(rng: np.random.Generator) -> Arrays:
    return {"input_values": normal(rng, 1, 3200)}


@model("wav2vec", _sound)
def wav2vec() -> nn.Module:
    """wav2vec 2.0 of two layers: convolutions along time, group normalisation."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    return Wav2Vec2Model(Wav2Vec2Config(**_sizes(), conv_dim=(32,) * 7, num_conv_pos_embedding_groups=4))


def _pixels(rng: np.random.Generator) -> Arrays:
    return image(rng, size=64, name="pixel_values")


@model("segformer", _pixels)
def segformer() -> nn.Module:
    """SegFormer with four stages: attention with downsampled keys, features resized to one size."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return SegformerForSemanticSegmentation(
        SegformerConfig(
            depths=[1] * 4,
            hidden_sizes=[16, 32, 48, 64],
            num_attention_heads=[1, 2, 3, 4],
            decoder_hidden_size=32,
        )
    )


@model("convnextv2", _pixels)
def convnextv2() -> nn.Module:
    """ConvNeXt V2 of four stages: depthwise convolutions, normalisation of responses."""
    from transformers import ConvNextV2Config, ConvNextV2Model

    return ConvNextV2Model(ConvNextV2Config(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1]))


@model("poolformer", _pixels)
def poolformer() -> nn.Module:
    """PoolFormer with four stages: pooling instead of attention."""
    from transformers import PoolFormerConfig, PoolFormerModel

    return PoolFormerModel(PoolFormerConfig(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]))


def _frames(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, 1, 12, 20)}


@model("gru", _frames)
def gru() -> nn.Module:
    """A unidirectional and a bidirectional GRU after a convolution over time."""
    from torch import Tensor, nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv1d(20, 32, 3, padding=1), nn.LayerNorm(32)
            self.both = nn.GRU(32, 24, batch_first=True, bidirectional=True)
            self.last, self.head = nn.GRU(48, 16, batch_first=True), nn.Linear(16, 7)

        def forward(self, x: Tensor) -> Tensor:
            y = nn.functional.gelu(self.norm(self.conv(x.transpose(1, 2)).transpose(1, 2)))
            y = nn.functional.hardtanh(self.both(y)[0], -0.5, 0.5)
            found: Tensor = self.head(self.last(y)[0])
            return found

    return Tagger()


def _sizes() -> dict[str, Any]:
    return {
        "vocab_size": 300, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128,
    }  # fmt: skip


UNSEEN = [name for name in MODELS if name not in ZOO]
"""The names of the networks of this module."""
