"""What goes into a Yocto layer, and what is refused before anything is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from armlet.errors import ArmletError, Kind
from armlet.layers import emitted, facts, yocto
from armlet.layers.licences import licence, plain
from armlet.layers.names import demand_apart, package_safe
from armlet.layers.python_packages import packages
from armlet.layers.tree import MANIFEST
from armlet.paths import Paths
from tests.fakes.built import SKU
from tests.layered import key, payload, project, with_armhf

RECIPE = "recipes-armlet/armlet-models/armlet-model-dense.bb"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    return project(tmp_path_factory.mktemp("project"))


def gathered(paths: Paths, folder: Path, *models: Path, **other: Any) -> facts.Facts:
    scratch = folder / "scratch"
    scratch.mkdir()
    return facts.gather(paths, skus=[SKU], payloads=models, layout=yocto.LAYOUT, scratch=scratch, **other)


def test_a_second_emission_has_no_difference(paths: Paths, tmp_path: Path) -> None:
    model = payload(tmp_path)
    for name in ("one", "two"):
        told = emitted.yocto(paths, tmp_path / name, skus=[SKU], payloads=[model])
        assert told.tree.kept == []
    assert emitted.yocto(paths, tmp_path / "two", skus=[SKU], payloads=[model]).tree.written == []
    one, two = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    assert str(tmp_path).encode() not in b"".join(one.values())


def test_a_model_that_is_left_out_disappears(paths: Paths, tmp_path: Path) -> None:
    out = tmp_path / "out"
    emitted.yocto(paths, out, skus=[SKU], payloads=[payload(tmp_path)])
    assert (out / RECIPE).is_file()
    emitted.yocto(paths, out, skus=[SKU])
    assert not (out / RECIPE).parent.exists()


def test_an_edited_recipe_outlives_a_new_generation(paths: Paths, tmp_path: Path) -> None:
    out = tmp_path / "out"
    emitted.yocto(paths, out, skus=[SKU], payloads=[payload(tmp_path)])
    (out / RECIPE).write_text((out / RECIPE).read_text() + 'RDEPENDS:${PN} = "camera"\n')
    told = emitted.yocto(paths, out, skus=[SKU], payloads=[payload(tmp_path, generation=2, version="1.1~rc1")])
    assert told.tree.offered == [RECIPE]
    assert "camera" in (out / RECIPE).read_text()
    assert 'PE = "2"\nPV = "1.1~rc1"' in (out / f"{RECIPE}.armlet-new").read_text()


def test_two_architectures_are_told_apart_by_override(paths: Paths, tmp_path: Path) -> None:
    known = with_armhf(gathered(paths, tmp_path))
    made = yocto.files(paths.root, known, yocto.Choices(machines={"imx6": "demo-a7"}))
    mapping = made["conf/armlet-skus.inc"].read().decode()
    for line in (':aarch64 = "demo-a53"', ':arm = "demo-a7"', ':imx6 = "demo-a7"'):
        assert f"ARMLET_SKU_DEFAULT{line}\n" in mapping
    recipes = {name: made[name].read().decode() for name in made if "/armlet-runtime-" in name and name.endswith(".bb")}
    hosts = {re.search('COMPATIBLE_HOST = "(.*)"', text)[1] for text in recipes.values()}  # type: ignore[index]
    assert hosts == {"aarch64-.*-linux", "arm-.*-linux-gnueabi"}
    machines = {name: yaml.safe_load(made[name].read()) for name in made if name.startswith("kas/")}
    assert {one["machine"] for one in machines.values()} == {"qemuarm", "qemuarm64"}
    assert all(set(one["repos"]) == {"meta-onnx", "poky"} for one in machines.values())


def test_tarballs_elsewhere_are_named_by_hash(paths: Paths, tmp_path: Path) -> None:
    made = yocto.files(paths.root, gathered(paths, tmp_path), yocto.Choices(base="https://files.example/armlet/"))
    (recipe,) = [made[name].read().decode() for name in made if "/armlet-runtime-" in name]
    assert len(re.findall(r"https://files\.example/armlet/armlet-runtime-demo-a53-\S+\.tar\.xz;", recipe)) == 2
    assert len(re.findall(r'sha256sum\] = "[0-9a-f]{64}"', recipe)) == 2


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"format": "onnx", "ort_format_version": None}, Kind.GATE),
        ({"min_runtime": "9.0"}, Kind.GATE),
        ({"generation": 2**40}, Kind.INPUT),
    ],
)
def test_a_payload_that_does_not_fit_is_refused(
    change: dict[str, Any], kind: Kind, paths: Paths, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(ArmletError) as raised:
        emitted.yocto(paths, out, skus=[SKU], payloads=[payload(tmp_path, **change)])
    assert raised.value.kind is kind
    assert not out.exists()


def test_a_payload_must_be_signed_by_a_key_that_the_image_trusts(paths: Paths, tmp_path: Path) -> None:
    from armlet.payload.keys import new_key

    model, other = payload(tmp_path), new_key("other", tmp_path / "keys").public
    with pytest.raises(ArmletError) as raised:
        emitted.yocto(paths, tmp_path / "out", skus=[SKU], payloads=[model], keys=[other])
    assert raised.value.kind is Kind.GATE
    emitted.yocto(paths, tmp_path / "out", skus=[SKU], payloads=[model], keys=[key(tmp_path)])
    assert (tmp_path / "out/recipes-armlet/armlet-keys/armlet-keys/release.pub").is_file()


@pytest.mark.parametrize("names", [("same", "same"), ("a_b", "a-b"), ("a.b", "a-b")])
def test_two_payloads_must_not_be_one_package(names: tuple[str, str], paths: Paths, tmp_path: Path) -> None:
    models = [payload(tmp_path, model=name, generation=at + 1) for at, name in enumerate(names)]
    with pytest.raises(ArmletError) as raised:
        gathered(paths, tmp_path, *models)
    assert raised.value.kind is Kind.INPUT


@pytest.mark.parametrize(
    "choices", [{"machines": {"imx8": "gateway-a72"}}, {"base": "ftp://x"}, {"base": "https://a b"}]
)
def test_choices_that_make_no_sense_are_refused(choices: dict[str, Any], paths: Paths, tmp_path: Path) -> None:
    with pytest.raises(ArmletError) as raised:
        emitted.yocto(paths, tmp_path / "out", skus=[SKU], choices=yocto.Choices(**choices))
    assert raised.value.kind is Kind.INPUT


@pytest.mark.parametrize("pairs", [["imx8"], ["=a"], ["IMX=a"], ["a=x", "a=y"], ['a"=x']])
def test_machines_are_pairs(pairs: list[str]) -> None:
    with pytest.raises(ArmletError):
        emitted.machines(pairs)
    assert emitted.machines(["imx8=a", "rpi=b"]) == {"imx8": "a", "rpi": "b"}


def test_nothing_is_asked_for(paths: Paths, tmp_path: Path) -> None:
    with pytest.raises(ArmletError):
        emitted.yocto(paths, tmp_path / "out", skus=[])
    with pytest.raises(ArmletError):
        emitted.yocto(paths, tmp_path / "out", skus=["demo-a7"])


def test_names_that_mean_something_to_builders() -> None:
    assert package_safe("armlet-model-text_direction") == "armlet-model-text-direction"
    assert package_safe("armlet-model-x-native") == "armlet-model-x-native-model"
    assert package_safe("armlet-model-x-dev") == "armlet-model-x-dev-model"
    demand_apart("the models", {"a": "x", "b": "y"})


def test_licences_in_bitbakes_words() -> None:
    told = licence("(MIT OR Apache-2.0) AND GPL-3.0-or-later WITH GCC-exception-3.1 AND Minpack", "t")
    assert told.expression == "(MIT | Apache-2.0) & GPL-3.0-with-GCC-exception & Minpack"
    assert told.texts == (("Minpack", "t"),)
    assert licence("whatever we agreed on", "t").texts == (("LicenseRef-armlet-other", "t"),)


def test_text_that_bitbake_would_expand() -> None:
    assert "${" not in plain("Costs $5: ${HOME} ${@os.system('x')}")
    assert '"' not in plain('a "b"')


def test_every_module_of_the_device_package_has_a_package(root: Path) -> None:
    found = packages((root / "device/armlet_runtime").rglob("*.py"))
    assert {"python3-core", "python3-ctypes", "python3-json"} <= set(found)


def test_a_module_that_no_table_knows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import turtle\n")
    with pytest.raises(ArmletError) as raised:
        packages([tmp_path / "a.py"])
    assert raised.value.kind is Kind.BUILD


def test_the_list_of_hashes_is_of_the_layer(paths: Paths, tmp_path: Path) -> None:
    emitted.yocto(paths, tmp_path / "out", skus=[SKU])
    listed = json.loads((tmp_path / "out" / MANIFEST).read_text())["files"]
    there = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert listed.keys() == there - {MANIFEST}
