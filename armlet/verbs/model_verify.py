"""``inv model.verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge


@task(
    name="verify",
    positional=["payload"],
    auto_shortflags=False,
    help={
        "payload": "a *.payload file, or a payload's folder",
        "key": "a public key, or a folder of trusted ones (*.pub)",
        "unsigned": "check everything but who signed it",
        "to": "unpack it into this new folder",
        "limit-mib": "refuse more than this in all",
        "json": "print the result as JSON",
    },
)
@edge
def verify(
    _context: Any,
    payload: str,
    key: str = "",
    unsigned: bool = False,
    to: str = "",
    limit_mib: str = "512",
    json: bool = False,
) -> None:
    """Checks a payload as a device does: who signed it, every byte, and nothing beside."""
    from armlet.payload import verify as checking
    from armlet.sinks.tables import table

    limit = (cli.number("--limit-mib", limit_mib) or 1) << 20
    found = checking.verify(
        Path(payload),
        key=Path(key) if key else None,
        unsigned=unsigned,
        limit=limit,
        to=Path(to) if to else None,
    )
    rows = [
        ("version", f"{found.version}, generation {found.generation}"),
        ("payload.json", f"sha256 {found.sha256}"),
        ("signed by", f"{found.key} {found.fingerprint}" if found.key else "not looked at"),
        ("files", f"{found.files}, {found.size:,} bytes"),
    ]
    cli.show_json(found) if json else cli.show(table(("what", found.model), rows))
