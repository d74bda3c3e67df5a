"""The shell steps of the CI files, run for real: planned, built, run on the target's core, published."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from armlet import workflows
from armlet.process import base_environment
from tests.conftest import ROOT
from tests.fakes.object_server import ObjectServer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.build,
    pytest.mark.docker,
    pytest.mark.qemu,
    pytest.mark.timeout(5400),
]

SKU = "demo-a53"
SHIM = f"""#!/bin/sh
exec {sys.executable} -I -c 'import sys
sys.path[:0] = ["{ROOT}", "{ROOT}/device"]
from armlet.cli import main
main("{ROOT}", *sys.argv[1:])' "$@"
"""
"""The project's ``inv`` less its bootstrap: the environment is the one that runs this test."""


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer().serving() as running:
        yield running


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "inv").write_text(SHIM)
    (tmp_path / "inv").chmod(0o755)
    return tmp_path


def ran(script: str, shell: tuple[str, ...], checkout: Path, env: Mapping[str, str]) -> None:
    done = subprocess.run(
        (*shell, script),
        cwd=checkout,
        env={**base_environment(), "CI": "true", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def steps(job: Mapping[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def published(server: ObjectServer) -> set[str]:
    (sums,) = [data for name, data in server.objects.items() if name.endswith("/SHA256SUMS") and name.startswith("rel")]
    return {line.split("  ", 1)[1] for line in sums.decode().splitlines()}


def test_github(server: ObjectServer, checkout: Path) -> None:
    jobs = yaml.safe_load(workflows.text("github"))["jobs"]
    output = checkout / "output"
    shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    shared = {"ARMLET_STORE": f"{server.url}/store", "ARMLET_SHARE": "1", "GITHUB_ACTIONS": "true"}
    for script in steps(jobs["plan"]):
        ran(script, shell, checkout, {**shared, "GITHUB_OUTPUT": str(output), "ALL": "--all"})
    name, _, matrix = output.read_text().partition("=")
    assert name == "matrix"
    (row,) = [row for row in json.loads(matrix)["include"] if row["sku"] == SKU]
    for script in steps(jobs["build"]):
        ran(script, shell, checkout, {**shared, "SKU": row["sku"], "ARMLET_PUBLISH": f"{server.url}/rel"})
    assert {"runtime.json", "gates.json"} <= published(server)
    # What was built is no longer planned, here or anywhere.
    assert f"store/steps/{row['id']}.json" in server.objects


def test_gitlab(server: ObjectServer, checkout: Path) -> None:
    jobs = yaml.safe_load(workflows.text("gitlab"))
    shell = ("sh", "-ec")
    shared = {"ARMLET_STORE": f"{server.url}/store", "ARMLET_SHARE": "1"}
    ran("\n".join(jobs["plan"]["script"]), shell, checkout, {**shared, "ALL": "1"})
    child = yaml.safe_load((checkout / "matrix.yml").read_text())
    job = child[f"build {SKU}"]
    script = "\n".join(jobs[job["extends"]]["script"])
    ran(script, shell, checkout, {**shared, **job["variables"], "ARMLET_PUBLISH": f"{server.url}/rel"})
    assert {"runtime.json", "gates.json"} <= published(server)
