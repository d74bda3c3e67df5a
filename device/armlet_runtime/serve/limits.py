"""How much the front end takes from its clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds.

    At any moment all bodies that are in hand take at most ``bodies_bytes``. One JSON text is parsed at a time,
    and takes at most 24 times its size and 16 MiB more (``json_arrays`` and ``json_objects`` see to it).
    """

    connections: int = 64
    """At once. One more takes the place of one that is slow, or else idle, or is told to come later."""
    head_bytes: int = 16 << 10
    head_fields: int = 64
    body_bytes: int = 32 << 20
    bodies_bytes: int = 64 << 20
    json_bytes: int = 4 << 20
    json_arrays: int = 128 << 10
    json_objects: int = 4 << 10
    inferences: int = 4
    """Requests that are with the engine at once; its own queues come behind."""
    waiting: int = 16
    """Inferences that have been read and wait for their turn; one more is answered 503."""
    idle_seconds: float = 60.0
    """A connection on which nothing was asked is closed after this."""
    head_seconds: float = 10.0
    """From a request's first byte to the end of its head."""
    stall_seconds: float = 10.0
    """Without a byte of a body coming in, or of an answer going out."""
    body_seconds: float = 60.0
    """For a whole body."""
    infer_seconds: float = 30.0
    """Longest time for an inference; a request may ask for less."""
    retry_after: float = 1.0
    """What a refused client is told to wait."""
