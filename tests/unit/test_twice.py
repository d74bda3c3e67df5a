"""Two builds: in which surroundings, from what, and what comes of their outputs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from armlet import pipeline, twice
from armlet.engine.container import Mount, bind
from armlet.engine.surroundings import Surroundings, hand_over
from armlet.errors import ArmletError, Kind
from armlet.events import silent
from armlet.mounts import PLAIN, ROOTS, View
from armlet.paths import Paths
from armlet.pipeline import Options
from armlet.store import Store
from tests.fakes.recipes import FakeProject

GIB = 1 << 30
VIEW = View(prefix="/mnt/else-where/x.y")


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("/src", "/mnt/else-where/x.y/src"),
        ("/src/onnxruntime/cmake", "/mnt/else-where/x.y/src/onnxruntime/cmake"),
        ("-DX=/src/a;/build/b", "-DX=/mnt/else-where/x.y/src/a;/mnt/else-where/x.y/build/b"),
        ("-ffile-prefix-map=/src=/usr/src/armlet", "-ffile-prefix-map=/mnt/else-where/x.y/src=/usr/src/armlet"),
        ("/usr/src/armlet-build", "/usr/src/armlet-build"),
        ("/usr/bin/python3", "/usr/bin/python3"),
        ("/python/Python.h", "/mnt/else-where/x.y/python/Python.h"),
        ("/srcs and /build-x and a/build", "/srcs and /build-x and a/build"),
        (">/build/ccache.tsv", ">/mnt/else-where/x.y/build/ccache.tsv"),
    ],
)
def test_a_view_moves_what_is_a_mount_and_no_more(text: str, moved: str) -> None:
    assert VIEW.inside(text) == moved
    assert VIEW.inside(moved) == moved, "twice is once"
    assert VIEW.outside(moved) == text
    assert PLAIN.inside(text) == PLAIN.outside(text) == text


def test_a_mount_that_would_stay_where_it_is_is_refused() -> None:
    for root in ROOTS:
        bind(Mount(source=Path("/tmp"), target=root), VIEW)
    with pytest.raises(ValueError, match="/new is missing"):
        bind(Mount(source=Path("/tmp"), target="/new"), VIEW)
    bind(Mount(source=Path("/tmp"), target="/new"), PLAIN)


@pytest.mark.parametrize(("cores", "jobs"), [(1, None), (2, None), (8, None), (2, 1), (2, 6)])
def test_the_two_builds_have_little_in_common(cores: int, jobs: int | None) -> None:
    first, second = twice.passes(cores, 64 * GIB, jobs, root=True)
    assert first.jobs == (jobs or cores)
    assert second.jobs not in (first.jobs, 0)
    for mine, other in zip(first.described().items(), second.described().items(), strict=True):
        assert mine[0] == other[0]
        assert mine[1] != other[1], mine
    assert all(one.surroundings.environment["CCACHE_DISABLE"] == "1" for one in (first, second))


def test_only_root_builds_as_another_user() -> None:
    assert [one.surroundings.uid for one in twice.passes(2, GIB, None, root=False)] == [None, None]


def test_a_folder_is_handed_over_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("")
    (tmp_path / "link").symlink_to("/nowhere")
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "lchown", lambda path, uid, gid: given.append((str(path), uid, gid)))
    hand_over(tmp_path, 4711)
    assert {path for path, *_ in given} == {str(tmp_path), *(str(path) for path in tmp_path.rglob("*"))}
    assert {(uid, gid) for _, uid, gid in given} == {(4711, 4711)}


def test_a_command_line_in_other_surroundings() -> None:
    assert Surroundings().before == ()
    assert Surroundings(umask="002").before == ("sh", "-c", 'umask 002 && exec "$@"', "sh")


class FakeBuilds:
    """Stands in for ``pipeline.make``: the shared steps, then each build's ``package`` with what it is told to hold."""

    def __init__(self, paths: Any, *contents: bytes) -> None:
        self.shared = paths
        self.contents = list(contents)
        self.caches: list[Path] = []
        self.umasks: list[int] = []
        self.found: list[set[str]] = []

    def make(self, paths: Any, resolved: Any, emit: Any, options: Any, *, until: str = "package") -> Any:
        from armlet import plan

        planned = plan.make(resolved, pipeline.STEPS)
        store = Store(paths.artifacts)
        outputs: dict[str, Path] = {}
        if until != "package":
            for step in planned[:3]:
                with store.create(step.id) as out:
                    (out / step.name).write_text("made once")
                outputs[step.name] = store[step.id]
            return planned, outputs, ()
        self.caches.append(paths.cache)
        mask = os.umask(0o022)
        os.umask(mask)
        self.umasks.append(mask)
        self.found.append({step.name for step in planned if store.find(step.id)})
        assert (paths.downloads / "archive").read_text() == "fetched"
        with store.create(planned[-1].id) as out:
            (out / "library").write_bytes(self.contents.pop(0))
        return planned, {"package": store[planned[-1].id]}, ()


@pytest.fixture
def project(tmp_path: Path) -> FakeProject:
    made = FakeProject(tmp_path / "project")
    made.paths.downloads.mkdir(parents=True)
    (made.paths.downloads / "archive").write_text("fetched")
    return made


def built(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch, *contents: bytes
) -> tuple[twice.TwiceReport, FakeBuilds]:
    fake = FakeBuilds(project.paths, *contents)
    monkeypatch.setattr(pipeline, "make", fake.make)
    return twice.build(project.paths, "demo-a53", silent, Options()), fake


def test_both_start_from_the_sources_and_nothing_compiled(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, fake = built(project, monkeypatch, b"same", b"same")
    assert fake.found == [{"sources", "image", "operators"}] * 2
    assert len({*fake.caches, project.paths.cache}) == 3
    assert len(str(fake.caches[0])) != len(str(fake.caches[1]))
    assert fake.umasks[1] == 0o002 != fake.umasks[0]
    assert (report.files, report.bytes) == (1, 4)


def test_where_both_agree_the_result_is_in_dist(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = built(project, monkeypatch, b"same", b"same")
    assert (project.paths.dist("demo-a53") / "library").read_bytes() == b"same"
    twice.demand_equal(report)


def test_the_umask_is_what_it_was(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o027)
    try:
        built(project, monkeypatch, b"same", b"same")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_where_they_differ_dist_stays_and_both_are_kept(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    dist = project.paths.dist("demo-a53")
    dist.mkdir(parents=True)
    (dist / "library").write_bytes(b"of before")
    report, _ = built(project, monkeypatch, b"one\n", b"two\n")
    assert (dist / "library").read_bytes() == b"of before"
    assert [(path / "dist/library").read_bytes() for path in report.outputs] == [b"one\n", b"two\n"]
    with pytest.raises(ArmletError, match="dist/library: line 1: 'one' and 'two'") as told:
        twice.demand_equal(report)
    assert told.value.kind is Kind.GATE
    assert "diffoscope" in told.value.hint


def test_nothing_of_an_earlier_comparison_is_left(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    built(project, monkeypatch, b"one", b"two")
    report, fake = built(project, monkeypatch, b"same", b"same")
    assert fake.found == [{"sources", "image", "operators"}] * 2
    assert report.differences == ()
    assert {path.name for path in report.outputs[0].parent.iterdir() if not path.name.startswith(".")} == {"one", "two"}


def test_many_differences_are_told_by_the_first(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = built(project, monkeypatch, b"a", b"b")
    assert isinstance(report.passes[0], Mapping)
    more = twice.TwiceReport(
        **{**{key: getattr(report, key) for key in report.__slots__}, "differences": report.differences * 30}
    )
    with pytest.raises(ArmletError, match="and 20 more"):
        twice.demand_equal(more)


def test_what_is_made_of_both_is_compared_too(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeBuilds(project.paths, b"same", b"same")
    monkeypatch.setattr(pipeline, "make", fake.make)
    seen: list[bytes] = []

    def pack(paths: Paths, out: Path) -> None:
        seen.append((paths.dist("demo-a53") / "library").read_bytes())
        out.mkdir()
        (out / "a.deb").write_text(str(len(seen)))

    report = twice.build(project.paths, "demo-a53", silent, also=pack)
    assert seen == [b"same", b"same"]
    assert [one.path for one in report.differences] == ["packages/a.deb"]
