"""The front end, put together."""

from __future__ import annotations

from .http import Server
from .interface import Engine
from .limits import Limits
from .listening import Address
from .metrics import Metrics
from .page import page
from .routes import Routes, lanes


def front_end(engine: Engine, metrics: Metrics, address: Address, limits: Limits) -> Server:
    """A server that listens and does not answer yet; raises :class:`~.listening.ListenError`."""
    routes = Routes(engine, limits, lambda: page(engine, metrics, lambda: server.connections), metrics.http)
    server = Server(address, routes, lanes(limits), limits)
    return server
