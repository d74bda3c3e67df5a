"""A runtime's packages: what is in each, what it asks for, the same bytes twice, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from armlet import cli, elf, nfpm
from armlet.errors import ArmletError, Kind
from armlet.package_versions import demand_ordered, dpkg_order
from armlet.packages import families
from armlet.packages.built import each_once
from armlet.packages.runtime import FORMATS, Format, Made, Options, own, package
from armlet.paths import Paths
from armlet.verbs import package as package_verb
from tests.fakes.built import NAME, SKU, fake_built
from tests.fakes.elf_file import FakeElf
from tests.package_files import files, members

LIBRARIES = "usr/lib/aarch64-linux-gnu"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    return fake_built(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def made(paths: Paths) -> list[Made]:
    return package(paths, SKU, paths.dist("packages"))


def named(made: list[Made], what: str, end: str) -> Path:
    (path,) = (one.path for one in made if one.what == what and one.path.name.endswith(end))
    return path


def inside(path: Path) -> dict[str, str]:
    """Path -> content or the link's target, of a deb's or ipk's data."""
    with tarfile.open(fileobj=io.BytesIO(members(path.read_bytes())["data.tar.gz"])) as archive:
        return {info.name.removeprefix("./"): info.linkname for info in archive if not info.isdir()}


def control(path: Path) -> dict[str, str]:
    parts = members(path.read_bytes())
    found = {name.removeprefix("./"): content for name, (content, _) in files(parts["control.tar.gz"]).items()}
    lines = found["control"].decode().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if not line.startswith(" "))
    return {**fields, **{name: data.decode() for name, data in found.items() if name != "control"}}


def test_a_deb_has_each_part_where_debian_looks_for_it(made: list[Made]) -> None:
    assert inside(named(made, "runtime", ".deb")).keys() == {
        f"{LIBRARIES}/libonnxruntime.so.1",
        f"{LIBRARIES}/libonnxruntime.so.1.21.0",
        "usr/share/armlet/runtime.json",
        "usr/share/doc/armlet-runtime-demo-a53/NOTICE",
        "usr/share/doc/armlet-runtime-demo-a53/changelog.gz",
        "usr/share/doc/armlet-runtime-demo-a53/copyright",
        "usr/share/doc/armlet-runtime-demo-a53/sbom.cdx.json",
        "usr/share/doc/armlet-runtime-demo-a53/sbom.spdx.json",
        "usr/share/lintian/overrides/armlet-runtime-demo-a53",
    }
    dev = inside(named(made, "dev", ".deb"))
    assert dev[f"{LIBRARIES}/libonnxruntime.so"] == "libonnxruntime.so.1"
    assert {f"{LIBRARIES}/pkgconfig/libonnxruntime.pc", "usr/include/onnxruntime/onnxruntime_c_api.h"} <= dev.keys()
    build_id = bytes(range(20)).hex()
    assert f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug" in inside(named(made, "dbg", ".deb"))


def test_what_a_deb_asks_for_is_measured(made: list[Made]) -> None:
    runtime = control(named(made, "runtime", ".deb"))
    assert (runtime["Version"], runtime["Architecture"]) == ("1.21.0+armlet1", "arm64")
    assert runtime["Depends"] == "libc6 (>= 2.29)"
    assert runtime["Provides"] == "armlet-runtime (= 1.21.0+armlet1)"
    assert runtime["Conflicts"] == "armlet-runtime, libonnxruntime1.21"
    assert runtime["triggers"] == "activate-noawait ldconfig\n"
    for part in ("dev", "dbg"):
        assert control(named(made, part, ".deb"))["Depends"] == "armlet-runtime-demo-a53 (= 1.21.0+armlet1)"
    service = control(named(made, "service", ".deb"))
    assert service["Recommends"].split(", ")[0] == "armlet-runtime"
    assert "armlet-model" not in "".join(runtime.values())


def test_an_ipk_is_openwrts_or_yoctos(made: list[Made], paths: Paths, tmp_path: Path) -> None:
    runtime = control(named(made, "runtime", ".ipk"))
    assert (runtime["Architecture"], runtime["Depends"]) == ("aarch64_cortex-a53", "libc (>= 2.29)")
    assert "usr/lib/libonnxruntime.so.1" in inside(named(made, "runtime", ".ipk"))
    other = control(package(paths, SKU, tmp_path, Options(formats=("ipk",), ipk="yocto"))[0].path)
    assert (other["Architecture"], other["Depends"]) == ("aarch64", "libc6 (>= 2.29)")


def pkginfo(path: Path) -> tuple[list[tuple[str, str]], bytes]:
    """An apk's facts, and its compressed data."""
    data = path.read_bytes()
    second = data.index(b"\x1f\x8b\x08", 10)
    # The facts' archive has no end, so that what follows belongs to the same one.
    facts = gzip.decompress(data[:second])
    with tarfile.open(fileobj=io.BytesIO(facts + bytes(1024))) as archive:
        text = archive.extractfile(".PKGINFO")
        assert text is not None
        lines = text.read().decode().splitlines()
    return [(line.split(" = ", 1)[0], line.split(" = ", 1)[1]) for line in lines], data[second:]


def test_an_apk_tells_a_fact_a_line(made: list[Made]) -> None:
    facts, data = pkginfo(named(made, "runtime", ".apk"))
    assert dict(facts)["datahash"] == hashlib.sha256(data).hexdigest()
    assert {("pkgver", "1.21.0-r1"), ("arch", "aarch64"), ("depend", "glibc>=2.29"), ("depend", "so:libc.so.6")} <= {
        *facts
    }
    assert ("provides", "so:libonnxruntime.so.1=1.21.0") in facts


def test_a_licence_is_that_of_what_was_linked(made: list[Made]) -> None:
    licence = "Apache-2.0 AND MIT AND MPL-2.0"
    for part in ("runtime", "dev", "dbg"):
        assert dict(pkginfo(named(made, part, ".apk"))[0])["license"] == licence, "boost only helped to make it"
    assert control(named(made, "runtime", ".ipk"))["License"] == licence


def test_a_ci_says_whose_they_are_and_which(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "here", lambda: paths)
    monkeypatch.setenv("ARMLET_MAINTAINER", "Jo Doe <jo@example.org>")
    monkeypatch.setenv("ARMLET_REVISION", "7")
    for flags, maintainer, revision in (
        ({}, "Jo Doe <jo@example.org>", "7"),
        ({"maintainer": "Al <al@example.org>", "revision": "8"}, "Al <al@example.org>", "8"),
    ):
        out = tmp_path / revision
        package_verb.package(Context(), SKU, format=["deb"], out=str(out), json=True, **flags)
        told = control(Path(json.loads(capsys.readouterr().out)[0]["file"]))
        assert (told["Maintainer"], told["Version"]) == (maintainer, f"1.21.0+armlet{revision}")
    # As a service gives a variable that nobody has set.
    monkeypatch.setenv("ARMLET_MAINTAINER", "")
    monkeypatch.setenv("ARMLET_REVISION", "")
    package_verb.package(Context(), SKU, format=["deb"], out=str(tmp_path / "none"))
    monkeypatch.setenv("ARMLET_REVISION", "1.2")
    with pytest.raises(Exit):
        package_verb.package(Context(), SKU, format=["deb"], out=str(tmp_path / "other"))


def test_alternatives_of_a_licence_stay_together() -> None:
    assert each_once("(A OR B AND C) AND A") == "(A OR B AND C) AND A"


def test_twice_the_same_bytes(made: list[Made], paths: Paths, tmp_path: Path) -> None:
    again = package(paths, SKU, tmp_path / "another place")
    assert [one.path.name for one in again] == [one.path.name for one in made]
    assert [one.path.read_bytes() for one in again] == [one.path.read_bytes() for one in made]
    sums = (tmp_path / "another place/SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in sums} == {one.path.name for one in made}
    # And over what is there.
    package(paths, SKU, tmp_path / "another place")


ORDER = (
    "1.20.9+armlet9",
    "1.21.0~rc1",
    "1.21.0",
    "1.21.0+armlet1",
    "1.21.0+armlet2",
    "1.21.0+armlet10",
    "1.21.1+armlet1",
)


@pytest.mark.parametrize("after", range(1, len(ORDER)))
def test_versions_are_ordered_as_dpkg_does(after: int) -> None:
    one, other = ORDER[after - 1], ORDER[after]
    assert dpkg_order(one, other) < 0 < dpkg_order(other, one)
    assert subprocess.run(("dpkg", "--compare-versions", one, "lt", other), check=False).returncode == 0


@pytest.mark.parametrize("version", ["1.22.0rc1", "1.22.0-rc1", "1.22.0.dev3", "0.2.0a1"])
def test_a_version_that_dpkg_orders_wrongly_is_refused(version: str) -> None:
    with pytest.raises(ArmletError, match="newer than") as caught:
        demand_ordered(version)
    assert caught.value.kind is Kind.INPUT
    early = caught.value.hint.split()[3].rstrip(":")
    assert demand_ordered(early) == early
    assert demand_ordered("1.22.0") == "1.22.0"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_other_content_under_a_version_that_is_there_is_refused(paths: Paths, tmp_path: Path) -> None:
    formats: tuple[Format, ...] = ("deb",)
    package(paths, SKU, tmp_path, Options(formats=formats))
    before = snapshot(tmp_path)
    with pytest.raises(ArmletError, match="already, with other content") as caught:
        package(paths, SKU, tmp_path, Options(formats=formats, maintainer="Jo <jo@example.org>"))
    assert caught.value.kind is Kind.INPUT
    assert snapshot(tmp_path) == before
    package(paths, SKU, tmp_path, Options(formats=("tar",), revision=2))
    assert snapshot(tmp_path).keys() == {*before, f"{NAME}.tar.xz", f"{NAME}-dbg.tar.xz"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ArmletError("no", hint="", kind=Kind.BUILD)])
def test_what_is_interrupted_leaves_nothing(
    error: BaseException, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = nfpm.write_package

    def failing(target: Path, kind: nfpm.PackageFormat, described: nfpm.Package, **other: object) -> None:
        if described.name.endswith("-dbg"):
            raise error
        write(target, kind, described)

    monkeypatch.setattr(nfpm, "write_package", failing)
    with pytest.raises(type(error)):
        package(paths, SKU, tmp_path / "out", Options(formats=("deb",)))
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_to_is_told_at_once(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArmletError) as caught:
        package(paths, SKU, tmp_path / "file/out", Options(formats=FORMATS))
    assert caught.value.kind is Kind.HOST
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_is_not_as_the_build_left_it_is_refused(tmp_path: Path) -> None:
    paths = fake_built(tmp_path / "project")
    with pytest.raises(ArmletError) as caught:
        package(paths, "an other", tmp_path / "out")
    assert caught.value.kind is Kind.INPUT
    (paths.dist(SKU) / NAME / "lib/libonnxruntime.so.1.21.0").write_bytes(FakeElf(build_id=None).build())
    with pytest.raises(ArmletError, match="not as the build left it"):
        package(paths, SKU, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_has_one_owner() -> None:
    def described(name: str) -> nfpm.Package:
        return nfpm.Package(
            name=name,
            version="1",
            description="one",
            licence="MIT",
            maintainer="nobody",
            created="2026-01-31T12:00:00Z",
            entries={"/usr/a": nfpm.Entry(source=Path("a"))},
        )

    owners: dict[str, str] = {}
    own(owners, described("one"))
    with pytest.raises(ArmletError, match="two packages: one and two"):
        own(owners, described("two"))


def test_a_library_that_no_table_knows_is_refused(tmp_path: Path) -> None:
    facts = elf.read(FakeElf(needed=("libc.so.6", "libodd.so.3")).build(), name="lib")
    for kind in ("deb", "ipk"):
        with pytest.raises(ArmletError, match=r"libodd\.so\.3"):
            families.depends(kind, [facts])
    assert "libodd.so.3()(64bit)" in families.depends("rpm", [facts])
    for core, name in (("cortex-a17", ""), ("cortex-a7", "../a b")):
        with pytest.raises(ArmletError) as caught:
            families.place("ipk", "armhf", core, ipk_arch=name)
        assert caught.value.kind is Kind.INPUT
