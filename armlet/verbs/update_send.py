"""``inv update.send``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind
from armlet.verbs.mqtt_flags import HELP, ITERABLE, Flags, with_broker


@task(
    name="send",
    positional=["payload"],
    iterable=[*ITERABLE, "also"],
    auto_shortflags=False,
    help={
        "payload": "a *.payload file, as it was published",
        "also": "another one; may be given several times",
        "seconds": "end after so many, with 0 (default: when interrupted)",
        **HELP,
        "device": "whom to answer (default: whoever asks); may be given several times",
    },
)
@edge
@with_broker
def send(
    _context: Any,
    payload: str,
    also: Any = None,
    seconds: str = "",
    *,
    flags: Flags,
) -> None:
    """Answers devices that ask for blocks of payloads, until it is interrupted."""
    from armlet.updates import broker as brokers
    from armlet.updates import send as sending
    from armlet.updates import wish as wishing

    until = time.monotonic() + cli.decimal("--seconds", seconds) if seconds else float("inf")
    where, routes, devices = flags.where(), flags.routes(), flags.devices()
    archives = [wishing.archive(Path(one)) for one in (payload, *(also or ()))]
    empty = next((one for one in archives if not one.size), None)
    if empty is not None:
        hint = "name *.payload files, as inv model.pack makes them"
        raise ArmletError("it is empty", hint=hint, kind=Kind.INPUT, where=str(empty.path))
    with cli.run("update-send") as (_, emit), brokers.connected(where) as connection:
        sender = sending.Sender(connection, routes, archives, emit, devices)
        sender.run(lambda: time.monotonic() >= until)
