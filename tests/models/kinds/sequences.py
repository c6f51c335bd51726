"""Networks on audio and on sequences."""

from __future__ import annotations

import numpy as np
from openvino import opset15 as op

from models.kinds.registry import Built, Weights, conv, dense, index_input, kind


@kind
def wavenet(w: Weights, batch: int) -> Built:
    """Dilated causal convolutions with gated activations."""
    width, length = 64, 2048
    audio = op.parameter([batch, 1, length], np.float32, name="audio")
    x, skipped = conv(w, audio, 1, width, [1], activation=None), None
    for layer in range(8):
        dilation = 2**layer
        y = conv(w, x, width, 2 * width, [2], pads=dilation, causal=True, dilation=dilation, activation=None)
        halves = op.split(y, op.constant(1), 2)
        y = op.multiply(op.tanh(halves.output(0)), op.sigmoid(halves.output(1)))
        skip = conv(w, y, width, width, [1], activation=None)
        x = op.add(x, conv(w, y, width, width, [1], activation=None))
        skipped = skip if skipped is None else op.add(skipped, skip)
    y = conv(w, op.relu(skipped), width, width, [1])
    return conv(w, y, width, 256, [1], activation=None), [audio]


@kind
def gru_tagger(w: Weights, batch: int) -> Built:
    """Word embeddings, a bidirectional GRU, and a class for each word."""
    length, width, hidden, classes = 64, 64, 96, 17
    words = index_input("words", 2000, batch, length)
    x = op.gather(w(2000, width, gain=8), words, op.constant(0))
    start = op.constant(np.zeros((batch, 2, hidden), np.float32))
    lengths = op.constant(np.full(batch, length))
    trained = [w(2, 3 * hidden, width), w(2, 3 * hidden, hidden), w(2, 4 * hidden)]
    found = op.gru_sequence(x, start, lengths, *trained, hidden, "bidirectional", linear_before_reset=True)
    joined = op.transpose(found.output(0), op.constant([0, 2, 1, 3]))
    y = op.reshape(joined, op.constant([batch * length, 2 * hidden]), False)
    scores = op.softmax(dense(w, y, 2 * hidden, classes, None), 1)
    return op.reshape(scores, op.constant([batch, length, classes]), False), [words]


@kind
def audio_front_end(w: Weights, batch: int) -> Built:
    """A second of audio to 64 mel bands by a short-time Fourier transform, then two convolutions."""
    samples, window, step, mels = 16000, 400, 160, 64
    sound = op.parameter([batch, samples], np.float32, name="sound")
    hann = op.constant(np.hanning(window).astype(np.float32))
    spectrum = op.stft(sound, hann, op.constant(window), op.constant(step), True)
    power = op.reduce_sum(op.multiply(spectrum, spectrum), op.constant([3]), False)  # [batch, bins, frames]
    bands = op.matmul(op.abs(w(mels, window // 2 + 1)), power, False, False)
    y = conv(w, op.log(op.add(bands, op.constant(np.float32(1e-3)))), mels, 64, [3], pads=1)
    return op.reduce_mean(conv(w, y, 64, 32, [3], stride=2, pads=1), op.constant([2]), False), [sound]
