"""A bill as SPDX 2.3 (JSON)."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

import armlet
from armlet.sbom.bill import Bill, File, Part, serial

_DOCUMENT, _ROOT = "SPDXRef-DOCUMENT", "SPDXRef-root"
_UNKNOWN = "NOASSERTION"
_OWN_LICENCE = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")
_PURPOSE = {"library": "LIBRARY", "application": "APPLICATION", "machine-learning-model": "OTHER"}


def text(bill: Bill) -> str:
    """The file's text: equal bills give equal bytes."""
    number = serial(bill)
    document: dict[str, Any] = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": _DOCUMENT,
        "name": f"{bill.name}-{bill.version}",
        "documentNamespace": f"urn:uuid:{number}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(bill.created)),
            "creators": [f"Tool: armlet-{armlet.__version__}"],
        },
        "documentDescribes": [_ROOT],
        "packages": [_root(bill), *map(_package, bill.parts)],
        "files": [_file(file) for file in bill.files],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in _relations(bill)
        ],
    }
    if own := sorted({name for part in bill.parts for name in _OWN_LICENCE.findall(part.licence or "")} | _own(bill)):
        document["hasExtractedLicensingInfos"] = [
            {"licenseId": name, "extractedText": bill.licence_name or f"See the licence {name} of its author."}
            for name in own
        ]
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _own(bill: Bill) -> set[str]:
    return set(_OWN_LICENCE.findall(_licence(bill.licence, bill.licence_name)))


def _id(kind: str, name: str) -> str:
    # Two names must not become one, and only these characters are allowed.
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", name)
    mark = "" if plain == name else f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"SPDXRef-{kind}-{plain}{mark}"


def _licence(expression: str | None, name: str) -> str:
    if expression is not None:
        return expression
    return f"LicenseRef-{re.sub(r'[^A-Za-z0-9.-]+', '-', name)}" if name else _UNKNOWN


def _root(bill: Bill) -> dict[str, Any]:
    said = _licence(bill.licence, bill.licence_name)
    known = {
        "SPDXID": _ROOT,
        "name": bill.name,
        "versionInfo": bill.version,
        "primaryPackagePurpose": _PURPOSE[bill.kind],
        "downloadLocation": _UNKNOWN,
        "filesAnalyzed": bool(bill.files),
        "licenseConcluded": said,
        "licenseDeclared": said,
        "copyrightText": _UNKNOWN,
        "description": bill.description,
        "comment": "; ".join(f"{key}: {value}" for key, value in bill.facts.items()),
    }
    if bill.files:
        sums = "".join(sorted(file.sha1 for file in bill.files))
        known["packageVerificationCode"] = {
            "packageVerificationCodeValue": hashlib.sha1(sums.encode(), usedforsecurity=False).hexdigest()
        }
    return {key: value for key, value in known.items() if value != ""}


def _package(part: Part) -> dict[str, Any]:
    said = _licence(part.licence, part.licence_name)
    outside = [
        *([_reference("PACKAGE-MANAGER", "purl", part.purl)] if part.purl else []),
        *([_reference("SECURITY", "cpe23Type", part.cpe)] if part.cpe else []),
    ]
    known = {
        "SPDXID": _id(*part.key.split(":", 1)),
        "name": part.name,
        "versionInfo": part.version,
        "downloadLocation": part.urls[0] if part.urls else _UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": said,
        "licenseDeclared": said,
        "copyrightText": _UNKNOWN,
        "comment": " ".join(filter(None, (f"role: {part.role}.", part.says))),
        "packageFileName": part.archive,
        "supplier": f"Organization: {part.supplier}" if part.supplier else "",
        "checksums": [{"algorithm": "SHA256", "checksumValue": part.sha256}] if part.sha256 else "",
        "externalRefs": outside or "",
        "sourceInfo": "\n".join(_patched(part)),
    }
    return {key: value for key, value in known.items() if value != ""}


def _reference(category: str, kind: str, place: str) -> dict[str, str]:
    return {"referenceCategory": category, "referenceType": kind, "referenceLocator": place}


def _patched(part: Part) -> Iterator[str]:
    for patch in part.patches:
        yield f"patched with {patch.name} (sha256 {patch.sha256}){': ' if patch.why else ''}{patch.why}"


def _file(file: File) -> dict[str, Any]:
    return {
        "SPDXID": _id("file", file.path),
        "fileName": f"./{file.path}",
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": file.sha1},
            {"algorithm": "SHA256", "checksumValue": file.sha256},
        ],
        "licenseConcluded": _UNKNOWN,
        "copyrightText": _UNKNOWN,
    }


def _relations(bill: Bill) -> Iterable[tuple[str, str, str]]:
    yield _DOCUMENT, "DESCRIBES", _ROOT
    there = {file.path for file in bill.files}
    for file in bill.files:
        yield _ROOT, "CONTAINS", _id("file", file.path)
    for part in bill.parts:
        place = _id(*part.key.split(":", 1))
        if part.role == "build":
            yield place, "BUILD_TOOL_OF" if part.tool else "BUILD_DEPENDENCY_OF", _ROOT
            continue
        if part.role == "optional":
            yield place, "OPTIONAL_DEPENDENCY_OF", _ROOT
            continue
        yield _ROOT, "DEPENDS_ON", place
        for path in part.inside:
            if path in there:
                kind = "DISTRIBUTION_ARTIFACT" if part.role == "shipped" else "STATIC_LINK"
                yield _id("file", path), kind, place
