"""A bill as CycloneDX 1.6 (JSON)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

import armlet
from armlet.sbom.bill import Bill, File, Part, serial

_ROOT = "root"
_SCOPES = {"linked": "required", "shipped": "required", "optional": "optional", "build": "excluded"}


def text(bill: Bill) -> str:
    """The file's text: equal bills give equal bytes."""
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.tool import ToolRepository
    from cyclonedx.output.json import JsonV1Dot6

    tool = Component(name="armlet", version=armlet.__version__, type=ComponentType.APPLICATION, bom_ref="tool")
    root = Component(
        name=bill.name,
        version=bill.version,
        type=ComponentType(bill.kind),
        description=bill.description or None,
        licenses=_licences(bill.licence, bill.licence_name),
        properties=[Property(name=f"armlet:{key}", value=value) for key, value in bill.facts.items()],
        bom_ref=_ROOT,
    )
    parts = {part.key: _part(part) for part in bill.parts}
    files = {file.path: _file(file) for file in bill.files}
    bom = Bom(
        serial_number=serial(bill),
        version=1,
        components=[*parts.values(), *files.values()],
        metadata=BomMetaData(
            timestamp=datetime.fromtimestamp(bill.created, tz=timezone.utc),
            tools=ToolRepository(components=[tool]),
            component=root,
        ),
    )
    delivered = [parts[part.key] for part in bill.delivered]
    bom.register_dependency(root, [*delivered, *files.values()])
    for path, component in files.items():
        bom.register_dependency(component, [parts[part.key] for part in bill.delivered if path in part.inside])
    for part in parts.values():
        bom.register_dependency(part)
    # Sorted by us: the library's order is its own business, and may change.
    return json.dumps(_ordered(json.loads(JsonV1Dot6(bom).output_as_string())), indent=2, ensure_ascii=False) + "\n"


def _part(part: Part) -> Any:
    from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
    from cyclonedx.model.component import Component, ComponentScope, ComponentType
    from cyclonedx.model.contact import OrganizationalEntity
    from packageurl import PackageURL

    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=part.sha256)] if part.sha256 else []
    references = [
        ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(url), hashes=hashes) for url in part.urls
    ]
    properties = {"role": part.role, "archive": part.archive, "remark": part.says, "inside": ", ".join(part.inside)}
    properties |= {f"patch:{patch.name}": f"sha256:{patch.sha256}" for patch in part.patches}
    return Component(
        name=part.name,
        version=part.version or None,
        type=ComponentType.APPLICATION if part.tool else ComponentType.LIBRARY,
        scope=ComponentScope(_SCOPES[part.role]),
        licenses=_licences(part.licence, part.licence_name),
        hashes=hashes,
        purl=PackageURL.from_string(part.purl) if part.purl else None,
        cpe=part.cpe,
        supplier=OrganizationalEntity(name=part.supplier) if part.supplier else None,
        external_references=references,
        pedigree=_pedigree(part),
        properties=[Property(name=f"armlet:{key}", value=value) for key, value in properties.items() if value],
        bom_ref=part.key,
    )


def _pedigree(part: Part) -> Any:
    from cyclonedx.model import XsUri
    from cyclonedx.model.component import Diff, Patch, PatchClassification, Pedigree

    if not part.patches:
        return None
    return Pedigree(
        patches=[
            Patch(type=PatchClassification.UNOFFICIAL, diff=Diff(url=XsUri(patch.name))) for patch in part.patches
        ],
        notes="\n".join(f"{patch.name}: {patch.why}" for patch in part.patches if patch.why),
    )


def _file(file: File) -> Any:
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType

    return Component(
        name=file.path,
        type=ComponentType.FILE,
        hashes=[
            HashType(alg=HashAlgorithm.SHA_256, content=file.sha256),
            HashType(alg=HashAlgorithm.SHA_1, content=file.sha1),
        ],
        properties=[Property(name="armlet:size", value=str(file.size))],
        bom_ref=f"file:{file.path}",
    )


def _licences(expression: str | None, name: str) -> Iterable[Any]:
    from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression

    if expression is not None:
        return [LicenseExpression(expression)]
    return [DisjunctiveLicense(name=name)] if name else []


def _ordered(value: Any) -> Any:
    """Keys sorted, and lists of what has a name or a reference sorted by that."""
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value
