"""What the values of a configuration mean; each function raises :class:`ValueError` with what was wanted."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Callable, TypeVar

from armlet_runtime.serve.chain import KNOWN, key_of
from armlet_runtime.serve.ini import near, shown
from armlet_runtime.serve.listening import LONGEST_SOCKET_PATH, Address, TcpAddress, UnixAddress
from armlet_runtime.serve.queue import POLICIES, Policy

N = TypeVar("N", int, float)

_WORDS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}
_PROVIDER = re.compile(r"[a-z][a-z0-9_]*")


def switch(text: str) -> bool:
    """``yes`` or ``no``."""
    if text.lower() not in _WORDS:
        raise ValueError("yes or no")
    return _WORDS[text.lower()]


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number in a range, both ends included."""
    return _between(int, "a whole number", low, high)


def number(low: float, high: float) -> Callable[[str], float]:
    """A number in a range, both ends included."""
    return _between(float, "a number", low, high)


def path(text: str) -> Path:
    """An absolute path."""
    if not text.startswith("/") or "\0" in text:
        raise ValueError("a path that begins with /")
    return Path(text)


def path_or_none(text: str) -> Path | None:
    """An absolute path; empty: none."""
    return path(text) if text else None


def address(text: str) -> Address:
    """``127.0.0.1:8080``, ``[::1]:8080`` or ``unix:/run/armlet/serve.sock``."""
    if text.startswith("unix:"):
        place = text[len("unix:") :]
        if not place.startswith("/"):
            raise ValueError("unix: and a path that begins with /")
        if len(place.encode()) > LONGEST_SOCKET_PATH:
            raise ValueError(f"a path of at most {LONGEST_SOCKET_PATH} bytes, and this has {len(place.encode())}")
        return UnixAddress(place)
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or (":" in bare) != (bare != host) or not (port.isdecimal() and port.isascii()) or int(port) > 65535:
        raise ValueError("address:port such as 127.0.0.1:8080 or [::1]:8080, or unix:/path")
    return TcpAddress(bare, int(port))


def policy(text: str) -> Policy:
    """One of the queue's policies."""
    for known in POLICIES:
        if text == known:
            return known
    raise ValueError(f"one of {', '.join(POLICIES)}")


def providers(text: str) -> tuple[str, ...] | None:
    """``vsinpu, xnnpack, cpu``: names, separated by commas; empty: what the payload says."""
    names = [key_of(part) for part in text.split(",") if part.strip()]
    for name in names:
        if not _PROVIDER.fullmatch(name):
            raise ValueError(f'names of providers separated by commas, and "{shown(name)}" is none')
    if len(set(names)) != len(names):
        raise ValueError("each provider once")
    if "cpu" in names[:-1]:
        raise ValueError("cpu at the end: what comes after it would never be used")
    return tuple(names) or None


def unknown_providers(names: tuple[str, ...], reported: tuple[str, ...]) -> list[str]:
    """In words, each name that neither this runtime nor any other has."""
    known = {*KNOWN, *map(key_of, reported)}
    return [f'no runtime has a provider "{name}"{near(name, sorted(known))}' for name in names if name not in known]


def shares(text: str) -> dict[str, float]:
    """``xnnpack 0.8, acl 0.1``: provider and least share of the nodes; empty: none is asked for."""
    found: dict[str, float] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        words = part.split()
        name = key_of(words[0])
        if len(words) != 2 or not _PROVIDER.fullmatch(name) or name in found:
            raise ValueError('a provider and a share of 0 to 1, such as "xnnpack 0.8", each provider once')
        found[name] = number(0, 1)(words[1])
    return found


def _between(kind: Callable[[str], N], what: str, low: N, high: N) -> Callable[[str], N]:
    def read(text: str) -> N:
        try:
            value = kind(text)
        except ValueError:
            raise ValueError(f"{what} from {low} to {high}") from None
        if not low <= value <= high or math.isnan(value):
            raise ValueError(f"{what} from {low} to {high}")
        return value

    return read
