"""What a healthy engine does: answers, refusals, deadlines. Real workers, real sessions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.interface import Refused, Request, TensorInfo

from tests.fakes import serving
from tests.fakes.serving import Asking, Service, until

LONG = 1_000_000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, library: ort.Library) -> Iterator[Service]:
    """Serves "add" and "slow"; "broken" has no payload."""
    root = tmp_path_factory.mktemp("payloads")
    serving.adds(root, 1.0)
    serving.takes_long(root)
    (root / "broken").mkdir()
    text = f"[service]\nlibrary = {library.path}\nmessage_mb = 1\n[models]\nqueue = 2\n[model:off]\nenabled = no\n"
    with serving.serving(root, text) as made:
        yield made


def refusal(service: Service, model: str = "add", outputs: Any = None, version: Any = None, **inputs: Any) -> Refused:
    given = {name: ort.Tensor.from_list(*value) for name, value in inputs.items()}
    with pytest.raises(Refused) as caught:
        service.engine.infer(Request(model, version, given, outputs, time.monotonic() + 5))
    return caught.value


def test_what_is_told_of_the_models(service: Service) -> None:
    states = {info.name: (info.state, info.version) for info in service.engine.models()}
    assert states == {
        "add": ("ready", "1.0"),
        "broken": ("failed", ""),
        "off": ("unloaded", ""),
        "slow": ("ready", "1.0"),
    }
    add = service.info("add")
    assert add.inputs == (TensorInfo("x", "float", ("n", 3)),)
    assert add.providers == ("CPUExecutionProvider",)
    assert add.provider_share == {"CPUExecutionProvider": 1.0}
    assert add.nodes == (("the_sum", "Add", "CPUExecutionProvider"),)
    assert Path(f"/proc/{add.pid}/comm").read_text() == "armlet:add\n"
    assert "holds no payload" in service.info("broken").reason
    assert not service.engine.ready()
    assert service.engine.live()


def test_answers(service: Service) -> None:
    assert service.ask("add", x=[[1, 2, 3], [4, 5, 6]]) == [[2, 3, 4], [5, 6, 7]]
    x = ort.Tensor(bytes(0), "float32", (0, 3))
    answer = service.engine.infer(Request("add", "1.0", {"x": x}, ["y"], time.monotonic() + 5))
    assert [(name, tensor.shape) for name, tensor in answer.outputs.items()] == [("y", (0, 3))]
    assert answer.version == "1.0"


@pytest.mark.parametrize(
    ("arguments", "kind", "told"),
    [
        ({"model": "ad"}, "unknown_model", 'there is no model "ad"; did you mean add?'),
        ({"version": "2.0"}, "unknown_model", "no version 2.0; it serves 1.0"),
        ({"model": "broken"}, "not_ready", "holds no payload"),
        ({"model": "off"}, "not_ready", "switched off"),
        ({}, "bad_input", 'no input "x"'),
        ({"z": ([1], "float32")}, "bad_input", 'no input "z"; it has "x"'),
        ({"x": ([[1, 2, 3]], "int64")}, "bad_input", "is int64, and float is wanted"),
        ({"x": ([[1, 2]], "float32")}, "bad_input", "shape [1, 2], and [n, 3] is wanted"),
        ({"x": ([1, 2, 3], "float32")}, "bad_input", "shape [3]"),
        ({"x": ([[1, 2, 3]], "float32"), "outputs": ["q"]}, "bad_input", 'no output "q"; it has "y"'),
    ],
)
def test_refusals(service: Service, arguments: dict[str, Any], kind: str, told: str) -> None:
    refused = refusal(service, **arguments)
    assert refused.kind == kind
    assert told in refused.message


def test_too_large(service: Service) -> None:
    rows = (1 << 20) // 12 + 1
    x = ort.Tensor(bytes(rows * 12), "float32", (rows, 3))
    with pytest.raises(Refused) as caught:
        service.engine.infer(Request("add", None, {"x": x}, None, time.monotonic() + 5))
    assert caught.value.kind == "too_large"


def test_a_deadline_ends_the_computation_too(service: Service) -> None:
    pid = service.pid("slow")
    began = time.monotonic()
    with pytest.raises(Refused) as caught:
        service.ask("slow", 0.3, times=(LONG, "int64"))
    assert (caught.value.kind, time.monotonic() - began < 2.0) == ("deadline", True)
    # A million multiplications would take minutes: the worker has dropped them.
    assert service.ask("slow", times=(1, "int64")) == 1.0
    assert service.pid("slow") == pid


def test_a_caller_who_goes_away(service: Service) -> None:
    began = time.monotonic()
    with pytest.raises(Refused) as caught:
        service.send("slow", 20.0, lambda: time.monotonic() - began > 0.2, times=(LONG, "int64"))
    assert (caught.value.kind, time.monotonic() - began < 2.0) == ("cancelled", True)
    assert service.ask("slow", times=(1, "int64")) == 1.0


def test_overload_is_told_at_once_and_passes(service: Service) -> None:
    stop = False
    asked = [Asking(lambda: service.send("slow", 20.0, lambda: stop, times=(LONG, "int64"))) for _ in range(3)]
    slot = service.engine._keeper.slots["slow"]
    until(lambda: len(slot.queue) == 2)
    for _ in range(20):
        began = time.monotonic()
        with pytest.raises(Refused) as caught:
            service.ask("slow", times=(1, "int64"))
        assert caught.value.kind == "overloaded"
        assert (caught.value.retry_after or 0) > 0
        assert time.monotonic() - began < 0.5
    # The other model has its own queue.
    assert service.add(1.0) == 2.0
    stop = True
    assert [one.end().kind for one in asked] == ["cancelled"] * 3
    assert service.ask("slow", times=(1, "int64")) == 1.0


@pytest.mark.parametrize(
    ("policy", "second", "third"), [("drop-oldest", "overloaded", "ok"), ("block", "ok", "overloaded")]
)
def test_other_policies(tmp_path: Path, library: ort.Library, policy: str, second: str, third: str) -> None:
    serving.takes_long(tmp_path)
    with serving.serving(tmp_path, f"[models]\nqueue = 1\npolicy = {policy}\n") as own:
        slot = own.engine._keeper.slots["slow"]
        stop = False
        first = Asking(lambda: own.send("slow", 20.0, lambda: stop, times=(LONG, "int64")))
        until(lambda: slot.current and slot.current.busy_since)
        waiting = Asking(lambda: own.ask("slow", times=(1, "int64")))
        until(lambda: len(slot.queue) == 1)
        last = Asking(lambda: own.ask("slow", 20.0 if third == "ok" else 0.3, times=(1, "int64")))
        loser = waiting if second == "overloaded" else last
        assert loser.end().kind == "overloaded"
        stop = True
        assert (first.end().kind, waiting.end().kind, last.end().kind) == ("cancelled", second, third)


def test_the_worker_has_no_numpy_and_is_the_kernels_first_choice(service: Service) -> None:
    pid = service.pid("add")
    assert "numpy" not in Path(f"/proc/{pid}/maps").read_text()
    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "500\n"
    assert os.getsid(pid) == pid


def test_unload_and_load(service: Service) -> None:
    pid = service.pid("add")
    service.engine.unload("add")
    assert serving.gone(pid)
    assert refusal(service, x=([[1, 2, 3]], "float32")).kind == "not_ready"
    assert service.info("add").state == "unloaded"
    service.engine.load("add")
    assert service.add(1.0) == 2.0
    for ask in (service.engine.load, service.engine.unload):
        with pytest.raises(Refused) as caught:
            ask("none")
        assert caught.value.kind == "unknown_model"
    with pytest.raises(Refused) as caught:
        service.engine.load("broken")
    assert caught.value.kind == "internal"
