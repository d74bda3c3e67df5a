"""``inv update.watch``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind
from armlet.verbs.mqtt_flags import HELP, ITERABLE, Flags, with_broker


@task(
    name="watch",
    iterable=ITERABLE,
    auto_shortflags=False,
    help={
        "model": "only this one",
        "until": "end with 0 once each --device has told this state, with 6 where one fails for good; such as UPDATED",
        "payload": "a *.payload file: with --until, only states of an update to it count",
        "seconds": "end after so many: with --until with 6, without it with 0",
        "json": "a line of JSON for each state",
        **HELP,
        "device": "whose states (default: all); may be given several times",
    },
)
@edge
@with_broker
def watch(
    _context: Any,
    model: str = "",
    until: str = "",
    payload: str = "",
    seconds: str = "",
    json: bool = False,
    *,
    flags: Flags,
) -> None:
    """Shows what devices tell of their updates, as it comes."""
    import json as jsons
    from dataclasses import asdict

    from armlet.payload import verify as checking
    from armlet.updates import broker as brokers
    from armlet.updates import watch as watching

    where, routes, devices = flags.where(), flags.routes(), flags.devices()
    wanted = checking.verify(Path(payload), key=None, unsigned=True) if payload else None
    goal = None
    if until:
        if until not in watching.STATES:
            hint = f"known: {', '.join(watching.STATES)}"
            raise ArmletError(f'--until: unknown "{until}"', hint=hint, kind=Kind.INPUT)
        if not devices:
            hint = "--device NAME, once for each, or --devices-file FILE"
            raise ArmletError("--until has to know who is waited for", hint=hint, kind=Kind.INPUT)
        goal = watching.Goal(until, devices, wanted.sha256 if wanted else "")
        model = model or (wanted.model if wanted else "")
        if not model:
            hint = "--payload FILE, or --model NAME"
            raise ArmletError("--until has to know of which model", hint=hint, kind=Kind.INPUT)
    elif payload:
        raise ArmletError("--payload is for --until", hint="--until UPDATED", kind=Kind.INPUT)
    limit = cli.decimal("--seconds", seconds) if seconds else None
    if not json:
        cli.show(_line(("DEVICE", "MODEL", "STATE", "SERVES", "WISHED", "")))
    with brokers.connected(where) as connection:
        for told in watching.watch(connection, routes, devices, model, goal, limit):
            cli.show(jsons.dumps(asdict(told)) if json else _line(watching.cells(told)))


def _line(cells: tuple[str, ...]) -> str:
    """Columns of fixed widths: the rows to come are not known yet."""
    from armlet.errors import printable

    widths = (20, 16, 12, 16, 16, 0)
    return "  ".join(printable(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
