"""Engines that DOCKER_HOST names: whether they are here, and the way to them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from armlet.engine import Mount
from armlet.engine.elsewhere import Tunnel, demand_shared, tunnel_argv
from armlet.errors import ArmletError, Kind
from armlet.process import Command, Companion, Done
from tests.fakes.runner import FakeRunner, done

PLACE = "tcp://host:2375"


def looks_in(folder: Path) -> FakeRunner:
    """A container whose /out is ``folder``."""

    def test(command: Command) -> Done:
        return done(0 if (folder / Path(command.argv[2]).name).exists() else 1)

    return FakeRunner({"test": test})


def test_a_folder_that_both_see_is_no_matter(tmp_path: Path) -> None:
    demand_shared(looks_in(tmp_path), [Mount(source=tmp_path, target="/out")], engine=PLACE)
    assert list(tmp_path.iterdir()) == []


def test_another_folder_of_the_same_name_is_refused(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    mounts = [Mount(source=there, target="/src", read_only=True), Mount(source=here, target="/out")]
    with pytest.raises(ArmletError) as caught:
        demand_shared(looks_in(there), mounts, engine=PLACE)
    assert caught.value.kind is Kind.HOST
    assert str(here) in caught.value.what
    assert list(here.iterdir()) == []


def test_what_only_reads_is_not_written_to(tmp_path: Path) -> None:
    runner = FakeRunner()
    demand_shared(runner, [Mount(source=tmp_path, target="/src", read_only=True)], engine=PLACE)
    assert runner.asked == []


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("ssh://build", "/here:/var/run/docker.sock -- build cat"),
        ("ssh://me@build:2222", "/here:/var/run/docker.sock -p 2222 -l me -- build cat"),
        ("ssh://build/run/user/1/docker.sock", "/here:/run/user/1/docker.sock -- build cat"),
        # Neither is an option of ssh.
        ("ssh://-oProxyCommand=x", "/here:/var/run/docker.sock -- -oproxycommand=x cat"),
    ],
)
def test_how_ssh_is_asked(host: str, words: str) -> None:
    assert " ".join(tunnel_argv(host, Path("/here"))).endswith(words)


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program ``ssh`` of our own, to be written."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return program


def test_what_ssh_says_is_told(ssh: Path, tmp_path: Path) -> None:
    ssh.write_text("#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n")
    ssh.chmod(0o755)
    with pytest.raises(ConnectionError, match=r"Permission denied \(publickey\)\."):
        Tunnel("ssh://build")
    assert list(tmp_path.glob("armlet-engine-*")) == []


def test_a_tunnel_is_closed_with_its_owner(ssh: Path, tmp_path: Path) -> None:
    # Makes the socket's file, says who it is, and ends with its input, as the real one does.
    ssh.write_text(
        f'#!/bin/sh\nfor word; do case $word in *docker.sock:*) : >"${{word%%:*}}" ;; esac; done\n'
        f"echo $$ >{tmp_path}/pid\ncat >/dev/null\n: >{tmp_path}/ended\n"
    )
    ssh.chmod(0o755)
    tunnel = Tunnel("ssh://build")
    assert Path(tunnel.url.removeprefix("unix://")).exists()
    del tunnel
    assert (tmp_path / "ended").exists()
    assert list(tmp_path.glob("armlet-engine-*")) == []


def test_a_companion_that_does_not_listen_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    companion = Companion(Command(argv=("sh", "-c", "exec <&-; sleep 60")), tmp_path / "log")
    before = companion.running
    companion.end()
    assert (before, companion.running) == (True, False)
    assert time.monotonic() - started < 30
