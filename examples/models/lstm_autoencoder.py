"""An LSTM autoencoder that notices when a pump no longer behaves as it did.

It learns to press windows of a healthy pump's four sensors through a narrow gap and to restore them. What follows
other rules is restored badly: the mean squared error is the score. Nothing is learnt of faults, because as a rule
nobody has recorded any yet.

The pump is simulated. Its controller follows a slowly changing demand (speed s, in parts of the rated one); flow goes
with s, pressure and motor current with its square and cube (the affinity laws), and the winding's temperature follows
the losses with a delay. Sensors add noise. The faults held out are a leak (flow rises, pressure falls), a worn bearing
(the current carries friction and pulsates), a sensor that is stuck, and a blocked pipe (flow falls at full pressure).

    python lstm_autoencoder.py --out samples      # trains, writes held-out windows, prints the ROC-AUC

Runs in an environment with PyTorch. To import it: ``lstm_autoencoder:make``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy
import torch
from torch import nn

SEED = 11
INPUT = "window"
"""float32, 1x64x4: 64 seconds of ``SENSORS``, in standard deviations from a healthy pump's mean."""
SENSORS = ("flow", "pressure", "current", "temperature")
FAULTS = ("leak", "worn bearing", "stuck sensor", "blocked pipe")
STEPS = 64
_TRAIN, _HELD_OUT = 800, 400
_EPOCHS = 60
_BATCH = 32
_FALSE_ALARMS = 0.01
"""Share of healthy windows that may count as faulty."""
_MEAN = numpy.array([0.7, 0.5, 0.41, 0.42], numpy.float32)
_STD = numpy.array([0.11, 0.16, 0.17, 0.15], numpy.float32)


class LstmAutoencoder(nn.Module):
    """Windows (Nx64x4) to scores (Nx2: healthy, faulty; the larger is the answer) and what was restored (Nx64x4).

    The first score is the error that healthy windows stay below, the second one is the window's own.
    """

    limit: torch.Tensor
    own: torch.Tensor

    def __init__(self, hidden: int = 32, gap: int = 6) -> None:
        super().__init__()
        self.encoder = nn.LSTM(len(SENSORS), hidden, batch_first=True)
        self.squeeze = nn.Linear(hidden, gap)
        self.decoder = nn.LSTM(gap, hidden, batch_first=True)
        self.sensors = nn.Linear(hidden, len(SENSORS))
        self.register_buffer("limit", torch.zeros(2))
        self.register_buffer("own", torch.tensor([0.0, 1.0]))

    def restore(self, window: torch.Tensor) -> torch.Tensor:
        seen, _ = self.encoder(window)
        told = self.squeeze(seen[:, -1:, :])
        decoded, _ = self.decoder(told.expand(-1, STEPS, -1))
        return self.sensors(decoded)

    def forward(self, window: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        restored = self.restore(window)
        difference = restored - window
        error = (difference * difference).mean((1, 2)).unsqueeze(1)
        return error * self.own + self.limit, restored


def pump(random: numpy.random.Generator, fault: str | None) -> numpy.ndarray:
    """One simulated window (64x4), standardised; ``fault`` is one of ``FAULTS`` or None."""
    time = numpy.arange(-64, STEPS, dtype=numpy.float64)
    wave = numpy.sin(2 * numpy.pi * (time / random.uniform(60, 160) + random.uniform()))
    speed = random.uniform(0.55, 0.85) + random.uniform(0.03, 0.15) * wave
    flow, pressure, current = speed.copy(), speed**2, speed**3 + 0.05
    if fault == "leak":
        severity = random.uniform(0.2, 0.35)
        flow, pressure = flow * (1 + severity / 2), pressure * (1 - severity)
    elif fault == "blocked pipe":
        flow *= 1 - random.uniform(0.2, 0.4)
    elif fault == "worn bearing":
        pulse = numpy.sin(2 * numpy.pi * time / random.uniform(3, 6))
        current += random.uniform(0.06, 0.12) * (1 + pulse)
    temperature = numpy.empty_like(current)
    warm = current[0]
    for step, losses in enumerate(current):
        warm += (losses - warm) / 20
        temperature[step] = warm
    found = numpy.stack([flow, pressure, current, temperature], 1)[-STEPS:]
    found += random.normal(size=found.shape) * 0.01
    if fault == "stuck sensor":
        sensor = random.integers(len(SENSORS))
        found[random.integers(STEPS // 4) :, sensor] = found[0, sensor] + random.choice([-1, 1]) * _STD[sensor]
    return ((found - _MEAN) / _STD).astype(numpy.float32)


def held_out(count: int = _HELD_OUT) -> tuple[torch.Tensor, torch.Tensor]:
    """(windows, faulty): in turn healthy (0) and faulty (1), the faults in turn as well."""
    random = numpy.random.default_rng(SEED + 1)
    windows = [pump(random, fault_of(number)) for number in range(count)]
    return torch.from_numpy(numpy.stack(windows)), torch.arange(count) % 2


def fault_of(number: int) -> str | None:
    """What is wrong with the pump in a held-out window."""
    return FAULTS[number // 2 % len(FAULTS)] if number % 2 else None


def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The trained model, the same at every call, and an example of its inputs."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    random = numpy.random.default_rng(SEED)
    windows = torch.from_numpy(numpy.stack([pump(random, None) for _ in range(_TRAIN)]))
    model = LstmAutoencoder()
    optimiser = torch.optim.Adam(model.parameters())
    steps = _EPOCHS * -(-len(windows) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=1e-2, total_steps=steps)
    for _ in range(_EPOCHS):
        for chosen in torch.randperm(len(windows)).split(_BATCH):
            optimiser.zero_grad()
            nn.functional.mse_loss(model.restore(windows[chosen]), windows[chosen]).backward()
            optimiser.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        # Of windows that it was not trained on: those it knows are restored a little better.
        fresh = torch.from_numpy(numpy.stack([pump(random, None) for _ in range(_TRAIN)]))
        model.limit[0] = torch.quantile(model(fresh)[0][:, 1], 1 - _FALSE_ALARMS)
    return model, (windows[:1],)


def samples(folder: Path, count: int) -> None:
    """Writes the first ``count`` held-out windows, a file each: the input by name, and ``expected``, 1 if faulty."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (window, faulty) in enumerate(zip(*held_out(count), strict=True)):
        name = f"window-{number:03}-{(fault_of(number) or 'healthy').replace(' ', '-')}.npz"
        numpy.savez(folder / name, **{INPUT: window[None].numpy(), "expected": faulty.numpy()})


def measures(model: nn.Module) -> dict[str, float]:
    """Of the held-out windows: ROC-AUC of the error (0.5 is chance), and the share that is judged rightly."""
    windows, faulty = held_out()
    with torch.no_grad():
        scores, _ = model(windows)
    errors = scores[:, 1]
    # The share of pairs of a faulty and a healthy window in which the faulty one has the larger error.
    roc_auc = (errors[faulty == 1][:, None] > errors[faulty == 0][None, :]).float().mean()
    accuracy = (scores.argmax(1) == faulty).float().mean()
    return {"roc_auc": round(float(roc_auc), 4), "accuracy": round(float(accuracy), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the samples")
    parser.add_argument("--count", type=int, default=32, help="how many to write (%(default)s)")
    given = parser.parse_args()
    model, _ = make()
    samples(given.out, given.count)
    print(json.dumps({**measures(model), "held_out": _HELD_OUT}))


if __name__ == "__main__":
    main()
