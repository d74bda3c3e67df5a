"""A classifier of small images: handwritten digits, scanned from forms, 8 by 8 pixels.

The images come with scikit-learn (``load_digits``: 1797 of them, the test part of UCI's "Optical Recognition of
Handwritten Digits"); a quarter is held out. The network has the parts of a MobileNet: a convolution, then blocks of a
depthwise and a pointwise one, each with batch normalisation and ReLU6, and the mean over the picture in front of a
linear layer.

    python image_classifier.py --out samples      # trains, writes the held-out images, prints the accuracy

Runs in an environment with PyTorch and scikit-learn. To import it: ``image_classifier:make``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 4
INPUT = "image"
"""float32, 1x1x8x8: from 0 (paper) to 1 (ink)."""
CLASSES = 10
_EPOCHS = 25
_BATCH = 32


class ImageClassifier(nn.Module):
    """Images (Nx1x8x8) to a score for each digit (Nx10); the largest is the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            _convolution(1, 24),
            *_separable(24, 48),
            *_separable(48, 64, stride=2),
            *_separable(64, 64),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.scores = nn.Linear(64, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.scores(self.pool(self.features(image)).flatten(1))


def _convolution(inside: int, outside: int, *, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU6(),
    )


def _separable(inside: int, outside: int, *, stride: int = 1) -> tuple[nn.Sequential, nn.Sequential]:
    """One filter per channel, then a mixture of the channels: a tenth of a dense convolution's products."""
    return _convolution(inside, inside, stride=stride, groups=inside), _convolution(inside, outside, kernel=1)


def data() -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """(images, digits) to train on, and (images, digits) held out."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(numpy.float32).reshape(-1, 1, 8, 8)
    split = train_test_split(images, digits.astype(numpy.int64), test_size=0.25, random_state=SEED, stratify=digits)
    train_images, held_images, train_digits, held_digits = map(torch.from_numpy, split)
    return (train_images, train_digits), (held_images, held_digits)


def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The trained model, the same at every call, and an example of its inputs."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    (images, digits), _ = data()
    model = ImageClassifier()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    steps = _EPOCHS * -(-len(images) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=1e-2, total_steps=steps)
    for _ in range(_EPOCHS):
        for chosen in torch.randperm(len(images)).split(_BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[chosen]), digits[chosen], label_smoothing=0.05).backward()
            optimiser.step()
            schedule.step()
    return model.eval(), (images[:1],)


def samples(folder: Path, count: int) -> None:
    """Writes the first ``count`` held-out images, one file each: the input by name, and the digit as ``expected``."""
    folder.mkdir(parents=True, exist_ok=True)
    images, digits = data()[1]
    for number, (image, digit) in enumerate(zip(images[:count], digits[:count], strict=True)):
        numpy.savez(folder / f"digit-{number:03}.npz", **{INPUT: image[None].numpy(), "expected": digit.numpy()})


def accuracy(model: nn.Module) -> float:
    """Share of the held-out images whose digit is found."""
    images, digits = data()[1]
    with torch.no_grad():
        return float((model(images).argmax(1) == digits).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the samples")
    parser.add_argument("--count", type=int, default=40, help="how many to write (%(default)s)")
    given = parser.parse_args()
    model, _ = make()
    samples(given.out, given.count)
    print(json.dumps({"accuracy": round(accuracy(model), 4), "held_out": len(data()[1][1])}))


if __name__ == "__main__":
    main()
