"""How long an archive takes to a device behind a slow link, by URL and by blocks.

    sudo .venv/bin/python -m benchmarks.update_link [--kbit 256] [--delay-ms 0] [--mb 4] [--way url|blocks]
        [--from-mb 50] [--seconds 300]

The device is a process in a network namespace of its own; the link into it is shaped in both directions (tc: tbf, with
a queue of half a second, and netem for a delay). It fetches into a store's folder with the service's own fetchers,
from an HTTPS server or, over mosquitto, from ``inv update.send``'s own sender, all of them outside. ``--from-mb`` says
how much is there already, as after an interruption; ``--seconds`` ends it early, and what came until then is measured.
Root, ``ip`` and ``tc`` are needed, and mosquitto for blocks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from armlet_runtime.serve.sysinfo import resident_bytes
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.incoming import StoredIncoming
from armlet_runtime.update.access import Access
from armlet_runtime.update.blocks import BlocksFetcher
from armlet_runtime.update.download import UrlFetcher
from armlet_runtime.update.interface import Desired, Fetcher, FetchError
from armlet_runtime.update.line import tls_context
from armlet_runtime.update.mqtt import Mqtt
from armlet_runtime.update.topics import Topics

from armlet import events
from armlet.sinks.tables import table
from armlet.updates.broker import Broker, connected
from armlet.updates.routes import Routes
from armlet.updates.send import Sender
from armlet.updates.wish import archive
from tests import mosquitto
from tests.certificates import Authority
from tests.conftest import ROOT
from tests.fakes.lying_server import Request, serving

# What two runs at a time do not share.
NETWORK = os.environ.get("ARMLET_LINK_NETWORK", "10.203.0")
HERE, THERE = f"{NETWORK}.1", f"{NETWORK}.2"
MB = 10**6
BLOCK = 32 << 10
DEVICE = "slow-1"


class Deaf:
    """A device's receiver that wishes do not interest."""

    def wish(self, model: str, desired: Desired | None) -> None:
        pass

    def refuse(self, model: str, category: Any, reason: str) -> None:
        pass


def fetch(how: dict[str, Any]) -> None:
    """In the namespace: prints what came of it as JSON."""
    desired = Desired(**how["desired"])
    into = StoredIncoming(Disk(), Path(how["folder"]), desired.archive_sha256, desired.archive_size, BLOCK)
    before = len(into.missing())
    memory = -(resident_bytes(os.getpid()) or 0)
    started = time.monotonic()
    mqtt: Mqtt | None = None
    if desired.url:
        fetcher: Fetcher = UrlFetcher(tls_context(how["ca"]))
    else:
        mqtt = Mqtt(Access(HERE, how["port"], DEVICE), Topics(DEVICE))
        fetcher = blocks = BlocksFetcher(mqtt)
        mqtt.start(Deaf(), blocks)
    told = ""
    try:
        fetcher.fetch(desired, into, lambda _: None, lambda: time.monotonic() - started > how["seconds"])
    except FetchError as error:
        told = error.reason
    seconds = time.monotonic() - started
    memory += resident_bytes(os.getpid()) or 0
    came = min((before - len(into.missing())) * BLOCK, desired.archive_size)
    right = not into.missing() and hashlib.sha256(into.path.read_bytes()).hexdigest() == desired.archive_sha256
    if mqtt is not None:
        mqtt.stop()
    result = {
        "seconds": seconds,
        "bytes": came,
        "right": right,
        "told": told,
        "memory": memory,
    }
    print(json.dumps(result), flush=True)


def run(*argv: str) -> None:
    subprocess.run(argv, check=True)


@contextmanager
def link(name: str, kbit: int, delay_ms: int) -> Iterator[None]:
    """A namespace behind a shaped link."""
    outer, inner = f"{name}-o", f"{name}-i"
    inside = ("ip", "netns", "exec", name)
    run("ip", "netns", "add", name)
    try:
        # paho-mqtt wakes its thread over a connection to itself.
        run(*inside, "ip", "link", "set", "lo", "up")
        run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
        for where, device, address in (((), outer, HERE), (inside, inner, THERE)):
            run(*where, "ip", "address", "add", f"{address}/24", "dev", device)
            run(*where, "ip", "link", "set", device, "up")
            run(
                *where, *f"tc qdisc add dev {device} root handle 1: tbf rate {kbit}kbit burst 4kb latency 500ms".split()
            )
            if delay_ms:
                run(
                    *where, *f"tc qdisc add dev {device} parent 1: handle 2: netem delay {delay_ms}ms limit 100".split()
                )
        yield
    finally:
        # By itself it would go some time after the namespace, and its address with it.
        subprocess.run(("ip", "link", "delete", outer), check=False)
        run("ip", "netns", "delete", name)


def measured(way: str, options: argparse.Namespace) -> dict[str, Any]:
    """What the device prints, and what it was asked for."""
    size = int(options.mb * MB)
    name = f"armlet{os.getpid() % 10000}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = folder / "m.payload"
        path.write_bytes(random.Random(6).randbytes(size))
        known = archive(path)
        (folder / "incoming").mkdir()
        part = StoredIncoming(Disk(), folder / "incoming", known.sha256, size, BLOCK)
        data = path.read_bytes()
        for number in range(int(options.from_mb * MB) // BLOCK):
            part.put(number, data[number * BLOCK : (number + 1) * BLOCK])
        part.sync()
        part.close()
        stack.enter_context(link(name, options.kbit, options.delay_ms))
        how: dict[str, Any] = {"folder": str(folder / "incoming"), "seconds": options.seconds}
        desired = Desired("m", "1", 1, "0" * 64, size, known.sha256)
        fields = {**desired.__dict__}
        if way == "url":
            authority = Authority(folder, "authority")
            server = stack.enter_context(serving(authority.vouch("server", HERE), address=HERE))
            server.behaviour = lambda request: _serve(request, path)
            how["ca"] = str(authority.ca)
            fields["url"] = f"https://{HERE}:{server.server_address[1]}/m.payload"
        else:
            fields["block_size"] = BLOCK
            broker = stack.enter_context(mosquitto.Broker(folder, address=HERE))
            how["port"] = broker.port
            connection = stack.enter_context(connected(Broker(host=HERE, port=broker.port)))
            ended = threading.Event()
            sender = Sender(connection, Routes(), [known], events.silent)
            thread = threading.Thread(target=sender.run, args=(ended.is_set,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(ended.set)
        how["desired"] = fields
        argv = ("ip", "netns", "exec", name, sys.executable, "-m", "benchmarks.update_link", "--fetch", json.dumps(how))
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'device'}"}
        done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _serve(request: Request, path: Path) -> None:
    request.serve(path.read_bytes(), etag='"1"')


def row(way: str, options: argparse.Namespace, found: dict[str, Any]) -> tuple[str, ...]:
    rate = found["bytes"] * 8 / 1000 / found["seconds"]
    whole = "yes" if found["right"] else f"no ({found['told']})"
    return (
        way,
        f"{options.mb:g} MB",
        f"{options.from_mb:g} MB",
        f"{found['bytes'] / MB:.2f} MB",
        f"{found['seconds']:.1f} s",
        f"{rate:.1f} kbit/s ({100 * rate / options.kbit:.1f} %)",
        f"{found['memory'] / MB:.1f} MB",
        whole,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kbit", type=int, default=256)
    parser.add_argument("--delay-ms", type=int, default=0, help="needs a kernel with netem")
    parser.add_argument("--mb", type=float, default=4)
    parser.add_argument("--from-mb", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--way", choices=("url", "blocks"), action="append")
    parser.add_argument("--fetch", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fetch:
        fetch(options.fetch)
        return
    head = ("way", "archive", "there before", "came", "time", "rate", "memory it took", "whole and right")
    for way in options.way or ("url", "blocks"):
        print(table(head, [row(way, options, measured(way, options))]), flush=True)


if __name__ == "__main__":
    main()
