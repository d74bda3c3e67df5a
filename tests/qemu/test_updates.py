"""Updates on the target: its Python, its library, as its core; over a real broker, a real HTTPS server and the disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.incoming import StoredIncoming

from armlet.payload.keys import load_signer, new_key
from tests.emulated import MODEL, children
from tests.fleet import BLOCK, LATE_SECONDS, SECONDS, Fleet, Sent, fleet
from tests.mosquitto import until
from tests.smoked import REAL

pytestmark = REAL

SKUS = ("demo-a53", "demo-a7")


@pytest.fixture(params=SKUS)
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(request.param, tmp_path) as made:
        yield made


def test_updates_on_the_target(device: Fleet) -> None:
    """One device's life: each start of it takes an emulator many seconds."""
    root = device.root
    bad, blocks = device.packed(4), device.packed(5)
    url = device.packed(6, url=device.server.url)
    # This machine makes the store, and knows of a bad payload.
    with device.store() as store:
        incoming = store.incoming(bad.desired, BLOCK)
        for number in incoming.missing():
            incoming.put(number, bad.block(number))
        store.begin_trial(MODEL, store.admit(bad.desired).ref)
        store.reject(MODEL, "trial", "it was bad on another machine")
    with device.serving() as process:
        assert device.serves() == "1.2.0"
        with pytest.raises(AssertionError, match="another process uses"), device.store():
            pass
        _refusals(device, bad)
        _by_blocks(device, blocks)
        # Killed in a trial.
        device.server.behaviour = lambda request: request.serve(url.data)
        device.wish(url)
        device.reached(url, "TRIAL", "trial")
        workers = children(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), what="a worker outlives it")
    with device.store() as store:
        state = store.state(MODEL)
        assert state.candidate is not None
        found = state.candidate
        assert (found.ref.id, found.phase, found.attempts) == (url.desired.payload, "trial", 1)
        assert state.committed is not None
        assert (state.committed.id, state.previous) == (blocks.desired.payload, None)
        assert [one.id for one in state.bad] == [bad.desired.payload]
        assert {store.held(ref.id).ref.generation for ref in state.refs} == {5, 6}
    # As if the clock had been wrong.
    for path in (root / "store", *(root / "store").rglob("*")):
        os.utime(path, (LATE_SECONDS, LATE_SECONDS))
    device.operator.seen.clear()
    with device.serving() as process:
        device.reached(url, "UPDATED")
        assert device.serves() == "6.0.0"
        # What it has of a download, this machine has as well.
        last = device.packed(7)
        device.wish(last)
        # It asks for another one once one is on the disk.
        until(lambda: device.answered(last, 3) == set(range(7)), SECONDS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with device.store() as store:
        assert store.starts == 0
        assert store.incoming(last.desired, BLOCK).missing() == [*range(3, last.blocks)]
        state = store.state(MODEL)
        assert [ref.generation for ref in (state.committed, state.previous) if ref is not None] == [6, 5]
    assert {path.name for path in (root / "store" / "payloads").iterdir()} == {ref.id for ref in state.refs}


def _refusals(device: Fleet, bad: Sent) -> None:
    stranger = new_key("stranger", device.root / "strangers")
    foreign = device.packed(8, signer=load_signer(stranger.private, lambda: ""))
    misfit = device.packed(8, fits=False)
    for sent, category in ((bad, "known_bad"), (foreign, "signature"), (misfit, "contract")):
        device.wish(sent)
        assert device.reached(sent, "FAILED")["category"] == category
    assert device.serves() == "1.2.0"


def _by_blocks(device: Fleet, sent: Sent) -> None:
    """Of which this machine had every other one before."""
    mine = StoredIncoming(Disk(), device.root / "store" / "incoming", *_archive(sent), BLOCK)
    for number in range(0, sent.blocks, 2):
        mine.put(number, sent.block(number))
    mine.sync()
    mine.close()
    device.wish(sent)
    told = device.reached(sent, "UPDATED")
    assert told["active"]["payload"] == sent.desired.payload
    assert device.sent[sent.desired.archive_sha256] == set(range(1, sent.blocks, 2))
    assert device.serves() == "5.0.0"


def _archive(sent: Sent) -> tuple[str, int]:
    return sent.desired.archive_sha256, sent.desired.archive_size
