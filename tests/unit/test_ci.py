"""What a CI builds and publishes, and a build that shares its steps with others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from armlet import gates, matrix, pipeline, releases
from armlet.config import Resolved
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note, StepStarted, silent
from armlet.matrix import Row
from armlet.paths import Paths
from armlet.remote.settings import Settings
from armlet.steps.base import Step, Work
from tests.fakes.object_server import ObjectServer
from tests.fakes.recipes import FakeProject

SKU = "demo-a53"
MADE: list[str] = []


def _step(name: str, needs: tuple[str, ...], *, shared: bool) -> Step:
    def facts(_resolved: Resolved) -> Mapping[str, Any]:
        return {}

    def run(work: Work) -> None:
        MADE.append(name)
        (work.out / name).write_text(f"{name} of {sorted(work.inputs)}")
        if name == "package":
            (work.out / "gates.json").write_text(gates.record(()))

    return Step(name=name, needs=needs, facts=facts, run=run, shared=shared)


STEPS = (
    _step("sources", (), shared=False),
    _step("operators", (), shared=True),
    _step("compile", ("sources", "operators"), shared=True),
    _step("package", ("compile",), shared=True),
)


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer().serving() as running:
        yield running


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds of small steps, that need no engine, and share nothing unless a test says so."""
    monkeypatch.setattr(pipeline, "STEPS", STEPS)
    monkeypatch.setattr(pipeline, "_connect", lambda *_: None)
    for name in ("ARMLET_STORE", "ARMLET_SHARE", "ARMLET_PUBLISH", "ARMLET_STORE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    MADE.clear()


@pytest.fixture
def shared(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    monkeypatch.setenv("ARMLET_STORE", server.url)
    monkeypatch.setenv("ARMLET_SHARE", "1")
    return server


def checkout(folder: Path) -> Paths:
    folder.mkdir()
    return FakeProject(folder).paths


def build(paths: Paths) -> tuple[list[str], list[Event]]:
    MADE.clear()
    told: list[Event] = []
    pipeline.build(paths, SKU, told.append)
    assert (paths.dist(SKU) / "package").read_text() == "package of ['compile']"
    return list(MADE), told


def ids(paths: Paths) -> dict[str, str]:
    from armlet import plan
    from armlet.config import resolve

    return {step.name: step.id for step in plan.make(resolve(paths, SKU), STEPS)}


def test_a_second_checkout_makes_nothing(shared: ObjectServer, tmp_path: Path) -> None:
    made, _ = build(checkout(tmp_path / "one"))
    assert made == ["sources", "operators", "compile", "package"]
    made, told = build(checkout(tmp_path / "two"))
    assert made == []
    # What the package was made of is not fetched either.
    assert [event for event in told if isinstance(event, StepStarted)] == []
    assert sorted(path.name for path in (tmp_path / "two" / "cache" / "artifacts").glob("[0-9a-f]*")) == [
        ids(checkout(tmp_path / "x"))["package"]
    ]


def test_what_is_lacking_is_made_of_what_is_there(shared: ObjectServer, tmp_path: Path) -> None:
    build(checkout(tmp_path / "one"))
    del shared.objects[f"steps/{ids(checkout(tmp_path / 'x'))['package']}.json"]
    made, _ = build(checkout(tmp_path / "two"))
    assert made == ["package"]


@pytest.mark.parametrize("trouble", ["down", "lies", "refuses"])
def test_a_store_in_trouble_is_a_warning_and_a_local_build(
    trouble: str, shared: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(checkout(tmp_path / "one"))
    if trouble == "down":
        monkeypatch.setenv("ARMLET_STORE", "http://127.0.0.1:9/store")
    elif trouble == "lies":
        for name in [name for name in shared.objects if name.startswith("objects/")]:
            shared.objects[name] = b"lie"
    else:
        shared.status.update(GET=403, HEAD=403, PUT=403)
    made, told = build(checkout(tmp_path / "two"))
    assert made == ["sources", "operators", "compile", "package"]
    warnings = [event.text for event in told if isinstance(event, Note) and event.text.startswith("warning")]
    assert len(warnings) == (3 if trouble == "lies" else 1)


def test_what_was_built_before_the_store_was_named_is_sent(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = checkout(tmp_path / "one")
    build(paths)
    monkeypatch.setenv("ARMLET_STORE", server.url)
    monkeypatch.setenv("ARMLET_SHARE", "1")
    assert build(paths)[0] == []
    assert f"steps/{ids(paths)['package']}.json" in server.objects


def test_the_matrix_has_what_nobody_has_made(shared: ObjectServer, tmp_path: Path) -> None:
    paths = checkout(tmp_path / "one")
    wanted = Row(sku=SKU, id=ids(paths)["package"], toolchain="aarch64-bookworm")
    assert matrix.rows(paths, silent) == [wanted]
    build(paths)
    assert matrix.rows(paths, silent) == []
    assert matrix.rows(paths, silent, all=True) == [wanted]
    # Elsewhere it counts as made too, as long as the store can be asked.
    other = checkout(tmp_path / "two")
    assert matrix.rows(other, silent) == []
    shared.status["HEAD"] = 500
    told: list[Event] = []
    assert matrix.rows(other, told.append) == [wanted]
    assert len(told) == 1


def test_a_change_is_in_the_matrix_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = checkout(tmp_path / "one")
    build(paths)
    changed = (*STEPS[:-1], _step("package", ("compile", "sources"), shared=True))
    monkeypatch.setattr(pipeline, "STEPS", changed)
    assert [row.sku for row in matrix.rows(paths, silent)] == [SKU]


def test_skus_that_are_not_sound_are_all_told(tmp_path: Path) -> None:
    paths = checkout(tmp_path / "one")
    for name in ("bad-one", "bad-two"):
        (paths.root / "recipes" / "skus" / f"{name}.yaml").write_text("schema: 1\n")
    with pytest.raises(ArmletError) as caught:
        matrix.rows(paths, silent)
    assert caught.value.kind is Kind.INPUT
    assert "bad-one.yaml" in caught.value.what
    assert "bad-two.yaml" in caught.value.what


def test_a_dist_that_cannot_be_written_is_the_hosts_matter_and_loses_nothing(tmp_path: Path) -> None:
    paths = checkout(tmp_path / "one")
    (paths.root / "dist").write_text("in the way")
    with pytest.raises(ArmletError) as caught:
        pipeline.build(paths, SKU, silent)
    assert caught.value.kind is Kind.HOST
    assert str(paths.root / "dist") in caught.value.where
    (paths.root / "dist").unlink()
    assert build(paths)[0] == []


def test_nothing_is_published_without_a_place_or_a_build(tmp_path: Path) -> None:
    paths = checkout(tmp_path / "one")
    with pytest.raises(ArmletError) as caught:
        releases.publish(paths, SKU, "", silent)
    assert (caught.value.kind, "--to" in caught.value.hint) == (Kind.INPUT, True)
    with pytest.raises(ArmletError) as caught:
        releases.publish(paths, SKU, "http://127.0.0.1:9/x", silent)
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, str(paths.dist(SKU)))
    assert "./inv build" in caught.value.hint
    with pytest.raises(ArmletError) as caught:
        releases.publish(paths, "demo-a35", "http://127.0.0.1:9/x", silent)
    assert (caught.value.kind, SKU in caught.value.hint) == (Kind.INPUT, True), (
        "a slip of the fingers is no lack of a build"
    )


def test_the_matrix_is_one_line_of_json() -> None:
    made = matrix.github([Row(sku=SKU, id="0" * 64, toolchain="t")])
    assert json.loads(json.dumps(made)) == {"include": [{"sku": SKU, "id": "0" * 64, "toolchain": "t"}]}


def test_a_build_may_be_asked_to_share_nothing(shared: ObjectServer, tmp_path: Path) -> None:
    build(checkout(tmp_path / "one"))
    shared.seen.clear()
    MADE.clear()
    pipeline.build(checkout(tmp_path / "two"), SKU, silent, pipeline.Options(sharing=Settings()))
    assert MADE == ["sources", "operators", "compile", "package"]
    assert shared.seen == []
