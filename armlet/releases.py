"""What of a SKU is published, and where: ``<place>/<sku>/<start of its id>/``."""

from __future__ import annotations

import os
from pathlib import Path

from armlet import manifest
from armlet.errors import ArmletError, Kind
from armlet.events import Sink
from armlet.gates import SUMS, demand, demand_intact, recorded
from armlet.packages.folder import packed
from armlet.paths import Paths
from armlet.recipes import SKUS
from armlet.remote import publish as remote
from armlet.remote.objects import Objects
from armlet.remote.settings import TOKEN, address

PLACE = "ARMLET_PUBLISH"
_PACKED = "packages"
"""The folder of ``dist`` with what was packed of each SKU."""
_ID = 16


def publish(paths: Paths, sku: str, to: str, emit: Sink) -> remote.Published:
    """Publishes what lies in ``dist``, under the id of the build that it came of.

    Raises:
        ArmletError: (INPUT) no address, nothing built, or something else is published there; (GATE) it must not ship;
            (HOST) the server cannot be used.
    """
    where = address("--to" if to else PLACE, to or _configured(), token=os.environ.get(TOKEN) or None)
    SKUS.require(paths, sku)
    dist = paths.dist(sku)
    demand_intact(dist)
    if not (dist / manifest.FILE).is_file():
        hint = f"./inv build --sku {sku}"
        raise ArmletError(f"nothing is built for {sku}", hint=hint, kind=Kind.INPUT, where=str(dist))
    demand(recorded(dist / "gates.json"))
    made = manifest.read_manifest(dist / manifest.FILE)
    manifest.demand_of(made, sku, dist)
    return remote.publish(_files(paths, sku, made.build_id), f"{sku}/{made.build_id[:_ID]}", Objects(where), emit)


def _configured() -> str:
    if not (found := os.environ.get(PLACE, "").strip()):
        raise ArmletError(
            "where to publish is not said",
            hint=f"give --to https://host/path or s3://bucket/path, or set {PLACE}",
            kind=Kind.INPUT,
        )
    return found


def _files(paths: Paths, sku: str, build_id: str) -> dict[str, Path]:
    dist = paths.dist(sku)
    # What the build left, and not what a smoke added: that has other times in it whenever it runs.
    listed = [line.split("  ", 1)[1] for line in (dist / SUMS).read_text(encoding="utf-8").splitlines()]
    own = {name: dist / name for name in listed}
    found = packed(paths.dist(_PACKED) / sku, build_id, again=f"./inv package --sku {sku}")
    return own | {f"{_PACKED}/{name}": path for name, path in found.items()}
