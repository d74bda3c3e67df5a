"""``armlet-serve`` as a program: --check, start, signals, and what is left when it is killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import ort

from tests.conftest import ROOT
from tests.fakes import serving
from tests.fakes.contracts import fake_runtime
from tests.fakes.payloads import KEY, OTHER_KEY, public_pem
from tests.fakes.serving import gone, until
from tests.fakes.updating import FIELDS

EXTRA_PATH: tuple[str, ...] = ()


class Device:
    """A device's files: payloads, keys, the runtime's contract, and the configuration."""

    def __init__(self, root: Path, library: str) -> None:
        self.root = root
        self.payloads = root / "payloads"
        self.conf = root / "device.conf"
        self.text = (
            f"[service]\npayloads = {self.payloads}\nkeys = {root}/keys\nruntime = {root}/runtime.json\n"
            f"library = {library}\nlisten = unix:{root}/s\ndrain_seconds = 8\n"
        )
        (root / "keys").mkdir()
        (root / "keys" / "maker.pub").write_bytes(public_pem())
        (root / "runtime.json").write_text(json.dumps(fake_runtime(flavor="full", operators=None, element_types=None)))
        self.conf.write_text(self.text)

    def add(self, name: str = "add", key: Any = KEY, **fields: Any) -> Path:
        folder = serving.adds(self.payloads, 1.0, name=name, **{**FIELDS, **fields})
        (folder / "payload.json.sig").write_bytes(key.sign((folder / "payload.json").read_bytes()))
        return folder

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command(), "--config", str(self.conf), *arguments],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def check(self) -> list[str]:
        done = self.run("--check")
        problems = done.stderr.splitlines()
        assert done.returncode == (2 if problems else 0), done
        return problems

    @contextlib.contextmanager
    def serving(self, text: str = "") -> Iterator[subprocess.Popen[bytes]]:
        self.conf.write_text(self.text + text)
        with subprocess.Popen([*command(), "--config", str(self.conf)], env=environment()) as process:
            try:
                until(lambda: process.poll() is not None or self.get("/v2/health/ready") == 200)
                assert process.poll() is None
                yield process
            finally:
                process.kill()

    def get(self, path: str, body: Any = None) -> Any:
        """The status, or the answer to what is posted."""
        connection = http.client.HTTPConnection("localhost", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(f"{self.root}/s")
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
            answer = connection.getresponse()
            data = answer.read()
            return json.loads(data) if body else answer.status
        except OSError:
            return 0
        finally:
            connection.close()

    def infer(self, value: float) -> Any:
        given = {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [value] * 3}
        return self.get("/v2/models/add/infer", {"inputs": [given]})["outputs"][0]["data"]


def command() -> list[str]:
    return [sys.executable, "-m", "armlet_runtime.serve"]


def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([*EXTRA_PATH, str(ROOT / "device")])}


def workers(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] or [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


@pytest.fixture
def device(tmp_path: Path, library: ort.Library) -> Device:
    return Device(tmp_path, library.path)


def test_check_finds_nothing(device: Device) -> None:
    device.add()
    assert device.check() == []


def test_check_finds_everything_at_once(device: Device) -> None:
    device.add("good")
    device.add("unsigned", OTHER_KEY)
    damaged = device.add("damaged")
    (damaged / "model.onnx").write_bytes(b"x" * (damaged / "model.onnx").stat().st_size)
    device.add("newer", opset_imports={"ai.onnx": 99})
    (device.payloads / "empty").mkdir()
    device.conf.write_text(f"{device.text}[models]\nproviders = xnpack, cpu\n[model:none]\nqueue = 3\n")
    found = device.check()
    assert len(found) == 6, "\n".join(found)
    for part in (
        'device.conf:9: [models] no runtime has a provider "xnpack"; did you mean xnnpack?',
        f"device.conf:10: [model:none] there is no payload of this model in {device.payloads}",
        "damaged: ",
        "unsigned: ",
        "newer: ",
        "empty: ",
    ):
        assert any(part in problem for problem in found), (part, found)


def test_a_bad_payload_is_no_matter_of_the_configuration(device: Device) -> None:
    device.add()
    device.add("unsigned", OTHER_KEY)
    (problem,) = device.check()
    assert problem.startswith("unsigned: ")
    done = device.run("--check", "--configuration")
    assert (done.returncode, done.stderr) == (0, "")
    device.conf.write_text(f"{device.text}[models]\nproviders = xnpack\n")
    done = device.run("--check", "--configuration")
    assert (done.returncode, done.stderr.count("\n"), "xnpack" in done.stderr) == (2, 1, True)
    assert device.run("--configuration").returncode == 2


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("[servce]\n[models]\nqueue = 0\n", 2, ":8: unknown section [servce]; did you mean [service]?"),
        ("keys = /none\n", 2, ':8: "keys" is there twice'),
    ],
)
def test_a_configuration_that_makes_no_sense(device: Device, text: str, code: int, told: str) -> None:
    device.conf.write_text(device.text + text)
    for arguments in ((), ("--check",)):
        done = device.run(*arguments)
        assert (done.returncode, told in done.stderr, "Traceback" in done.stderr) == (code, True, False)


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        ({"keys = ": "keys = /none"}, 2, "/none"),
        ({"runtime = ": "runtime = /none"}, 2, "/none: No such file"),
        ({"listen = ": "listen = unix:/none/s"}, 3, "make the folder"),
        ({"listen = ": "listen = 192.0.2.1:80"}, 3, "no interface"),
    ],
)
def test_a_machine_that_lacks_something(device: Device, changes: dict[str, str], code: int, told: str) -> None:
    lines = [
        next((new for old, new in changes.items() if line.startswith(old)), line) for line in device.text.split("\n")
    ]
    device.conf.write_text("\n".join(lines))
    done = device.run()
    assert (done.returncode, told in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


def test_check_of_a_machine_without_the_library(device: Device) -> None:
    device.add()
    text = "\n".join(f"library = {device.root}/none.so" if "library" in x else x for x in device.text.splitlines())
    device.conf.write_text(text)
    (problem,) = device.check()
    assert "none.so" in problem


@pytest.mark.parametrize(
    ("kind", "number", "told"), [(2, 183, "64-bit ARM"), (1, 40, "32-bit ARM"), (2, 9999, "ELF machine 9999, class 2")]
)
def test_a_library_of_another_machine(device: Device, kind: int, number: int, told: str) -> None:
    other = device.root / "other.so"
    other.write_bytes(b"\x7fELF" + bytes([kind, 1, 1]) + bytes(9) + b"\3\0" + number.to_bytes(2, "little") + bytes(44))
    device.add()
    text = "\n".join(f"library = {other}" if x.startswith("library") else x for x in device.text.splitlines())
    device.conf.write_text(text)
    (problem,) = device.check()
    assert f"{other} is for {told}, and this Python is for " in problem


def test_no_file(device: Device) -> None:
    device.conf.unlink()
    done = device.run("--check")
    assert (done.returncode, done.stderr) == (2, f"{device.conf}: No such file or directory\n")


def test_it_serves_until_it_is_told_to_end(device: Device) -> None:
    device.add()
    telemetry = device.root / "telemetry.jsonl"
    with device.serving(f"telemetry = {telemetry}\ntelemetry_seconds = 0.5\n") as process:
        assert device.infer(1.0) == [2.0] * 3
        (worker,) = workers(process.pid)
        until(telemetry.exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert gone(worker)
    assert not (device.root / "s").exists()
    assert "armlet_ready" in telemetry.read_text()


def test_what_is_under_way_is_answered_before_it_ends(device: Device) -> None:
    folder = serving.takes_long(device.payloads, name="slow", **FIELDS)
    (folder / "payload.json.sig").write_bytes(KEY.sign((folder / "payload.json").read_bytes()))
    with device.serving() as process:
        given = {"name": "times", "datatype": "INT64", "shape": [], "data": [2500]}
        asked = [serving.Asking(lambda: device.get("/v2/models/slow/infer", {"inputs": [given]})) for _ in range(2)]
        time.sleep(0.2)
        # As systemd does to all of a service, unless KillMode says otherwise.
        for pid in (process.pid, *workers(process.pid)):
            os.kill(pid, signal.SIGTERM)
        assert [one.end().result["outputs"][0]["data"] for one in asked] == [[1.0]] * 2
        assert process.wait(10) == 0


@pytest.mark.parametrize("stopped", [False, True])
def test_no_worker_outlives_a_killed_service(device: Device, stopped: bool) -> None:
    for name in ("a", "b"):
        device.add(name)
    with device.serving() as process:
        pids = workers(process.pid)
        assert len(pids) == 2
        if stopped:
            os.kill(pids[0], signal.SIGSTOP)
        process.kill()
        until(lambda: all(gone(pid) for pid in pids), 5.0)


def test_a_service_that_was_stopped_goes_on_with_its_workers(device: Device) -> None:
    device.add()
    with device.serving("stall_seconds = 2\n") as process:
        pids = workers(process.pid)
        for _ in range(2):
            process.send_signal(signal.SIGSTOP)
            time.sleep(4.0)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            assert device.infer(1.0) == [2.0] * 3
        assert workers(process.pid) == pids


def test_without_numpy(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    (device.root / "numpy.py").write_text("raise ImportError('there is none')\n")
    monkeypatch.setattr(f"{__name__}.EXTRA_PATH", (str(device.root),))
    device.add()
    with device.serving() as process:
        assert device.infer(3.0) == [4.0] * 3
        for pid in (process.pid, *workers(process.pid)):
            assert "/numpy/" not in Path(f"/proc/{pid}/maps").read_text()


def test_a_socket_left_behind_is_no_hindrance(device: Device) -> None:
    device.add()
    for _ in range(2):
        with device.serving() as process:
            assert device.infer(2.0) == [3.0] * 3
            process.kill()
