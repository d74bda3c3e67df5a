"""The JSON Schemas of the files that people write and other programs read, generated from the models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from armlet.files import write_whole
from armlet.spec.base import Spec
from armlet.spec.model_record import ModelRecord
from armlet.spec.payload import PayloadManifest
from armlet.spec.runtime import RuntimeManifest
from armlet.spec.sku import ModelRecipe, Sku
from armlet.spec.source_set import SourceSet
from armlet.spec.toolchain import Toolchain

FOLDER = "docs/schemas"

SCHEMAS: Mapping[str, type[Spec]] = {
    "model-record.json": ModelRecord,
    "model.json": ModelRecipe,
    "payload.json": PayloadManifest,
    "runtime.json": RuntimeManifest,
    "sku.json": Sku,
    "source-set.json": SourceSet,
    "toolchain.json": Toolchain,
}
"""File in ``FOLDER`` -> the model it describes."""


def text(model: type[Spec]) -> str:
    """One model's schema (draft 2020-12), with sorted keys so that equal models give equal files."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(by_alias=True)}
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write(root: Path) -> tuple[Path, ...]:
    """Writes all schemas below the project's root; returns the files that changed."""
    changed = []
    for name, model in SCHEMAS.items():
        target = root / FOLDER / name
        wanted = text(model)
        if not target.exists() or target.read_text(encoding="utf-8") != wanted:
            write_whole(target, wanted.encode())
            changed.append(target)
    return tuple(changed)
