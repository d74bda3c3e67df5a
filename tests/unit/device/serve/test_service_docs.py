"""The tables in docs/service-api.md are complete (its examples are run by tests/integration)."""

from __future__ import annotations

import dataclasses
import re

from armlet_runtime.serve.http_message import Head
from armlet_runtime.serve.limits import Limits
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.page import families
from armlet_runtime.serve.routes import STATUS, Routes

from tests.conftest import ROOT
from tests.fakes.fake_engine import FakeEngine

PAGE = (ROOT / "docs" / "service-api.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line[:1] == "|"
    ]
    return cells[2:]


def test_every_limit_is_told() -> None:
    told = {row[0].strip("`"): float(row[1]) for row in rows("Limits")}
    assert told == dataclasses.asdict(Limits())


def test_every_metric_is_told() -> None:
    metrics = Metrics()
    found = {(family.name, family.kind) for family in families(FakeEngine(), metrics, lambda: 0)}
    told = {(name, row[1]) for row in rows("Metrics") for name in re.findall(r"`(\w+)`", row[0])}
    assert told == found


def test_every_status_is_told() -> None:
    source = "".join(path.read_text() for path in (ROOT / "device" / "armlet_runtime" / "serve").glob("*.py"))
    used = {int(text) for text in re.findall(r"HttpError\(\s*(\d{3})", source)} | set(STATUS.values()) | {503}
    assert {int(row[0]) for row in rows("Errors")} == used


def test_every_path_is_told_and_there() -> None:
    routes = Routes(FakeEngine(), Limits(), lambda: "", lambda name, status: None)
    told = {(row[1], row[0].strip("`")) for row in rows("Paths")}
    written = {
        (route.method, "/" + "/".join("{model}" if part is None else part for part in route.path))
        for route in routes.table
        if route.path.count(None) < 2
    }
    assert told == written
    for method, path in told:
        segments = tuple(path.strip("/").replace("{model}", "animals").split("/"))
        for asked in (segments, (*segments[:3], "versions", "1", *segments[3:])):
            if asked is segments or segments[:2] == ("v2", "models"):
                routes.find(Head(method, asked, "", {}, 0, True, False))
