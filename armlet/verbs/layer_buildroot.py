"""``inv layer.buildroot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge


@task(
    name="buildroot",
    iterable=["sku", "payload", "key"],
    auto_shortflags=False,
    help={
        "sku": "a SKU that is built; as often as there are runtimes in the tree",
        "payload": "a payload's archive or folder; may be given several times",
        "key": "a public key, or a folder of them: the device serves what one of them signed",
        "out": "folder (default: dist/br2-onnx)",
        "json": "print the result as JSON",
    },
)
@edge
def buildroot(
    _context: Any, sku: Any = None, payload: Any = None, key: Any = None, out: str = "", json: bool = False
) -> None:
    """Makes a tree for Buildroot (BR2_EXTERNAL): runtimes, service, and models as packages."""
    from armlet.layers import buildroot as layer
    from armlet.sinks.tables import table

    with cli.run("layer-buildroot") as (paths, _emit):
        place = Path(out) if out else paths.dist("br2-onnx")
        told = layer.emit(
            paths, place, skus=sku or (), payloads=[*map(Path, payload or ())], keys=[*map(Path, key or ())]
        )
    rows = [(what, path) for what in ("written", "kept", "offered", "removed") for path in getattr(told, what)]
    cli.show_json(told) if json else cli.show(table(("what", str(place)), rows))
