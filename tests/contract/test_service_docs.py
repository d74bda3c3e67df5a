"""docs/service.md says what the device's file may hold, and what holds where it says nothing."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from armlet_runtime.serve import config
from armlet_runtime.update import interface, settings

from tests.conftest import ROOT

SERVICE, UPDATES = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("service.md", "updates.md"))


def rows(text: str, after: str) -> dict[str, str]:
    """Key -> default, of the table that follows some words."""
    table = text.partition(after)[2].partition("\n| --- ")[2].partition("\n\n")[0]
    return {key: default.strip() for key, default in re.findall(r"^\| `(\w+)` \|(.*?)\| ", table, re.MULTILINE)}


def told(value: Any) -> str:
    """A default as the table has it."""
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:g}"
    if isinstance(value, (Path, str)):
        return f"`{value}`"
    return f"`{value.host}:{value.port}`"


@pytest.mark.parametrize(
    ("text", "after", "section", "readers"),
    [
        (SERVICE, "`[service]`:", config.Service(), config._SERVICE),
        (SERVICE, "`[models]` for all", config.ModelSettings(), config._MODEL),
        (UPDATES, "`[updates]` in", settings.Updates(), settings.READERS),
    ],
)
def test_each_key_and_its_default(text: str, after: str, section: Any, readers: Any) -> None:
    defaults = {field.name: told(getattr(section, field.name)) for field in dataclasses.fields(section)}
    assert rows(text, after) == defaults
    assert readers.keys() == defaults.keys()


def test_the_example_is_one() -> None:
    example = SERVICE.partition("```ini\n")[2].partition("```")[0]
    read = config.parse(example)
    assert read.model("detector").min_provider_share == {"vsinpu": 0.9}
    assert read.model("other").providers == ("vsinpu", "xnnpack", "cpu")


def test_every_state_and_category_of_an_update_is_told() -> None:
    def told(after: str) -> set[str]:
        table = UPDATES.partition(after)[2].partition("\n| --- ")[2].partition("\n\n")[0]
        return {name for line in table.splitlines() for name in re.findall(r"^\| `(\w+)`", line)}

    assert told("## States") == set(get_args(interface.State))
    assert told("## Why it came to nothing") | {""} == set(get_args(interface.Category))
