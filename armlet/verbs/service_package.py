"""``inv service.package``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind


@task(
    name="package",
    auto_shortflags=False,
    help={
        "format": "what to make: deb, ipk, rpm, apk, wheel, folder; several with commas (default: all)",
        "maintainer": "Name <mail>, for packages",
        "out": "folder (default: dist/service)",
        "json": "print the result as JSON",
    },
)
@edge
def package(_context: Any, format: str = "", maintainer: str = "", out: str = "", json: bool = False) -> None:
    """Packs the inference service for devices."""
    from armlet.nfpm import MAINTAINER
    from armlet.service import package as service
    from armlet.sinks.tables import table

    formats = [name.strip() for name in format.split(",")] if format else list(service.FORMATS)
    wanted = [known for known in service.FORMATS if known in formats]
    for name in formats:
        if name not in wanted:
            raise ArmletError(
                f'--format: unknown "{name}"', hint=f"known: {', '.join(service.FORMATS)}", kind=Kind.INPUT
            )
    with cli.run("service-package") as (paths, emit):
        place = Path(out) if out else paths.dist("service")
        made = service.package(paths, place, wanted, maintainer=maintainer or MAINTAINER, emit=emit)
    cli.show_json(made) if json else cli.show(table(("what", "file"), [(kind, str(at)) for kind, at in made.items()]))
