"""A real build: what it leaves, what a second one does, and what an interrupted one leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from armlet_runtime.ort import _api_table

from armlet import digest, elf, pipeline
from armlet.config import resolve
from armlet.engine import LABEL
from armlet.events import Event, StepDone, StepStarted, silent
from armlet.manifest import read_manifest
from armlet.paths import Paths
from armlet.pipeline import BuildReport
from tests.bills import cyclonedx_problems, spdx_problems

pytestmark = [pytest.mark.build, pytest.mark.docker, pytest.mark.timeout(5400)]

SKU = "demo-a53"
MACHINES = {"demo-a53": ("EM_AARCH64", 64), "demo-a7": ("EM_ARM", 32)}


@pytest.fixture(scope="module", params=MACHINES)
def built(root: Path, request: pytest.FixtureRequest) -> BuildReport:
    return pipeline.build(Paths.of(root), request.param, silent)


def library(built: BuildReport) -> Path:
    (found,) = built.dist.glob("armlet-runtime-*/lib/libonnxruntime.so.1.21.0")
    return found


def test_the_library_is_for_the_target_and_hardened(built: BuildReport) -> None:
    facts = elf.read(library(built).read_bytes(), name="libonnxruntime.so")
    assert (facts.machine, facts.bits) == MACHINES[built.sku]
    assert facts.soname == "libonnxruntime.so.1"
    assert facts.search_paths == ()
    assert facts.relro == "full"
    assert facts.stripped
    assert "libstdc++.so.6" not in facts.needed


def test_every_gate_is_passed_and_passes_again_on_what_was_delivered(built: BuildReport, root: Path) -> None:
    again = pipeline.gates(Paths.of(root), built.sku)
    assert [gate.name for gate in again if not gate.ok] == []
    assert [gate.name for gate in built.gates] == [gate.name for gate in again]


def test_the_manifest_states_the_contract(built: BuildReport, root: Path) -> None:
    resolved = resolve(Paths.of(root), built.sku)
    manifest = read_manifest(built.dist / "runtime.json")
    assert manifest.build_id == built.build_id
    assert manifest.providers == ("xnnpack", "cpu")
    assert manifest.operators is not None
    asked = {name for allow in resolved.sku.runtime.operators.allow for name in allow.operators if ":" not in name}
    assert asked <= manifest.operators["ai.onnx"].keys()
    # Not asked for, and so not there; the layout transformation brings its own few.
    assert "Einsum" not in manifest.operators["ai.onnx"]
    assert "Squeeze" in manifest.operators["ai.onnx"]


def test_the_bills_say_what_is_inside(built: BuildReport, tmp_path: Path) -> None:
    text = (built.dist / "sbom.cdx.json").read_text()
    assert cyclonedx_problems(text) == []
    assert spdx_problems((built.dist / "sbom.spdx.json").read_text(), tmp_path) == []
    listed = json.loads(text)["components"]
    scopes = {one["bom-ref"].removeprefix("component:"): one.get("scope") for one in listed}
    linked = {name for name, scope in scopes.items() if scope == "required"}
    # With an archive, without one, and of the toolchain.
    assert {"onnxruntime", "abseil", "protobuf", "xnnpack", "eigen", "safeint", "gcc-runtime", "glibc"} <= linked
    assert {scopes[name] for name in ("re2", "boost", "nlohmann-json", "tool:cmake")} == {"excluded"}
    tree = library(built).parents[1]
    told = {one["name"]: one["hashes"] for one in listed if one["type"] == "file"}
    assert set(told) == {
        path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file() and not path.is_symlink()
    }
    assert all({"alg": "SHA-256", "content": digest.of_file(tree / name)} in told[name] for name in told)
    notice = (tree / "share/doc/armlet-runtime/NOTICE").read_text()
    assert notice == (built.dist / "NOTICE").read_text()
    assert "  re2 " in notice.partition("Used to build it")[2]


def test_the_devices_table_of_the_c_api_is_what_the_header_says(built: BuildReport, generator: ModuleType) -> None:
    (path,) = built.dist.glob("armlet-runtime-*/include/onnxruntime/onnxruntime_c_api.h")
    header = path.read_bytes()
    assert digest.of_bytes(header) == _api_table.HEADER_SHA256
    assert generator.render(header) == generator.TARGET.read_text(encoding="utf-8")


def test_an_unchanged_build_runs_nothing_and_needs_no_engine(
    built: BuildReport, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    events: list[Event] = []
    again = pipeline.build(Paths.of(root), built.sku, events.append)
    assert [event for event in events if isinstance(event, StepStarted)] == []
    assert all(event.cached for event in events if isinstance(event, StepDone))
    assert again.build_id == built.build_id


def waited(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return condition()


def containers(cache: Path) -> list[str]:
    """Those that share folders of this cache: other builds on the machine have theirs."""
    import docker

    client = docker.from_env()
    try:
        return [
            found.name or ""
            for found in client.containers.list(all=True, filters={"label": LABEL})
            if any(str(mount.get("Source", "")).startswith(str(cache)) for mount in found.attrs["Mounts"])
        ]
    finally:
        client.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_build_leaves_no_container_and_no_output(
    root: Path, tmp_path: Path, number: signal.Signals
) -> None:
    cache = tmp_path / "cäche with space"
    cache.mkdir()
    (cache / "downloads").symlink_to(Paths.of(root).downloads)
    process = subprocess.Popen(
        [root / "inv", "build", "--sku", SKU],
        env={**os.environ, "ARMLET_CACHE": str(cache)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        assert waited(lambda: any("[1/" in path.read_text() for path in cache.glob("work/*/compile.log")), 300)
        assert containers(cache) != []
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, output.decode()
    assert containers(cache) == []
    assert [path.name for path in (cache / "artifacts").iterdir() if path.name.startswith(".staging")] == []
    assert len(list(cache.glob("work/*/build/build.ninja"))) == 1, "the half-done compile is kept for the next run"
