"""docs/service.md says what the device's file may hold, and what holds where it says nothing."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve import config

from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")


def rows(after: str) -> dict[str, str]:
    """Key -> default, of the table that follows some text."""
    table = TEXT.partition(after)[2].partition("\n| --- ")[2].partition("\n\n")[0]
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
    ("after", "section", "readers"),
    [
        ("`[service]`:", config.Service(), config._SERVICE),
        ("`[models]` for all", config.ModelSettings(), config._MODEL),
    ],
)
def test_each_key_and_its_default(after: str, section: Any, readers: Any) -> None:
    defaults = {field.name: told(getattr(section, field.name)) for field in dataclasses.fields(section)}
    assert rows(after) == defaults
    assert readers.keys() == defaults.keys()


def test_the_example_is_one() -> None:
    example = TEXT.partition("```ini\n")[2].partition("```")[0]
    read = config.parse(example)
    assert read.model("detector").min_provider_share == {"vsinpu": 0.9}
    assert read.model("other").providers == ("vsinpu", "xnnpack", "cpu")
