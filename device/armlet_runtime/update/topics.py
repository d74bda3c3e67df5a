"""Which topic says what: templates of the device's file, made into topics, and topics that came, read back. Pure.

A template is a whole topic with names in braces. ``{prefix}`` and ``{device}`` may stand anywhere; ``{model}``,
``{archive}`` (sha256, hex) and ``{block}`` (a number) are a level each.
"""

from __future__ import annotations

import difflib
import re
from typing import Iterator, Literal, Mapping, NamedTuple

Kind = Literal["desired", "state", "wanted", "block", "availability", "telemetry", "alerts"]

PREFIX = "armlet/v1/{device}"
TEMPLATES: Mapping[Kind, str] = {
    "desired": "{prefix}/models/{model}/desired",
    "state": "{prefix}/models/{model}/state",
    "wanted": "{prefix}/models/{model}/blocks/wanted",
    "block": "{prefix}/models/{model}/blocks/{archive}/{block}",
    "availability": "{prefix}/availability",
    "telemetry": "{prefix}/telemetry",
    "alerts": "{prefix}/alerts",
}
RECEIVED: tuple[Kind, ...] = ("desired", "block")
"""What the device listens to; it tells the others."""
LONGEST = 256
"""Bytes of a topic; some brokers take no more."""

MODEL = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")

_OPTIONAL: Mapping[Kind, frozenset[str]] = {
    "desired": frozenset({"model"}),
    "state": frozenset({"model"}),
    "wanted": frozenset({"model"}),
    "block": frozenset({"model", "archive", "block"}),
    "availability": frozenset(),
    "telemetry": frozenset(),
    "alerts": frozenset(),
}
_DEMANDED: Mapping[Kind, tuple[str, ...]] = {"block": ("archive", "block")}
_VALUES: Mapping[str, str] = {"model": MODEL.pattern, "archive": "[0-9a-f]{64}", "block": "0|[1-9][0-9]{0,8}"}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_FORBIDDEN = re.compile(r"[+#{}\x00-\x1f\x7f]")


class Match(NamedTuple):
    """What a topic that came says; ``model`` is empty where only the message has it."""

    kind: Kind
    model: str = ""
    archive: str = ""
    block: int = -1


def template(kind: Kind, text: str) -> str:
    """The text itself. Raises ValueError with what was wanted."""
    names = _PLACEHOLDER.findall(text)
    known = {"prefix", "device", *_OPTIONAL[kind]}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            told = f"did you mean {{{near[0]}}}?" if near else f"known: {', '.join(sorted(known))}"
            raise ValueError(f'a topic, and "{{{name}}}" is no name that it may have; {told}')
    for name in _DEMANDED.get(kind, ()):
        if name not in names:
            raise ValueError(f"a topic with {{{name}}} in it")
    _demand_levels(text)
    for level in text.split("/"):
        whole = _PLACEHOLDER.fullmatch(level)
        inner = set(_PLACEHOLDER.findall(level)) - {"prefix", "device"}
        if inner and not whole:
            raise ValueError(f"a topic in which {{{inner.pop()}}} is a level of its own, between slashes")
    if len(set(names)) != len(names):
        raise ValueError("a topic with each name once")
    return text


def prefix(text: str) -> str:
    """The text itself, which may hold ``{device}``. Raises ValueError with what was wanted."""
    if set(_PLACEHOLDER.findall(text)) - {"device"}:
        raise ValueError("the beginning of a topic, with no other name than {device} in it")
    _demand_levels(text)
    return text


def clashes(device: str, beginning: str, templates: Mapping[Kind, str]) -> Iterator[tuple[Kind, str]]:
    """(kind, what is wrong with it) of templates that are each right by itself, but not together or on this device."""
    whole = {kind: _filled(text, device, beginning) for kind, text in {**TEMPLATES, **templates}.items()}
    kinds = list(whole)
    for number, kind in enumerate(kinds):
        longest = _PLACEHOLDER.sub(lambda found: "x" * {"model": 64, "archive": 64}.get(found[1], 9), whole[kind])
        if len(longest.encode()) > LONGEST:
            yield kind, f"its topic would have up to {len(longest.encode())} bytes, more than {LONGEST}"
        for other in kinds[:number]:
            if _overlap(whole[kind], whole[other]):
                yield kind, f"a message on topic_{kind} could as well be one on topic_{other}"


class Topics:
    """One device's topics, of templates that are right."""

    def __init__(self, device: str, beginning: str = PREFIX, templates: Mapping[Kind, str] | None = None) -> None:
        texts: dict[Kind, str] = {**TEMPLATES, **(templates or {})}
        self._texts = {kind: _filled(text, device, beginning) for kind, text in texts.items()}
        self._received = [(kind, _pattern(self._texts[kind])) for kind in RECEIVED]

    @property
    def filters(self) -> tuple[str, ...]:
        """What to subscribe to."""
        return tuple(_PLACEHOLDER.sub("+", self._texts[kind]) for kind in RECEIVED)

    def of(self, kind: Kind, model: str = "", archive: str = "", block: int = 0) -> str:
        """A topic."""
        values = {"model": model, "archive": archive, "block": str(block)}
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self._texts[kind])

    def match(self, topic: str) -> Match | None:
        """What a topic that came is for; None: nothing of ours."""
        for kind, pattern in self._received:
            found = pattern.fullmatch(topic)
            if found:
                values = found.groupdict()
                block = int(values["block"]) if "block" in values else -1
                return Match(kind, values.get("model", ""), values.get("archive", ""), block)
        return None


def _demand_levels(text: str) -> None:
    if not text or text.startswith("$") or any(not level for level in text.split("/")):
        raise ValueError("levels with a slash between each two, none of them empty, and no $ at the beginning")
    bare = _PLACEHOLDER.sub("", text)
    if _FORBIDDEN.search(bare) or not text.isprintable():
        raise ValueError("a topic without +, #, stray braces and what cannot be printed")


def _filled(text: str, device: str, beginning: str) -> str:
    return text.replace("{prefix}", beginning).replace("{device}", device)


def _pattern(text: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(text)
    # Literal text and names take turns.
    return re.compile(
        "".join(f"(?P<{part}>{_VALUES[part]})" if number % 2 else re.escape(part) for number, part in enumerate(parts))
    )


def _overlap(one: str, other: str) -> bool:
    levels, others = one.split("/"), other.split("/")
    free = [_PLACEHOLDER.fullmatch(a) or _PLACEHOLDER.fullmatch(b) or a == b for a, b in zip(levels, others)]
    return len(levels) == len(others) and all(free)
