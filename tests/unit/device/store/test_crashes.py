"""The proof: whatever a power loss leaves at whatever moment, a device has a valid payload, and the update goes on.

Every change of the disk is noted; after each of them, everything that the medium may hold if the power goes
(``tests/fakes/crash_disk.py`` says what that is) is made real, and the store is opened there.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from armlet_runtime.refusal import PayloadError
from armlet_runtime.store.incoming import MAP, PART, read_map
from armlet_runtime.store.state import ModelState
from armlet_runtime.store.store import Store

from tests.crash_cases import CASES, ONE, Case, Step, prepared
from tests.fakes.crash_disk import FakeMedium, Op, RecordingDisk, Tree, read_in, written_out
from tests.fakes.deliveries import MODEL, Delivery, demand_sound, demand_tidy, opened

Known = tuple[ModelState, int]
"""(state of the model, starts)."""


@dataclass
class Figures:
    prefixes: int = 0
    states: dict[Tree, set[Known]] = field(default_factory=dict)
    """What was left -> what a store may say there."""


def known(store: Store) -> Known:
    return store.state(MODEL), store.starts


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Oddity:
    """What is different from a run in which all goes well."""

    is_lost: Callable[[Op], bool] = lambda op: False
    """Ops that the medium does not get."""
    kill_at: int = 0
    """The call before which the process is killed: a new one goes on then, with what the old one did not sync."""


def enumerated(start: Tree, steps: Sequence[Step | None], again: Step, base: Path, oddity: Oddity) -> Figures:
    """Every crash on the way, and every state that it can leave; ``base`` is an empty folder."""
    written_out(start, base)
    medium = FakeMedium(start)
    stores: list[Store] = []
    marks: list[tuple[int, Known]] = []
    unsure = -1

    def note(calls: int = 0, _name: str = "") -> None:
        """Which states there were, and how much had been done when each began to count."""
        if stores and (not marks or known(stores[-1]) != marks[-1][1]):
            # Opening changes nothing of what is known.
            marks.append((len(disk.ops) if marks else 0, known(stores[-1])))
        if calls and calls == oddity.kill_at:
            raise Killed

    def go_on() -> None:
        if stores:
            stores[-1].close()
        stores.append(opened(base, disk))
        note()

    disk = RecordingDisk(base, note)
    try:
        go_on()
        for step in steps:
            if step is None:
                go_on()
            else:
                step(stores[-1])
            note()
    except Killed:
        before_it = len(marks)
        go_on()
        # What was being written then counts now, and perhaps no more after the next power loss.
        unsure = before_it if len(marks) > before_it else -1
        again(stores[-1])
        note()
    stores[-1].close()
    figures = Figures(prefixes=len(disk.ops) + 1)
    for done in range(len(disk.ops) + 1):
        # The last one that was over, and the one that was under way.
        before = max(index for index, (end, _) in enumerate(marks) if end <= done)
        allowed = {state for _, state in marks[max(before - (before == unsure), 0) : before + 2]}
        for tree in medium.states(seed=done):
            figures.states[tree] = figures.states.get(tree, allowed) & allowed
        if done < len(disk.ops) and not oddity.is_lost(disk.ops[done]):
            medium.do(disk.ops[done])
    assert medium.now() == read_in(base), "the medium lost track"
    return figures


def demand_true(root: Path, wanted: Delivery) -> None:
    """What a map says to be there is there, byte for byte."""
    name = wanted.desired.archive_sha256
    try:
        size, there = read_map((root / "incoming" / (name + MAP)).read_bytes(), len(wanted.archive))
    except FileNotFoundError:
        return
    part = root / "incoming" / (name + PART)
    content = part.read_bytes() if part.exists() else b""
    for number in there if content else ():
        assert content[number * size : (number + 1) * size] == wanted.block(number, size)


def survived(case: Case, tree: Tree, allowed: set[Known], base: Path) -> Known:
    """Boots from what is left; what the store says there."""
    written_out(tree, base)
    store = opened(base)
    try:
        told = known(store)
        assert told in allowed
        assert not store.readonly
        assert not store.notes
        if case.damaged:
            demand_one(store)
        else:
            demand_sound(store)
        for place in (base / "store" / "payloads").iterdir():
            assert case.damaged or store.held(place.name)
        if case.wanted:
            demand_true(base / "store", case.wanted)
        store.collect(case.wanted.kept if case.wanted else ())
        case.again(store)
        assert case.end(demand_sound(store))
        store.collect(())
        demand_tidy(base, store)
        return told
    finally:
        store.close()


def demand_one(store: Store) -> None:
    """Of what is committed and what was before, one is right."""
    state = store.state(MODEL)
    found = 0
    for ref in (state.committed, state.previous):
        assert ref
        try:
            found += store.held(ref.id).ref == ref
        except (PayloadError, OSError):
            continue
    assert found


def run(case: Case, base: Path, again: int) -> Figures:
    """All crashes of a case, and all of those that come when it is done again in ``again`` of the states left."""
    numbers = itertools.count()

    def place() -> Path:
        folder = base / str(next(numbers))
        folder.mkdir()
        return folder

    figures = enumerated(prepared(case, place()), case.steps, case.again, place(), Oddity())
    for tree, allowed in figures.states.items():
        assert allowed, "it may be left at two moments that demand different things of it"
        folder = place()
        survived(case, tree, allowed, folder)
        shutil.rmtree(folder)
    known = [*figures.states]
    for tree in random.Random(1).sample(known, min(again, len(known))):
        folder = place()
        second = enumerated(tree, [case.again], case.again, folder, Oddity())
        shutil.rmtree(folder)
        figures.prefixes += second.prefixes
        for inner, allowed in second.states.items():
            if inner not in figures.states:
                folder = place()
                survived(case, inner, allowed, folder)
                shutil.rmtree(folder)
                figures.states[inner] = allowed
    return figures


@pytest.mark.parametrize("name", CASES)
def test_every_crash_of_every_case(name: str, base: Path) -> None:
    figures = run(CASES[name], base, again=3)
    print(f"{name}: {figures.prefixes} crashes, {len(figures.states)} states")
    assert len(figures.states) > figures.prefixes / 2


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("first install", ("sync",)),
        ("first install", ("sync_folder", "store")),
        ("first install", ("sync_folder", "store/payloads")),
        ("first install", ("sync_folder", "store/staging/" + ONE.id)),
        ("first install", ("sync_folder", f"store/staging/{ONE.id}/golden")),
        ("garbage", ("sync_folder", "store/trash")),
        ("download given up", ("sync_folder", "store/incoming")),
    ],
)
def test_the_proof_finds_a_sync_that_is_not_there(name: str, lost: tuple[str, ...], base: Path) -> None:
    case = CASES[name]
    for folder in ("before", "work"):
        (base / folder).mkdir()
    start = prepared(case, base / "before")
    oddity = Oddity(is_lost=lambda op: (op.name, *op.arguments)[: len(lost)] == lost)
    figures = enumerated(start, case.steps, case.again, base / "work", oddity)

    def all_survived() -> None:
        for number, (tree, allowed) in enumerate(figures.states.items()):
            (base / str(number)).mkdir()
            survived(case, tree, allowed, base / str(number))

    with pytest.raises((AssertionError, PayloadError, OSError)):
        all_survived()


def killed_and_cut(name: str, base: Path, kinds: Collection[str]) -> Figures:
    """A process is killed ahead of each call of some kinds, another one goes on, and then the power goes."""
    case = CASES[name]
    (base / "before").mkdir()
    start = prepared(case, base / "before")
    (base / "whole").mkdir()
    written_out(start, base / "whole")
    names: list[str] = []
    disk = RecordingDisk(base / "whole", lambda _calls, name: names.append(name))
    store = opened(base / "whole", disk)
    for step in case.steps:
        if step is None:
            store.close()
            store = opened(base / "whole", disk)
        else:
            step(store)
    store.close()
    told: dict[Tree, Known] = {}
    figures = Figures()
    for kill_at in [number for number, kind in enumerate(names, 1) if kind in kinds]:
        folder = base / str(kill_at)
        folder.mkdir()
        found = enumerated(start, case.steps, case.again, folder, Oddity(kill_at=kill_at))
        figures.prefixes += found.prefixes
        for tree, allowed in found.states.items():
            if tree not in told:
                (base / "left").mkdir()
                told[tree] = survived(case, tree, allowed, base / "left")
                shutil.rmtree(base / "left")
            assert told[tree] in allowed
        figures.states.update(found.states)
        shutil.rmtree(folder)
    return figures


def test_power_losses_after_a_kill(base: Path) -> None:
    figures = killed_and_cut("update over committed", base, ["sync_folder"])
    print(f"{figures.prefixes} crashes, {len(figures.states)} states")


@pytest.mark.heavy
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.damaged])
def test_power_losses_after_a_kill_anywhere(name: str, base: Path) -> None:
    kinds = [name for name in vars(RecordingDisk) if not name.startswith("_")]
    figures = killed_and_cut(name, base, kinds)
    print(f"{name}: {figures.prefixes} crashes, {len(figures.states)} states")
    assert figures.states


@pytest.mark.heavy
def test_crashes_while_mending_crashes(base: Path) -> None:
    """Also prints what they were, in all."""
    crashes = 0
    states: set[Tree] = set()
    for name, case in CASES.items():
        folder = base / name
        folder.mkdir()
        figures = run(case, folder, again=60)
        crashes += figures.prefixes
        states |= figures.states.keys()
    print(f"{crashes} crashes, {len(states)} distinct states")
    assert len(states) > 8_000
