"""The temporary folders of a smoke."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from armlet.errors import ArmletError, Kind, host_error
from armlet.files import write_whole
from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import LEVELS
from armlet.onnx.libraries import library
from armlet.process import Command, Done
from armlet.qemu.run import Target
from armlet.qemu.trial import Place, Wanted, attempt
from armlet.scratch import demand_room, scratch, sweep
from armlet.spec.cpu import CPUS
from tests.conftest import ROOT
from tests.fakes.runner import FakeRunner

_MADE = re.compile(r'\bscratch\("([a-z]+)"\)')


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def full(place: str | None = None) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)


def told(error: BaseException) -> ArmletError:
    """What becomes of an error that is raised while a scratch folder is used."""
    with pytest.raises(ArmletError) as caught, scratch("smoke"):
        raise error
    return caught.value


def names_the_temporary_folder(error: ArmletError, temporary: Path) -> bool:
    return (error.kind, error.where) == (Kind.HOST, str(temporary)) and "TMPDIR" in error.hint


def test_a_scratch_folder_is_gone_afterwards(temporary: Path) -> None:
    with scratch("models") as folder:
        assert folder.parent == temporary
        write_whole(folder / "deep" / "file", b"x")
    assert list(temporary.iterdir()) == []


def test_a_full_disk_names_the_temporary_folder_and_tmpdir(temporary: Path) -> None:
    inside = temporary / "armlet-convert-1" / "model.ort"
    assert names_the_temporary_folder(told(full()), temporary)
    assert names_the_temporary_folder(told(full(str(inside))), temporary)
    wrapped = host_error(full(), inside)
    wrapped.__cause__ = full()
    assert names_the_temporary_folder(told(wrapped), temporary)


def test_a_full_disk_elsewhere_is_told_as_it_is(temporary: Path) -> None:
    cache = temporary / "cache"
    wrapped = host_error(full(), cache)
    wrapped.__cause__ = full()
    assert told(wrapped) is wrapped
    with pytest.raises(OSError, match=r"cache") as caught, scratch("smoke"):
        raise full(str(cache))
    assert caught.value.filename == str(cache)


def test_what_fails_without_room_fails_for_want_of_it(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ArmletError("ONNX Runtime refuses the model", hint="", kind=Kind.INPUT)
    assert told(refused) is refused
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4096))
    assert names_the_temporary_folder(told(refused), temporary)
    with pytest.raises(ArmletError):
        demand_room(temporary, "")


def test_a_conversion_without_room_does_not_blame_the_model(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert() -> ArmletError:
        with pytest.raises(ArmletError) as caught:
            save_optimised(library("onnx").ModelProto(), LEVELS["cpu"], save_as="ORT", where=Path("m.onnx"))
        return caught.value

    assert convert().kind is Kind.INPUT
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4096))
    assert names_the_temporary_folder(convert(), temporary)


def test_no_temporary_folder_at_all(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_usable() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none_usable)
    monkeypatch.setenv("TMPDIR", str(temporary))
    with pytest.raises(ArmletError) as caught:
        sweep()
    assert names_the_temporary_folder(caught.value, temporary)


def test_old_folders_are_swept_and_nothing_else(temporary: Path) -> None:
    day = 24 * 3600
    names = {"armlet-models-a": 2, "armlet-smoke-b": 2, "armlet-profile-c": 2, "armlet-smoke-now": 0, "other-d": 2}
    for name, days in names.items():
        (temporary / name / "in it").mkdir(parents=True)
        os.utime(temporary / name, (time.time() - days * day,) * 2)
    sweep()
    assert sorted(path.name for path in temporary.iterdir()) == ["armlet-smoke-now", "other-d"]


def test_whoever_makes_a_folder_removes_what_killed_ones_left(temporary: Path) -> None:
    kinds = [found[1] for file in (ROOT / "armlet").rglob("*.py") for found in _MADE.finditer(file.read_text())]
    assert {"import", "pack", "quantise"} <= {*kinds}
    for kind in kinds:
        (temporary / f"armlet-{kind}-left").mkdir(exist_ok=True)
        os.utime(temporary / f"armlet-{kind}-left", (0, 0))
    with scratch("import") as folder:
        assert list(temporary.iterdir()) == [folder]


def run(temporary: Path, monkeypatch: pytest.MonkeyPatch, runner: FakeRunner) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    target = Target(rootfs=temporary / "rootfs", cpu=CPUS["cortex-a53"])
    place = Place(target=target, library=Path("/l.so"), device=Path("/device"), providers=("cpu",))
    wanted = Wanted(outputs=[])
    attempt(place, Path("/m.ort"), name="m", conversion="c", samples=[], wanted=wanted, runner=runner)


def test_the_targets_temporary_files_go_when_it_is_interrupted(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: Command) -> Done:
        folder = Path(command.env["TMPDIR"], "armlet-profile-x")
        folder.mkdir()
        assert temporary in folder.parents
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(temporary, monkeypatch, FakeRunner({"armlet_runtime.smoke": interrupted}))
    assert list(temporary.iterdir()) == []


def test_a_target_without_room_is_this_machines_fault(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Done(code=1, tail=(f"OSError: [Errno 28] {os.strerror(errno.ENOSPC)}",))
    with pytest.raises(ArmletError) as caught:
        run(temporary, monkeypatch, FakeRunner({"armlet_runtime.smoke": said}))
    assert names_the_temporary_folder(caught.value, temporary)
