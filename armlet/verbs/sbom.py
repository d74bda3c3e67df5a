"""``inv sbom``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind, host_error
from armlet.paths import Paths
from armlet.sbom.bill import CYCLONEDX, NOTICE, SPDX, Bill


@task(
    auto_shortflags=False,
    help={
        "sku": "a SKU that was built: what the build wrote, checked against its sums",
        "service": "the inference service's",
        "payload": "a payload's folder",
        "out": "folder to write to (default: the SKU's stay in dist/<sku>, the others' go to dist/sbom)",
        "json": "print the result as JSON",
    },
)
@edge
def sbom(
    _context: Any, sku: str = "", service: bool = False, payload: str = "", out: str = "", json: bool = False
) -> None:
    """Shows where the bills of materials are (CycloneDX, SPDX, and a SKU's NOTICE), and what they list."""
    from armlet.sbom import reading
    from armlet.sinks.tables import table

    if sum(map(bool, (sku, service, payload))) != 1:
        raise ArmletError("whose bill?", hint="give one of --sku, --service, --payload", kind=Kind.INPUT)
    paths = cli.here()
    place = Path(out) if out else None
    if sku:
        files = of_sku(paths, sku, place)
    else:
        found = _service(paths) if service else _payload(Path(payload))
        files = _written(found, place or paths.dist("sbom"))
    listed = reading.listed(files[0])
    if json:
        cli.show_json({"files": [str(path) for path in files], "components": listed})
        return
    cli.show(table(reading.HEAD, [tuple(row[key] for key in reading.HEAD) for row in listed]))
    cli.show("\n".join(str(path) for path in files))


def of_sku(paths: Paths, sku: str, out: Path | None) -> list[Path]:
    """The files of a SKU's build, or copies of them in ``out``.

    Raises:
        ArmletError: (INPUT) there is no such SKU, or it is not built; (GATE) they are not as the build left them;
            (HOST) they cannot be written.
    """
    from armlet import manifest, recipes
    from armlet.gates import demand_intact

    recipes.SKUS.require(paths, sku)
    dist = paths.dist(sku)
    demand_intact(dist)
    if (dist / manifest.FILE).is_file():
        manifest.demand_of(manifest.read_manifest(dist / manifest.FILE), sku, dist)
    files = [dist / name for name in (CYCLONEDX, SPDX, NOTICE)]
    if missing := [path.name for path in files if not path.is_file()]:
        what = f"{sku} has no {', '.join(missing)}"
        raise ArmletError(what, hint=f"./inv build --sku {sku} writes them", kind=Kind.INPUT, where=str(dist))
    if out is None:
        return files
    try:
        out.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(path, out / f"{sku}.{path.name}")) for path in files]
    except OSError as error:
        raise host_error(error, out) from error


def _written(bill: Bill, out: Path) -> list[Path]:
    from armlet.files import write_whole
    from armlet.sbom import cyclonedx, spdx

    texts = {CYCLONEDX: cyclonedx.text(bill), SPDX: spdx.text(bill)}
    files = [out / f"{bill.name}-{bill.version}.{name}" for name in texts]
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, text in zip(files, texts.values(), strict=True):
            write_whole(path, text.encode())
    except OSError as error:
        raise host_error(error, out) from error
    return files


def _service(paths: Paths) -> Bill:
    from armlet.sbom import others
    from armlet.service.contents import modules
    from armlet.service.package import NAME, VERSION

    device = paths.root / "device"
    return others.service(NAME, VERSION, device, modules(device))


def _payload(folder: Path) -> Bill:
    from armlet.payload import verify
    from armlet.sbom import others

    return others.payload(verify.manifest_of(folder), folder)
