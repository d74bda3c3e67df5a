"""A second engine, which sees another folder than we do where ours is, and the same one elsewhere."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker import APIClient
from docker import from_env as docker_from_env
from docker.errors import DockerException

from armlet.engine import Engine, Mount
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.process import Command
from armlet.spec.toolchain import BaseImage
from armlet.steps.rootfs import base_image

# Wants root, and namespaces of one's own.
pytestmark = [pytest.mark.heavy, pytest.mark.docker, pytest.mark.timeout(900)]

# A file system of its own is mounted where the test has a folder: what another machine would have there. The bridge is
# its own: without one, an engine removes docker0, which is the first engine's.
OTHER = """
mount --make-rprivate /
mount -t tmpfs other "$1/hidden"
mkdir "$1/hidden/both"
ip link add armlet-test0 type bridge 2>/dev/null || true
ip address replace 172.31.255.1/24 dev armlet-test0
exec dockerd --host "tcp://127.0.0.1:$2" --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/pid" \
    --bridge=armlet-test0 --iptables=false --ip-masq=false
"""


@dataclass(frozen=True)
class Other:
    folder: Path
    host: str
    image: str


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Other]:
    folder = tmp_path_factory.mktemp("other")
    (folder / "hidden").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    bookworm = BaseImage(distribution="debian", suite="bookworm")
    tag = base_image(bookworm, Engine.connect(), tmp_path_factory.mktemp("base"), silent)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(("unshare", "-m", "sh", "-c", OTHER, "sh", str(folder), str(port)), stderr=log)
    try:
        api = _answering(f"tcp://127.0.0.1:{port}")
        here = docker_from_env()
        api.load_image(here.api.get_image(tag))  # type: ignore[no-untyped-call]
        here.close()
        api.close()
        yield Other(folder=folder, host=f"tcp://127.0.0.1:{port}", image=tag)
    finally:
        process.terminate()
        process.wait()
        subprocess.run(("ip", "link", "delete", "armlet-test0"), check=False)


def _answering(host: str) -> APIClient:
    deadline = time.monotonic() + 60
    while True:
        try:
            return APIClient(base_url=host)
        except DockerException:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def ran(other: Other, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("DOCKER_HOST", other.host)
    mounts = [Mount(source=folder, target="/out")]
    with Engine.connect().container(image=other.image, mounts=mounts, name="armlet-test-other") as runner:
        return runner.run(Command(argv=("sh", "-c", "echo hello >/out/file; seq 100"))).tail


def test_a_folder_that_both_have_is_worked_in(other: Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ran(other, tmp_path / "out", monkeypatch)[-1] == "100"
    assert (tmp_path / "out" / "file").read_text() == "hello\n"


@pytest.mark.parametrize("name", ["both", "only-here"])
def test_another_machines_folders_are_refused_before_anything_runs(
    name: str, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ArmletError) as caught:
        ran(other, other.folder / "hidden" / name, monkeypatch)
    assert caught.value.kind is Kind.HOST
    assert "does not see this machine's folders" in caught.value.hint
    assert list((other.folder / "hidden" / name).iterdir()) == []
    client = APIClient(base_url=other.host)
    assert client.containers(all=True) == []
    client.close()
