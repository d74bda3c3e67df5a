"""Where the shared caches are, as the environment says it. Passwords stay out of everything that is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from armlet.errors import ArmletError, Kind

STORE = "ARMLET_STORE"
COMPILE_CACHE = "ARMLET_COMPILE_CACHE"
WRITE = "ARMLET_SHARE"
TOKEN = "ARMLET_STORE_TOKEN"
SHARING = frozenset({STORE, COMPILE_CACHE, WRITE, TOKEN})

_OBJECTS = ("http", "https", "s3")
_COMPILED = ("http", "https", "redis", "rediss")
_DATABASE = re.compile(r"/?|/[0-9]{1,5}/?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A place on the network; ``url`` has no credentials and no trailing slash."""

    url: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def scheme(self) -> str:
        return self.url.partition(":")[0]

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What this process shares with others; all of it may be unset."""

    store: Address | None = None
    """Of finished steps."""
    compiled: Address | None = None
    """Of compiled objects: ccache's remote storage."""
    write: bool = False
    """Whether what is made here goes into them."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Settings:
        """Raises:
        ArmletError: (INPUT) a variable holds no address.
        """
        token = environment.get(TOKEN) or None
        return cls(
            store=_optional(environment, STORE, _OBJECTS, token),
            compiled=_optional(environment, COMPILE_CACHE, _COMPILED, token),
            write=_switch(environment),
        )

    @classmethod
    def here(cls) -> Settings:
        return cls.of(os.environ)


def address(name: str, text: str, *, token: str | None = None) -> Address:
    """Where objects may be kept, out of a flag or variable ``name``.

    Raises:
        ArmletError: (INPUT) it is no address; the message does not repeat it, as it may hold a password.
    """
    return _address(name, text, _OBJECTS, token)


def _optional(environment: Mapping[str, str], name: str, schemes: tuple[str, ...], token: str | None) -> Address | None:
    text = environment.get(name, "").strip()
    return _address(name, text, schemes, token) if text else None


def _address(name: str, text: str, schemes: tuple[str, ...], token: str | None) -> Address:
    try:
        parts = urlsplit(text)
        host = parts.hostname
        # Reading the port checks it.
        sound = parts.scheme in schemes and bool(host) and parts.port != 0 and not (parts.query or parts.fragment)
    except ValueError:
        sound = False
    if sound and parts.scheme == "s3":
        sound = _BUCKET.fullmatch(parts.netloc) is not None
    if sound and parts.scheme in ("redis", "rediss"):
        sound = _DATABASE.fullmatch(parts.path) is not None
    # A dot as a folder is resolved on the way, and the files are elsewhere than the address says.
    dotted = sound and not {".", ".."}.isdisjoint(unquote(parts.path).split("/"))
    if not sound or dotted or any(ord(character) <= 32 for character in text):
        raise ArmletError(
            f"{name} is no address that can be used",
            hint=f"write it as {' or '.join(map(_example, schemes))}, without ? and #",
            kind=Kind.INPUT,
        )
    return Address(
        url=urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", "")),
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        token=token if parts.scheme in ("http", "https") and parts.username is None else None,
    )


def _example(scheme: str) -> str:
    return {"s3": "s3://bucket/prefix", "redis": "redis://host:6379/0", "rediss": "rediss://host:6379/0"}.get(
        scheme, f"{scheme}://host/path"
    )


def _switch(environment: Mapping[str, str]) -> bool:
    text = environment.get(WRITE, "").strip()
    if text not in ("", "0", "1"):
        raise ArmletError(
            f'{WRITE}="{text}" is neither 0 nor 1', hint=f"export {WRITE}=1, or unset it", kind=Kind.INPUT
        )
    return text == "1"
