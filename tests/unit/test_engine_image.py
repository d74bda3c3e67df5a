"""The toolchain image: what its key depends on, and when it is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from armlet.engine import Engine
from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.paths import Paths
from armlet.process import Command, Done
from armlet.spec.toolchain import BaseImage, Floors, Toolchain, Wheel
from armlet.steps import image, rootfs
from armlet.steps.base import Work
from tests.fakes.fake_docker import FakeDocker, FakeResponse, frame

REFERENCE = f"registry.example/debian@sha256:{'0' * 64}"


def toolchain(**changes: Any) -> Toolchain:
    known: dict[str, Any] = {
        "schema": 1,
        "name": "aarch64-test",
        "description": "for tests",
        "arch": "aarch64",
        "triple": "aarch64-linux-gnu",
        "debian_arch": "arm64",
        "base": BaseImage(distribution="debian", suite="bookworm", image=REFERENCE),
        "compiler": "gcc",
        "packages": ("ninja-build", "git"),
        "wheels": (),
        "floors": Floors(glibc="2.36", kernel="3.7"),
    }
    return Toolchain(**{**known, **changes})


WHEEL = Wheel(project="cmake", version="3.31.6", filename="cmake-3.31.6-py3-none-any.whl", sha256="1" * 64)


class TestKey:
    @pytest.mark.parametrize(
        "changes",
        [
            {"packages": ("ninja-build", "git", "patch")},
            {"base": BaseImage(distribution="debian", suite="trixie")},
            {"base": BaseImage(distribution="debian", suite="bookworm")},
            {"wheels": (WHEEL,)},
        ],
    )
    def test_changes_with_whatever_goes_in(self, changes: dict[str, Any]) -> None:
        assert image.key(toolchain(**changes)) != image.key(toolchain())

    def test_a_wheel_of_another_hash_is_another_image(self) -> None:
        other = WHEEL.model_copy(update={"sha256": "2" * 64})
        assert image.key(toolchain(wheels=(WHEEL,))) != image.key(toolchain(wheels=(other,)))

    def test_neither_order_nor_description_matters(self) -> None:
        assert image.key(toolchain(packages=("git", "ninja-build"), description="x")) == image.key(toolchain())

    def test_the_host_s_mirror_and_proxies_do_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = image.key(toolchain())
        monkeypatch.setenv("ARMLET_DEBIAN_MIRROR", "http://other.example/debian")
        monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
        assert image.key(toolchain()) == before

    def test_the_text_has_only_instructions_of_the_classic_builder(self) -> None:
        text = image.render(toolchain(wheels=(WHEEL,)))
        assert "--mount" not in text
        assert "<<" not in text
        assert "/opt/wheels/cmake" in text
        assert "/opt/wheels" not in image.render(toolchain())


class Measured(FakeDocker):
    """Answers the questions that are asked of a new image."""

    def post(self, url: str, **settings: Any) -> FakeResponse:
        if "/exec/" in url:
            compiler = "--version" in self.execs[-1]["argv"]
            self.exec_output = frame(1, b"gcc 12\nmore\n" if compiler else b"git 1:2.39\npatch 2.7\n")
        return super().post(url, **settings)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    # So that apt is not asked.
    monkeypatch.setenv("ARMLET_DEBIAN_MIRROR", "http://mirror.example/debian")
    return Paths(root=tmp_path, cache=tmp_path / "cache")


def ensure(fake: FakeDocker, paths: Paths) -> image.ImageInfo:
    return image.ensure(toolchain=toolchain(), paths=paths, engine=Engine(cast("Any", fake)), emit=silent)


class TestEnsure:
    def test_makes_and_measures_once(self, paths: Paths) -> None:
        fake = Measured()
        info = ensure(fake, paths)
        assert info.tag in fake.images
        assert info.compiler == "gcc 12"
        assert info.packages == {"git": "1:2.39", "patch": "2.7"}
        assert info.id == "sha256:made"
        asked = len(fake.posted)
        assert ensure(fake, paths) == info
        assert len(fake.posted) == asked

    def test_makes_a_removed_image_again(self, paths: Paths) -> None:
        fake = Measured()
        info = ensure(fake, paths)
        del fake.images[info.tag]
        assert ensure(fake, paths) == info
        assert info.tag in fake.images

    def test_what_a_killed_run_left_is_removed(self, paths: Paths) -> None:
        left, others = (paths.images / f".wheels-{key[:12]}-x" for key in (image.key(toolchain()), "0" * 12))
        left.mkdir(parents=True)
        others.mkdir()
        ensure(Measured(), paths)
        assert not left.exists()
        assert others.exists()

    def test_a_damaged_record_is_measured_again(self, paths: Paths) -> None:
        fake = Measured()
        info = ensure(fake, paths)
        (record,) = paths.images.glob("*.json")
        for damaged in ("", "[]", '{"tag": 1}'):
            record.write_text(damaged)
            assert ensure(fake, paths) == info
        assert image.ImageInfo.from_json(record.read_text()) == info

    def test_the_digest_tells_what_is_installed_not_when(self, paths: Paths, tmp_path: Path) -> None:
        fake = Measured()
        info = ensure(fake, paths)
        fake.images[info.tag] = "sha256:built-on-another-day"
        again = ensure(fake, Paths(root=tmp_path, cache=tmp_path / "other"))
        assert again.id != info.id
        assert again.digest == info.digest

    def test_proxies_and_mirror_reach_the_build(self, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ARMLET_DEBIAN_MIRROR", "http://mirror.example/debian/")
        monkeypatch.setenv("https_proxy", "http://127.0.0.1:3128")
        fake = Measured()
        ensure(fake, paths)
        (parameters,) = (given for path, given in fake.posted if path == "/build")
        arguments = json.loads(parameters["buildargs"])
        assert arguments["BASE"] == REFERENCE
        assert arguments["MIRROR"] == "http://mirror.example/debian"
        assert arguments["https_proxy"] == "http://127.0.0.1:3128"
        # A proxy on this machine's loopback address is not there in a bridged network.
        assert parameters["networkmode"] == "host"


def test_the_step_leaves_what_was_measured(paths: Paths, tmp_path: Path) -> None:
    resolved = cast("Any", SimpleNamespace(toolchain=toolchain()))
    engine = Engine(cast("Any", Measured()))
    work = Work(
        id="0" * 64,
        resolved=resolved,
        paths=paths,
        engine=engine,
        inputs={},
        out=tmp_path,
        scratch=tmp_path,
        jobs=1,
        emit=silent,
    )
    assert image.STEP.facts(resolved) == {"image": image.key(toolchain())}
    image.STEP.run(work)
    written = json.loads((tmp_path / "image.json").read_text())
    assert written["tag"] == image.image_tag(toolchain())
    assert written["packages"]["git"] == "1:2.39"


def test_a_shell_needs_a_terminal(paths: Paths) -> None:
    with pytest.raises(ArmletError, match="needs a terminal") as caught:
        image.shell(toolchain=toolchain(), paths=paths, engine=Engine(cast("Any", FakeDocker())), emit=silent)
    assert caught.value.kind is Kind.INPUT


def test_a_shell_ends_with_its_own_code(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(image, "interactive", lambda command: 7)
    monkeypatch.setattr("armlet.engine.core.client_program", lambda: "docker")
    engine = Engine(cast("Any", Measured()))
    assert image.shell(toolchain=toolchain(), paths=paths, engine=engine, emit=silent) == 7


class FakeHost:
    """Answers apt-get with the given lines, or is not there."""

    def __init__(self, *lines: str, missing: bool = False) -> None:
        self._lines = lines
        self._missing = missing

    def run(self, command: Command, emit: Sink = silent) -> Done:
        if self._missing:
            raise ArmletError("cannot run apt-get", hint="", kind=Kind.HOST)
        return Done(code=0, tail=self._lines)


class TestMirror:
    @pytest.mark.parametrize(
        ("environment", "host", "expected"),
        [
            ({"ARMLET_DEBIAN_MIRROR": "http://a.example/debian/"}, FakeHost(), "http://a.example/debian"),
            (
                {"ARMLET_DEBIAN_MIRROR": "file:///srv/debian,https://a.example/d"},
                FakeHost(),
                "https://a.example/d",
            ),
            (
                {},
                FakeHost("http://s.example/debian-security/ Debian-Security", "http://m.example/debian/ Debian"),
                "http://m.example/debian",
            ),
            (
                {},
                FakeHost("http://s.example/debian-security/ ", "http://m.example/debian/ "),
                "http://m.example/debian",
            ),
            ({}, FakeHost("http://u.example/ubuntu/ Ubuntu"), None),
            ({}, FakeHost(missing=True), None),
        ],
    )
    def test_is_the_user_s_else_apt_s(
        self, environment: Mapping[str, str], host: FakeHost, expected: str | None
    ) -> None:
        assert rootfs.debian_mirror(environment, host) == expected

    def test_a_folder_cannot_be_reached_from_a_container(self) -> None:
        with pytest.raises(ArmletError) as caught:
            rootfs.debian_mirror({"ARMLET_DEBIAN_MIRROR": "file:///srv/debian"}, FakeHost())
        assert caught.value.kind is Kind.INPUT


class TestBootstrap:
    @pytest.mark.usefixtures("paths")
    def test_a_failure_names_the_remedy(self, tmp_path: Path) -> None:
        class Failing:
            def run(self, command: Command, emit: Sink = silent) -> Done:
                return Done(code=25, tail=("E: newuidmap failed",))

        with pytest.raises(ArmletError, match="cannot bootstrap") as caught:
            rootfs.bootstrap(suite="bookworm", out=tmp_path / "x.tar", emit=silent, runner=Failing())
        assert caught.value.kind is Kind.HOST
        assert "uidmap" in caught.value.hint
