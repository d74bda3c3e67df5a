"""``inv package``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind

# What a CI sets, whose file is the same for everybody.
_REVISION, _MAINTAINER = "ARMLET_REVISION", "ARMLET_MAINTAINER"


@task(
    name="package",
    positional=["sku"],
    auto_shortflags=False,
    iterable=["format"],
    help={
        "sku": "name of a file in recipes/skus, without .yaml; it has to be built",
        "format": "what to make: deb, ipk, rpm, apk, tar, wheel; several with commas or flags (default: all)",
        "revision": "counts what was handed out of one version of ONNX Runtime: 1.21.0+armlet<revision> "
        f"(default: {_REVISION}, else 1)",
        "maintainer": f"Name <mail> (default: {_MAINTAINER})",
        "ipk-for": "whose names an ipk has: openwrt, yocto",
        "ipk-arch": "the architecture as opkg on the device knows it (default: by the SKU's core)",
        "out": "folder (default: dist/packages/<sku>)",
        "json": "print the result as JSON",
    },
)
@edge
def package(
    _context: Any,
    sku: str,
    format: Any = None,
    revision: str = "",
    maintainer: str = "",
    ipk_for: str = "openwrt",
    ipk_arch: str = "",
    out: str = "",
    json: bool = False,
) -> None:
    """Packs a built SKU for distributions: runtime, headers, debug data, and the service."""
    from armlet.nfpm import MAINTAINER
    from armlet.packages import runtime as packages
    from armlet.packages.families import IPK
    from armlet.sinks.tables import table

    named = [name.strip() for one in format or () for name in one.split(",")]
    _demand_known("--format", named, packages.FORMATS)
    _demand_known("--ipk-for", [ipk_for], IPK)
    options = packages.Options(
        formats=[known for known in packages.FORMATS if not named or known in named],
        revision=cli.number("--revision", revision) or cli.number(_REVISION, os.environ.get(_REVISION, "")) or 1,
        maintainer=maintainer or os.environ.get(_MAINTAINER) or MAINTAINER,
        ipk=next(known for known in IPK if known == ipk_for),
        ipk_arch=ipk_arch,
    )
    with cli.run(f"package-{sku}") as (paths, emit):
        place = Path(out) if out else paths.dist("packages") / sku
        made = packages.package(paths, sku, place, options, emit=emit)
    rows = [(one.what, str(one.path)) for one in made]
    cli.show_json([{"what": what, "file": path} for what, path in rows]) if json else cli.show(
        table(("what", "file"), rows)
    )


def _demand_known(flag: str, named: list[str], known: tuple[str, ...]) -> None:
    for name in named:
        if name not in known:
            raise ArmletError(f'{flag}: unknown "{name}"', hint=f"known: {', '.join(known)}", kind=Kind.INPUT)
