"""The Yocto layer as BitBake's own library reads it, over a small core layer: parsed, unpacked, checked, installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from armlet.layers import emitted
from armlet.service.contents import modules
from tests.conftest import ROOT
from tests.fakes.built import SKU
from tests.layered import key, payload, project

CORE = ROOT / "tests/fakes/core_layer"
RUNTIME, MODEL = f"armlet-runtime-{SKU}", "armlet-model-dense"
ASK = ("PE", "PV", "LICENSE", "RDEPENDS:packagegroup-armlet", "PACKAGECONFIG", "ARMLET_RUNTIME")
UNPACKED = ("do_unpack", "do_install")
MODEL_RUN = ("do_unpack", "armlet_do_unpack", "do_install")
# What oelint says of the layer as a whole, and why it does not hold here.
ALLOWED = {
    "oelint.bbclass.underscores": "classes of OpenEmbedded itself have dashes",
    "oelint.task.noanonpython": "SkipRecipe can be raised nowhere else, and tells why a recipe is not offered",
    "oelint.vars.mispell.unknown": "DEBIAN_NOAUTONAME is debian.bbclass's",
    "oelint.vars.pathhardcode.libdir": "gdb and FILES:${PN}-dbg say /usr/lib/debug whatever libdir is",
    "oelint.vars.homepageping": "it would ask the network",
    "oelint.vars.descriptiontoobrief": "how long a model's description is, is its author's matter",
}


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("yocto")
    model = payload(folder, description='Costs $5: ${HOME}, ${@1/0}, "quoted" \\', version="1.2~rc1", generation=7)
    out = folder / "meta-onnx"
    emitted.yocto(project(folder / "project"), out, skus=[SKU], payloads=[model], keys=[key(folder)])
    return out


def bitbake(
    layer: Path, build: Path, *, run: Mapping[str, Any] | None = None, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Recipe -> what BitBake says of it; ``build/tmp/work/<recipe>/image`` has what was installed."""
    (build / "conf").mkdir(parents=True, exist_ok=True)
    given = "".join(f'{name} = "{value}"\n' for name, value in (variables or {}).items())
    (build / "conf/bblayers.conf").write_text(
        f'BBPATH = "${{TOPDIR}}"\nBBFILES ?= ""\nBBLAYERS = "{CORE} {layer}"\n{given}'
    )
    recipes = sorted(str(path) for path in layer.glob("recipes-*/*/*.bb"))
    settings = json.dumps({"recipes": recipes, "run": dict(run or {}), "ask": ASK})
    program = [sys.executable, "-W", "ignore", str(ROOT / "tests/bitbake_program.py"), str(build), settings]
    ended = subprocess.run(program, cwd=build, capture_output=True, text=True, timeout=200)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads((build / "told.json").read_text()))


def sysroot(build: Path, *versions: str) -> None:
    """An image's C library, as far as the check reads it."""
    libc = build / "sysroot/lib/libc.so.6"
    libc.parent.mkdir(parents=True)
    libc.write_bytes(b"\x7fELF" + b"".join(b"GLIBC_%s\0" % one.encode() for one in versions))


def installed(build: Path, recipe: str) -> dict[str, str]:
    """Path -> mode, or where a link points."""
    image = build / "tmp/work" / recipe / "image"
    return {
        path.relative_to(image).as_posix(): str(path.readlink())
        if path.is_symlink()
        else f"{path.stat().st_mode & 0o777:o}"
        for path in image.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }


@pytest.fixture(scope="module")
def build(layer: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("build")
    sysroot(folder, "2.17", "2.35")
    run = {
        RUNTIME: ("do_unpack", "do_armlet_fits", "do_install"),
        MODEL: MODEL_RUN,
        **dict.fromkeys(("armlet-serve", "python3-armlet-runtime", "armlet-keys"), UNPACKED),
    }
    return folder, bitbake(layer, folder, run=run)


def test_every_recipe_is_parsed_and_installs(build: tuple[Path, dict[str, Any]]) -> None:
    _, told = build
    assert told.keys() == {
        *(RUNTIME, MODEL, "armlet-serve", "python3-armlet-runtime", "armlet-keys"),
        *("packagegroup-armlet", "armlet-image"),
    }
    assert {name: (one["skipped"], one.get("failed")) for name, one in told.items()} == dict.fromkeys(told, ("", None))
    assert (told[MODEL]["PE"], told[MODEL]["PV"]) == ("7", "1.2~rc1")
    group = told["packagegroup-armlet"]["RDEPENDS:packagegroup-armlet"].split()
    assert sorted(group) == sorted([RUNTIME, MODEL, "armlet-serve", "armlet-keys"])


def test_what_a_runtime_installs(build: tuple[Path, dict[str, Any]]) -> None:
    found = installed(build[0], RUNTIME)
    build_id = bytes(range(20)).hex()
    assert found["usr/lib/libonnxruntime.so"] == "libonnxruntime.so.1"
    assert found["usr/lib/libonnxruntime.so.1"] == "libonnxruntime.so.1.21.0"
    assert found["usr/lib/libonnxruntime.so.1.21.0"] == "755"
    assert {
        "usr/share/armlet/runtime.json",
        "usr/include/onnxruntime/onnxruntime_c_api.h",
        "usr/lib/cmake/onnxruntime/onnxruntimeConfig.cmake",
        "usr/lib/pkgconfig/libonnxruntime.pc",
        f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug",
    } <= found.keys()


def test_what_the_service_and_a_model_install(build: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = build
    service = installed(folder, "armlet-serve")
    for path in ("usr/bin/armlet-serve", "etc/init.d/armlet-serve"):
        assert service[path] == "755"
    assert {
        "etc/armlet/device.conf",
        "usr/lib/systemd/system/armlet-serve.service",
        "usr/share/man/man1/armlet-serve.1.gz",
    } <= service.keys()
    assert "sys.path" not in (folder / "tmp/work/armlet-serve/image/usr/bin/armlet-serve").read_text()
    wanted = {path.relative_to(ROOT / "device").as_posix() for path in modules(ROOT / "device")}
    place = "usr/lib/python3.12/site-packages"
    assert installed(folder, "python3-armlet-runtime") == {f"{place}/{path}": "644" for path in wanted}
    model = installed(folder, MODEL)
    assert {"payload.json", "payload.json.sig", "model.ort", "golden/0/input-0.bin"} <= {
        path.removeprefix("usr/lib/armlet/models/dense/1.2~rc1/") for path in model
    }


@pytest.mark.parametrize(
    ("variables", "glibc"),
    [
        ({"TUNE_FEATURES": "aarch64 armv8a bigendian"}, "2.35"),
        ({"TUNE_FEATURES": "arm armv7a vfp"}, "2.35"),
        ({}, "2.28"),
    ],
)
def test_an_image_that_cannot_run_it_is_refused(
    variables: dict[str, str], glibc: str, layer: Path, tmp_path: Path
) -> None:
    sysroot(tmp_path, glibc)
    told = bitbake(layer, tmp_path, run={RUNTIME: ("do_armlet_fits",)}, variables=variables)
    assert told[RUNTIME]["failed"] == "do_armlet_fits"


@pytest.mark.parametrize(
    ("features", "isa", "arch", "fits"),
    [
        ("arm armv7a vfp neon", "armv7-a+neon-vfpv4", "armhf", False),
        ("arm armv7a vfp callconvention-hard", "armv7-a+neon-vfpv4", "armhf", False),
        ("arm vfp cortexa15 neon thumb callconvention-hard", "armv7-a+neon-vfpv4", "armhf", True),
        ("aarch64 crc cortexa53", "armv8-a+crc+simd", "aarch64", True),
        ("aarch64 crc cortexa53", "armv8.2-a+dotprod", "aarch64", False),
        ("aarch64 cortexa76", "armv8.2-a+dotprod", "aarch64", True),
        ("aarch64 some-new-core", "armv8.2-a+dotprod", "aarch64", True),
    ],
)
def test_which_tunes_can_run_what(features: str, isa: str, arch: str, fits: bool) -> None:
    """The class's own function, without BitBake around it."""
    text = (ROOT / "meta-onnx/classes/armlet-prebuilt.bbclass").read_text()
    functions = text[text.index("def armlet_version") : text.index("def armlet_libc_problem")]
    levels = re.search(r'ARMLET_LEVELS = "(.*?)"', text, re.DOTALL)
    assert levels
    values = {"TUNE_FEATURES": features, "ARMLET_ISA": isa, "ARMLET_ARCH": arch, "MACHINE": "m"}
    values["ARMLET_LEVELS"] = levels[1].replace("\\\n", " ")
    space: dict[str, Any] = {}
    exec(functions, space)

    class FakeStore:
        getVar = staticmethod(values.get)

    assert (space["armlet_tune_problem"](FakeStore()) == "") is fits


@pytest.mark.parametrize(
    ("variables", "skipped"),
    [
        ({"TARGET_ARCH": "arm"}, {RUNTIME, "packagegroup-armlet"}),
        ({"ARMLET_SKU": "other"}, {MODEL, "packagegroup-armlet"}),
        ({"TCLIBC": "musl"}, {RUNTIME}),
    ],
)
def test_what_is_not_offered(variables: dict[str, str], skipped: set[str], layer: Path, tmp_path: Path) -> None:
    told = bitbake(layer, tmp_path, variables=variables)
    assert {name for name, one in told.items() if one["skipped"]} == skipped


def test_a_series_that_nobody_has_tried_is_refused(layer: Path, tmp_path: Path) -> None:
    other = tmp_path / "meta-onnx"
    shutil.copytree(layer, other)
    conf = other / "conf/layer.conf"
    conf.write_text(re.sub(r"(LAYERSERIES_COMPAT_meta-onnx =).*", r'\1 "future"', conf.read_text()))
    with pytest.raises(AssertionError):
        bitbake(other, tmp_path / "build")


@pytest.mark.parametrize("damage", ["archive", "version"])
def test_a_payload_that_is_not_the_recipes_is_refused(damage: str, layer: Path, tmp_path: Path) -> None:
    other = tmp_path / "meta-onnx"
    shutil.copytree(layer, other)
    folder = other / "recipes-armlet/armlet-models"
    if damage == "archive":
        archive = folder / MODEL / f"{MODEL}.payload"
        archive.write_bytes(archive.read_bytes().replace(bytes(range(200)), bytes(200), 1))
    else:
        recipe = folder / f"{MODEL}.bb"
        recipe.write_text(recipe.read_text().replace('PE = "7"', 'PE = "6"'))
    told = bitbake(other, tmp_path / "build", run={MODEL: MODEL_RUN})
    assert told[MODEL]["failed"] == "armlet_do_unpack"


def test_oelint_has_nothing_to_say(layer: Path, tmp_path: Path) -> None:
    program = shutil.which("oelint-adv", path=str(Path(sys.executable).parent))
    assert program
    recipes = sorted(str(path) for path in layer.glob("recipes-*/*/*.bb"))
    options = ["--quiet", "--hide", "info", "--suppress", "oelint.vars.homepageping"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    ended = subprocess.run(
        [program, *options, *recipes], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=200
    )
    said = re.findall(r"^\S+?:\d+:(?:error|warning):(oelint\S+?):.*$", ended.stdout + ended.stderr, re.MULTILINE)
    assert said, "it says nothing at all, which it never does of this layer"
    assert {rule for rule in said if rule not in ALLOWED} == set()


def test_shell_functions_are_clean(layer: Path, tmp_path: Path) -> None:
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert program
    found = 0
    for recipe in [*layer.glob("recipes-*/*/*.bb"), *layer.glob("recipes-*/*/*.inc")]:
        for name, body in re.findall(r"^(do_\w+)\(\) \{\n(.*?)^\}", recipe.read_text(), re.MULTILINE | re.DOTALL):
            # What BitBake puts in before a shell sees it.
            text = re.sub(r"\$\{[A-Za-z_]+\}", "/some/where", body)
            script = tmp_path / f"{recipe.name}.{name}"
            script.write_text(f"#!/bin/sh\n{name}() {{\n{text}}}\n{name}\n")
            # SC2043: a list that has one name here; SC2194 and SC2050: what was put in is constant.
            ended = subprocess.run(
                [program, "--shell", "sh", "--exclude", "SC2043,SC2050,SC2194", str(script)],
                capture_output=True,
                text=True,
            )
            assert ended.returncode == 0, ended.stdout
            found += 1
    assert found >= 4
