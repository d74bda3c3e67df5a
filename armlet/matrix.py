"""What a CI has to build: the SKUs whose content nobody has made yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from armlet.config import resolve
from armlet.errors import ArmletError, Kind
from armlet.events import Sink
from armlet.paths import Paths
from armlet.pipeline import planned_id
from armlet.recipes import SKUS
from armlet.remote.artefacts import Artefacts
from armlet.remote.settings import WRITE, Settings
from armlet.store import Store

GITLAB_FILE = ".gitlab-ci.yml"
GITLAB_JOB = ".armlet-build"
"""The hidden job of that file that builds one SKU, by its variables SKU and BUILD_ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One SKU to build; ``id`` names the content of what comes of it."""

    sku: str
    id: str
    toolchain: str


def rows(paths: Paths, emit: Sink, *, all: bool = False) -> list[Row]:
    """The SKUs, by name, whose output is neither here nor in the store that machines share; or ``all`` of them.

    Raises:
        ArmletError: (INPUT) some are not sound: all of them are told.
    """
    every: list[Row] = []
    problems: list[str] = []
    for name in SKUS.names(paths):
        try:
            every.append(Row(sku=name, id=planned_id(paths, name), toolchain=resolve(paths, name).toolchain.name))
        except ArmletError as error:
            problems.append(str(error))
    if problems:
        raise ArmletError(
            "\n".join(["these SKUs cannot be built:", *problems]),
            hint="mend their files, or move them away",
            kind=Kind.INPUT,
        )
    if all:
        return every
    store = Store(paths.artifacts)
    left = [row for row in every if store.find(row.id) is None]
    remote = Artefacts.here(Settings.here(), emit) if left else None
    return left if remote is None else [row for row in left if not remote.has(row.id)]


def github(found: Sequence[Row]) -> dict[str, Any]:
    """What ``strategy.matrix`` takes out of ``fromJSON``."""
    return {"include": [{"sku": row.sku, "id": row.id, "toolchain": row.toolchain} for row in found]}


def gitlab(found: Sequence[Row], *, share: bool) -> dict[str, Any]:
    """A child pipeline with a job for each, or with one that does nothing: GitLab takes none without jobs.

    ``share``: whether the jobs may change what others get. A child pipeline cannot tell a merge request from a merge.
    """
    jobs = {
        f"build {row.sku}": {
            "extends": GITLAB_JOB,
            "variables": {
                "SKU": row.sku,
                "BUILD_ID": row.id,
                "TOOLCHAIN": row.toolchain,
                WRITE: str(int(share)),
            },
        }
        for row in found
    }
    nothing = {"nothing to build": {"script": ["true"]}}
    return {"include": [{"local": GITLAB_FILE}], **jobs} if jobs else nothing
