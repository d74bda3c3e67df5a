"""Bills of what is not compiled: the inference service, and payloads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from armlet.reproducible import EPOCH
from armlet.sbom.bill import Bill, Part, file
from armlet.spec.base import spdx_expression
from armlet.spec.payload import PayloadManifest

_OPTIONAL = "Used where the device has it."


def service(name: str, version: str, folder: Path, modules: Sequence[Path]) -> Bill:
    """The bill of the service's Python package.

    Args:
        folder: what the paths are relative to.
    """
    optional = (
        ("pynacl", "Apache-2.0"),
        ("cryptography", "Apache-2.0 OR BSD-3-Clause"),
        ("numpy", "BSD-3-Clause"),
        ("paho-mqtt", "EPL-2.0 OR BSD-3-Clause"),
    )
    return Bill(
        name=name,
        version=version,
        kind="application",
        licence="Apache-2.0",
        description="Inference service for ONNX Runtime on devices",
        facts={"python": ">=3.8"},
        parts=tuple(
            Part(name=one, version="", role="optional", licence=licence, purl=f"pkg:pypi/{one}", says=_OPTIONAL)
            for one, licence in optional
        ),
        files=tuple(file(path.relative_to(folder).as_posix(), path) for path in sorted(modules)),
        created=EPOCH,
    )


def payload(manifest: PayloadManifest, folder: Path) -> Bill:
    """The bill of a payload's folder."""
    expression = spdx_expression(manifest.licence)
    source = Part(
        name=f"{manifest.model}-source",
        version=manifest.version,
        role="build",
        sha256=manifest.source_model,
        says="The model that this was made from.",
    )
    return Bill(
        name=manifest.model,
        version=manifest.version,
        kind="machine-learning-model",
        licence=expression,
        licence_name="" if expression else manifest.licence,
        description=manifest.description,
        facts={"generation": str(manifest.generation), "format": manifest.format},
        parts=(source,),
        files=tuple(
            file(path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*")) if path.is_file()
        ),
        created=int(datetime.fromisoformat(manifest.created.replace("Z", "+00:00")).timestamp()),
    )
