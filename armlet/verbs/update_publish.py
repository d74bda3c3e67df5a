"""``inv update.publish``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind
from armlet.verbs.mqtt_flags import HELP, ITERABLE, Flags, with_broker


@task(
    name="publish",
    positional=["payload"],
    iterable=[*ITERABLE, "sku", "runtime"],
    auto_shortflags=False,
    help={
        "payload": "a *.payload file",
        "url": "where the devices get it from: https://…",
        "blocks": "they get it over MQTT, from: inv update.send",
        "block-size": "bytes of a block, with --blocks",
        "key": "a public key, or a folder of trusted ones (*.pub), as the devices have them",
        "unsigned": "do not look at who signed it; the devices do",
        "sku": "refuse what does not fit this SKU's runtime; may be given several times",
        "runtime": "the same for a runtime.json; may be given several times",
        "dry-run": "check, print what would be published, and do not",
        "json": "print the result as JSON",
        **HELP,
    },
)
@edge
@with_broker
def publish(
    _context: Any,
    payload: str,
    url: str = "",
    blocks: bool = False,
    block_size: str = "",
    key: str = "",
    unsigned: bool = False,
    sku: Any = None,
    runtime: Any = None,
    dry_run: bool = False,
    json: bool = False,
    *,
    flags: Flags,
) -> None:
    """Checks a payload, and tells devices to serve it: a retained message for each."""
    from armlet.onnx import fleet
    from armlet.sinks.tables import table
    from armlet.updates import broker as brokers
    from armlet.updates import wish as wishing

    if bool(url) == blocks:
        hint = "--url https://… or --blocks"
        raise ArmletError("it must be said how the payload comes to the devices", hint=hint, kind=Kind.INPUT)
    if block_size and not blocks:
        raise ArmletError("--block-size is for --blocks", hint="leave it out", kind=Kind.INPUT)
    where = None if dry_run else flags.where()
    routes, devices = flags.routes(), flags.devices()
    if not devices:
        hint = "--device NAME, once for each, or --devices-file FILE"
        raise ArmletError("no device is named", hint=hint, kind=Kind.INPUT)
    size = cli.number("--block-size", block_size) or wishing.DEFAULT_BLOCK
    wanted = wishing.wish(
        Path(payload), key=Path(key) if key else None, unsigned=unsigned, url=url, block_size=size if blocks else 0
    )
    if sku or runtime:
        fleet.demand(fleet.judge(cli.here(), Path(payload), skus=sku or (), against=runtime or ()))
    message = wishing.message(wanted)
    topics = dict(zip(devices, routes.filters("desired", devices, wanted.model), strict=True))
    if where is not None:
        with brokers.connected(where) as connection:
            for at in topics.values():
                connection.publish(at, message, retain=True)
    if json:
        cli.show_json({"message": loads(message), "topics": topics, "published": not dry_run})
        return
    told = "would be published" if dry_run else "published"
    cli.show(f"{wanted.model} {wanted.version}, generation {wanted.generation}, payload.json {wanted.payload}\n")
    cli.show(table(("device", told), topics.items()))
