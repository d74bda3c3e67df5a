"""The store as an updater meets it: what it refuses, what it keeps, what it does where it cannot write."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from armlet_runtime.refusal import DAMAGED, LIBRARY, SIGNATURE, PayloadError
from armlet_runtime.store import place
from armlet_runtime.store.disk import Disk
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.store import MOST_ATTEMPTS, MOST_STARTS, Store

from tests.fakes.crash_disk import read_in
from tests.fakes.deliveries import MODEL, TRUSTED, delivery, demand_tidy, fake_verifier, fetched, fits, opened, updated

ONE, TWO, THREE = (delivery(number) for number in (1, 2, 3))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = opened(tmp_path)
    updated(made, ONE)
    return made


def refused(does: Callable[[], object]) -> StoreError:
    with pytest.raises(StoreError) as caught:
        does()
    assert caught.value.reason
    return caught.value


def test_payloads_follow_each_other(store: Store, tmp_path: Path) -> None:
    updated(store, TWO)
    updated(store, THREE)
    state = store.state(MODEL)
    assert (state.committed, state.previous, state.floor) == (THREE.ref, TWO.ref, 3)
    demand_tidy(tmp_path, store)
    assert store.models() == [MODEL]
    assert store.state("other").committed is None
    assert [store.has(one.id) for one in (ONE, TWO, THREE)] == [False, True, True]


def test_it_is_all_there_the_next_time(store: Store, tmp_path: Path) -> None:
    before = store.state(MODEL)
    store.close()
    assert opened(tmp_path).state(MODEL) == before


def test_a_payload_is_verified_whenever_it_is_asked_for(store: Store, tmp_path: Path) -> None:
    held = store.held(ONE.id)
    assert (held.ref, held.folder, held.payload.manifest["model"]) == (
        ONE.ref,
        tmp_path / "store/payloads" / ONE.id,
        MODEL,
    )
    (held.folder / "model.ort").write_bytes(b"rot")
    with pytest.raises(PayloadError, match=r"model\.ort") as caught:
        store.held(ONE.id)
    assert caught.value.reason == DAMAGED


def test_a_right_payload_in_the_wrong_folder_is_damaged(store: Store, tmp_path: Path) -> None:
    payloads = tmp_path / "store/payloads"
    (payloads / ONE.id).rename(payloads / TWO.id)
    with pytest.raises(PayloadError, match="another payload"):
        store.held(TWO.id)


# What comes in.


def test_half_an_archive_is_not_admitted_and_not_lost(store: Store) -> None:
    store.incoming(TWO.desired, 1024).put(0, TWO.block(0))
    assert refused(lambda: store.admit(TWO.desired)).category == "download"
    assert 0 not in store.incoming(TWO.desired, 1024).missing()
    assert refused(lambda: store.admit(THREE.desired)).category == "download"


def test_another_archive_than_the_wished_one_is_damaged_and_forgotten(store: Store, tmp_path: Path) -> None:
    lying = TWO._replace(archive=TWO.archive[:-1] + b"x")
    fetched(store, lying)
    assert refused(lambda: store.admit(TWO.desired)).category == "damaged"
    assert not [*(tmp_path / "store/incoming").iterdir()]
    updated(store, TWO)


@pytest.mark.parametrize(
    "other",
    [{"model": "other"}, {"version": "9"}, {"generation": 9}, {"payload": "f" * 64}],
    ids=["model", "version", "generation", "payload"],
)
def test_another_payload_than_the_wished_one_is_refused(store: Store, tmp_path: Path, other: dict[str, str]) -> None:
    wish = TWO._replace(desired=replace(TWO.desired, **other))  # type: ignore[arg-type]
    fetched(store, wish)
    assert refused(lambda: store.admit(wish.desired)).category == "manifest"
    store.collect(())
    demand_tidy(tmp_path, store)


def test_one_that_nobody_trusted_signed_is_refused_and_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", (), fits, reserve=0, verifier=fake_verifier)
    fetched(store, ONE)
    with pytest.raises(PayloadError) as caught:
        store.admit(ONE.desired)
    assert caught.value.reason == SIGNATURE
    demand_tidy(tmp_path, store)


def test_what_could_not_be_looked_at_is_kept(tmp_path: Path) -> None:
    def none(key: bytes, message: bytes, signature: bytes) -> bool:
        raise PayloadError(LIBRARY, "no library", "install one")

    store = Store(tmp_path / "store", TRUSTED, fits, reserve=0, verifier=none)
    fetched(store, ONE)
    with pytest.raises(PayloadError, match="no library"):
        store.admit(ONE.desired)
    store.close()
    # Installed meanwhile.
    assert opened(tmp_path).admit(ONE.desired).ref == ONE.ref


def test_one_that_does_not_fit_is_refused_also_when_it_is_there_already(store: Store, tmp_path: Path) -> None:
    store.close()
    strict = Store(tmp_path / "store", TRUSTED, lambda manifest: ["no kernel of x"], reserve=0, verifier=fake_verifier)
    for wish in (TWO, ONE):
        if not strict.has(wish.id):
            fetched(strict, wish)
        told = refused(lambda wish=wish: strict.admit(wish.desired))  # type: ignore[misc]
        assert (told.category, "no kernel of x" in told.reason) == ("contract", True)


@pytest.mark.parametrize("name", ["payload", "archive_sha256"])
def test_names_never_leave_the_folder(store: Store, name: str) -> None:
    wish = replace(TWO.desired, **{name: "../../etc"})  # type: ignore[arg-type]
    for does in (store.admit, store.demand_space):
        with pytest.raises(ValueError, match="sha256"):
            does(wish)
    with pytest.raises(ValueError, match="sha256"):
        store.has("../../etc")


def test_a_damaged_payload_gives_way_to_the_same_one_anew(store: Store, tmp_path: Path) -> None:
    for path, content in (("model.ort", b"rot"), ("x", b"")):
        (store.held(ONE.id).folder / path).write_bytes(content)
        assert store.has(ONE.id)
        assert refused(lambda: store.admit(ONE.desired)).category == "download"
        assert not store.has(ONE.id)
        fetched(store, ONE)
        assert store.admit(ONE.desired).ref == ONE.ref
    store.collect(())
    demand_tidy(tmp_path, store)


# Trials.


def test_only_what_is_there_is_tried(store: Store) -> None:
    with pytest.raises(ValueError, match="not there"):
        store.begin_trial(MODEL, TWO.ref)
    with pytest.raises(ValueError, match="committed already"):
        store.begin_trial(MODEL, ONE.ref)
    for does in (store.begin_probation, store.commit):
        with pytest.raises(ValueError, match="no candidate"):
            does(MODEL)


def test_the_attempts_end(store: Store) -> None:
    fetched(store, TWO)
    ref = store.admit(TWO.desired).ref
    assert [store.begin_trial(MODEL, ref) for _ in range(MOST_ATTEMPTS)] == [1, 2, 3]
    assert refused(lambda: store.begin_trial(MODEL, ref)).category == "interrupted"
    found = store.bad(MODEL, TWO.id)
    assert found
    assert (found.category, store.state(MODEL).candidate) == ("interrupted", None)
    assert refused(lambda: store.begin_trial(MODEL, ref)).category == "known_bad"
    assert store.bad(MODEL, ONE.id) is None


def test_an_older_one_is_stale(store: Store) -> None:
    updated(store, THREE)
    fetched(store, TWO)
    ref = store.admit(TWO.desired).ref
    assert refused(lambda: store.begin_trial(MODEL, ref)).category == "stale"


def test_a_state_that_no_start_would_read_is_not_written(store: Store, tmp_path: Path) -> None:
    fetched(store, TWO)
    ref = store.admit(TWO.desired).ref
    before = read_in(tmp_path)
    for model, other in (("../M", ref), (MODEL, replace(ref, generation=2**60)), ("", ref)):
        with pytest.raises(ValueError, match="no such"):
            store.begin_trial(model, other)
    assert read_in(tmp_path) == before
    assert store.begin_trial(MODEL, ref) == 1


# Room.


def test_room_is_asked_for_the_archive_its_files_and_the_reserve(store: Store, tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    free = found.f_bavail * found.f_frsize
    wish = replace(TWO.desired, archive_size=free // 2 + (64 << 20))
    told = refused(lambda: store.demand_space(wish))
    assert (told.category, bool(told.hint)) == ("space", True)
    store.demand_space(TWO.desired)
    # What is there needs none.
    store.demand_space(replace(wish, payload=ONE.id))
    store.close()
    careful = Store(tmp_path / "store", TRUSTED, fits, reserve=free + (64 << 20))
    assert refused(lambda: careful.demand_space(TWO.desired)).category == "space"


def test_what_came_already_is_not_asked_for_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    size = 1 << 20
    wish = replace(TWO.desired, archive_size=size)
    monkeypatch.setattr("armlet_runtime.store.store.free_bytes", lambda root: size + 4096)
    assert refused(lambda: store.demand_space(wish)).category == "space"
    store.incoming(wish, 1024)
    store.demand_space(wish)


def test_what_nobody_needs_goes_and_is_counted(store: Store, tmp_path: Path) -> None:
    fetched(store, TWO)
    store.admit(TWO.desired)
    fetched(store, THREE)
    (tmp_path / "store/incoming/strange").write_bytes(b"12345")
    assert store.collect([*TWO.kept, *THREE.kept]) == 5
    assert store.has(TWO.id)
    assert not store.incoming(THREE.desired, 1024).missing()
    assert store.collect(TWO.kept) > len(THREE.archive)
    assert store.collect(()) > 300
    demand_tidy(tmp_path, store)


# The loop breaker.


def test_starts_are_counted_until_one_is_steady(tmp_path: Path) -> None:
    for number in range(1, MOST_STARTS + 2):
        store = opened(tmp_path)
        assert store.started() == number
        assert store.flapping == (number > MOST_STARTS)
        store.close()
    store = opened(tmp_path)
    store.steady()
    assert (store.starts, store.flapping) == (0, False)
    before = read_in(tmp_path)
    store.steady()
    assert read_in(tmp_path) == before


# Where nothing can be written.


def cannot_change(store: Store, word: str) -> None:
    assert word in store.readonly
    for does in (
        store.started,
        lambda: store.collect(()),
        lambda: store.incoming(TWO.desired, 1024),
        lambda: store.admit(ONE.desired),
        lambda: store.begin_trial(MODEL, TWO.ref),
        lambda: store.revert(MODEL, "crashes", "x"),
    ):
        told = refused(does)
        assert (told.category, word in told.reason) == ("store", True)
    assert store.state(MODEL).committed == ONE.ref
    assert store.held(ONE.id).ref == ONE.ref


def test_a_second_owner_only_reads(store: Store, tmp_path: Path) -> None:
    before = read_in(tmp_path)
    second = opened(tmp_path)
    cannot_change(second, "another process")
    second.close()
    store.close()
    assert read_in(tmp_path) == before
    cannot_change(store, "closed")
    assert opened(tmp_path).readonly == ""


def test_a_state_of_a_newer_version_is_neither_followed_nor_touched(store: Store, tmp_path: Path) -> None:
    store.close()
    (tmp_path / "store/state.a").write_text(json.dumps({"schema": 2, "sequence": 99}))
    before = read_in(tmp_path)
    strange = opened(tmp_path)
    cannot_change(strange, "newer version")
    assert "schema 2" in strange.notes[0]
    strange.close()
    assert read_in(tmp_path) == before


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_a_folder_that_cannot_be_written_is_only_read(store: Store, tmp_path: Path, code: int) -> None:
    class FakeReadOnly(Disk):
        def open(self, path: Path) -> int:
            raise OSError(code, os.strerror(code), str(path))

    store.close()
    cannot_change(opened(tmp_path, FakeReadOnly()), os.strerror(code))


def test_a_file_system_mounted_read_only_is_only_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    monkeypatch.setattr(place, "is_readonly", lambda root: True)
    before = read_in(tmp_path)
    cannot_change(opened(tmp_path), "read-only")
    assert read_in(tmp_path) == before


def test_where_there_is_no_folder_and_none_can_be_made_there_is_no_store(tmp_path: Path) -> None:
    told = refused(lambda: Store(tmp_path / "a" / "b", None, fits))
    assert (told.category, str(tmp_path) in told.reason, "[updates]" in told.hint) == ("store", True, True)
    (tmp_path / "file").write_bytes(b"")
    assert refused(lambda: Store(tmp_path / "file", None, fits)).category == "store"


def test_an_unsafe_file_system_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet_runtime.store.filesystem.magic_of", lambda path: 0x4D44)
    assert "FAT" in refused(lambda: opened(tmp_path)).reason


def test_one_without_room_for_its_lock_gets_it_later_and_looks_again(store: Store, tmp_path: Path) -> None:
    class FakeFull(Disk):
        full = True

        def open(self, path: Path) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return super().open(path)

    disk = FakeFull()
    late, later = opened(tmp_path, disk), opened(tmp_path, disk)
    assert (late.readonly, len(late.notes) > 0) == ("", True)
    updated(store, TWO)
    disk.full = False
    with pytest.raises(BlockingIOError):
        late.started()
    store.close()
    assert late.started() == 1
    assert late.state(MODEL).committed == TWO.ref
    late.close()
    (tmp_path / "store/state.b").write_text('{"schema": 2}')
    assert "newer version" in refused(later.started).reason


def test_what_changes_nothing_writes_nothing(store: Store, tmp_path: Path) -> None:
    before = read_in(tmp_path)
    store.withdraw(MODEL)
    store.collect(())
    assert read_in(tmp_path) == before


# The state, damaged.


def test_one_whole_copy_is_enough(store: Store, tmp_path: Path) -> None:
    before = store.state(MODEL)
    store.close()
    for name, content in (("state.a", b"{}"), ("state.b", b"")):
        (tmp_path / "store" / name).write_bytes(content)
        again = opened(tmp_path)
        assert again.state(MODEL) == before
        assert name in again.notes[0]
        again.collect(())
        again.close()
        mended = opened(tmp_path)
        assert mended.notes == ()
        mended.close()


def test_without_a_whole_copy_it_begins_anew_and_says_so(store: Store, tmp_path: Path) -> None:
    store.close()
    for name in ("state.a", "state.b"):
        (tmp_path / "store" / name).write_bytes(b"\0" * 300)
    again = opened(tmp_path)
    assert "lost" in again.notes[-1]
    assert again.state(MODEL).committed is None
    # What is wished again needs no download.
    again.collect(ONE.kept)
    assert again.has(ONE.id)
    updated(again, ONE)
    assert again.state(MODEL).committed == ONE.ref
