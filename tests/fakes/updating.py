"""Releases of models made by hand, and a service that is updated by them: real engine and store, fake network."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from armlet_runtime.serve.config import parse
from armlet_runtime.serve.interface import Request
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.payloads import FactorySet
from armlet_runtime.serve.supervisor import Supervisor
from armlet_runtime.update.agent import Agent
from armlet_runtime.update.interface import Desired, FetchError, Incoming, Report
from armlet_runtime.update.running import Updates

from tests.fakes import handmade, payloads, serving
from tests.fakes.payloads import KEY
from tests.fakes.serving import until

FIELDS: dict[str, Any] = {
    "created": payloads.CREATED,
    "ort_format_version": None,
    "ir_version": 10,
    "opset_imports": {"ai.onnx": 21},
    "operators": {"ai.onnx": {"Add": [{"since_versions": [14], "takes": [{"T": ["float"]}]}]}},
    "element_types": ["float"],
    "min_runtime": "1.21",
    "max_runtime_tested": "1.21.0",
}
ENDS = ("UPDATED", "FAILED", "ROLLED_BACK")


@dataclass(frozen=True)
class Release:
    """An archive, and the wish for it."""

    desired: Desired
    archive: bytes


def release(
    generation: int,
    number: float | None = None,
    *,
    make: Callable[..., Path] = serving.adds,
    key: Any = KEY,
    **how: Any,
) -> Release:
    """Of a model that adds ``number`` (by default as much as its generation); ``how`` as :func:`serving.adds`."""
    with tempfile.TemporaryDirectory() as root:
        value = (generation if number is None else number,) if make is serving.adds else ()
        fields = {"version": f"{generation}.0", "generation": generation, **FIELDS, **how}
        folder = make(Path(root), *value, **fields)
        text = (folder / "payload.json").read_bytes()
        manifest = json.loads(text)
        files = {entry["path"]: (folder / entry["path"]).read_bytes() for entry in manifest["files"]}
    archive = payloads.archive(files, text=text, key=key)
    return Release(
        Desired(
            manifest["model"],
            manifest["version"],
            generation,
            hashlib.sha256(text).hexdigest(),
            len(archive),
            hashlib.sha256(archive).hexdigest(),
            url="https://releases.example/archive",
        ),
        archive,
    )


class FakeFetcher:
    """A network that has what a test puts there; ``errors`` come first, one for each fetch."""

    def __init__(self) -> None:
        self.archives: dict[str, bytes] = {}
        self.errors: list[FetchError] = []
        self.gate: threading.Event | None = None
        """Where there is one, a fetch waits for it, or until it is cancelled."""
        self.most: int | None = None
        """Blocks that come before the network breaks."""
        self.blocks = 0
        self.fetched: list[str] = []
        self.waiting = threading.Event()

    def fetch(
        self, desired: Desired, into: Incoming, progress: Callable[[float], None], cancelled: Callable[[], bool]
    ) -> None:
        self.fetched.append(desired.version)
        if self.errors:
            raise self.errors.pop(0)
        while self.gate is not None and not self.gate.wait(0.01):
            self.waiting.set()
            if cancelled():
                raise FetchError("download", "it was called off")
        for number in into.missing():
            if self.most is not None and self.blocks >= self.most:
                into.sync()
                raise FetchError("download", "no network")
            self.blocks += 1
            at = number * into.block_size
            into.put(number, self.archives[desired.archive_sha256][at : at + into.block_size])
            progress(number / into.blocks)
        into.sync()


@dataclass
class FakeReporter:
    """Keeps what it is told."""

    reports: list[Report] = field(default_factory=list)
    alerts: list[tuple[str, str, str]] = field(default_factory=list)

    def report(self, report: Report) -> None:
        self.reports.append(report)

    def alert(self, model: str, kind: str, text: str) -> None:
        self.alerts.append((model, kind, text))

    @property
    def states(self) -> list[str]:
        """Each once, as they followed each other; phases of a trial apart."""
        told = [report.phase or report.state for report in self.reports]
        return [state for index, state in enumerate(told) if index == 0 or told[index - 1] != state]


QUICK = "probation_seconds = 0\nmax_slowdown = 0\nreserve_mb = 0\n"


class Updated:
    """A device that serves "add" (adds 1, generation 1 of the factory), and is updated."""

    def __init__(self, root: Path, rules: str = QUICK, text: str = "") -> None:
        self.root = root
        self.factory = root / "factory"
        (root / "keys").mkdir(exist_ok=True)
        (root / "keys" / "maker.pub").write_bytes(payloads.public_pem())
        self.text = (
            f"[service]\npayloads = {self.factory}\nkeys = {root}/keys\nruntime =\n"
            f"[updates]\nstore = {root}/store\n{rules}{text}"
        )
        if not self.factory.exists():
            serving.adds(self.factory, 1.0)
        self.network = FakeFetcher()
        self.told = FakeReporter()
        self.metrics = Metrics()

    @contextlib.contextmanager
    def running(self, check: Any = lambda _: (), *, clean: bool = True, **keeper: Any) -> Iterator[Updated]:
        """Until the block ends; ``clean``: by an end that was asked for."""
        config = parse(self.text)
        self.updates = Updates(config, FactorySet(self.factory, handmade.verify_hashes, check))
        hooks = {"gives_up": self.updates.crashing, **keeper}
        self.engine = Supervisor(config, self.updates.catalogue, self.metrics, hooks)
        self.engine.start()
        self.agent: Agent = self.updates.begin(
            self.engine, self.metrics, self.told, {"url": self.network, "blocks": self.network}
        )
        try:
            until(self.engine.settled)
            yield self
        finally:
            self.updates.stop(10.0)
            self.engine.close(5.0)
            if clean:
                self.updates.close()
            else:
                self.updates.store.close()

    def offer(self, made: Release, **other: Any) -> Desired:
        """Puts it where it can be fetched from, and wishes for it."""
        desired = replace(made.desired, **other)
        self.network.archives[desired.archive_sha256] = made.archive
        self.agent.wish(desired.model, desired)
        return desired

    def update(self, made: Release, **other: Any) -> Report:
        """What became of it, in the end."""
        desired = self.offer(made, **other)
        return self.ended(desired)

    def ended(self, desired: Desired, seconds: float = 30.0) -> Report:
        """The report that ends a wish."""
        found: list[Report] = []

        def end() -> bool:
            found[:] = [one for one in self.told.reports if one.desired == desired and one.state in ENDS]
            return bool(found)

        until(end, seconds)
        return found[-1]

    def until_phase(self, phase: str) -> None:
        until(lambda: self.told.reports and self.told.reports[-1].phase == phase)

    def add(self, value: float = 0.0, model: str = "add") -> float:
        """What the model makes of a number."""
        return float(next(iter(self.answer(value, model).values())).tolist()[0][0])

    def answer(self, value: float = 0.0, model: str = "add", seconds: float = 20.0) -> Any:
        from armlet_runtime import ort

        given = {"x": ort.Tensor.from_list([[value] * 3], "float32")}
        return self.engine.infer(Request(model, None, given, None, time.monotonic() + seconds)).outputs

    def pid(self, model: str = "add") -> int:
        return next(info.pid or 0 for info in self.engine.models() if info.name == model)

    def new_factory(self, number: float, generation: int) -> None:
        """Another rootfs."""
        shutil.rmtree(self.factory)
        serving.adds(self.factory, number, version=f"{generation}.0", generation=generation)
