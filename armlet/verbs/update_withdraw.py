"""``inv update.withdraw``."""

from __future__ import annotations

from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind
from armlet.verbs.mqtt_flags import HELP, ITERABLE, Flags, with_broker


@task(
    name="withdraw",
    iterable=ITERABLE,
    auto_shortflags=False,
    help={"model": "whose wish it is", "json": "print the result as JSON", **HELP},
)
@edge
@with_broker
def withdraw(_context: Any, model: str = "", json: bool = False, *, flags: Flags) -> None:
    """Takes wishes back, from the broker too; what a device serves already, it goes on serving."""
    from armlet_runtime.update import topics as known

    from armlet.sinks.tables import table
    from armlet.updates import broker as brokers

    where, routes, devices = flags.where(), flags.routes(), flags.devices()
    if not devices:
        hint = "--device NAME, once for each, or --devices-file FILE"
        raise ArmletError("no device is named", hint=hint, kind=Kind.INPUT)
    if not known.MODEL.fullmatch(model):
        raise ArmletError(f'--model: "{model}" is no model', hint="--model NAME, as it serves", kind=Kind.INPUT)
    topics = dict(zip(devices, routes.filters("desired", devices, model), strict=True))
    with brokers.connected(where) as connection:
        for at in topics.values():
            connection.publish(at, b"", retain=True)
    if json:
        cli.show_json({"topics": topics})
        return
    cli.show(table(("device", "taken back"), topics.items()))
