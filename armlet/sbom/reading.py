"""What a written CycloneDX bill lists, for tables."""

from __future__ import annotations

import json
from pathlib import Path

from armlet.errors import ArmletError, Kind

HEAD = ("name", "version", "licence", "scope")


def listed(path: Path) -> list[dict[str, str]]:
    """The components, files not counted.

    Raises:
        ArmletError: (INPUT) it is no such bill.
    """
    try:
        components = json.loads(path.read_text(encoding="utf-8"))["components"]
        return [
            {
                "name": one["name"],
                "version": one.get("version", "-"),
                "licence": _licence(one.get("licenses", [])),
                "scope": one.get("scope", "required"),
            }
            for one in components
            if one["type"] != "file"
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _no_bill(path, error) from error


def licence(path: Path) -> str:
    """The SPDX expression for all that a bill is about.

    Raises:
        ArmletError: (INPUT) it is no such bill, or has no licence.
    """
    try:
        found = _licence(json.loads(path.read_text(encoding="utf-8"))["metadata"]["component"]["licenses"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _no_bill(path, error) from error
    if found == "-":
        raise _no_bill(path, "no licence")
    return found


def _no_bill(path: Path, error: object) -> ArmletError:
    what = f"is no CycloneDX bill: {error}"
    return ArmletError(what, hint="write it again (a SKU's: ./inv build)", kind=Kind.INPUT, where=str(path))


def _licence(licences: list[dict[str, dict[str, str] | str]]) -> str:
    for one in licences:
        inner = one.get("license", {})
        named = inner.get("id") or inner.get("name") if isinstance(inner, dict) else None
        return str(one.get("expression") or named or "-")
    return "-"
