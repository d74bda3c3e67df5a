"""What ``--check`` finds beyond payloads, and that serving says the same."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.asking import ask
from armlet_runtime.serve.chain import Wanted
from armlet_runtime.serve.checking import report
from armlet_runtime.serve.config import parse, read
from armlet_runtime.serve.confine import LEAST_MB
from armlet_runtime.serve.finding import WARNING
from armlet_runtime.serve.job import Job
from armlet_runtime.serve.payloads import candidate_of
from armlet_runtime.serve.settings_check import of_model
from armlet_runtime.serve.trial import Trial

from tests.fakes import serving
from tests.fakes.payloads import KEY
from tests.fakes.updating import FIELDS
from tests.unit.device.serve.test_command import Device, command, environment

OPTIONS = "[provider:cpu]\nnone = 1\n"


@pytest.fixture
def device(tmp_path: Path, library: ort.Library) -> Device:
    return Device(tmp_path, library.path)


def found(device: Device, text: str, **settings: str) -> tuple[list[str], list[str]]:
    """(problems, warnings) of the device's file with more text, and keys of [service] set otherwise."""
    lines = [line for line in device.text.splitlines() if line.partition(" =")[0] not in settings]
    lines += [f"{key} = {value}" for key, value in settings.items()]
    all_of_it = report(read("\n".join([*lines, text])), {0, 1}).findings
    assert all("\n" not in one.what and one.what.startswith("device.conf:") for one in all_of_it), all_of_it
    return (
        [one.what for one in all_of_it if one.kind != WARNING],
        [one.what for one in all_of_it if one.kind == WARNING],
    )


@pytest.mark.parametrize(
    ("text", "problem", "warning"),
    [
        (OPTIONS, ":8: [provider:cpu] the library refuses these options, so no model can be served with them: CPU", ""),
        ("[models]\nmin_provider_share = xnnpack 0.5\n", ":9: [models] min_provider_share asks for xnnpack, which", ""),
        ("[models]\nmin_provider_share = xnpack 0.5\n", ':9: [models] no runtime has a provider "xnpack"', ""),
        ("[models]\nmin_provider_share = xnnpack 0, cpu 0.5\n", "", ""),
        ("[models]\nproviders = cpu\nmin_provider_share = azure 0.5\n", "azure, which is not in the chain: cpu", ""),
        ("[model:add]\nmin_provider_share = azure 0.5\n", ":9: [model:add] min_provider_share asks for azure, wh", ""),
        ("[models]\nproviders = xnnpack, cpu\n", "", ":9: [models] the library lacks xnnpack: it is skipped"),
        ("[models]\nmemory_mb = 11\n", ":9: [models] memory_mb = 11 is less than a worker takes without a model", ""),
        ("[models]\nmemory_mb = 100\n[model:add]\nmemory_mb = 5\n", ":11: [model:add] memory_mb = 5 is less", ""),
        ("[models]\nmemory_mb = 100\ncores = 2\n", "", ""),
        ("[models]\ncores = 3\n", "", ":9: [models] cores = 3, and the service may use 2: the model gets those"),
    ],
)
def test_settings_that_make_no_sense_here(device: Device, text: str, problem: str, warning: str) -> None:
    device.add()
    problems, warnings = found(device, text)
    for told, wanted in ((problems, problem), (warnings, warning)):
        assert len(told) == bool(wanted), told
        assert all(wanted in line for line in told), told


def test_a_limit_below_the_weights(device: Device) -> None:
    folder = serving.adds(device.payloads, 1.0)
    candidate = candidate_of(folder, json.loads((folder / "payload.json").read_bytes()), "0" * 64)
    with candidate.model_file.open("ab") as file:
        file.truncate(30 << 20)
    for limit, wrong in ((20, True), (30 + LEAST_MB, False)):
        config = parse(f"[model:add]\nmemory_mb = {limit}\n")
        told = [one.what for one in of_model(config, candidate, [Wanted("cpu")], ["CPUExecutionProvider"])]
        assert [line.startswith("device.conf:2: [model:add] memory_mb = 20 is less than add") for line in told] == (
            [True] * wrong
        )


@pytest.mark.parametrize("kind", ["folder", "file", "folder is a file", "loop"])
def test_places_where_nobody_can_listen(device: Device, kind: str) -> None:
    device.add()
    (device.root / "file").write_text("mine")
    (device.root / "loop").symlink_to("loop")
    place = {"folder": "none/s", "file": "file", "folder is a file": "file/s", "loop": "loop/s"}[kind]
    (problem,), warnings = found(device, "", listen=f"unix:{device.root}/{place}")
    assert ":7: [service] " in problem
    assert warnings == []
    assert (device.root / "file").read_text() == "mine"


def test_a_folder_that_cannot_be_written(device: Device) -> None:
    device.add()
    (problem,), _ = found(device, "", listen="unix:/proc/self/s")
    assert "nothing can be made in /proc/self" in problem


def test_an_address_in_use_may_be_the_services_own(device: Device) -> None:
    device.add()
    with socket.socket() as taken, socket.socket(socket.AF_UNIX) as other:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other.bind(f"{device.root}/taken")
        other.listen()
        for listen in (f"127.0.0.1:{taken.getsockname()[1]}", f"unix:{device.root}/taken"):
            problems, (warning,) = found(device, "", listen=listen)
            assert (problems, ":7: [service] " in warning) == ([], True)
    problems, warnings = found(device, "", listen="unix:/run/armlet/s")
    assert problems == []
    assert len(warnings) == (not Path("/run/armlet").exists())
    # A socket whose owner is gone is no hindrance, and is not removed either.
    assert found(device, "", listen=f"unix:{device.root}/taken") == ([], [])
    assert (device.root / "taken").exists()


def test_mistakes_in_the_form_hide_none_in_the_meaning(device: Device) -> None:
    device.add("good")
    device.add("newer", opset_imports={"ai.onnx": 99})
    device.conf.write_text(
        device.text.replace("drain_seconds = 8", "drain_seconds = x") + f"[models]\nqueue = 0\ncores = 999\n{OPTIONS}"
    )
    done = device.run("--check")
    told = [line.partition(f"{device.conf}:")[2].partition(" ")[0] or line for line in done.stderr.splitlines()]
    assert [line.partition(": ")[0] for line in told] == ["7:", "9:", "newer", "11:", "10:"], done.stderr
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("text", ["librry = /x", "library", "[servce]\nlibrary = /x", "library = x"])
def test_what_may_be_meant_otherwise_is_not_judged(device: Device, text: str) -> None:
    lines = [line for line in device.text.splitlines() if not line.startswith("library")]
    reading = read("\n".join([*lines, text]), "device.conf")
    assert "library" in reading.in_doubt
    assert "payloads" not in reading.in_doubt
    device.add()
    assert [one.what.partition(" ")[0] for one in report(reading, {0}).findings] == [f"device.conf:{len(lines) + 1}:"]


def test_the_result_is_on_stdout(device: Device) -> None:
    device.add("add")
    device.add("old", version="2.5", generation=7)
    device.add("off")
    cores = sorted(os.sched_getaffinity(0))[:1]
    device.conf.write_text(f"{device.text}[models]\nproviders = xnnpack, cpu\ncores = 1\n[model:off]\nenabled = no\n")
    done = device.run("--check")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith(f"warning: {device.conf}:9: ")
    first, second = done.stdout.splitlines()
    assert first == f"add version=1.0 generation=1 providers=cpu cores={cores[0]}"
    assert second.startswith("old version=2.5 generation=7 providers=cpu cores=")
    device.conf.write_text(f"{device.text}[models]\nqueue = 0\n")
    assert (device.run("--check").returncode, device.run("--check").stdout) == (2, "")
    device.conf.write_text(device.text)
    assert device.run("--check", "--configuration").stdout == f"{device.conf}: nothing is wrong\n"


def test_folders_that_are_missing_or_empty(device: Device) -> None:
    (device.root / "empty").mkdir()
    (problem,), _ = found(device, "", payloads=f"{device.root}/empty")
    assert problem == f"device.conf:7: [service] {device.root}/empty holds no payload"
    (problem,), _ = found(device, "", payloads=f"{device.root}/none")
    assert "none: No such file or directory" in problem
    device.add()
    (problem,), _ = found(device, "", keys=f"{device.root}/none")
    assert f"[service] no key is trusted: there is no {device.root}/none" in problem


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_waited_for(device: Device, make: object) -> None:
    assert callable(make)
    device.add()
    make(device.root / "keys" / "other.pub")
    (problem,) = device.check()
    assert "other.pub" in problem
    device.conf.unlink()
    make(device.conf)
    for arguments in ((), ("--check",)):
        done = device.run(*arguments)
        assert (done.returncode, done.stderr) == (2, f"{device.conf}: it is no file\n")


def test_serving_says_the_same(device: Device) -> None:
    device.add()
    device.conf.write_text(f"{device.text}[models]\nproviders = xnnpack, cpu\ncores = 99\n[provider:azure]\nx = y\n")
    checked = {line.replace("warning: ", "") for line in device.run("--check").stderr.splitlines()}
    assert len(checked) == 2
    with subprocess.Popen([*command(), "--config", str(device.conf)], env=environment(), stderr=-1) as process:
        try:
            serving.until(lambda: device.get("/v2/health/ready") == 200)
            assert device.infer(1.0) == [2.0] * 3
            process.send_signal(signal.SIGTERM)
            told = process.communicate(timeout=20)[1].decode()
        finally:
            process.kill()
    assert all(line in told for line in checked), told
    assert "got SIGTERM" in told
    assert "0 requests were still answered and 0 refused" in told


def test_the_log_tells_what_was_drained(device: Device) -> None:
    folder = serving.takes_long(device.payloads, name="slow", **FIELDS)
    (folder / "payload.json.sig").write_bytes(KEY.sign((folder / "payload.json").read_bytes()))
    with subprocess.Popen([*command(), "--config", str(device.conf)], env=environment(), stderr=-1) as process:
        try:
            serving.until(lambda: device.get("/v2/health/ready") == 200)
            given = {"name": "times", "datatype": "INT64", "shape": [], "data": [2500]}
            asked = [serving.Asking(lambda: device.get("/v2/models/slow/infer", {"inputs": [given]})) for _ in range(2)]
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            told = process.communicate(timeout=20)[1].decode()
        finally:
            process.kill()
    assert [one.end().result["outputs"][0]["data"] for one in asked] == [[1.0]] * 2
    assert "got SIGINT" in told
    assert "2 requests were still answered and 0 refused" in told


def test_all_that_stops_the_service_is_told_at_once(device: Device) -> None:
    device.add()
    text = device.text.replace(f"unix:{device.root}/s", "unix:/none/s").replace(f"{device.root}/keys", "/none")
    device.conf.write_text(f"{text}[models]\nqueue = 0\n")
    done = device.run()
    assert done.returncode == 2
    for line in (3, 6, 9):
        assert f"{device.conf}:{line}: " in done.stderr


def test_a_lack_that_may_pass_is_not_hidden_by_a_mistake_that_costs_one_model(device: Device) -> None:
    device.add()
    device.conf.write_text(f"{device.text.replace(f'unix:{device.root}/s', '192.0.2.1:80')}{OPTIONS}")
    # systemd tries again after 3, and not after 2.
    assert (device.run().returncode, device.run("--check").returncode) == (3, 2)


def test_what_costs_one_model_keeps_no_script_from_starting_the_others(device: Device) -> None:
    device.add()
    device.conf.write_text(f"{device.text}[model:add]\nmin_provider_share = vsinpu 0.9\nmemory_mb = 3\n")
    for arguments, code in ((("--check",), 2), (("--check", "--configuration"), 0)):
        done = device.run(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (code, 2), done
    device.conf.write_text(device.text + OPTIONS)
    assert device.run("--check", "--configuration").returncode == 2


def test_options_that_are_refused_when_it_serves(library: ort.Library, tmp_path: Path) -> None:
    serving.adds(tmp_path, 1.0)
    text = f"[service]\nlibrary = {library.path}\n"
    with serving.serving(tmp_path, text + OPTIONS) as service:
        info = service.info("add")
        assert info.state == "failed"
        assert 'its options are refused: CPUExecutionProvider has no option "none"' in info.reason


def test_a_provider_whose_options_are_refused_is_left_out(
    library: ort.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, options: object, library: object) -> None:
        if name == "azure":
            raise ort.OrtError(ort.OrtErrorCode.INVALID_ARGUMENT, "no such\n option")

    monkeypatch.setattr(ort, "try_provider", refuse)
    wanted = (Wanted("azure", {"x": "y"}), Wanted("xnnpack", {"x": "y"}), Wanted("cpu"))
    tried: list[object] = []
    job = Job("m", "1", "/", "/m", wanted, threads=1, cores=(0,), inputs=(), outputs=())
    left, refused = Trial(job, tried.append)._taken(wanted, library)
    assert (left, refused) == (list(wanted[1:]), {"azure": "its options are refused: no such option"})
    # Should it crash on them, it is known which one it was.
    assert tried == [["azure"], ["xnnpack"]]


def test_a_library_is_asked_without_a_model(library: ort.Library) -> None:
    told = ask(library.path, [Wanted("cpu", {"a": "b"}), Wanted("cpu"), Wanted("vsinpu", {"a": "b"})])
    assert ("CPUExecutionProvider" in told.providers, told.problem) == (True, "")
    assert ['no option "a"' in reason for reason in told.refusals] == [True, False, False]
    assert told.refusals[1:] == ("", "")


def test_a_library_that_hangs_or_crashes(library: ort.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ort, "try_provider", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    told = ask(library.path, [Wanted("cpu"), Wanted("cpu", {"a": "b"})])
    assert (told.problem, "SIGKILL" in told.refusals[0], told.refusals[1]) == ("", True, "")
    monkeypatch.setattr(ort, "try_provider", lambda *_: signal.pause())
    told = ask(library.path, [Wanted("cpu")], 1.0)
    assert told.refusals == ("trying it took more than 1 s",)
