"""What each format's own validator says of a bill of materials."""

from __future__ import annotations

from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def cyclonedx_problems(text: str) -> list[str]:
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return [] if found is None else [str(found)]


def spdx_problems(text: str, scratch: Path) -> list[str]:
    path = scratch / "bill.spdx.json"
    path.write_text(text)
    return [found.validation_message for found in validate_full_spdx_document(parse_file(str(path)))]
