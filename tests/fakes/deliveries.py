"""Updates for a store in tests: small payloads with a fake signature that is quick to check."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from armlet_runtime.signature import Key
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.state import ModelState, Ref
from armlet_runtime.store.store import Store
from armlet_runtime.update.interface import Desired

from tests.fakes import payloads

BLOCK = 1024
MODEL = "dense"


class FakeKey:
    """Signs with a hash: who made something is no matter where it is only a matter of whether it is whole."""

    def sign(self, message: bytes) -> bytes:
        return hashlib.sha512(message).digest()


def fake_verifier(key: bytes, message: bytes, signature: bytes) -> bool:
    return signature == hashlib.sha512(message).digest()


TRUSTED = (Key("fake", bytes(32)),)


class Delivery(NamedTuple):
    """An update: what is wished, and the archive's bytes."""

    desired: Desired
    archive: bytes

    @property
    def id(self) -> str:
        return self.desired.payload

    @property
    def ref(self) -> Ref:
        return Ref(self.id, self.desired.version, self.desired.generation)

    @property
    def kept(self) -> tuple[str, str]:
        """What must not be collected while it is on its way."""
        return self.id, self.desired.archive_sha256

    def block(self, number: int, size: int = BLOCK) -> bytes:
        return self.archive[number * size : (number + 1) * size]


def delivery(generation: int, model: str = MODEL, block_size: int = BLOCK) -> Delivery:
    """Version ``1.<generation>`` of a model: two files, one of them in a folder."""
    files = {"model.ort": b"%03d" % generation * 20, "golden/0/input.bin": b"%d" % generation}
    version = f"1.{generation}"
    text = payloads.manifest(files, model=model, version=version, generation=generation)
    members = payloads.members(files, text=text, key=FakeKey())  # type: ignore[arg-type]
    archive = payloads.packed(members)
    sums = [hashlib.sha256(data).hexdigest() for data in (text, archive)]
    desired = Desired(model, version, generation, sums[0], len(archive), sums[1], block_size=block_size)
    return Delivery(desired, archive)


def fits(_manifest: Mapping[str, Any]) -> Sequence[str]:
    return ()


def opened(base: Path, disk: Disk | None = None, **how: Any) -> Store:
    """The store below a folder."""
    return Store(base / "store", TRUSTED, fits, disk=disk, limit=1 << 20, reserve=0, verifier=fake_verifier, **how)


def fetched(store: Store, wanted: Delivery, block_size: int = BLOCK) -> None:
    """The archive comes."""
    incoming = store.incoming(wanted.desired, block_size)
    for number in incoming.missing():
        incoming.put(number, wanted.block(number, block_size))
    incoming.sync()


def tried(store: Store, wanted: Delivery) -> bool:
    """As an updater does it, from whatever there is already up to a trial; False: there is nothing to try."""
    state = store.state(wanted.desired.model)
    if state.refusal(wanted.desired)[0]:
        return False
    if state.committed == wanted.ref:
        store.held(wanted.id)
        return False
    store.collect(wanted.kept)
    store.demand_space(wanted.desired)
    if not store.has(wanted.id):
        fetched(store, wanted)
    store.begin_trial(wanted.desired.model, store.admit(wanted.desired).ref)
    return True


def updated(store: Store, wanted: Delivery) -> None:
    """To its happy end."""
    if tried(store, wanted):
        store.begin_probation(wanted.desired.model)
        store.commit(wanted.desired.model)
    store.collect(())


def demand_sound(store: Store, model: str = MODEL) -> ModelState:
    """Whatever is told to be there is, whole and by who is trusted; and nothing that is told to be bad serves."""
    assert not store.readonly
    assert not store.notes
    state = store.state(model)
    for ref in state.refs:
        assert store.held(ref.id).ref == ref
        assert store.bad(model, ref.id) is None
    return state


def demand_tidy(base: Path, store: Store) -> None:
    """After a collection: nothing is there but what the state names."""
    root = base / "store"
    named = {ref.id for model in store.models() for ref in store.state(model).refs}
    assert {path.name for path in (root / "payloads").iterdir()} == named
    for name in ("staging", "incoming", "trash"):
        assert not [*(root / name).iterdir()]
    assert {path.name for path in root.iterdir()} <= {
        *("state.a", "state.b", "payloads", "staging", "incoming", "trash", "lock")
    }
