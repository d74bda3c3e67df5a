"""Updates on the target: its Python, its library, as its core; over a real broker, a real HTTPS server and the disk."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime import signature
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.incoming import StoredIncoming
from armlet_runtime.store.store import Store
from armlet_runtime.update.interface import Desired

from armlet.payload.keys import Signer, load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery
from armlet.updates import wish as wishing
from tests.certificates import Authority
from tests.emulated import MODEL, Emulated, children, emulated
from tests.fakes import served_models
from tests.fakes.lying_server import LyingServer, serving
from tests.mosquitto import DEVICE, PREFIX, Broker, Operator, until
from tests.smoked import REAL

pytestmark = REAL

SKUS = ("demo-a53", "demo-a7")
XNN = "XnnpackExecutionProvider"
BLOCK = 32 << 10
SECONDS = 90.0
LATE = "2040-02-29T12:00:00Z"
"""Where the C library counts seconds in 32 bits, as Debian 12's armhf does, there is no such time."""
LATE_SECONDS = 2214043200
_TEXT = """
[updates]
store = {root}/store
ca = {ca}
probation_seconds = 0
max_slowdown = 0

[mqtt]
host = 127.0.0.1
port = {port}
device = {device}
"""


@dataclasses.dataclass(frozen=True)
class Sent:
    """A payload's archive, and the wish for it."""

    data: bytes
    desired: Desired

    def block(self, number: int) -> bytes:
        return self.data[number * BLOCK : (number + 1) * BLOCK]

    @property
    def blocks(self) -> int:
        return math.ceil(len(self.data) / BLOCK)


class Fleet:
    """One device in emulation, and everybody whom it talks to."""

    def __init__(self, root: Path, made: Emulated, operator: Operator, server: LyingServer) -> None:
        self.root, self.made, self.operator, self.server = root, made, operator, server
        self.device = made.device
        self.sent: dict[str, set[int]] = {}
        """An archive's sha256 -> numbers of its blocks."""

    def packed(self, generation: int, *, url: str = "", signer: Signer | None = None, fits: bool = True) -> Sent:
        """The model that the factory has, under another generation; or one that this runtime cannot run."""
        model, said = self.made.model, self.made.said
        if not fits:
            folder = self.root / f"misfit-{generation}"
            samples = served_models.samples(folder, scores=(2, 3))
            model, said = served_models.animals(folder), served_models.wish(MODEL, samples)
        said = dataclasses.replace(said, version=f"{generation}.0.0", generation=generation, created=LATE)
        delivery = Delivery(out=self.root / f"packed-{generation}-{signer is None}-{fits}")
        trusted = self.device.signer
        path = Path(pack(model, said, signer=signer or trusted, delivery=delivery).files["payload"])
        keys = self.root / "keys" if signer is None else self.root / "strangers"
        return Sent(path.read_bytes(), wishing.wish(path, key=keys, url=url, block_size=0 if url else BLOCK))

    def wish(self, sent: Sent) -> None:
        self.operator.say(f"{PREFIX}/models/{MODEL}/desired", wishing.message(sent.desired), retain=True)

    def reports(self, sent: Sent) -> list[dict[str, Any]]:
        """What the device told of a wish, oldest first."""
        found = [json.loads(message) for message in self.operator.of(f"{PREFIX}/models/{MODEL}/state")]
        return [one for one in found if (one["desired"] or {}).get("payload") == sent.desired.payload]

    def reached(self, sent: Sent, state: str, phase: str | None = None) -> dict[str, Any]:
        """Waits until the device tells that of a wish, sending blocks meanwhile; what it told."""

        def there() -> bool:
            self.send(sent)
            last = self.reports(sent)[-1:]
            return bool(last) and (last[0]["state"], last[0]["phase"] or None) == (state, phase)

        until(there, SECONDS, f"{state} of {sent.desired.version}")
        return self.reports(sent)[-1]

    def send(self, sent: Sent, most: int | None = None) -> None:
        """The blocks that are asked for and were not sent yet; ``most``: none from that number on."""
        archive = sent.desired.archive_sha256
        done = self.sent.setdefault(archive, set())
        for number in sorted(self.wanted(sent) - done):
            if most is None or number < most:
                done.add(number)
                self.operator.say(f"{PREFIX}/models/{MODEL}/blocks/{archive}/{number}", sent.block(number))

    def answered(self, sent: Sent, most: int) -> set[int]:
        """Sends some; what is asked for by now."""
        self.send(sent, most)
        return self.wanted(sent)

    def wanted(self, sent: Sent) -> set[int]:
        asked = [json.loads(one) for one in self.operator.of(f"{PREFIX}/models/{MODEL}/blocks/wanted")]
        return {n for one in asked if one["archive"] == sent.desired.archive_sha256 for n in one["blocks"]}

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The device's, opened by this machine."""
        store = Store(self.root / "store", signature.trusted_keys(self.root / "keys"), lambda _: ())
        try:
            assert (store.readonly, store.notes) == ("", ())
            yield store
        finally:
            store.close()

    def serves(self) -> str:
        """The version that answers, and computes what it should."""
        self.device.demand_golden(self.made.payload)
        told = self.device.json(f"/v2/models/{MODEL}")
        assert {one["provider"] for one in told["armlet"]["nodes"] if one["operator"] == "Conv"} == {XNN}
        (version,) = told["versions"]
        return str(version)


@pytest.fixture(params=SKUS)
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    authority = Authority(tmp_path, "authority")
    with Broker(tmp_path) as broker, serving(authority.vouch("server")) as server:
        text = _TEXT.format(root=tmp_path, ca=authority.ca, port=broker.port, device=DEVICE)
        made = emulated(request.param, tmp_path, text, packages=["paho"])
        with Operator(broker.port, ("armlet/#",)) as operator:
            yield Fleet(tmp_path, made, operator, server)


def test_updates_on_the_target(fleet: Fleet) -> None:
    """One device's life: each start of it takes an emulator many seconds."""
    root, device = fleet.root, fleet.device
    bad, blocks = fleet.packed(4), fleet.packed(5)
    url = fleet.packed(6, url=f"https://localhost:{fleet.server.server_address[1]}/6.payload")
    # This machine makes the store, and knows of a bad payload.
    with fleet.store() as store:
        incoming = store.incoming(bad.desired, BLOCK)
        for number in incoming.missing():
            incoming.put(number, bad.block(number))
        store.begin_trial(MODEL, store.admit(bad.desired).ref)
        store.reject(MODEL, "trial", "it was bad on another machine")
    with device.serving(fleet.made.command, fleet.made.environment, SECONDS) as process:
        assert fleet.serves() == "1.2.0"
        with pytest.raises(AssertionError, match="another process uses"), fleet.store():
            pass
        _refusals(fleet, bad)
        _by_blocks(fleet, blocks)
        # Killed in a trial.
        fleet.server.behaviour = functools.partial(_served, url)
        fleet.wish(url)
        fleet.reached(url, "TRIAL", "trial")
        workers = children(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), what="a worker outlives it")
    with fleet.store() as store:
        state = store.state(MODEL)
        assert state.candidate is not None
        assert (state.candidate.ref.id, state.candidate.phase, state.candidate.attempts) == (
            *(url.desired.payload, "trial", 1),
        )
        assert state.committed is not None
        assert (state.committed.id, state.previous) == (blocks.desired.payload, None)
        assert [one.id for one in state.bad] == [bad.desired.payload]
        assert {store.held(ref.id).ref.generation for ref in state.refs} == {5, 6}
    # As if the clock had been wrong.
    for path in (root / "store", *(root / "store").rglob("*")):
        os.utime(path, (LATE_SECONDS, LATE_SECONDS))
    fleet.operator.seen.clear()
    with device.serving(fleet.made.command, fleet.made.environment, SECONDS) as process:
        fleet.reached(url, "UPDATED")
        assert fleet.serves() == "6.0.0"
        # What it has of a download, this machine has as well.
        last = fleet.packed(7)
        fleet.wish(last)
        # It asks for another one once one is on the disk.
        until(lambda: fleet.answered(last, 3) == set(range(7)), SECONDS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with fleet.store() as store:
        assert store.starts == 0
        assert store.incoming(last.desired, BLOCK).missing() == [*range(3, last.blocks)]
        state = store.state(MODEL)
        assert [ref.generation for ref in (state.committed, state.previous) if ref is not None] == [6, 5]
    assert {path.name for path in (root / "store" / "payloads").iterdir()} == {ref.id for ref in state.refs}


def _refusals(fleet: Fleet, bad: Sent) -> None:
    stranger = new_key("stranger", fleet.root / "strangers")
    foreign = fleet.packed(8, signer=load_signer(stranger.private, lambda: ""))
    misfit = fleet.packed(8, fits=False)
    for sent, category in ((bad, "known_bad"), (foreign, "signature"), (misfit, "contract")):
        fleet.wish(sent)
        assert fleet.reached(sent, "FAILED")["category"] == category
    assert fleet.serves() == "1.2.0"


def _by_blocks(fleet: Fleet, sent: Sent) -> None:
    """Of which this machine had every other one before."""
    mine = StoredIncoming(Disk(), fleet.root / "store" / "incoming", *_archive(sent), BLOCK)
    for number in range(0, sent.blocks, 2):
        mine.put(number, sent.block(number))
    mine.sync()
    mine.close()
    fleet.wish(sent)
    told = fleet.reached(sent, "UPDATED")
    assert told["active"]["payload"] == sent.desired.payload
    assert fleet.sent[sent.desired.archive_sha256] == set(range(1, sent.blocks, 2))
    assert fleet.serves() == "5.0.0"


def _archive(sent: Sent) -> tuple[str, int]:
    return sent.desired.archive_sha256, sent.desired.archive_size


def _served(sent: Sent, request: Any) -> None:
    request.serve(sent.data)
