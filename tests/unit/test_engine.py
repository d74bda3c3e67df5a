"""The engine's wrapper against a stand-in for the SDK: what reaches the engine, and what its refusals become."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest

from armlet.engine import Engine, Mount, Surroundings
from armlet.engine.container import read_lines
from armlet.engine.context import write_context
from armlet.engine.failures import unreachable
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Line
from armlet.mounts import View
from armlet.process import Command, interactive
from tests.fakes.fake_docker import FakeDocker, FakeResponse, api_error, frame


def engine_of(fake: FakeDocker) -> Engine:
    return Engine(cast("Any", fake))


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Line)]


def test_importing_the_engine_loads_no_sdk() -> None:
    code = "import armlet.engine, sys; sys.exit('docker' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2]).returncode == 0


class TestConnect:
    def test_a_refused_permission_names_the_group(self) -> None:
        error = unreachable(PermissionError(13, "Permission denied"), None)
        assert error.kind is Kind.HOST
        assert "permission" in error.what
        assert "usermod -aG docker" in error.hint

    def test_a_missing_engine_is_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shutil.which", lambda _name: None)
        error = unreachable(FileNotFoundError(2, "No such file or directory"), None)
        assert "no Docker engine is installed" in error.what
        assert "apt install docker.io" in error.hint

    def test_a_stopped_engine_is_started(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shutil.which", lambda name: f"/usr/sbin/{name}")
        error = unreachable(FileNotFoundError(2, "No such file or directory"), None)
        assert "not running" in error.what
        assert "start docker" in error.hint or "dockerd" in error.hint

    @pytest.mark.parametrize("host", ["nonsense", "unix://", "ftp://somewhere", "docker.sock"])
    def test_a_malformed_address_is_called_so(self, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
        monkeypatch.setenv("DOCKER_HOST", host)
        with pytest.raises(ArmletError) as caught:
            Engine.connect()
        assert caught.value.kind is Kind.HOST
        assert caught.value.where == "DOCKER_HOST"
        assert host in caught.value.what

    @pytest.mark.parametrize("host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1"])
    def test_an_address_without_an_engine_is_named(self, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
        monkeypatch.setenv("DOCKER_HOST", host)
        with pytest.raises(ArmletError, match="no engine answers") as caught:
            Engine.connect()
        assert host in caught.value.what
        assert "unset DOCKER_HOST" in caught.value.hint


class TestContainer:
    def test_is_shut_in_and_gone_afterwards(self, tmp_path: Path) -> None:
        fake = FakeDocker()
        mount = Mount(source=tmp_path, target="/src", read_only=True)
        with engine_of(fake).container(image="i", mounts=[mount], name="build") as runner:
            (name,) = fake.containers_made
            made = fake.containers_made[name]
            assert runner.id == name
            assert name.startswith("build-")
            assert made["user"] == f"{os.getuid()}:{os.getgid()}"
            assert made["labels"]["armlet"] == "1"
            assert made["labels"]["armlet.pid"] == str(os.getpid())
            host = made["host_config"]
            assert host["network_mode"] == "none"
            assert host["cap_drop"] == ["ALL"]
            assert host["security_opt"] == ["no-new-privileges"]
            assert host["auto_remove"]
            assert host["init"]
            assert host["mounts"] == [{"Target": "/src", "Source": str(tmp_path), "Type": "bind", "ReadOnly": True}]
        assert not fake.containers_made

    def test_its_surroundings_can_be_others(self, tmp_path: Path) -> None:
        fake = FakeDocker()
        around = Surroundings(
            hostname="h", environment={"TZ": "X-3"}, umask="002", view=View(prefix="/mnt/x"), uid=os.getuid()
        )
        mounts = [Mount(source=tmp_path, target="/src"), Mount(source=tmp_path, target="/build", read_only=True)]
        engine = Engine(cast("Any", fake), surroundings=around)
        with engine.container(image="i", mounts=mounts, name="build", workdir="/build") as runner:
            (made,) = fake.containers_made.values()
            assert [mount["Target"] for mount in made["host_config"]["mounts"]] == ["/mnt/x/src", "/mnt/x/build"]
            assert (made["hostname"], made["environment"]) == ("h", {"TZ": "X-3"})
            assert made["working_dir"] == "/mnt/x/build"
            runner.run(Command(argv=("cc", "/src/a.c"), env={"OUT": "/build"}, cwd=PurePosixPath("/src")))
        ran = fake.execs[-1]
        assert ran["argv"] == ["sh", "-c", 'umask 002 && exec "$@"', "sh", "cc", "/mnt/x/src/a.c"]
        assert (ran["environment"], ran["workdir"]) == ({"OUT": "/mnt/x/build"}, "/mnt/x/src")

    @pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, ValueError])
    def test_is_gone_after_any_exception(self, raised: type[BaseException]) -> None:
        fake = FakeDocker()
        with pytest.raises(raised), engine_of(fake).container(image="i", name="build"):
            raise raised
        assert not fake.containers_made

    @pytest.mark.parametrize("method", ["create_container", "start"])
    @pytest.mark.parametrize("raised", [api_error("no such network"), KeyboardInterrupt()])
    def test_a_half_started_one_is_gone(self, method: str, raised: BaseException) -> None:
        fake = FakeDocker()
        fake.fail[method] = raised
        expected = ArmletError if isinstance(raised, Exception) else KeyboardInterrupt
        with pytest.raises(expected), engine_of(fake).container(image="i", name="build"):
            pytest.fail("the block must not run")
        assert not fake.containers_made

    def test_two_at_once_do_not_collide(self) -> None:
        fake = FakeDocker()
        engine = engine_of(fake)
        with engine.container(image="i", name="build"), engine.container(image="i", name="build"):
            assert len(fake.containers_made) == 2

    def test_a_rootless_engine_runs_as_its_root(self) -> None:
        fake = FakeDocker({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]})
        assert engine_of(fake).user == "0:0"

    def test_user_namespaces_are_left_so_that_the_owner_stays(self) -> None:
        fake = FakeDocker({"SecurityOptions": ["name=userns"]})
        with engine_of(fake).container(image="i", name="build"):
            (made,) = fake.containers_made.values()
            assert made["host_config"]["userns_mode"] == "host"

    def test_already_removed_by_the_engine_is_no_error(self) -> None:
        fake = FakeDocker()
        with engine_of(fake).container(image="i", name="build"):
            fake.fail["remove_container"] = api_error("removal is already in progress", 409)


class TestRun:
    def test_argv_environment_and_exit_code(self) -> None:
        fake = FakeDocker()
        fake.exec_output = frame(1, b"one\ntw") + frame(2, b"error\n") + frame(1, b"o\n")
        fake.exec_code = 3
        events: list[Event] = []
        with engine_of(fake).container(image="i", name="build") as runner:
            done = runner.run(Command(argv=("sh", "-c", "a 'b'"), env={"X": "y"}), events.append)
        assert done.code == 3
        assert done.tail == ("one", "error", "two")
        assert texts(events) == ["one", "error", "two"]
        assert fake.execs[0]["argv"] == ["sh", "-c", "a 'b'"]
        assert fake.execs[0]["environment"] == {"X": "y"}

    def test_a_container_that_went_away_is_told(self) -> None:
        fake = FakeDocker()
        with engine_of(fake).container(image="i", name="build") as runner:
            fake.containers_made.clear()
            with pytest.raises(ArmletError, match="cut off") as caught:
                runner.run(Command(argv=("ninja",)))
        assert caught.value.kind is Kind.HOST

    def test_an_interrupt_while_streaming_removes_it(self) -> None:
        fake = FakeDocker()
        fake.exec_output = frame(1, b"line\n")

        def interrupt(_event: Event) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), engine_of(fake).container(image="i", name="build") as runner:
            runner.run(Command(argv=("ninja",)), interrupt)
        assert not fake.containers_made


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], []),
        ([b"a\nb\n"], ["a", "b"]),
        ([b"a", b"b", b"\n"], ["ab"]),
        ([b"no end"], ["no end"]),
        ([b"\xc3", b"\xa4\n"], ["ä"]),
        ([b"\xff\n"], ["\N{REPLACEMENT CHARACTER}"]),
        ([b"a\r", b"\nb\rc\n"], ["a", "b", "c"]),
        ([b"\n\n"], ["", ""]),
    ],
)
def test_lines_do_not_depend_on_where_the_pieces_end(pieces: list[bytes], expected: list[str]) -> None:
    lines: list[str] = []
    read_lines(io.BytesIO(b"".join(frame(1, piece) for piece in pieces)), lines.append)
    assert lines == expected


def test_a_program_on_the_terminal_hands_back_its_exit_code() -> None:
    assert interactive(Command(argv=("sh", "-c", "exit 3"))) == 3
    with pytest.raises(ArmletError) as caught:
        interactive(Command(argv=("no-such-program",)))
    assert caught.value.kind is Kind.HOST


class TestSweep:
    def test_only_containers_of_gone_processes(self) -> None:
        fake = FakeDocker()
        engine = engine_of(fake)
        with engine.container(image="i", name="mine"):
            (labels,) = (made["labels"] for made in fake.containers_made.values())
            others = {
                "killed": {**labels, "armlet.pid": "4194304"},
                "reused-number": {**labels, "armlet.started": "1"},
                "other-machine": {**labels, "armlet.pid": "4194304", "armlet.host": "elsewhere"},
                "no-owner": {"armlet": "1"},
                "foreign": {},
            }
            for name, given in others.items():
                fake.create_container("i", name=name, labels=given)
            assert set(engine.sweep()) == {"killed", "reused-number"}
            assert not {"killed", "reused-number"} & set(fake.containers_made)
            assert len(fake.containers_made) == 4


def test_a_shell_is_shut_in_as_a_build_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    argv = engine_of(FakeDocker({"SecurityOptions": ["name=userns"]})).shell_argv(image="i")
    shut = {"--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--userns=host"}
    assert shut <= set(argv)
    assert argv[-1] == "i"


class TestImages:
    def test_build_hands_over_arguments_and_returns_the_id(self) -> None:
        fake = FakeDocker()
        made = engine_of(fake).build(tag="t:1", context={"Dockerfile": b"FROM x"}, build_args={"A": "b"})
        assert made == "sha256:made"
        assert fake.posted[0][0] == "/build"
        assert fake.posted[0][1]["buildargs"] == '{"A": "b"}'

    def test_a_failed_instruction_is_a_build_error_and_its_words_are_whole_lines(self) -> None:
        said = (
            "Step 1\n",
            "\x1b[91mE\x1b[0m",
            "\x1b[91m: \x1b[0m",
            "\x1b[91mno package x\x1b[0m",
            "\x1b[91m\n\x1b[0m",
            "end",
        )
        messages = [*({"stream": text} for text in said), {"error": "returned code: 100"}]
        fake = FakeDocker()
        fake.answer = lambda _path, _parameters: FakeResponse("\n".join(map(json.dumps, messages)).encode())
        events: list[Event] = []
        with pytest.raises(ArmletError, match="returned code: 100") as caught:
            engine_of(fake).build(tag="t:1", context={"Dockerfile": b"FROM x"}, emit=events.append)
        assert caught.value.kind is Kind.BUILD
        assert "docker info" not in caught.value.hint
        assert events == [Line(text=text) for text in ("Step 1", "E: no package x", "end")]

    @pytest.mark.parametrize(
        "answer",
        [
            FakeResponse(b'{"error": "write /var/lib/docker/x: no space left on device"}'),
            FakeResponse(b"no space left on device", status_code=500),
        ],
    )
    def test_a_full_disk_is_the_host_s_error(self, answer: FakeResponse, tmp_path: Path) -> None:
        fake = FakeDocker()
        fake.answer = lambda _path, _parameters: answer
        tar = tmp_path / "rootfs.tar"
        tar.write_bytes(b"")
        with pytest.raises(ArmletError, match="no disk space") as built:
            engine_of(fake).build(tag="t:1", context={"Dockerfile": b"FROM x"})
        answer.raw.seek(0)
        with pytest.raises(ArmletError, match="no disk space") as imported:
            engine_of(fake).import_rootfs(tar, "t:1")
        assert built.value.kind is imported.value.kind is Kind.HOST

    def test_space_is_asked_for_before_the_work(self, tmp_path: Path) -> None:
        engine = engine_of(FakeDocker({"DockerRootDir": str(tmp_path)}))
        engine.require_space(1, what="a build")
        with pytest.raises(ArmletError, match="no disk space") as caught:
            engine.require_space(1 << 60, what="a build")
        assert caught.value.kind is Kind.HOST
        assert "docker image ls --quiet 'armlet-*'" in caught.value.hint
        assert "./inv clean --cache" in caught.value.hint
        engine_of(FakeDocker({"DockerRootDir": "/on/another/machine"})).require_space(1 << 60, what="a build")

    def test_pull_without_a_registry_gives_none(self) -> None:
        fake = FakeDocker()
        fake.fail["pull"] = api_error("dial tcp: connection refused")
        assert engine_of(fake).pull("debian@sha256:0") is None

    def test_pull_tells_a_full_disk(self) -> None:
        fake = FakeDocker()
        fake.fail["pull"] = api_error("no space left on device")
        with pytest.raises(ArmletError, match="no disk space"):
            engine_of(fake).pull("debian@sha256:0")

    def test_pull_tells_a_disk_that_fills_up_on_the_way(self) -> None:
        fake = FakeDocker()
        fake.pull_messages = ({"status": "Extracting"}, {"error": "write /x: no space left on device"})
        with pytest.raises(ArmletError, match="no disk space"):
            engine_of(fake).pull("debian@sha256:0")

    def test_an_image_that_the_registry_breaks_off_is_none(self) -> None:
        fake = FakeDocker()
        fake.pull_messages = ({"status": "Pulling"}, {"error": "manifest unknown"})
        assert engine_of(fake).pull("debian@sha256:0") is None


def test_a_context_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    archives = []
    for stamp, names in ((1, ("b", "a/run.sh")), (1_000_000_000, ("a/run.sh", "b"))):
        os.utime(script, (stamp, stamp))
        content: dict[str, bytes | Path] = {"b": b"bytes", "a/run.sh": script}
        archive = io.BytesIO()
        write_context({name: content[name] for name in names}, archive)
        archives.append(archive.getvalue())
    assert archives[0] == archives[1]
    with tarfile.open(fileobj=io.BytesIO(archives[0])) as tar:
        assert {(entry.name, entry.mode, entry.uid) for entry in tar} == {("a/run.sh", 0o755, 0), ("b", 0o644, 0)}
