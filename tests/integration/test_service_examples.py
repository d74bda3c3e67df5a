"""The examples in docs/service-api.md do what they show."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import serving

PAGE = ROOT / "docs" / "service-api.md"
ADDRESS = "127.0.0.1:8080"


def sessions() -> list[tuple[str, str]]:
    """(script, what it prints) of every example; ``$`` begins a command, ``>`` goes on with it."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        script = [line[2:] for line in lines if line[:2] in ("$ ", "> ")]
        printed = [line for line in lines if line[:2] not in ("$ ", "> ")]
        found.append(("\n".join(script), "".join(f"{line}\n" for line in printed)))
    return found


def test_there_are_examples() -> None:
    assert len(sessions()) == 5


@pytest.mark.parametrize(("script", "printed"), sessions())
def test_an_example(script: str, printed: str, tmp_path: Path) -> None:
    with serving(FakeEngine()) as (server, _):
        run = subprocess.run(
            ["sh", "-e", "-c", script.replace(ADDRESS, f"127.0.0.1:{server.port}")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    # curl puts no line end after an answer.
    assert re.sub(r"\n", "", run.stdout) == re.sub(r"\n", "", printed)
