"""``inv layer.yocto``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge


@task(
    name="yocto",
    iterable=["sku", "payload", "key", "machine"],
    auto_shortflags=False,
    help={
        "sku": "a SKU that is built; several times, the first of an architecture is its machines' default",
        "payload": "a model's archive (.payload) or folder; several times",
        "key": "a public key that payloads are signed by, and that the image trusts; several times",
        "machine": "<machine>=<sku>; several times",
        "base": "where the image's builder fetches the runtime's tarballs (default: they are in the layer)",
        "out": "the layer's folder; what you changed in one that is there stays",
        "json": "print the result as JSON",
    },
)
@edge
def yocto(
    _context: Any,
    out: str,
    sku: Any = None,
    payload: Any = None,
    key: Any = None,
    machine: Any = None,
    base: str = "",
    json: bool = False,
) -> None:
    """Writes a Yocto layer: runtimes, the device's Python package, the service, and models."""
    from armlet.layers import emitted
    from armlet.layers.yocto import Choices

    with cli.run("layer-yocto") as (paths, _emit):
        told = emitted.yocto(
            paths,
            Path(out),
            skus=sku or (),
            payloads=[Path(one) for one in payload or ()],
            keys=[Path(one) for one in key or ()],
            choices=Choices(machines=emitted.machines(machine or ()), base=base),
        )
    cli.show_json(told) if json else cli.show(rendered(told.tree.kept, told.tree.offered, told.rows))


def rendered(kept: Sequence[str], offered: Sequence[str], rows: Sequence[tuple[str, str, str]]) -> str:
    """What is in the layer, and which files are the user's."""
    from armlet.sinks.tables import table

    yours = [(path, "yours; beside it: .armlet-new" if path in offered else "yours", "") for path in kept]
    return table(("recipe", "what", "for"), [*rows, *yours])
