"""Where compiled objects are shared: a Redis or HTTP server, in ccache's own layout, so that any ccache may use it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Protocol, TypeVar

from armlet.remote.objects import Objects, Unavailable, Wrong
from armlet.remote.settings import Address

_LARGEST = 256 << 20
_SECONDS = 10.0

_NO_REPLY = (ValueError, TypeError, AttributeError, RecursionError)
"""What the client makes of an answer that is none."""

T = TypeVar("T")


class Backend(Protocol):
    """Values by key, a key being ``ccache:<hash>``. Each may raise ``Unavailable``."""

    def get(self, key: str) -> bytes | None: ...
    def has(self, key: str) -> bool: ...
    def put(self, key: str, value: bytes) -> None: ...


def backend(address: Address) -> Backend:
    return OnRedis(address) if address.scheme in ("redis", "rediss") else OnHttp(address)


class OnHttp:
    """``<root>/<first two characters of the hash>/<the others>``, as ccache's HTTP storage has it."""

    def __init__(self, address: Address) -> None:
        self._objects = Objects(address)

    def get(self, key: str) -> bytes | None:
        value = io.BytesIO()
        try:
            found = self._objects.read(_path(key), value, most=_LARGEST)
        except Wrong as error:
            raise Unavailable(str(error)) from error
        return None if found is None else value.getvalue()

    def has(self, key: str) -> bool:
        return self._objects.size(_path(key)) is not None

    def put(self, key: str, value: bytes) -> None:
        self._objects.write(_path(key), io.BytesIO(value), len(value))


def _path(key: str) -> str:
    name = key.partition(":")[2]
    return f"{name[:2]}/{name[2:]}"


class OnRedis:
    def __init__(self, address: Address) -> None:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self._client = Redis.from_url(
            address.url,
            # ccache's form has a password alone where a user might be.
            username=address.user if address.password is not None else None,
            password=address.password if address.password is not None else address.user,
            socket_timeout=_SECONDS,
            socket_connect_timeout=_SECONDS,
            # A compiler waits meanwhile.
            retry=Retry(NoBackoff(), 1),
        )

    def get(self, key: str) -> bytes | None:
        def ask() -> bytes | None:
            value = self._client.get(key)
            return value if isinstance(value, bytes) else None

        return _explained(ask)

    def has(self, key: str) -> bool:
        return _explained(lambda: bool(self._client.exists(key)))

    def put(self, key: str, value: bytes) -> None:
        _explained(lambda: self._client.set(key, value))


def _explained(ask: Callable[[], T]) -> T:
    from redis.exceptions import RedisError

    try:
        return ask()
    except (RedisError, OSError) as error:
        raise Unavailable(f"{type(error).__name__}: {str(error)[:200]}") from error
    except _NO_REPLY as error:
        raise Unavailable("it does not speak as a Redis does") from error
