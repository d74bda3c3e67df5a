"""Where the native library is looked for, and what is said when it is not fit."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import ort
from armlet_runtime.ort import _library


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The binding as if installed in an empty directory, with nothing loaded and nothing named."""
    monkeypatch.delenv("ARMLET_ORT_LIBRARY")
    monkeypatch.setattr(_library, "_loaded", {})
    monkeypatch.setattr(_library, "__file__", str(tmp_path / "_library.py"))
    monkeypatch.setattr(_library, "_NAMES", ("libonnxruntime-absent.so.1", "libonnxruntime-absent.so"))
    return tmp_path


def test_version_and_build(library: ort.Library) -> None:
    assert ort.get_version() == library.version
    assert tuple(map(int, library.version.split(".")[:2])) >= (1, ort.API_VERSION)
    assert "ORT Build Info" in ort.get_build_info()
    assert ort.get_available_providers()[-1] == "CPUExecutionProvider"


def test_nothing_found_names_every_place(elsewhere: Path) -> None:
    with pytest.raises(ort.LibraryError) as caught:
        ort.load_library()
    lines = str(caught.value).splitlines()
    assert "set ARMLET_ORT_LIBRARY" in lines[0]
    assert lines[1].strip() == f"{elsewhere}/libonnxruntime-absent.so.1: no such file"
    assert lines[2].strip() == f"{elsewhere}/libonnxruntime-absent.so: no such file"
    assert lines[3].strip().startswith("cannot load libonnxruntime-absent.so.1: cannot open shared object")
    assert lines[4].strip().startswith("cannot load libonnxruntime-absent.so: cannot open shared object")


def test_next_to_the_package(elsewhere: Path, library: ort.Library) -> None:
    (elsewhere / "libonnxruntime-absent.so").symlink_to(library.path)
    found = ort.load_library()
    assert found.path == str(elsewhere / "libonnxruntime-absent.so")
    assert ort.load_library() is found


def test_a_broken_file_next_to_the_package_is_not_stepped_over(elsewhere: Path, library: ort.Library) -> None:
    (elsewhere / "libonnxruntime-absent.so.1").write_text("not ELF")
    (elsewhere / "libonnxruntime-absent.so").symlink_to(library.path)
    with pytest.raises(ort.LibraryError, match=r"cannot load .*absent\.so\.1: .*(invalid ELF|too short)"):
        ort.load_library()


def test_a_named_library_is_the_only_one_tried(
    elsewhere: Path, library: ort.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(library.path, elsewhere / "copy.so")
    monkeypatch.setenv("ARMLET_ORT_LIBRARY", "/no/such.so")
    with pytest.raises(ort.LibraryError, match=r"^FAIL: cannot load /no/such\.so: cannot open shared object"):
        ort.load_library()
    named = ort.load_library(elsewhere / "copy.so")
    assert named.path == str(elsewhere / "copy.so")
    assert ort.load_library(named) is named


class FakeLoader:
    """``ctypes.CDLL`` as the dynamic loader is: a library loads once what it needs was loaded."""

    def __init__(self, *, needs: str = "libarm_compute.so.43") -> None:
        self.needs, self.loaded = needs, list[str]()

    def __call__(self, path: str) -> Any:
        name = path.rpartition("/")[2]
        if name.startswith("libonnxruntime") and self.needs not in self.loaded:
            raise OSError(f"{self.needs}: cannot open shared object file: No such file or directory")
        self.loaded.append(name)
        return path


def test_what_a_library_needs_is_taken_from_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = FakeLoader()
    monkeypatch.setattr(ctypes, "CDLL", loader)
    with pytest.raises(OSError, match="libarm_compute"):
        _library._load(str(tmp_path / "libonnxruntime.so.1"))
    (tmp_path / "libarm_compute.so.43").touch()
    assert _library._load(str(tmp_path / "libonnxruntime.so.1")) == str(tmp_path / "libonnxruntime.so.1")
    assert loader.loaded == ["libarm_compute.so.43", "libonnxruntime.so.1"]


def test_a_file_beside_that_does_not_help_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = FakeLoader()
    monkeypatch.setattr(ctypes, "CDLL", lambda path: loader(path.replace("arm_compute", "other")))
    (tmp_path / "libarm_compute.so.43").touch()
    with pytest.raises(OSError, match="libarm_compute"):
        _library._load(str(tmp_path / "libonnxruntime.so.1"))
    assert loader.loaded == ["libother.so.43"]


def test_a_library_of_the_system_is_left_to_the_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ctypes, "CDLL", FakeLoader())
    (tmp_path / "libarm_compute.so.43").touch()
    with pytest.raises(OSError, match="libarm_compute"):
        _library._load("libonnxruntime.so.1")


def test_another_library(elsewhere: Path) -> None:
    with pytest.raises(ort.LibraryError, match=r"libc\.so\.6 is no ONNX Runtime: it lacks OrtGetApiBase"):
        ort.load_library("libc.so.6")


def test_a_library_that_is_too_old() -> None:
    asked: list[int] = []

    def get_api(version: int) -> Any:
        asked.append(version)
        return None

    text = ctypes.create_string_buffer(b"1.16.3")
    functions = (
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(get_api),
        ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(text)),
    )
    base = (ctypes.c_void_p * 2)(*(ctypes.cast(function, ctypes.c_void_p).value for function in functions))
    with pytest.raises(ort.LibraryError, match=r"old\.so is ONNX Runtime 1\.16\.3; .* needs C API 21"):
        ort.Library("old.so", None, ctypes.addressof(base))
    assert asked == [ort.API_VERSION]


def test_a_name_that_the_header_lacks(library: ort.Library) -> None:
    with pytest.raises(AttributeError, match="CreateUnicorn"):
        _ = library.api.CreateUnicorn


def test_an_error_code_newer_than_the_header(library: ort.Library) -> None:
    status = library.api.CreateStatus(77, "näw".encode())
    with pytest.raises(ort.OrtError, match=r"näw \(error code 77\)") as caught:
        library.api.checked(lambda: status)()
    assert caught.value.code is ort.OrtErrorCode.FAIL


def test_log_severity() -> None:
    ort.set_default_logger_severity(3)
    ort.set_default_logger_severity(2)
    with pytest.raises(ort.OrtError, match="log severity 9"):
        ort.set_default_logger_severity(9)
