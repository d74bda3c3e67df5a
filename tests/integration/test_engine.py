"""The engine's wrapper against a real engine: needs one running, and no registry."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest
from docker import APIClient
from docker import from_env as docker_from_env

from armlet.engine import Engine, Mount
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Line
from armlet.process import Command
from armlet.spec.toolchain import BaseImage
from armlet.steps.rootfs import base_image

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.connect()


@pytest.fixture(scope="module")
def sdk() -> Iterator[APIClient]:
    client = docker_from_env()
    yield client.api
    client.close()


@pytest.fixture(scope="module")
def image(engine: Engine, sdk: APIClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A tiny image upon a bootstrapped base."""
    tag = f"armlet-test:{secrets.token_hex(4)}"
    bookworm = BaseImage(distribution="debian", suite="bookworm")
    base = base_image(bookworm, engine, tmp_path_factory.mktemp("base"), lambda _event: None)
    context = {"Dockerfile": b"ARG BASE\nFROM ${BASE}\nCOPY greeting /etc/greeting\nRUN test -s /etc/greeting\n"}
    engine.build(tag=tag, context={**context, "greeting": b"hello\n"}, build_args={"BASE": base})
    yield tag
    sdk.remove_image(tag, force=True)


def ours(sdk: APIClient, name: str) -> list[str]:
    return [entry["Names"][0] for entry in sdk.containers(all=True, filters={"name": name, "label": "armlet=1"})]


def until(condition: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return bool(condition())


def test_commands_run_as_the_caller_and_report(engine: Engine, image: str, tmp_path: Path) -> None:
    sources, out = tmp_path / "söurces and more", tmp_path / "out"
    sources.mkdir()
    out.mkdir()
    (sources / "file").write_text("content")
    mounts = [
        Mount(source=sources, target="/src", read_only=True),
        Mount(source=out, target="/out"),
    ]
    with engine.container(image=image, mounts=mounts, name="armlet-test") as runner:
        events: list[Event] = []
        done = runner.run(Command(argv=("sh", "-c", "echo ä; echo error >&2; exit 7")), events.append)
        assert done.code == 7
        assert sorted(done.tail) == ["error", "ä"]
        assert Line(text="ä") in events

        assert runner.run(Command(argv=("cat", "/etc/greeting"))).tail == ("hello",)
        assert runner.run(Command(argv=("id", "-u"))).output == str(os.getuid() if engine.user != "0:0" else 0)
        assert runner.run(Command(argv=("pwd",), cwd=PurePosixPath("/src"))).output == "/src"
        assert runner.run(Command(argv=("no-such-program",))).code in (126, 127)

        assert runner.run(Command(argv=("cp", "/src/file", "/out/copy"))).code == 0
        assert (out / "copy").stat().st_uid == os.getuid()
        assert runner.run(Command(argv=("touch", "/src/new"))).code != 0
        assert not (sources / "new").exists()

        seen = dict(line.split("=", 1) for line in runner.run(Command(argv=("env",), env={"MINE": "a b"})).tail)
        assert seen.pop("MINE") == "a b"
        for podmans_own in ("TERM", "container"):
            seen.pop(podmans_own, None)
        assert seen == {
            "HOME": "/tmp",
            "HOSTNAME": "armlet",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PATH": seen["PATH"],
            "TZ": "UTC",
        }


def test_output_comes_while_the_command_runs(engine: Engine, image: str) -> None:
    times: list[float] = []
    with engine.container(image=image, name="armlet-test") as runner:
        runner.run(
            Command(argv=("sh", "-c", "echo one; sleep 1; echo two")), lambda _event: times.append(time.monotonic())
        )
        assert times[1] - times[0] > 0.8
        total = runner.run(Command(argv=("seq", "100000")))
    assert total.tail[-1] == "100000"


def test_there_is_no_network(engine: Engine, image: str) -> None:
    probe = Command(argv=("bash", "-c", "exec 3<>/dev/tcp/203.0.113.1/80"))
    interfaces = Command(argv=("ls", "/sys/class/net"))
    with engine.container(image=image, name="armlet-test") as runner:
        assert runner.run(interfaces).tail == ("lo",)
        shut = runner.run(probe)
    assert shut.code != 0
    assert "Network is unreachable" in shut.output


def test_privileges_are_dropped(engine: Engine, image: str) -> None:
    with engine.container(image=image, name="armlet-test") as runner:
        status = runner.run(Command(argv=("grep", "-E", "^(CapEff|CapBnd|NoNewPrivs)", "/proc/self/status"))).tail
    assert [line.split()[1].strip("0") for line in status] == ["", "", "1"]


def interrupted(engine: Engine, image: str, name: str, is_there: Callable[[], object]) -> None:
    with engine.container(image=image, name=name):
        assert is_there()
        raise KeyboardInterrupt


def test_nothing_is_left_after_an_interrupt(engine: Engine, sdk: APIClient, image: str) -> None:
    name = f"armlet-test-{secrets.token_hex(4)}"
    with pytest.raises(KeyboardInterrupt):
        interrupted(engine, image, name, lambda: ours(sdk, name))
    assert not ours(sdk, name)


def test_a_missing_image_leaves_nothing(engine: Engine, sdk: APIClient) -> None:
    name = f"armlet-test-{secrets.token_hex(4)}"
    with pytest.raises(ArmletError), engine.container(image="armlet-test-no-such:image", name=name):
        pytest.fail("the block must not run")
    assert not ours(sdk, name)


def test_a_container_removed_by_somebody_else_is_told(engine: Engine, sdk: APIClient, image: str) -> None:
    def remove(event: Event) -> None:
        sdk.remove_container(runner.id, force=True)

    with engine.container(image=image, name="armlet-test") as runner, pytest.raises(ArmletError) as caught:
        runner.run(Command(argv=("sh", "-c", "echo started; sleep 60")), remove)
    assert caught.value.kind is Kind.HOST


CHILD = """
import sys
from armlet.engine import Engine
from armlet.process import Command

with Engine.connect().container(image=sys.argv[1], name=sys.argv[2]) as runner:
    runner.run(Command(argv=("sh", "-c", "echo started; sleep 300")), lambda event: print(event.text, flush=True))
"""


def start_child(image: str, name: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, image, name],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    return child


def test_ctrl_c_ends_the_container_within_seconds(sdk: APIClient, image: str) -> None:
    name = f"armlet-test-{secrets.token_hex(4)}"
    with start_child(image, name) as child:
        assert ours(sdk, name)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=10) != 0
    assert not ours(sdk, name)


def test_the_container_of_a_killed_run_is_swept(engine: Engine, sdk: APIClient, image: str) -> None:
    name = f"armlet-test-{secrets.token_hex(4)}"
    with start_child(image, name) as child, engine.container(image=image, name=name) as mine:
        left = [entry for entry in ours(sdk, name) if not entry.endswith(mine.id)]
        child.kill()
        child.wait()
        assert len(left) == 1
        assert left[0].lstrip("/") in engine.sweep()
        assert ours(sdk, name) == [f"/{mine.id}"]


BUILD = """
import sys
from armlet.engine import Engine

Engine.connect().build(
    tag=sys.argv[2],
    context={"Dockerfile": b"ARG BASE\\nFROM ${BASE}\\nRUN echo started && sleep 300\\n"},
    build_args={"BASE": sys.argv[1]},
    emit=lambda event: print(event.text, flush=True),
)
"""


def test_ctrl_c_ends_an_image_build(engine: Engine, sdk: APIClient, image: str) -> None:
    def running() -> set[str]:
        listed = sdk.containers(all=True)
        return {entry["Id"] for entry in listed if "sleep 300" in entry["Command"]}

    tag = f"armlet-test-interrupted:{secrets.token_hex(4)}"
    before = running()
    with subprocess.Popen(
        [sys.executable, "-c", BUILD, image, tag],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert any(line == "started\n" for line in child.stdout)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=10) != 0
    assert until(lambda: running() <= before, 15)
    assert not engine.image_exists(tag)
