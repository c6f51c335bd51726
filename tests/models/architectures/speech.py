"""Networks on audio, and on sequences of features."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from models.architectures.registry import Arrays, model, normal

if TYPE_CHECKING:
    from torch import nn

MELS, FRAMES, WIDTH, VOCABULARY = 16, 100, 32, 128


def whisper() -> nn.Module:
    """Build a small Whisper."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=MELS, d_model=WIDTH, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_source_positions=FRAMES // 2, max_target_positions=32, use_cache=False,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return WhisperForConditionalGeneration(config)


def mels(rng: np.random.Generator) -> Arrays:
    """Draw a mel spectrogram."""
    return {"input_features": normal(rng, 1, MELS, FRAMES)}


@model("whisper_encoder", mels, (-1, MELS, FRAMES))
def whisper_encoder() -> nn.Module:
    """Build the encoder of a small Whisper: two convolutions over time, then attention."""
    return whisper().get_encoder()


def whisper_decoder_inputs(rng: np.random.Generator) -> Arrays:
    """Draw decoder tokens and encoder states."""
    return {
        "decoder_input_ids": rng.integers(VOCABULARY, size=(1, 7)),
        "encoder_hidden_states": normal(rng, 1, FRAMES // 2, WIDTH),
    }


@model(
    "whisper_decoder",
    whisper_decoder_inputs,
    {"decoder_input_ids": (-1, -1), "encoder_hidden_states": (-1, -1, WIDTH)},
)
def whisper_decoder() -> nn.Module:
    """Build the decoder of a small Whisper, with its head."""
    from models.architectures.modules import DecoderOf

    return DecoderOf(whisper())


def waves(rng: np.random.Generator, samples: int) -> Arrays:
    """Draw two waveforms: a few tones and noise."""
    time = np.arange(samples) / samples
    pitches, phases = rng.uniform(5, samples / 3, (2, 4, 1)), rng.uniform(0, 7, (2, 4, 1))
    tones = np.sin(2 * np.pi * pitches * time + phases).sum(1)
    return {"wave": (tones + 0.1 * rng.standard_normal((2, samples))).astype(np.float32)}


@model("spectrum", partial(waves, samples=1000), (-1, -1))
def spectrum() -> nn.Module:
    """Build an audio front end based on the log-mel spectrogram."""
    from models.architectures.modules import Spectrum

    return Spectrum(window=64, step=16, mels=MELS, width=WIDTH)


def sentences(rng: np.random.Generator) -> Arrays:
    """Draw a batch of sequences, and their lengths."""
    return {"features": normal(rng, 3, 12, 8), "lengths": np.sort(rng.integers(2, 13, 3))[::-1].copy()}


@model("bilstm", sentences)
def bilstm() -> nn.Module:
    """Build two bidirectional LSTM layers over packed sequences."""
    from models.architectures.modules import Tagger

    return Tagger(inputs=8, hidden=16, classes=6)


def frames(rng: np.random.Generator) -> Arrays:
    """Draw the features of a second of audio."""
    return {"features": normal(rng, 1, 100, 80)}


@model("lstm", frames)
def lstm() -> nn.Module:
    """Build two LSTM layers of realistic width, for benchmarks."""
    from models.architectures.modules import Listener

    return Listener(inputs=80, hidden=512, classes=64)
