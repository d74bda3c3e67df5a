"""On a device the wall clock is for those who read what it tells: nothing else looks at it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.conftest import ROOT

DEVICE = ROOT / "device" / "armlet_runtime"
ASKS = frozenset(
    [
        *("time.time", "time.time_ns", "time.gmtime", "time.localtime", "time.ctime", "time.CLOCK_REALTIME"),
        *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    ]
)
OF_FILES = frozenset(["st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "st_atime_ns"])
MAY = {
    # A header of each answer, telemetry, and when a report or an alert was made.
    ("serve/http_message.py", "render"): {"time.gmtime"},
    ("serve/__main__.py", "do"): {"time.time"},
    ("update/connect.py", "__call__"): {"time.time"},
    ("update/mqtt.py", "report"): {"time.time"},
    ("update/mqtt.py", "alert"): {"time.time"},
    # Sees whether it was set back.
    ("serve/clock.py", "__init__"): {"time.time"},
}
"""File and function -> what it asks."""


def asked(node: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """(function, what it asks)."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        if isinstance(child, ast.Attribute):
            name = f"{child.value.id}.{child.attr}" if isinstance(child.value, ast.Name) else child.attr
            if name in ASKS or child.attr in OF_FILES:
                yield inside, name
        if isinstance(child, ast.ImportFrom) and child.module == "time":
            yield from ((inside, f"time.{one.name}") for one in child.names if f"time.{one.name}" in ASKS)
        yield from asked(child, inside)


def test_who_looks_at_the_clock() -> None:
    found: dict[tuple[str, str], set[str]] = {}
    for path in sorted(DEVICE.rglob("*.py")):
        for function, name in asked(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault((path.relative_to(DEVICE).as_posix(), function), set()).add(name)
    assert found == MAY
