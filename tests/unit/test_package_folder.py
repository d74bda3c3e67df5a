"""What lies in the folder of packages, and what may be published of a built SKU."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from armlet import digest, gates, releases
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.packages.folder import deliver
from armlet.packages.runtime import Options, package
from armlet.paths import Paths
from armlet.verbs import sbom
from tests.fakes.built import NAME, SKU, fake_built
from tests.fakes.object_server import ObjectServer

DEBS = Options(formats=("deb",))


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def changed_field(dist: Path, **fields: str) -> None:
    path = dist / "runtime.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    sums_of(dist)


def sums_of(dist: Path) -> None:
    found = sorted(path for path in dist.iterdir() if path.is_file() and path.name != gates.SUMS)
    (dist / gates.SUMS).write_text("".join(f"{digest.of_file(path)}  {path.name}\n" for path in found))


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return fake_built(tmp_path / "project")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """A project with packages."""
    paths = fake_built(tmp_path_factory.mktemp("packed"))
    dist = paths.dist(SKU)
    (dist / "gates.json").write_text(gates.record(()))
    sums_of(dist)
    package(paths, SKU, paths.dist("packages") / SKU, DEBS)
    return paths


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda tree: append(tree / "runtime.json"), id="what-the-service-reads"),
        pytest.param(lambda tree: (tree / "runtime.json").unlink(), id="nothing-for-the-service"),
        pytest.param(lambda tree: (tree / "lib/libonnxruntime.so.1").unlink(), id="a-name-is-gone"),
        pytest.param(lambda tree: (tree / "lib/libother.so.1").symlink_to("/etc/passwd"), id="a-link-more"),
        pytest.param(lambda tree: (tree / "include/onnxruntime/more.h").write_text(""), id="a-header-more"),
        pytest.param(
            lambda tree: (tree / "share/doc/armlet-runtime/licences/onnxruntime/MORE").write_text(""), id="terms-more"
        ),
        pytest.param(
            lambda tree: (tree / "lib").rename(tree.parent / "lib") and (tree / "lib").symlink_to("../lib"),
            id="a-folder-is-elsewhere",
        ),
    ],
)
def test_the_folder_is_held_against_what_was_packed(
    spoil: Callable[[Path], object], paths: Paths, tmp_path: Path
) -> None:
    spoil(paths.dist(SKU) / NAME)
    with pytest.raises(ArmletError, match="not as the build left it") as caught:
        package(paths, SKU, tmp_path / "out", DEBS)
    assert caught.value.kind is Kind.GATE
    assert not (tmp_path / "out").exists()


def test_another_skus_dist_is_refused(paths: Paths, tmp_path: Path) -> None:
    changed_field(paths.dist(SKU), sku="demo-a7")
    with pytest.raises(ArmletError, match="built of demo-a7") as caught:
        package(paths, SKU, tmp_path / "out", DEBS)
    assert caught.value.kind is Kind.GATE
    with pytest.raises(ArmletError, match="built of demo-a7"):
        sbom.of_sku(paths, SKU, None)


def test_a_maintainer_that_is_no_text_is_refused_first(paths: Paths, tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match="maintainer") as caught:
        package(paths, SKU, tmp_path / "out", replace(DEBS, maintainer="Jo \udcff <jo@example.org>"))
    assert caught.value.kind is Kind.INPUT
    assert not (tmp_path / "out").exists()


def files_of(folder: Path, text: str, names: tuple[str, ...] = ("a", "b")) -> list[Path]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(text)
    return [folder / name for name in names]


@pytest.mark.parametrize("kind", ["folder", "link", "nowhere"])
def test_what_is_in_the_way_is_told_and_nothing_is_written(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (new,) = files = files_of(tmp_path / "new", "new", ("a",))
    if kind == "folder":
        (out / "a").mkdir()
    else:
        (out / "a").symlink_to(new if kind == "link" else "nothing")
    with pytest.raises(ArmletError) as caught:
        deliver(files, out, build_id="1", emit=silent)
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, str(out / "a"))
    assert [path.name for path in out.iterdir()] == ["a"]


def test_what_a_kill_left_is_gone_the_next_time(tmp_path: Path) -> None:
    out = tmp_path / "out"
    files_of(out, "half", (".a-k3j_x.part", ".SHA256SUMS-xx.part", ".other-xx.part"))
    deliver(files_of(tmp_path / "new", "new"), out, build_id="1", emit=silent)
    assert {path.name for path in out.iterdir()} == {"a", "b", "SHA256SUMS", ".builds.json", ".other-xx.part"}
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=out, check=True, capture_output=True)


def test_of_two_at_once_with_other_contents_one_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    texts, ends, start = [str(number) * 50_000 for number in range(6)], list[Kind | None](), threading.Barrier(6)

    def run(text: str) -> None:
        files = files_of(tmp_path / text[0], text)
        start.wait()
        try:
            deliver(files, out, build_id=text[0], emit=silent)
            ends.append(None)
        except ArmletError as error:
            ends.append(error.kind)

    threads = [threading.Thread(target=run, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, ends)) == sorted(map(str, [None, *[Kind.INPUT] * 5]))
    assert len({path.read_text() for path in (out / "a", out / "b")}) == 1
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=out, check=True, capture_output=True)


def test_packages_are_published_with_their_sums(packed: Paths) -> None:
    with ObjectServer().serving() as server:
        made = releases.publish(packed, SKU, server.url, silent)
    assert {name for name in made.files if name.startswith("packages/")} == {
        f"packages/{path.name}" for path in (packed.dist("packages") / SKU).iterdir() if path.name != ".builds.json"
    }


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda dist, _: changed_field(dist, sku="demo-a7"), "built of demo-a7"),
        (lambda dist, _: changed_field(dist, build_id="c" * 64), "not of the build that is in dist"),
        (lambda _, packages: append(next(packages.glob("*.deb"))), "not as it was packed"),
        (lambda _, packages: (packages / "SHA256SUMS").unlink(), "not as it was packed"),
        (lambda _, packages: (packages / "key").symlink_to("/etc/hostname"), "not as it was packed: key"),
        (lambda _, packages: (packages / "note").write_text(""), "not as it was packed: note"),
        (lambda _, packages: next(packages.glob("*.deb")).unlink(), "not as it was packed"),
        (lambda _, packages: (packages / ".builds.json").write_text("{"), "not of the build that is in dist"),
    ],
)
def test_what_is_not_of_the_build_is_not_published(
    spoil: Callable[[Path, Path], object], told: str, packed: Paths, tmp_path: Path
) -> None:
    subprocess.run(["cp", "-a", f"{packed.root}/.", str(tmp_path)], check=True)
    paths = replace(packed, root=tmp_path)
    spoil(paths.dist(SKU), paths.dist("packages") / SKU)
    with ObjectServer().serving() as server:
        with pytest.raises(ArmletError, match=told) as caught:
            releases.publish(paths, SKU, server.url, silent)
        assert (caught.value.kind, server.objects) == (Kind.GATE, {})


def test_a_list_that_names_other_folders_is_not_the_builds(packed: Paths, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", f"{packed.root}/.", str(tmp_path)], check=True)
    paths = replace(packed, root=tmp_path)
    (tmp_path / "secret").write_text("secret")
    sums = paths.dist(SKU) / gates.SUMS
    sums.write_text(f"{sums.read_text()}{digest.of_file(tmp_path / 'secret')}  ../../secret\n")
    with ObjectServer().serving() as server:
        with pytest.raises(ArmletError, match="SHA256SUMS") as caught:
            releases.publish(paths, SKU, server.url, silent)
        assert (caught.value.kind, server.objects) == (Kind.GATE, {})


def test_a_skus_name_is_no_path(packed: Paths) -> None:
    with pytest.raises(ArmletError, match="unknown SKU"):
        releases.publish(packed, f"../dist/{SKU}", "http://127.0.0.1:9", silent)
