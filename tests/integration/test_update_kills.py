"""``kill -9`` at any time of any update: the model always comes back, and as one that may serve."""

from __future__ import annotations

import collections
import dataclasses
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.store.copies import Copies
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.state import State
from armlet_runtime.store.store import MOST_STARTS

from tests.conftest import ROOT
from tests.fakes import payloads, serving, updating
from tests.served import host_library

BLOCK = 2048
LONGEST_START = 60.0


class Killed:
    """A device whose service is killed; ``seen`` counts what was there to be found afterwards."""

    def __init__(self, root: Path, seed: int, before: Sequence[str] = ()) -> None:
        """``before`` is put ahead of the service's command."""
        self.root = root
        self.before = before
        self.chance = random.Random(seed)
        self.good = {1}
        self.generation = 1
        self.floor = 0
        self.kills = 0
        self.seen: collections.Counter[str] = collections.Counter()
        self.slowest = 0.0
        for name in ("keys", "network"):
            (root / name).mkdir()
        (root / "keys" / "maker.pub").write_bytes(payloads.public_pem())
        folder = serving.adds(root / "factory", 1.0, **updating.FIELDS)
        (folder / "payload.json.sig").write_bytes(payloads.KEY.sign((folder / "payload.json").read_bytes()))
        (root / "conf").write_text(
            f"[service]\npayloads = {root}/factory\nkeys = {root}/keys\nruntime =\nlibrary = {host_library()}\n"
            f"listen = unix:{root}/s\n[updates]\nstore = {root}/store\nreserve_mb = 0\nmax_slowdown = 0\n"
            "probation_seconds = 0.2\nsteady_seconds = 1\n"
        )
        self.wish()

    def wish(self) -> None:
        """For another payload, mostly a good one."""
        self.generation += 1
        right = self.chance.random() < 0.75
        made = updating.release(self.generation, right=right)
        if right:
            self.good.add(self.generation)
        desired = dataclasses.replace(made.desired, url="", block_size=BLOCK)
        (self.root / "network" / desired.archive_sha256).write_bytes(made.archive)
        text = json.dumps(dataclasses.asdict(desired))
        (self.root / "new").write_text(text)
        (self.root / "new").replace(self.root / "network" / "wish.json")

    def start(self) -> subprocess.Popen[bytes]:
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen(
                [
                    *self.before,
                    sys.executable,
                    "-m",
                    "tests.fakes.feeder",
                    str(self.root / "network"),
                    str(self.root / "conf"),
                ],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'device'}"},
                cwd=ROOT,
                stderr=log,
            )

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        assert process.poll() is None, (self.root / "log").read_text()[-4000:]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        self.kills += 1
        candidate = self.state().of("add").candidate
        incoming = list((self.root / "store" / "incoming").glob("*"))
        self.seen[candidate.phase if candidate else "download" if incoming else "none"] += 1

    def state(self) -> State:
        return Copies(Disk(), self.root / "store").state

    def demand_serving(self) -> None:
        """The model answers, as the payload that it says; and that is one that the state lets serve."""
        began = time.monotonic()
        before = self.state()
        while (answer := self.infer()) is None:
            assert time.monotonic() - began < LONGEST_START, (self.root / "log").read_text()[-4000:]
            time.sleep(0.01)
        after = self.state()
        self.slowest = max(self.slowest, time.monotonic() - began)
        generation = int(answer["model_version"].partition(".")[0])
        assert answer["outputs"][0]["data"] == [float(generation)] * 3
        assert generation in self.good
        may = set()
        for state in (before, after):
            one = state.of("add")
            tried = one.candidate.ref if one.candidate else None
            may |= {ref.generation for ref in (one.committed, tried) if ref}
            if one.committed is None or state.starts > MOST_STARTS:
                may.add(1)
            committed = one.committed.generation if one.committed else 0
            assert committed >= self.floor
            self.floor = committed
        assert generation in may, (generation, before, after)
        self.seen["factory served" if generation == 1 else "update served"] += 1

    def infer(self) -> Any:
        given = {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [0.0] * 3}
        connection = http.client.HTTPConnection("localhost", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(f"{self.root}/s")
            connection.request("POST", "/v2/models/add/infer", json.dumps({"inputs": [given]}))
            answer = connection.getresponse()
            data = json.loads(answer.read())
            return data if answer.status == 200 else None
        except OSError:
            return None
        finally:
            connection.close()

    def run(self, kills: int) -> None:
        while self.kills < kills:
            process = self.start()
            try:
                if self.chance.random() < 0.3:
                    # Before it serves.
                    time.sleep(self.chance.uniform(0.2, 1.0))
                    self.kill(process)
                    continue
                self.demand_serving()
                if self.chance.random() < 0.7:
                    self.wish()
                time.sleep(self.chance.uniform(0.0, 1.5))
                self.kill(process)
            finally:
                process.kill()
                process.wait()
        process = self.start()
        try:
            self.demand_serving()
            # Left in peace, it does what is wished.
            self.wish()
            while self.generation not in self.good:
                self.wish()
            end = time.monotonic() + LONGEST_START
            while (self.infer() or {}).get("model_version") != f"{self.generation}.0":
                assert time.monotonic() < end, (self.root / "log").read_text()[-4000:]
                time.sleep(0.05)
        finally:
            process.kill()
            process.wait()
        print(f"{self.kills} kills, slowest start {self.slowest:.1f} s, {dict(sorted(self.seen.items()))}")


def test_a_few_kills(tmp_path: Path) -> None:
    Killed(tmp_path, 6).run(15)


@pytest.mark.heavy
@pytest.mark.timeout(7200)
def test_a_thousand_kills(tmp_path: Path) -> None:
    Killed(tmp_path, int(os.environ.get("ARMLET_SEED", "7"))).run(int(os.environ.get("ARMLET_KILLS", "1000")))
