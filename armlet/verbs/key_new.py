"""``inv key.new``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.verbs import passphrase as asked


@task(
    name="new",
    auto_shortflags=False,
    help={
        "name": "of the key, and so of its files",
        "out": "folder (default: the current one)",
        "passphrase": "ask for one on the terminal",
        "passphrase-env": "take it from this environment variable",
        "json": "print the result as JSON",
    },
)
@edge
def new(
    _context: Any, name: str, out: str = ".", passphrase: bool = False, passphrase_env: str = "", json: bool = False
) -> None:
    """Makes a key to sign payloads with: <name>.key stays with you, <name>.pub goes onto devices."""
    from armlet.payload import keys
    from armlet.sinks.tables import table

    words = asked.from_variable(passphrase_env, os.environ) if passphrase_env else ""
    made = keys.new_key(name, Path(out), passphrase=words or (asked.new_passphrase(name) if passphrase else ""))
    rows = [("private", str(made.private)), ("public", str(made.public)), ("fingerprint", made.fingerprint)]
    cli.show_json(made) if json else cli.show(table(("what", name), rows))
