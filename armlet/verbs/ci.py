"""``inv ci.matrix``, ``inv ci.workflow`` and ``inv ci.publish``."""

from __future__ import annotations

import json
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind

_SERVICES = ("github", "gitlab")
_FOR = f"{' or '.join(_SERVICES)}"


@task(
    name="matrix",
    auto_shortflags=False,
    help={"all": "those that were built before too", "for": f"the form: {_FOR}"},
)
@edge
def matrix_(_context: Any, all: bool = False, for_: str = "github") -> None:
    """Prints the SKUs that a CI has to build, on one line of JSON."""
    from armlet import matrix
    from armlet.remote.settings import Settings

    service = _service(for_)
    with cli.run("ci-matrix") as (paths, emit):
        found = matrix.rows(paths, emit, all=all)
    made = matrix.github(found) if service == "github" else matrix.gitlab(found, share=Settings.here().write)
    cli.show(json.dumps(made, separators=(",", ":")))


@task(name="workflow", auto_shortflags=False, help={"for": _FOR})
@edge
def workflow(_context: Any, for_: str = "github") -> None:
    """Prints the CI's own file, to be kept in the repository."""
    from armlet import workflows

    cli.show(workflows.text(_service(for_)).rstrip("\n"))


@task(
    name="publish",
    positional=["sku"],
    auto_shortflags=False,
    help={
        "sku": "name of a file in recipes/skus, without .yaml; it has to be built",
        "to": "http, https or s3 address of a folder (default: ARMLET_PUBLISH, which no list of processes shows)",
        "json": "print the result as JSON",
    },
)
@edge
def publish(_context: Any, sku: str, to: str = "", json: bool = False) -> None:
    """Puts what was built and packed of a SKU on a server, SHA256SUMS last."""
    from armlet import releases
    from armlet.sinks.tables import table

    with cli.run(f"ci-publish-{sku}") as (paths, emit):
        made = releases.publish(paths, sku, to, emit)
    if json:
        cli.show_json(made)
    else:
        cli.show(table(("file", "now"), [(name, "sent" if name in made.sent else "there") for name in made.files]))
        cli.show(made.url)


def _service(name: str) -> str:
    if name not in _SERVICES:
        raise ArmletError(f'--for: unknown "{name}"', hint=f"known: {', '.join(_SERVICES)}", kind=Kind.INPUT)
    return name
