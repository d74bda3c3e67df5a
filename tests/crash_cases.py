"""What a store goes through while the power goes: updates, rollbacks, downloads, collections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.state import ModelState
from armlet_runtime.store.store import Store

from tests.fakes.crash_disk import Tree, read_in
from tests.fakes.deliveries import MODEL, Delivery, delivery, fetched, opened, tried, updated

ONE, TWO, THREE, FOUR = (delivery(number) for number in (1, 2, 3, 4))
SECOND = 2048
"""Bytes of a block in another session."""
Step = Callable[[Store], object]


@dataclass
class Case:
    """What happens, from which start, and how it ends when it is done again after a crash."""

    before: list[Step]
    steps: list[Step | None]
    """None: the process ends, and another one goes on."""
    again: Step
    end: Callable[[ModelState], bool]
    wanted: Delivery | None = None
    """What is on its way, and stays when the next start tidies up."""
    damaged: bool = False
    """Something happened to the committed payload before: until it is mended, the previous one has to do."""


def prepared(case: Case, base: Path) -> Tree:
    """What is on the medium when the case begins."""
    if not case.before:
        return ()
    store = opened(base)
    for step in case.before:
        step(store)
    store.close()
    return read_in(base)


def swept(store: Store) -> object:
    return store.collect(())


def rejected(store: Store) -> None:
    store.reject(MODEL, "trial", "wrong answers")


def reverted(store: Store) -> None:
    store.revert(MODEL, "crashes", "five in a row")


def put(wanted: Delivery, numbers: list[int], size: int = 1024, sync: bool = True) -> Step:
    def step(store: Store) -> None:
        incoming = store.incoming(wanted.desired, size)
        for number in numbers:
            incoming.put(number, wanted.block(number, size))
        if sync:
            incoming.sync()

    return step


def littered(store: Store) -> None:
    """Nobody wants any of it; the store is told of none of it."""
    root = store._root
    for folder in ("staging", "trash"):
        (root / folder / FOUR.id / "golden").mkdir(parents=True)
        (root / folder / FOUR.id / "golden" / "x").write_bytes(b"half")
    (root / "state.a.new").write_bytes(b"{")


def admitted(wanted: Delivery) -> list[Step]:
    return [
        lambda store: store.collect(wanted.kept),
        lambda store: fetched(store, wanted),
        lambda store: store.admit(wanted.desired),
        lambda store: store.begin_trial(MODEL, wanted.ref),
    ]


def installed(*wanted: Delivery) -> list[Step]:
    return [lambda store, one=one: updated(store, one) for one in wanted]  # type: ignore[misc]


def ruined(wanted: Delivery) -> Step:
    def step(store: Store) -> None:
        (store._root / "payloads" / wanted.id / "model.ort").write_bytes(b"rot")

    return step


def mended(store: Store) -> None:
    """The committed payload, whose files may be damaged, is there."""
    try:
        store.admit(TWO.desired)
    except StoreError:
        # It was thrown out, and there is no archive yet.
        fetched(store, TWO)
        store.admit(TWO.desired)
    swept(store)


def lost(wanted: Delivery) -> Step:
    """Tried until it is known to be bad."""

    def step(store: Store) -> None:
        with suppress(StoreError):
            store.begin_trial(MODEL, wanted.ref)

    return step


PROBATION: Step = lambda store: store.begin_probation(MODEL)  # noqa: E731
COMMIT: Step = lambda store: store.commit(MODEL)  # noqa: E731
STARTED: Step = lambda store: store.started()  # noqa: E731


def is_bad(bad: Delivery, committed: Delivery | None) -> Callable[[ModelState], bool]:
    def end(state: ModelState) -> bool:
        serves = state.committed == (committed.ref if committed else None)
        return serves and state.candidate is None and [one.id for one in state.bad] == [bad.id]

    return end


def serves(wanted: Delivery, previous: Delivery | None) -> Callable[[ModelState], bool]:
    def end(state: ModelState) -> bool:
        known = (state.committed, state.previous, state.candidate)
        return known == (wanted.ref, previous.ref if previous else None, None)

    return end


def gives_way(store: Store) -> None:
    store.withdraw(MODEL)
    swept(store)


def fails(wanted: Delivery) -> Step:
    def step(store: Store) -> None:
        if tried(store, wanted):
            rejected(store)
        swept(store)

    return step


def goes_back(store: Store) -> None:
    if store.state(MODEL).committed == TWO.ref:
        reverted(store)
    swept(store)


def trial_of(wanted: Delivery) -> Step:
    return lambda store: tried(store, wanted)


def gives_up(store: Store) -> None:
    while store.state(MODEL).candidate:
        lost(TWO)(store)
    swept(store)


CASES: dict[str, Case] = {
    "first install": Case(
        [], [STARTED, *admitted(ONE), PROBATION, COMMIT, swept], installed(ONE)[0], serves(ONE, None), ONE
    ),
    "update over committed": Case(
        installed(ONE, TWO),
        [*admitted(THREE), PROBATION, COMMIT, swept],
        installed(THREE)[0],
        serves(THREE, TWO),
        THREE,
    ),
    "update over probation": Case(
        [*installed(ONE), trial_of(TWO), PROBATION],
        [*admitted(THREE), PROBATION, COMMIT, swept],
        installed(THREE)[0],
        serves(THREE, ONE),
        THREE,
    ),
    "failed trial": Case(installed(ONE), [trial_of(TWO), rejected, swept], fails(TWO), is_bad(TWO, ONE), TWO),
    "failed first trial": Case([], [trial_of(TWO), rejected, swept], fails(TWO), is_bad(TWO, None), TWO),
    "rollback": Case([*installed(ONE), trial_of(TWO), PROBATION], [rejected, swept], fails(TWO), is_bad(TWO, ONE), TWO),
    "revert": Case(installed(ONE, TWO), [reverted, swept], goes_back, is_bad(TWO, ONE)),
    "interrupted trials": Case(
        [*installed(ONE), trial_of(TWO)],
        [None, trial_of(TWO), None, trial_of(TWO), None, lost(TWO), swept],
        gives_up,
        is_bad(TWO, ONE),
    ),
    "garbage": Case(
        [
            *installed(ONE, TWO),
            *[lambda store: store.collect(THREE.kept), lambda store: fetched(store, THREE)],
            lambda store: store.admit(THREE.desired),
            put(FOUR, [0, 3]),
            littered,
        ],
        [swept],
        swept,
        serves(TWO, ONE),
    ),
    "wish withdrawn": Case(
        [*installed(ONE), trial_of(TWO)],
        [lambda store: store.withdraw(MODEL), swept],
        gives_way,
        serves(ONE, None),
    ),
    "download by blocks, resumed": Case(
        installed(ONE),
        [put(TWO, [3, 1]), None, put(TWO, [0, 2], sync=False), None, put(TWO, [0]), put(TWO, [2, 3, 4])],
        installed(TWO)[0],
        serves(TWO, ONE),
        TWO,
    ),
    "download by URL, resumed by blocks": Case(
        installed(ONE),
        [put(TWO, [0], SECOND), None, put(TWO, [1], SECOND, sync=False), None, put(TWO, [2, 3])],
        installed(TWO)[0],
        serves(TWO, ONE),
        TWO,
    ),
    "download given up": Case(
        installed(ONE),
        [put(TWO, [0, 1]), lambda store: store.incoming(TWO.desired, 1024).discard(), put(TWO, [2])],
        installed(TWO)[0],
        serves(TWO, ONE),
        TWO,
    ),
    "damaged payload comes anew": Case(
        [*installed(ONE, TWO), ruined(TWO)],
        [lambda store: fetched(store, TWO), lambda store: store.admit(TWO.desired), swept],
        mended,
        serves(TWO, ONE),
        TWO,
        damaged=True,
    ),
    "starts counted": Case(
        installed(ONE), [STARTED, None, STARTED, lambda store: store.steady()], STARTED, serves(ONE, None)
    ),
}
