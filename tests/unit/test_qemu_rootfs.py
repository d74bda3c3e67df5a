"""Making the target's root file system: once, whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.paths import Paths
from armlet.process import Command, Done
from armlet.qemu.rootfs import make
from tests.fakes.runner import FakeRunner, done


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMLET_DEBIAN_MIRROR", "http://mirror.invalid/debian")


def unpacks(command: Command) -> Done:
    libraries = Path(command.argv[command.argv.index("--directory") + 1], "usr/lib/aarch64-linux-gnu")
    for name in ("blas", "lapack"):
        (libraries / name).mkdir(parents=True)
        (libraries / name / f"lib{name}.so.3").touch()
    return done()


def test_it_is_made_once(paths: Paths) -> None:
    runner = FakeRunner({"tar --extract": unpacks})
    made = make(paths, suite="bookworm", runner=runner)
    bootstrap = runner.commands[0].argv
    assert "--architectures=arm64" in bootstrap
    assert bootstrap[-1] == "http://mirror.invalid/debian"
    assert (made / "usr/lib/aarch64-linux-gnu/libblas.so.3").resolve().is_file()
    assert (made / "usr/lib/aarch64-linux-gnu/liblapack.so.3").resolve().is_file()
    # Debian 13 leaves the links of a merged /usr to the installer, which does not run.
    assert (made / "lib/aarch64-linux-gnu/libblas.so.3").is_file()
    again = FakeRunner()
    assert make(paths, suite="bookworm", runner=again) == made
    assert again.commands == []
    assert [path.name for path in paths.images.iterdir()] == [made.name]


def test_another_suite_or_package_is_another_one(paths: Paths) -> None:
    runner = FakeRunner({"tar --extract": unpacks})
    made = {
        make(paths, suite="bookworm", runner=runner),
        make(paths, suite="trixie", runner=runner),
        make(paths, suite="trixie", packages=("python3-minimal",), runner=runner),
    }
    assert len(made) == 3


@pytest.mark.parametrize(
    ("tail", "remedy"),
    [
        ("GPG error: NO_PUBKEY 0E98404D386FA1D9", "debian-archive-keyring"),
        ("E: Failed to fetch http://mirror.invalid/debian/x", "ARMLET_DEBIAN_MIRROR"),
        ("tar: No space left on device", "ARMLET_CACHE"),
    ],
)
def test_a_failure_is_explained_and_leaves_nothing(paths: Paths, tail: str, remedy: str) -> None:
    runner = FakeRunner({"mmdebstrap": done(1, tail)})
    with pytest.raises(ArmletError) as caught:
        make(paths, suite="bookworm", runner=runner)
    assert caught.value.kind is Kind.HOST
    assert remedy in caught.value.hint
    assert list(paths.images.iterdir()) == []
