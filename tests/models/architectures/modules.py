"""Modules that torchvision and transformers lack. Imported only to build models."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torchvision.ops import batched_nms
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer


class CachedDecoder(nn.Module):
    """A two-layer language model with its KV cache as inputs and outputs; it reorders and extends the cache."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor,
        beam_idx: Tensor,
        key_0: Tensor,
        value_0: Tensor,
        key_1: Tensor,
        value_1: Tensor,
    ) -> dict[str, Tensor]:
        """Return logits, and the cache extended by these tokens."""
        cache = DynamicCache()
        for pair in ((key_0, value_0), (key_1, value_1)):
            key, value = (array.index_select(0, beam_idx) for array in pair)
            layer = DynamicLayer()
            layer.lazy_initialization(key, value)
            layer.keys, layer.values = key, value
            cache.layers.append(layer)
        seen = torch.arange(attention_mask.shape[1])
        here = torch.arange(input_ids.shape[1]) + key_0.shape[2]
        mask = (seen <= here[:, None]) & attention_mask[:, None, None].bool()
        found = self.model(input_ids, mask, position_ids, past_key_values=cache, use_cache=True)
        present = {
            f"present_{part}_{i}": array
            for i, layer in enumerate(found.past_key_values.layers)
            for part, array in (("key", layer.keys), ("value", layer.values))
        }
        return {"logits": found.logits} | present


class DecoderOf(nn.Module):
    """The decoder of an encoder-decoder, with encoder states as an input."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, decoder_input_ids: Tensor, encoder_hidden_states: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Return logits."""
        given = {} if attention_mask is None else {"attention_mask": attention_mask}
        return self.model(
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=torch.ones_like(decoder_input_ids),
            encoder_outputs=(encoder_hidden_states,),
            **given,
        ).logits


class Listener(nn.Module):
    """Classify each position of fixed-length sequences."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, features: Tensor) -> Tensor:
        """Return scores for each position."""
        return self.head(self.lstm(features)[0])


class Tagger(nn.Module):
    """Classify each position of variable-length sequences."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the head's scores for each position, and the last state of each direction."""
        packed = nn.utils.rnn.pack_padded_sequence(features, lengths, batch_first=True)
        outputs, (state, _) = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
        return self.head(padded), state


class Spectrum(nn.Module):
    """Audio features: the normalized log-mel spectrogram, followed by a convolution."""

    def __init__(self, window: int, step: int, mels: int, width: int) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("window", torch.hann_window(window))
        bins = window // 2 + 1
        centres = torch.linspace(0, bins, mels + 2)[1:-1, None]
        self.register_buffer("mels", (1 - (torch.arange(bins) - centres).abs() * mels / bins).clamp(0))
        self.conv = nn.Conv1d(mels, width, 3, stride=2, padding=1)

    def forward(self, wave: Tensor) -> Tensor:
        """Return features of every second frame."""
        found = torch.stft(wave, len(self.window), self.step, window=self.window, return_complex=True)
        power = torch.view_as_real(found).square().sum(-1)
        log = (self.mels @ power).clamp(1e-5).log10()
        log = torch.maximum(log, log.amax((1, 2), keepdim=True) - 8)
        return nn.functional.gelu(self.conv((log + 4) / 4))


class UNet(nn.Module):
    """A U-Net on images (2 dims) or volumes (3 dims), with a skip connection at each level."""

    def __init__(self, dims: int, channels: int, widths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.kinds = {name: getattr(nn, f"{name}{dims}d") for name in ("Conv", "BatchNorm", "ConvTranspose")}
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList([self.block(channels, widths[0]), *(self.block(a, b) for a, b in pairs)])
        self.up = nn.ModuleList(self.kinds["ConvTranspose"](b, a, 2, 2) for a, b in pairs)
        self.join = nn.ModuleList(self.block(2 * a, a) for a, _ in pairs)
        self.pool, self.head = getattr(nn, f"MaxPool{dims}d")(2), self.kinds["Conv"](widths[0], classes, 1)

    def block(self, inputs: int, outputs: int) -> nn.Module:
        """Build two convolutions with normalization and activation."""
        conv, norm = self.kinds["Conv"], self.kinds["BatchNorm"]
        return nn.Sequential(
            conv(inputs, outputs, 3, padding=1, bias=False), norm(outputs), nn.ReLU(),
            conv(outputs, outputs, 3, padding=1, bias=False), norm(outputs), nn.LeakyReLU(0.1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Return class scores for each position."""
        bridges = []
        for down in self.down:
            x = down(self.pool(x) if bridges else x)
            bridges.append(x)
        for up, join, bridge in reversed(list(zip(self.up, self.join, bridges[:-1], strict=True))):
            x = join(torch.cat([bridge, up(x)], 1))
        return self.head(x)


class Yolo(nn.Module):
    """A detector with YOLOv8's head: each side of a box is the mean of a distribution over bins."""

    def __init__(self, classes: int, width: int, bins: int, likely: float = 0.6) -> None:
        super().__init__()
        self.likely = likely
        self.stem = nn.Sequential(*(self.conv(3 if i == 0 else width, width, 2) for i in range(3)))
        self.deeper = self.conv(width, width, 2)
        self.merge = self.conv(2 * width, width, 1)
        self.boxes = nn.ModuleList(nn.Conv2d(width, 4 * bins, 1) for _ in range(2))
        self.scores = nn.ModuleList(nn.Conv2d(width, classes, 1) for _ in range(2))
        self.bins, self.strides = bins, (8, 16)

    def conv(self, inputs: int, outputs: int, stride: int) -> nn.Module:
        """Build a convolution with normalization and activation."""
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU()
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return boxes, scores and classes after suppression, best first."""
        fine = self.stem(x)
        coarse = self.deeper(fine)
        fine = self.merge(torch.cat([fine, nn.functional.interpolate(coarse, scale_factor=2.0)], 1))
        boxes, scores = [], []
        levels = zip((fine, coarse), self.strides, self.boxes, self.scores, strict=True)
        for level, stride, box, score in levels:
            high, wide = level.shape[2:]
            y, x = torch.meshgrid(torch.arange(high) + 0.5, torch.arange(wide) + 0.5, indexing="ij")
            centres = torch.stack([x, y]).flatten(1).T
            shares = box(level)[0].view(4, self.bins, -1).softmax(1)
            sides = (shares * torch.arange(self.bins)[:, None]).sum(1).T
            boxes.append(torch.cat([centres - sides[:, :2], centres + sides[:, 2:]], 1) * stride)
            scores.append(score(level).flatten(2)[0].sigmoid().T)
        best, classes = torch.cat(scores).max(1)
        likely = (best > self.likely).nonzero()[:, 0]
        found, best, classes = torch.cat(boxes)[likely], best[likely], classes[likely]
        kept = batched_nms(found, best, classes, 0.5)
        return found[kept], best[kept], classes[kept]


class Detector(nn.Module):
    """A torchvision detector, which takes a list of images and returns a dict for each."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return boxes, scores and classes of the first image."""
        found = self.model(list(x))[0]
        return found["boxes"], found["scores"], found["labels"]
