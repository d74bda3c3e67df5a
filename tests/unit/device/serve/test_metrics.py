"""What is counted, judged by Prometheus' own parser."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from armlet_runtime.ort import Tensor
from armlet_runtime.serve import metrics as metrics_module
from armlet_runtime.serve import sysinfo
from armlet_runtime.serve.drift import Reference
from armlet_runtime.serve.exposition import gauge, text
from armlet_runtime.serve.front import front_end
from armlet_runtime.serve.limits import Limits
from armlet_runtime.serve.listening import TcpAddress
from armlet_runtime.serve.looks import SHARE, Thrift, some
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.page import page
from armlet_runtime.serve.quantiles import RELATIVE_ERROR, Quantiles
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.fake_engine import FakeEngine
from tests.fakes.service import Client

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(page_text: str) -> Found:
    found: Found = {}
    for family in text_string_to_metric_families(page_text):
        assert family.documentation
        assert family.type in ("counter", "gauge", "summary")
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} twice"
            found[key] = sample.value
    return found


def value(found: Found, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def shown(metrics: Metrics) -> Found:
    return parsed(page(FakeEngine(), metrics, lambda: 3))


def test_a_page_over_http() -> None:
    metrics = Metrics()
    server = front_end(FakeEngine(), metrics, TcpAddress(port=0), Limits())
    server.start()
    try:
        with Client(server) as client:
            client.ask("GET", "/nothing")
            answer = client.ask("GET", "/metrics")
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            found = parsed(answer.raw.decode())
    finally:
        server.stop()
    assert value(found, "armlet_http_answers_total", endpoint="", status="404") == 1
    assert value(found, "armlet_http_connections") == 1
    assert value(found, "armlet_ready") == 1
    info = {"version": "1.2.0", "generation": "3", "sha256": "ab" * 32, "payload_sha256": "cd" * 32}
    assert value(found, "armlet_model_info", model="echo", **info) == 1
    assert value(found, "armlet_model_state", model="echo", state="ready") == 1
    assert value(found, "armlet_model_provider_share", model="echo", provider="CPUExecutionProvider") == 0.25
    assert value(found, "armlet_process_resident_bytes", process="service") > 1 << 20


def test_requests_and_their_latency() -> None:
    metrics = Metrics()
    for number in range(1, 101):
        metrics.observed("m", number / 1000, "ok")
    metrics.observed("m", 0.0, "overloaded")
    metrics.queue_depth("m", 5)
    metrics.worker("m", "crashed")
    found = shown(metrics)
    assert value(found, "armlet_request_seconds", model="m", quantile="0.95") == pytest.approx(0.095, rel=0.011)
    assert value(found, "armlet_request_seconds_count", model="m") == 100
    assert value(found, "armlet_request_seconds_sum", model="m") == pytest.approx(5.05)
    assert value(found, "armlet_requests_total", model="m", outcome="overloaded") == 1
    assert value(found, "armlet_queue_depth", model="m") == 5
    assert value(found, "armlet_worker_events_total", model="m", event="crashed") == 1


def test_invented_names_do_not_fill_the_memory() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.observed(f"m{number}", 0.1, "unknown_model")
    found = shown(metrics)
    names = {dict(labels)["model"] for name, labels in found if name == "armlet_requests_total"}
    assert len(names) == metrics_module.MOST_MODELS + 1
    assert value(found, "armlet_requests_total", model="other", outcome="unknown_model") == 1000 - 64


def test_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thrift, "__bool__", lambda self: True)
    metrics = Metrics()
    scores = Tensor.from_list([[0.1, 0.7, 0.2], [0.1, 0.2, 0.7], [math.nan, 0.5, 0.9]], "float32")
    metrics.outputs("m", {"scores": scores, "text": Tensor(["a"], "string", (1,))})
    metrics.outputs("m", {"price": Tensor.from_list([float("nan"), 0.5, 0.25], "float16")})
    found = shown(metrics)
    # A vector is a number for each row, and a row with NaN has no largest: neither tells a class.
    classes = {labels: count for (name, labels), count in found.items() if name == "armlet_output_class_total"}
    wanted = [frozenset({"model": "m", "output": "scores", "class": name}.items()) for name in ("1", "2")]
    assert classes == dict.fromkeys(wanted, 1)
    assert value(found, "armlet_output_mean", model="m", output="scores") == pytest.approx(3.4 / 8, rel=1e-6)
    for output in ("scores", "price"):
        assert value(found, "armlet_output_not_finite_total", model="m", output=output) == 1


def test_drift_is_told_once_enough_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thrift, "__bool__", lambda self: True)
    metrics = Metrics()
    metrics.watch_drift("m", [Reference("x", "values", (0.0,), (0.5, 0.5))])
    for _ in range(29):
        metrics.inputs("m", {"x": Tensor.from_list([1.0, 2.0], "float32")})
    assert not any(name == "armlet_input_drift_psi" for name, _ in shown(metrics))
    metrics.inputs("m", {"x": Tensor.from_list([1.0, 2.0], "float32")})
    found = shown(metrics)
    assert value(found, "armlet_input_drift_band", model="m", input="x", of="values") == 2
    metrics.watch_drift("m", [])
    assert not any(name == "armlet_input_drift_psi" for name, _ in shown(metrics))


@given(st.text(max_size=20), st.floats())
def test_any_label_and_number_can_be_read_back(label: str, number: float) -> None:
    page_text = text([gauge("a_gauge", 'what\\it "is"\nfor', {(("name", label),): number})])
    ((family),) = list(text_string_to_metric_families(page_text))
    (sample,) = family.samples
    assert sample.labels["name"] == label.encode("utf-8", "replace").decode()
    assert sample.value == number or (math.isnan(number) and math.isnan(sample.value))


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=50), st.sampled_from([0.5, 0.95, 0.99]))
def test_quantiles_are_within_one_percent(values: list[float], share: float) -> None:
    quantiles = Quantiles(clock=lambda: 0.0)
    for one in values:
        quantiles.add(one)
    (found,) = quantiles.of([share])
    assert found == pytest.approx(sorted(values)[math.ceil(share * len(values)) - 1], rel=RELATIVE_ERROR * 1.01)


def test_quantiles_forget() -> None:
    now = 0.0
    quantiles = Quantiles(window=10.0, clock=lambda: now)
    quantiles.add(5.0)
    now = 11.0
    quantiles.add(1.0)
    assert quantiles.of([0.99])[0] == pytest.approx(5.0, rel=0.01)
    now = 21.0
    assert quantiles.of([0.99])[0] == pytest.approx(1.0, rel=0.01)
    now = 100.0
    assert quantiles.of([0.99]) == [None]
    quantiles.add(0.0)
    quantiles.add(1e9)
    assert quantiles.of([0.1, 1.0]) == pytest.approx([1e-6, 1e3], rel=0.01)


def test_looks_take_their_share_of_the_time_and_no_more() -> None:
    now = 100.0
    thrift = Thrift(clock=lambda: now)
    assert thrift
    now += 0.5
    thrift.spent()
    assert not thrift
    now += 0.49 / SHARE
    assert not thrift
    now += 0.02 / SHARE
    assert thrift


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_looks_see_values(dtype: str) -> None:
    assert list(some(Tensor.from_list([[1, 0], [1, 1]], dtype))) == [1, 0, 1, 1]


def test_looks_at_large_tensors_are_spread() -> None:
    random.seed(1)
    seen = some(Tensor.from_list(list(range(100_000)), "int32"), most=100)
    assert len(seen) in (99, 100)
    assert seen[1] - seen[0] == 1000
    assert some(Tensor(b"\x80\x3f\x00\xc0", "bfloat16", (2,))) == (1.0, -2.0)
    assert not some(Tensor(["a"], "string", (1,)))
    assert not some(Tensor(b"", "float32", (0,)))


def test_the_machine(tmp_path: Path) -> None:
    zone = tmp_path / "class" / "thermal" / "thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "temp").write_text("48250\n")
    (zone / "type").write_text("cpu-thermal\n")
    (tmp_path / "class" / "thermal" / "thermal_zone1").mkdir()
    core = tmp_path / "devices" / "system" / "cpu" / "cpu0" / "cpufreq"
    core.mkdir(parents=True)
    (core / "scaling_cur_freq").write_text("1400000\n")
    found = parsed(text(sysinfo.families({"gone": 1 << 30}, sys=tmp_path)))
    assert value(found, "armlet_temperature_celsius", zone="thermal_zone0 cpu-thermal") == 48.25
    assert value(found, "armlet_cpu_frequency_hertz", cpu="cpu0") == 1.4e9
    assert not any(name == "armlet_process_resident_bytes" for name, _ in found)


def test_no_sys_at_all(tmp_path: Path) -> None:
    assert sysinfo.temperatures(tmp_path / "none") == {}
    assert sysinfo.frequencies(tmp_path / "none") == {}
    assert sysinfo.resident_bytes(1, tmp_path / "none") is None
