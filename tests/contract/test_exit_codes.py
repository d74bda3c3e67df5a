"""The documented exit codes are the ones that there are."""

from __future__ import annotations

import re
from pathlib import Path

from armlet.errors import Kind


def test_the_table_is_the_enumeration(root: Path) -> None:
    text = (root / "docs" / "exit-codes.md").read_text()
    told = {int(code): name for code, name in re.findall(r"^\| (\d+) \| `?([A-Z]*)`? *\|", text, re.MULTILINE)}
    assert told == {0: "", 1: "", **{int(kind): kind.name for kind in Kind}}
