"""What devices tell of their updates. They may be broken: what they say is shown, and not trusted."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from armlet_runtime.payload_manifest import strict_json
from armlet_runtime.update.interface import State

from armlet.errors import ArmletError, Kind
from armlet.updates.broker import Connection, Message
from armlet.updates.routes import Routes

STATES: tuple[str, ...] = get_args(State)
FAILURES = ("FAILED", "ROLLED_BACK")
_LONGEST_STATE = 64 << 10
"""Bytes."""
_LARGEST_NUMBER = 1e15
_FAILED = "the reason is in the device's state and its log; docs/updates.md explains each category"
_LATE = (
    "--seconds are over, and the wish stands: a device that is off follows it when it is back, blocks come while"
    " inv update.send runs, and docs/updates.md explains each category"
)


@dataclass(frozen=True, slots=True)
class Told:
    """A device's state of a model; ``active`` and ``desired`` are the sha256 of payload.json, or empty."""

    device: str
    model: str
    state: str
    active: str
    active_version: str
    active_generation: int
    desired: str
    desired_version: str
    desired_generation: int
    phase: str
    category: str
    reason: str
    progress: float | None
    retry_seconds: float | None

    @property
    def is_final(self) -> bool:
        """Nothing more comes of it by itself."""
        return self.state in FAILURES and self.retry_seconds is None


@dataclass
class Goal:
    """What is waited for: ``state``, on each of ``devices``, of the payload with that sha256 (empty: any)."""

    state: str
    devices: Sequence[str]
    payload: str = ""
    _last: dict[str, Told] = field(default_factory=dict)

    def take(self, told: Told) -> None:
        about = told.desired or told.active
        if not self.payload or self.payload == about:
            self._last[told.device] = told

    @property
    def reached(self) -> bool:
        return all(self._is_there(device) for device in self.devices)

    def missed(self, over: bool) -> list[str]:
        """Devices, and why: those that failed for good once each has come to an end, or all that are not there."""
        behind = [device for device in self.devices if not self._is_there(device)]
        if not over and not all(device in self._last and self._last[device].is_final for device in behind):
            return []
        return [f"{device}: {_story(self._last.get(device))}" for device in behind]

    def _is_there(self, device: str) -> bool:
        told = self._last.get(device)
        if told is None or told.state != self.state:
            return False
        return not self.payload or self.state != "UPDATED" or told.active == self.payload


def watch(
    connection: Connection, routes: Routes, devices: Sequence[str], model: str, goal: Goal | None, seconds: float | None
) -> Iterator[Told]:
    """States as they come, those that the broker kept first; without a goal and without ``seconds``, for ever.

    Raises:
        ArmletError: (TARGET) the goal was missed: a device failed for good, or the time is over.
    """
    connection.subscribe(routes.filters("state", devices, model))
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        if goal is not None:
            if goal.reached:
                return
            _demand(goal.missed(over=False), _FAILED)
        if until is not None and time.monotonic() >= until:
            _demand(goal.missed(over=True) if goal else [], _LATE)
            return
        try:
            message = connection.messages.get(timeout=0.2)
        except queue.Empty:
            continue
        told = read(routes, message)
        if told is None or (model and told.model != model) or (devices and told.device not in devices):
            continue
        if goal is not None:
            goal.take(told)
        yield told


def read(routes: Routes, message: Message) -> Told | None:
    """None: it is no state."""
    found = routes.read("state", message.topic)
    if found is None or not 0 < len(message.payload) <= _LONGEST_STATE:
        return None
    try:
        fields = strict_json(message.payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("state") not in STATES:
        return None
    active, desired = _object(fields, "active"), _object(fields, "desired")
    return Told(
        device=found["device"],
        model=found.get("model") or _text(fields, "model"),
        state=fields["state"],
        active=_text(active, "payload"),
        active_version=_text(active, "version"),
        active_generation=_whole(active, "generation"),
        desired=_text(desired, "payload"),
        desired_version=_text(desired, "version"),
        desired_generation=_whole(desired, "generation"),
        phase=_text(fields, "phase"),
        category=_text(fields, "category"),
        reason=_text(fields, "reason"),
        progress=_number(fields, "progress"),
        retry_seconds=_number(fields, "retry_seconds"),
    )


def cells(told: Told) -> tuple[str, str, str, str, str, str]:
    """Device, model, state, what serves, what is wished for, more."""
    progress = f"{100 * told.progress:.0f} %" if told.progress is not None and told.state == "DOWNLOADING" else ""
    again = f"again in {told.retry_seconds:.0f} s" if told.retry_seconds is not None else ""
    more = ", ".join(part for part in (told.phase, progress, told.category, told.reason, again) if part)
    serves = f"{told.active_version} ({told.active_generation})" if told.active else "nothing"
    wished = f"{told.desired_version} ({told.desired_generation})" if told.desired else "-"
    return told.device, told.model, told.state, serves, wished, more


def _demand(missed: list[str], hint: str) -> None:
    if missed:
        raise ArmletError("\n".join(["not every device got there", *missed]), hint=hint, kind=Kind.TARGET)


def _story(told: Told | None) -> str:
    if told is None:
        return "has told nothing of it"
    return ", ".join(part for part in (told.state, told.category, told.reason) if part)


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _whole(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if type(value) is int else 0


def _number(fields: dict[str, Any], name: str) -> float | None:
    value: Any = fields.get(name)
    # What is larger than a float can hold was read as infinity.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _LARGEST_NUMBER else None
