"""A device in emulation that is updated over a real broker and a real HTTPS server, and its operator."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from armlet_runtime import signature
from armlet_runtime.store.store import Store
from armlet_runtime.update.interface import Desired

from armlet.payload.keys import Signer
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery
from armlet.updates import wish as wishing
from tests.certificates import Authority
from tests.emulated import MODEL, Emulated, emulated
from tests.fakes import served_models
from tests.fakes.lying_server import LyingServer, serving
from tests.mosquitto import DEVICE, PREFIX, Broker, Operator, until

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
    def serving(self) -> Iterator[subprocess.Popen[bytes]]:
        """The service, settled."""
        with self.device.serving(self.made.command, self.made.environment, SECONDS) as process:
            yield process

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The device's, opened by this machine."""
        store = Store(self.root / "store", signature.trusted_keys(self.root / "keys"), lambda _: ())
        try:
            assert (store.readonly, store.notes) == ("", ()), store.readonly
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


@contextlib.contextmanager
def fleet(sku: str, root: Path) -> Iterator[Fleet]:
    """Nothing is served yet."""
    authority = Authority(root, "authority")
    with Broker(root) as broker, serving(authority.vouch("server")) as server:
        text = _TEXT.format(root=root, ca=authority.ca, port=broker.port, device=DEVICE)
        made = emulated(sku, root, text, packages=["paho"])
        with Operator(broker.port, ("armlet/#",)) as operator:
            yield Fleet(root, made, operator, server)
