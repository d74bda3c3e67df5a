"""The NOTICE: the licence texts of all that is in what ships, each once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from armlet.errors import ArmletError, Kind
from armlet.sbom.bill import Bill, Part

_RULE = "=" * 78
# A project that keeps one text per licence keeps those of its test data and build files too.
_PER_LICENCE = "LICENSES"
# What others of ONNX Runtime's sources were taken from: far more than any one build has.
_THIRD_PARTIES = re.compile(r"ThirdPartyNotices", re.IGNORECASE)


def notice(bill: Bill) -> str:
    """The file's text.

    Raises:
        ArmletError: (BUILD) a component that ships has no licence text.
    """
    return "\n".join((*_head(bill), *_texts(bill), *_tail(bill))) + "\n"


def _head(bill: Bill) -> Iterator[str]:
    yield f"{bill.name} {bill.version}"
    yield ""
    yield "Code of these components is in it:"
    yield ""
    for part in bill.delivered:
        yield f"  {part.name} {part.version}: {part.licence or part.licence_name or 'licence not known'}"
        if part.patches:
            yield f"    changed by: {', '.join(patch.name for patch in part.patches)}"
    yield ""
    yield "Their licences follow, each text once."


def _texts(bill: Bill) -> Iterator[str]:
    owners: dict[str, list[str]] = {}
    for part in bill.delivered:
        chosen = [path for path in part.texts if _applies(path, part)]
        if not chosen and part.licence is not None:
            what = f"no licence text of {part.name} is at hand, and code of it ships"
            raise ArmletError(what, hint="add its licence file to keep: in the source set", kind=Kind.BUILD)
        for path in chosen:
            text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").strip("\n")
            owners.setdefault(text, []).append(f"{part.name} ({path.name})")
    for text, names in owners.items():
        yield from ("", _RULE, ", ".join(names), _RULE, "", text)


def _applies(path: Path, part: Part) -> bool:
    if _THIRD_PARTIES.search(path.name):
        return False
    return (
        path.parent.name != _PER_LICENCE
        or path.stem in (part.licence or "").replace("(", " ").replace(")", " ").split()
    )


def _tail(bill: Bill) -> Iterator[str]:
    third = sorted({part.name for part in bill.delivered for path in part.texts if _THIRD_PARTIES.search(path.name)})
    yield from ("", _RULE)
    if third:
        yield f"What sources of {', '.join(third)} were taken from is in their ThirdPartyNotices.txt, beside this file"
        yield "in the folder licences: it speaks of all their sources, whether they are part of this build or not."
        yield ""
    if bill.build_only:
        yield "Used to build it, and not part of it:"
        yield ""
        yield from (f"  {part.name} {part.version}" for part in bill.build_only)
