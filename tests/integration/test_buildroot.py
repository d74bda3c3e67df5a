"""A tree in a real Buildroot, as far as nothing has to be downloaded or compiled for that."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from armlet.layers import buildroot
from armlet.paths import Paths
from tests.conftest import ROOT

pytestmark = pytest.mark.buildroot
SKUS = {"demo-a53": "DEMO_A53", "demo-a7": "DEMO_A7"}
OURS = ("onnxruntime-armlet", "python-armlet-runtime", "armlet-serve")


@pytest.fixture(scope="module")
def source() -> Path:
    """Buildroot's own tree."""
    place = os.environ.get("ARMLET_BUILDROOT")
    assert place, "ARMLET_BUILDROOT has to name Buildroot's tree"
    assert Path(place, "utils/check-package").is_file()
    return Path(place)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the demonstrations' runtimes, which have to be built."""
    out = tmp_path_factory.mktemp("br2")
    buildroot.emit(Paths.of(ROOT), out, skus=[*SKUS])
    return out


def make(folder: Path, *words: str) -> str:
    argv = ("make", "-s", "--no-print-directory", "-C", str(folder), *words)
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=SKUS)
def configured(
    request: pytest.FixtureRequest, source: Path, tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """The SKU, and Buildroot's folder of outputs with the defconfig for it."""
    out = tmp_path_factory.mktemp("out")
    make(source, f"O={out}", f"BR2_EXTERNAL={tree}", f"armlet_{request.param}_qemu_defconfig")
    return request.param, out


def test_check_package_finds_nothing(source: Path, tree: Path) -> None:
    files = [path for path in tree.rglob("*") if path.is_file() and "sources" not in path.parts and path.name[0] != "."]
    argv = (str(source / "utils/check-package"), "-b", *map(str, files))
    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=source)
    assert "0 warnings generated" in done.stdout + done.stderr, done.stdout + done.stderr


def test_a_defconfig_gives_what_it_names(configured: tuple[str, Path], tree: Path) -> None:
    sku, out = configured
    made = (out / ".config").read_text().splitlines()
    wanted = (tree / f"configs/armlet_{sku}_qemu_defconfig").read_text().splitlines()
    assert [line for line in wanted if line not in made] == []
    assert {"BR2_TOOLCHAIN_USES_GLIBC=y", "BR2_PACKAGE_PYTHON_PYNACL=y"} <= {*made}
    assert f"BR2_PACKAGE_ONNXRUNTIME_ARMLET_{SKUS[sku]}=y" in made


def test_show_info_knows_the_packages(configured: tuple[str, Path], tree: Path) -> None:
    sku, out = configured
    told = json.loads(make(out, "show-info"))
    for name in OURS:
        found = told[name]
        assert found["downloads"][0]["uris"][0] == f"file+{tree}/sources"
        assert (tree / "sources" / found["downloads"][0]["source"]).is_file()
        assert Path(found["hashes"][0]).is_file()
        assert found["license_files"]
        assert found["licenses"] != "unknown"
    assert told["onnxruntime-armlet"]["version"].startswith(f"1.21.0-{sku}-")
    assert "python3" in told["python-armlet-runtime"]["dependencies"]
    for name in OURS:
        assert "toolchain" in make(out, f"{name}-show-depends").split()


STEPS = (
    *("downloaded", "extracted", "patched", "configured", "built", "host_installed", "staging_installed"),
    *("images_installed", "target_installed", "installed"),
)


def stamp_what_they_wait_for(out: Path, told: dict[str, dict[str, list[str]]]) -> None:
    """Makes Buildroot take toolchain, Python and skeleton for built: their sources would have to be downloaded."""
    waiting, seen = [*OURS], set(OURS)
    while waiting:
        for name in told[waiting.pop()]["dependencies"]:
            if name in seen:
                continue
            seen.add(name)
            waiting.append(name)
            folder = out / str(told[name].get("stamp_dir") or f"build/{name}")
            folder.mkdir(parents=True, exist_ok=True)
            for step in STEPS:
                (folder / f".stamp_{step}").touch()
    (out / "host/bin").mkdir(parents=True, exist_ok=True)
    (out / "host/bin/tar").symlink_to("/bin/tar")


def test_sources_are_what_the_hashes_say_and_legal_info_is_complete(
    configured: tuple[str, Path], tmp_path: Path
) -> None:
    out = configured[1]
    told = json.loads(make(out, "show-info"))
    stamp_what_they_wait_for(out, told)
    said = make(out, f"BR2_DL_DIR={tmp_path}", *(f"{name}-legal-info" for name in OURS))
    assert "WARNING" not in said
    for name in OURS:
        texts = out / "legal-info/licenses" / f"{name}-{told[name]['version']}"
        assert {*told[name]["license_files"]} == {
            path.relative_to(texts).as_posix() for path in texts.rglob("*") if path.is_file()
        }
        assert [*(tmp_path / name).glob(told[name]["downloads"][0]["source"])]
        assert [*(out / "legal-info/sources").glob(f"{name}-*/{told[name]['downloads'][0]['source']}")]
