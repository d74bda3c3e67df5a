"""Which execution providers a model is tried with, and in which order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Sequence, TypeVar

from armlet_runtime import ort

S = TypeVar("S")
CPU = "cpu"
_SUFFIX = "executionprovider"
MOST = 6
"""Accelerated providers of one chain: each more doubles the combinations that a broken one may cost."""

KNOWN = (
    *("acl", "azure", "cann", "coreml", "cpu", "cuda", "dml", "dnnl", "js", "migraphx", "nnapi", "openvino", "qnn"),
    *("rknpu", "rocm", "snpe", "tensorrt", "vitisai", "vsinpu", "webgpu", "webnn", "xnnpack"),
)
"""Providers of some library or other: a device file for a fleet may name what this one device has not."""


@dataclass(frozen=True)
class Wanted:
    """A provider by its short name (``xnnpack``), with its options."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


def key_of(name: str) -> str:
    """``xnnpack`` for XNNPACK and XnnpackExecutionProvider."""
    key = name.strip().lower()
    return key[: -len(_SUFFIX)] if key.endswith(_SUFFIX) else key


def wanted(
    payload: Sequence[Mapping[str, Any]], device: Sequence[str] | None, options: Mapping[str, Mapping[str, str]]
) -> list[Wanted]:
    """The chain of a payload (``providers`` of payload.json), or the device's own in place of it.

    The payload's options of a provider stay, and the device's come over them. The CPU provider is always last; what
    comes after it, or a second time, would never be used and is left out.
    """
    given = {key_of(choice["name"]): choice.get("options", {}) for choice in payload}
    order = [key_of(name) for name in (given if device is None else device)]
    chain = [name for name in dict.fromkeys(order) if name != CPU]
    if CPU in order:
        chain = [name for name in chain if order.index(name) < order.index(CPU)]
    return [Wanted(name, {**given.get(name, {}), **options.get(name, {})}) for name in [*chain, CPU]]


def usable(
    chain: Sequence[Wanted], reported: Sequence[str], avoid: Mapping[str, str]
) -> tuple[list[Wanted], dict[str, str]]:
    """What of a chain can be tried, and why the rest (by short name) cannot.

    ``reported`` are the official names of the library's providers; ``avoid`` says why one is not to be tried.
    """
    there = {key_of(name) for name in reported}
    lacking = f"this runtime was built without it; it has {', '.join(sorted(there))}"
    skipped = {choice.name: lacking for choice in chain if choice.name not in there}
    skipped.update({choice.name: avoid[choice.name] for choice in chain if choice.name in avoid})
    left = [choice for choice in chain if choice.name not in skipped and choice.name != CPU]
    for choice in left[MOST:]:
        skipped[choice.name] = f"a chain has at most {MOST} providers before the CPU's"
    return [*left[:MOST], *(choice for choice in chain if choice.name == CPU)], skipped


def attempts(chain: Sequence[Wanted]) -> Iterator[tuple[Wanted, ...]]:
    """The chain, then it with ever less in front of the CPU provider; of equally long ones, the preferred first."""
    front = [choice for choice in chain if choice.name != CPU]
    last = [choice for choice in chain if choice.name == CPU]
    for count in range(len(front), -1, -1):
        for combination in itertools.combinations(front, count):
            yield (*combination, *last)


def first_that_works(
    chain: Sequence[Wanted], make: Callable[[Sequence[Wanted]], S]
) -> tuple[S, tuple[Wanted, ...], dict[str, str]]:
    """What ``make`` makes of the longest chain that it takes, that chain, and why others (by name) are not in it.

    Raises :class:`armlet_runtime.ort.OrtError` where the last of all fails too: then it is not the providers' fault.
    """
    reasons: dict[str, str] = {}
    failure: ort.OrtError | None = None
    for attempt in attempts(chain):
        try:
            made = make(attempt)
        except ort.OrtError as error:
            failure = error
            for choice in attempt:
                reasons.setdefault(choice.name, error.message)
            continue
        used = {choice.name for choice in attempt}
        return made, attempt, {name: reason for name, reason in reasons.items() if name not in used}
    raise failure or ValueError("an empty chain")


def refusal(choice: Wanted, library: ort.Library | str | None) -> str:
    """Why a library does not take a provider with its options, asked without a model; empty: it does."""
    try:
        ort.try_provider(choice.name, choice.options, library)
    except ort.OrtError as error:
        return in_one_line(error.message)
    return ""


def in_one_line(text: str) -> str:
    """A message of the library for a log."""
    return " ".join(map(str.strip, text.splitlines()))


def short_of(wanted_shares: Mapping[str, float], shares: Mapping[str, float]) -> list[str]:
    """In words, each provider that ran less than its least share of nodes; official names count as the short ones."""
    got = {key_of(name): share for name, share in shares.items()}
    return [
        f"{name} ran {got.get(name, 0.0):.0%} of the nodes, and min_provider_share asks for {share:.0%}"
        for name, share in wanted_shares.items()
        if got.get(name, 0.0) < share
    ]
