"""The examples in docs/service-api.md do what they show, over payloads that were packed for it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fakes import served_models
from tests.fakes.contracts import fake_runtime
from tests.served import HOST_ENVIRONMENT, ON_HOST, Device, host_library

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


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """Serves the page's two models."""
    root = tmp_path_factory.mktemp("device")
    made = Device.make(root, library=host_library(), runtime=fake_runtime(flavor="full", operators=None))
    made.add(
        served_models.animals(root), served_models.wish("animals", served_models.samples(root / "a", scores=(2, 3)))
    )
    made.add(served_models.echo(root), served_models.wish("echo", served_models.samples(root / "e", x=(4,))))
    with made.serving(ON_HOST, HOST_ENVIRONMENT):
        yield made


def test_there_are_examples() -> None:
    assert len(sessions()) == 5


@pytest.mark.parametrize(("script", "printed"), sessions())
def test_an_example(script: str, printed: str, tmp_path: Path, device: Device) -> None:
    run = subprocess.run(
        ["sh", "-e", "-c", script.replace(ADDRESS, f"127.0.0.1:{device.port}")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    # curl puts no line end after an answer.
    assert re.sub(r"\n", "", run.stdout) == re.sub(r"\n", "", printed)
