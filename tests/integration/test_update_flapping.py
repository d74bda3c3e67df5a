"""Archives over lines that are cut again and again: by blocks with a real broker and our sender, by URL over TLS."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.incoming import StoredIncoming
from armlet_runtime.update.blocks import BlocksFetcher
from armlet_runtime.update.download import UrlFetcher
from armlet_runtime.update.interface import Desired, FetchError
from armlet_runtime.update.line import tls_context

from armlet import events
from armlet.updates.broker import Broker as Known
from armlet.updates.broker import connected
from armlet.updates.routes import Routes
from armlet.updates.send import Sender
from armlet.updates.wish import Archive, archive
from tests.certificates import Authority
from tests.fakes.cutting_proxy import CuttingProxy
from tests.fakes.lying_server import Request, serving
from tests.mosquitto import Broker, Recorder, device

BLOCK = 32 << 10
SIZE = 60 * BLOCK + 5


@pytest.fixture
def known(tmp_path: Path) -> Archive:
    path = tmp_path / "m.payload"
    path.write_bytes(random.Random(6).randbytes(SIZE))
    return archive(path)


def incoming(folder: Path, known: Archive) -> StoredIncoming:
    (folder / "incoming").mkdir(exist_ok=True)
    return StoredIncoming(Disk(), folder / "incoming", known.sha256, known.size, BLOCK)


def test_by_blocks(tmp_path: Path, known: Archive) -> None:
    """The sender's line is cut as well as the device's, and so is the sender itself, once."""
    into = incoming(tmp_path, known)
    slow = threading.Event()

    def progress(_: float) -> None:
        slow.wait(0.1)

    with (
        Broker(tmp_path) as broker,
        CuttingProxy(broker.port, random.Random(1), 0.3, 0.8) as proxy,
        CuttingProxy(broker.port, random.Random(2), 1.0, 2.0) as senders,
    ):
        ended = threading.Event()

        def send() -> None:
            with connected(Known(host="127.0.0.1", port=senders.port)) as connection:
                Sender(connection, Routes(), [known], events.silent).run(ended.is_set)

        thread = threading.Thread(target=send)
        thread.start()
        got = Recorder()
        with device(proxy.port, got) as mqtt:
            blocks = BlocksFetcher(mqtt, first_wait=1.0, patience=60)
            got.deliver = blocks.deliver  # type: ignore[method-assign]
            got.again = blocks.again  # type: ignore[method-assign]
            wish = Desired("m", "1", 1, "0" * 64, known.size, known.sha256, block_size=BLOCK)
            blocks.fetch(wish, into, progress, lambda: False)
        ended.set()
        thread.join()
        assert proxy.cut > 1
        assert senders.cut
    assert into.path.read_bytes() == known.path.read_bytes()
    into.close()


def test_by_url(tmp_path: Path, known: Archive) -> None:
    """Restarts of the device in between: what was synced is not fetched again."""
    authority = Authority(tmp_path, "authority")
    data = known.path.read_bytes()
    sent = 0

    def dribble(request: Request) -> None:
        nonlocal sent
        part = request.part(SIZE)
        start, _ = part or (0, SIZE)
        told = {"Content_Range": f"bytes {start}-{SIZE - 1}/{SIZE}"} if part else {}
        request.say(206 if part else 200, b"", Content_Length=str(SIZE - start), **told)
        for at in range(start, SIZE, BLOCK // 2):
            request.wfile.write(data[at : at + BLOCK // 2])
            sent += BLOCK // 2
            if request.server.ended.wait(0.01):
                return

    with serving(authority.vouch("server")) as server:
        server.behaviour = dribble
        with CuttingProxy(server.server_address[1], random.Random(3), 0.1, 0.4) as proxy:
            url = f"https://localhost:{proxy.port}/m.payload"
            wish = Desired("m", "1", 1, "0" * 64, known.size, known.sha256, url)
            starts = 0
            while (into := incoming(tmp_path, known)).missing():
                starts += 1
                assert starts < 100
                fetcher = UrlFetcher(tls_context(str(authority.ca)), stall_seconds=5, pause_seconds=0)
                count = len(into.missing())

                def stops(into: StoredIncoming = into, count: int = count) -> bool:
                    return len(into.missing()) < count - 15

                try:
                    fetcher.fetch(wish, into, lambda _: None, stops)
                except FetchError:
                    pass
                finally:
                    into.close()
            assert proxy.cut > 1
            assert starts > 2
        into.close()
    assert into.path.read_bytes() == data
    assert sent < 3 * SIZE
