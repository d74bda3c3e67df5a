"""A temporal convolutional network that tells the state of a ball bearing from its housing's vibration.

The vibration is simulated, from the physics that bearing diagnosis goes by. A ball that rolls over a pit hits it like a
hammer: a short impulse, which rings at the housing's resonance and dies out within milliseconds. Pits on the outer ring
are hit at BPFO = n/2 fr (1 - d/D), those on the inner ring at BPFI = n/2 fr (1 + d/D), with n balls of the diameter d
on the pitch diameter D, and the shaft turning at fr (here nine balls, d/D = 0.2, no contact angle: about a 6205). Balls
slip, so the intervals scatter by one or two percent. The inner ring turns, and its pit passes through the loaded zone
once in a revolution: those impulses swell and fade at fr. In every state there are the shaft's harmonics (unbalance,
misalignment) and broadband noise. Speed, resonance, damping and loudness differ from window to window.

    python vibration_tcn.py --out samples         # trains, writes held-out windows, prints the accuracy

Runs in an environment with PyTorch. To import it: ``vibration_tcn:make``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy
import torch
from torch import nn

SEED = 7
INPUT = "vibration"
"""float32, 1x1x2048: acceleration at 12.8 kHz (0.16 s), without its mean and divided by its standard deviation."""
STATES = ("healthy", "outer ring", "inner ring")
RATE, LENGTH = 12_800, 2_048
_BALLS, _RATIO = 9, 0.2
_TRAIN, _HELD_OUT = 1_500, 600
_EPOCHS = 8
_BATCH = 32


class VibrationTcn(nn.Module):
    """Windows (Nx1x2048) to a score for each state (Nx3); the largest is the answer."""

    def __init__(self, channels: int = 16, dilations: tuple[int, ...] = (1, 2, 4, 8, 16)) -> None:
        super().__init__()
        # Learns the resonances, and with the ReLU behind it their envelope, in steps of 0.6 ms.
        self.envelope = nn.Sequential(
            nn.Conv1d(1, channels, 32, stride=8, padding=12, bias=False), nn.BatchNorm1d(channels), nn.ReLU()
        )
        # Sees 64 steps in the end: several impulses, and so their intervals.
        self.blocks = nn.ModuleList(_Block(channels, dilation) for dilation in dilations)
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.scores = nn.Linear(channels, len(STATES))

    def forward(self, vibration: torch.Tensor) -> torch.Tensor:
        found = self.envelope(vibration)
        for block in self.blocks:
            found = block(found)
        return self.scores(self.pool(found).flatten(1))


class _Block(nn.Module):
    """A convolution over steps that are ``dilation`` apart, added to what it was given."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(given + self.norm(self.convolution(given)))


def window(random: numpy.random.Generator, state: int) -> numpy.ndarray:
    """One simulated window of 2048 samples; ``state`` is an index of ``STATES``."""
    time = numpy.arange(LENGTH) / RATE
    shaft = random.uniform(20, 30)
    signal = random.normal(size=LENGTH) * random.uniform(0.5, 1.0)
    for harmonic in (1, 2, 3):
        signal += random.uniform(0, 0.6) * numpy.sin(2 * numpy.pi * (harmonic * shaft * time + random.uniform()))
    if state:
        side = -1 if STATES[state] == "outer ring" else 1
        frequency = _BALLS / 2 * shaft * (1 + side * _RATIO)
        intervals = random.normal(1, 0.015, int(LENGTH / RATE * frequency) + 8) / frequency
        hits = numpy.cumsum(intervals) - random.uniform(3, 4) / frequency
        loudness = random.uniform(2.5, 6) * random.uniform(0.8, 1.2, len(hits))
        if STATES[state] == "inner ring":
            loudness *= 0.55 + 0.45 * numpy.cos(2 * numpy.pi * (shaft * hits + random.uniform()))
        resonance, decay = random.uniform(2_000, 4_500), random.uniform(0.6e-3, 1.5e-3)
        since = time[:, None] - hits[None, :]
        ringing = numpy.exp(-numpy.maximum(since, 0) / decay) * numpy.sin(2 * numpy.pi * resonance * since)
        signal += (numpy.where(since >= 0, ringing, 0) * loudness).sum(1)
    signal -= signal.mean()
    return (signal / signal.std()).astype(numpy.float32)


def data(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(windows, states): every state equally often, in turn."""
    random = numpy.random.default_rng(seed)
    states = numpy.arange(count) % len(STATES)
    windows = numpy.stack([window(random, int(state)) for state in states])[:, None]
    return torch.from_numpy(windows), torch.from_numpy(states)


def held_out(count: int = _HELD_OUT) -> tuple[torch.Tensor, torch.Tensor]:
    """(windows, states) that the network has not seen."""
    return data(count, SEED + 1)


def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The trained model, the same at every call, and an example of its inputs."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    windows, states = data(_TRAIN, SEED)
    model = VibrationTcn()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    steps = _EPOCHS * -(-len(windows) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=1e-2, total_steps=steps)
    for _ in range(_EPOCHS):
        for chosen in torch.randperm(len(windows)).split(_BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(windows[chosen]), states[chosen]).backward()
            optimiser.step()
            schedule.step()
    return model.eval(), (windows[:1],)


def samples(folder: Path, count: int) -> None:
    """Writes the first ``count`` held-out windows, a file each: the input by name, the state as ``expected``."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (one, state) in enumerate(zip(*held_out(count), strict=True)):
        name = f"window-{number:03}-{STATES[state].replace(' ', '-')}.npz"
        numpy.savez(folder / name, **{INPUT: one[None].numpy(), "expected": state.numpy()})


def accuracy(model: nn.Module) -> float:
    """Share of the held-out windows whose state is found."""
    windows, states = held_out()
    with torch.no_grad():
        return float((model(windows).argmax(1) == states).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the samples")
    parser.add_argument("--count", type=int, default=30, help="how many to write (%(default)s)")
    given = parser.parse_args()
    model, _ = make()
    samples(given.out, given.count)
    print(json.dumps({"accuracy": round(accuracy(model), 4), "held_out": _HELD_OUT}))


if __name__ == "__main__":
    main()
