"""Train the digits example: a small convolutional network, saved as OpenVINO IR.

This script made the four files beside it, which `demo.py` reads:

    digits.xml, digits.bin    the trained network, `image` [?,1,8,8] -> `scores` [?,10]
    images.npy, labels.npy    100 handwritten digits it never saw in training, and what they are

The pictures are scikit-learn's handwritten digits: 1797 of them, 8x8 pixels, no download. The demo does not
need this script run again. To run it, install the group `digits` (scikit-learn, torch, openvino): from the
top of the repository, `pip install . --group digits`, then `python examples/digits/train.py`. The seed is fixed:
with the same versions, on the same kind of processor, it makes the same files again.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import openvino as ov
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

HERE = Path(__file__).parent
SEED = 0
EPOCHS = 40
BATCH = 64
HELD_OUT = 450  # pictures kept out of training, a quarter of them
SHOWN = 100  # of these, how many are stored for the demo


def block(inputs: int, outputs: int) -> nn.Sequential:
    """A 3x3 convolution, normalised and rectified. It has no bias of its own: the batch norm brings one."""
    conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


def digit_net() -> nn.Sequential:
    """The network, untrained: a grey 8x8 picture in, ten scores out. OpenVINO keeps the layers' names."""
    layers: dict[str, nn.Module] = {
        "strokes": block(1, 24),  # 8x8: edges and bits of stroke
        "shapes": block(24, 48),  # 8x8: corners, arcs
        "halve": nn.MaxPool2d(2),  # 8x8 -> 4x4
        "parts": block(48, 80),  # 4x4: loops, tails
        "average": nn.AdaptiveAvgPool2d(1),  # 4x4 -> 1x1
        "flatten": nn.Flatten(),
        "vote": nn.Linear(80, 10),
    }
    return nn.Sequential(OrderedDict(layers))


def load() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pictures scaled to 0..1, [N, 1, 8, 8], and labels: train images and labels, then the held-out ones."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)  # stored as 0..16
    labels = digits.target.astype(np.int64)
    fit, held = train_test_split(
        np.arange(len(labels)), test_size=HELD_OUT, stratify=labels, random_state=SEED
    )
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    return x[fit], y[fit], x[held], y[held]


def train(images: Tensor, labels: Tensor) -> nn.Sequential:
    """Fit the network: Adam, with a learning rate that rises and falls once (one-cycle)."""
    net = digit_net()
    optimizer = torch.optim.Adam(net.parameters())
    steps = -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, epochs=EPOCHS, steps_per_epoch=steps)
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in torch.split(torch.randperm(len(images)), BATCH):
            loss = cross_entropy(net(images[batch]), labels[batch])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        if epoch % 10 == 0:
            print(f"epoch {epoch:2}: training loss {total / len(images):.4f}")
    return net.eval()


def export(net: nn.Module, path: Path) -> None:
    """Save `net` as OpenVINO IR at `path` (.xml, with a .bin beside it): f32 weights, any batch size.

    OpenVINO folds each batch norm into the convolution before it, so the file has none.
    """
    example = torch.zeros(2, 1, 8, 8)
    model = ov.convert_model(net, example_input=example, input=[-1, 1, 8, 8])
    model.inputs[0].node.set_friendly_name("image")
    model.inputs[0].set_names({"image"})
    model.outputs[0].set_names({"scores"})
    ov.save_model(model, path, compress_to_fp16=False)


def infer(path: Path, images: Tensor) -> Tensor:
    """The scores OpenVINO computes from the saved file, in full f32."""
    compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return torch.from_numpy(compiled({"image": images.numpy()})["scores"].copy())


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """The share of pictures whose highest score is that of their label."""
    return float((scores.argmax(1) == labels).float().mean())


def main() -> None:
    """Train, export, check that the saved files say what torch says, and store the demo's pictures."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums in one fixed order
    torch.use_deterministic_algorithms(True)

    train_x, train_y, held_x, held_y = load()
    net = train(train_x, train_y)
    export(net, HERE / "digits.xml")

    scores = infer(HERE / "digits.xml", held_x)
    with torch.no_grad():
        expected = net(held_x)
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)
    print(f"largest difference to torch: {(scores - expected).abs().max().item():.1e}")

    # Ten of each digit, drawn by label alone: the scores have no say in it.
    shown, _ = train_test_split(np.arange(HELD_OUT), train_size=SHOWN, stratify=held_y, random_state=SEED)
    np.save(HERE / "images.npy", held_x[shown].numpy())
    np.save(HERE / "labels.npy", held_y[shown].numpy())

    print(f"all {HELD_OUT} held-out images: {accuracy(scores, held_y):.2%}")
    print(f"the {SHOWN} of the demo:      {accuracy(scores[shown], held_y[shown]):.2%}")


if __name__ == "__main__":
    main()
