"""Another payload takes over, or proves bad and does not: no request is lost either way."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.config import parse
from armlet_runtime.serve.golden import TrialError
from armlet_runtime.serve.interface import Refused, Request
from armlet_runtime.serve.process import WorkerProcess
from armlet_runtime.serve.slot import Slot, job_for
from armlet_runtime.serve.trial import Trial

from tests.fakes import serving
from tests.fakes.serving import Asking, Service, gone, until


@pytest.fixture
def service(tmp_path: Path, library: ort.Library) -> Iterator[Service]:
    """Serves "add", which adds 1."""
    serving.adds(tmp_path, 1.0)
    with serving.serving(tmp_path, f"[service]\nlibrary = {library.path}\n") as made:
        yield made


def current(service: Service, model: str) -> WorkerProcess:
    worker = service.engine._keeper.slots[model].current
    assert worker is not None
    return worker


def more_than(answers: list[list[Any]], counts: list[int]) -> bool:
    return all(len(into) > count for into, count in zip(answers, counts, strict=True))


def test_a_swap_under_load_loses_nothing(service: Service) -> None:
    stop = threading.Event()
    answers: list[list[Any]] = [[] for _ in range(4)]

    def ask(into: list[Any]) -> None:
        while not stop.is_set():
            try:
                into.append(service.add(0.0))
            except Refused as refused:
                into.append(str(refused))

    askers = [threading.Thread(target=ask, args=(into,)) for into in answers]
    for asker in askers:
        asker.start()
    for generation in (2, 3, 4):
        serving.adds(service.root, float(generation), version=f"{generation}.0", generation=generation)
        service.engine.load("add")
        assert service.add(0.0) == generation
        # Each has heard of it before the next one comes.
        counts = [len(into) for into in answers]
        until(functools.partial(more_than, answers, [count + 1 for count in counts]))
    stop.set()
    for asker in askers:
        asker.join()
    for into in answers:
        assert [value for value, _ in itertools.groupby(into)] == [1.0, 2.0, 3.0, 4.0]
    assert service.info("add").version == "4.0"
    until(lambda: not service.engine._keeper.slots["add"].leaving)


def test_what_is_in_hand_ends_where_it_began(tmp_path: Path, library: ort.Library) -> None:
    serving.takes_long(tmp_path)
    with serving.serving(tmp_path) as service:
        pid = service.pid("slow")
        asked = Asking(lambda: service.ask("slow", times=(2000, "int64")))
        until(lambda: current(service, "slow").busy_since)
        service.engine.load("slow")
        assert service.pid("slow") != pid
        assert service.ask("slow", times=(1, "int64")) == 1.0
        assert asked.end().result == 1.0
        until(lambda: gone(pid))


def test_an_answer_is_of_the_version_that_it_names(tmp_path: Path, library: ort.Library) -> None:
    serving.takes_long(tmp_path)
    with serving.serving(tmp_path) as service:
        given, gone_away = {"times": ort.Tensor.from_list(1, "int64")}, threading.Event()

        def version(wanted: str | None) -> str:
            return service.engine.infer(Request("slow", wanted, given, None, time.monotonic() + 30)).version

        first = Asking(lambda: service.send("slow", 30, gone_away.is_set, times=(10**9, "int64")))
        until(lambda: current(service, "slow").busy_since)
        either, old = Asking(lambda: version(None)), Asking(lambda: version("1.0"))
        until(lambda: len(service.engine._keeper.slots["slow"].queue) == 2)
        serving.takes_long(tmp_path, version="2.0", generation=2)
        service.engine.load("slow")
        assert either.end().result == "2.0"
        assert (old.end().kind, old.refused is not None) == ("unknown_model", True)
        gone_away.set()
        assert first.end().kind == "cancelled"


@pytest.mark.parametrize(
    ("fields", "settings", "told"),
    [
        ({"right": False}, {}, 'golden "case 0": output "y": 9.0 at [0, 0], 10.0 wanted'),
        ({"declared": "int64"}, {}, "not those that payload.json declares, but x: float"),
        ({"files": []}, {}, "payload.json is not complete"),
        ({}, {"min_provider_share": {"xnnpack": 0.5}}, "xnnpack ran 0% of the nodes"),
        ({}, {"min_provider_share": {"cuda": 0.1}, "providers": ("cuda",)}, "cuda: this runtime was built without it"),
    ],
)
def test_a_payload_that_proves_bad(
    service: Service, fields: dict[str, Any], settings: dict[str, Any], told: str
) -> None:
    pid = service.pid("add")
    serving.adds(service.root, 9.0, version="9.0", generation=9, **fields)
    slot = service.engine._keeper.slots["add"]
    slot.settings = dataclasses.replace(slot.settings, **settings)
    if "files" in fields:
        # The set takes the newest that is sound, and says what it did not take.
        candidate = service.catalogue.current("add")
        assert (candidate.version, told in candidate.rejected[0]) == ("1.0", True)
    with pytest.raises(Refused) as caught:
        service.engine.load("add")
    assert (caught.value.kind, told in caught.value.message) == ("internal", True)
    info = service.info("add")
    assert (info.state, info.version, info.pid) == ("ready", "1.0", pid)
    assert told in info.reason
    assert service.add(0.0) == 1.0


def test_a_share_that_is_reached(service: Service) -> None:
    slot = service.engine._keeper.slots["add"]
    slot.settings = dataclasses.replace(slot.settings, providers=("azure", "cuda"), min_provider_share={"cpu": 1.0})
    service.engine.load("add")
    info = service.info("add")
    assert info.providers == ("AzureExecutionProvider", "CPUExecutionProvider")
    assert info.skipped == {"cuda": "this runtime was built without it; it has azure, cpu"}


def test_a_first_payload_that_proves_bad_is_tried_again(tmp_path: Path, library: ort.Library) -> None:
    bad = serving.adds(tmp_path, 1.0, right=False)
    with serving.serving(tmp_path) as service:
        assert service.info("add").state == "failed"
        assert "golden" in service.info("add").reason
        began = time.monotonic()
        refused = Asking(lambda: service.add(0.0, seconds=5.0)).end()
        assert (refused.kind, time.monotonic() - began < 1.0) == ("not_ready", True)
        until(lambda: service.engine._keeper.slots["add"].backoff.failures >= 3)
        bad.rename(tmp_path / "gone")
        serving.adds(tmp_path, 2.0, version="2.0", generation=2)
        service.engine.load("add")
        assert service.add(0.0) == 2.0


def test_a_model_file_that_is_damaged(tmp_path: Path, library: ort.Library) -> None:
    serving.adds(tmp_path, 1.0)
    other = serving.adds(tmp_path, 1.0, name="other")
    with serving.serving(tmp_path) as service:
        (other / "model.onnx").write_bytes(b"\0" * 100)
        with pytest.raises(Refused, match=r"model\.onnx is not what was signed"):
            service.engine.load("other")
        assert service.add(0.0, "other") == service.add(0.0) == 1.0
        # Not even a worker that is started again from the damaged file harms the other model.
        current(service, "other").kill("is killed by a test")
        until(lambda: service.info("other").state == "failed")
        assert service.add(0.0) == 1.0


def test_a_refused_version_beside_the_one_that_serves(
    tmp_path: Path, library: ort.Library, caplog: pytest.LogCaptureFixture
) -> None:
    serving.adds(tmp_path, 1.0)
    with serving.serving(tmp_path) as service:
        pid = service.pid("add")
        tampered = serving.adds(tmp_path, 2.0, version="2.0", generation=2)
        (tampered / "model.onnx").write_bytes(b"\0" * 100)
        told = f"{tampered}: model.onnx is not what was signed"
        for _ in range(2):
            caplog.clear()
            with pytest.raises(Refused) as caught:
                service.engine.load("add")
            assert (caught.value.kind, told in caught.value.message) == ("internal", True)
            assert told in caplog.text
        info = service.info("add")
        assert (info.state, info.version, info.pid, told in info.reason) == ("ready", "1.0", pid, True)
        assert service.add(0.0) == 1.0
        # A good one takes over although the refused one still lies there; the state goes on naming it.
        serving.adds(tmp_path, 3.0, version="3.0", generation=3)
        service.engine.load("add")
        assert (service.add(0.0), told in service.info("add").reason) == (3.0, True)
        # What was unloaded comes back.
        service.engine.unload("add")
        service.engine.load("add")
        assert (service.add(0.0), told in service.info("add").reason) == (3.0, True)
        tampered.rename(tmp_path / ".away")
        service.engine.load("add")
        assert service.info("add").reason == ""


def test_what_the_page_says_of_unloaded_models_and_the_cpu_provider(tmp_path: Path, library: ort.Library) -> None:
    serving.adds(tmp_path, 1.0)
    with serving.serving(tmp_path, "[provider:cpu]\narena = no\n") as service:
        assert (service.info("add").state, service.engine.ready()) == ("failed", False)
        assert 'no option "arena"' in service.info("add").reason
        service.engine.unload("add")
        assert service.engine.ready()


def test_a_new_payload_makes_room_for_a_newer(service: Service) -> None:
    serving.adds(service.root, 2.0, version="2.0", generation=2)
    two = service.catalogue.current("add")
    serving.adds(service.root, 3.0, version="3.0", generation=3)
    reasons: list[str] = []
    first = threading.Thread(target=lambda: reasons.append(service.engine.activate(two)))
    first.start()
    until(lambda: service.engine._keeper.slots["add"].candidate)
    service.engine.load("add")
    first.join()
    assert reasons in (["another payload came before it was ready"], [""])
    assert service.add(0.0) == 3.0


@pytest.mark.usefixtures("no_numpy")
def test_without_any_folder_to_write_to(tmp_path: Path, library: ort.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only file system: no profile, and so no proof of a share; the model is served all the same."""
    serving.adds(tmp_path, 1.0)
    payload = Service(tmp_path, "").catalogue.current("add")
    config = parse(f"[service]\nlibrary = {library.path}\nscratch = /proc/none\n")
    job = job_for(Slot("add", config.defaults), payload, config, {0}, {})
    monkeypatch.setattr("armlet_runtime.serve.trial._LEAST_FREE", 1 << 62)
    session, ready = Trial(job, lambda _: None).run()
    session.close()
    assert (ready.share, ready.nodes) == ({}, ())
    assert "no profile" in ready.note
    with pytest.raises(TrialError, match="no profile"):
        Trial(dataclasses.replace(job, min_share={"cpu": 1.0}), lambda _: None).run()
