"""Random lives of a store: updates of two models, kills, power losses, one in the middle of the other."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.state import ModelState
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.fakes.crash_disk import FakeMedium, RecordingDisk, read_in, written_out
from tests.fakes.deliveries import Delivery, delivery, demand_sound, demand_tidy, opened, updated

MODELS = ("dense", "other")
DELIVERIES = {(model, number): delivery(number, model) for model in MODELS for number in range(1, 9)}
models = st.sampled_from(MODELS)
generations = st.integers(1, 8)


class Cut(BaseException):
    """The process ends here: nothing that runs after it may touch the disk."""


class Lives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.base = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.place = self.base / "0"
        self.place.mkdir()
        self.left: int | None = None
        """Calls until the process ends; None: it does not."""
        self.wishes: dict[str, Delivery] = {}
        self.began()

    def began(self) -> None:
        """With what the medium holds now."""
        self.medium = FakeMedium(read_in(self.place))
        self.disk = RecordingDisk(self.place, self.count)
        self.store = opened(self.place, self.disk)

    def count(self, _calls: int, _name: str) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Cut

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.base)

    def wish(self, model: str) -> Delivery:
        return self.wishes.setdefault(model, DELIVERIES[model, 1])

    def state(self, model: str) -> ModelState:
        return self.store.state(model)

    @initialize()
    def first(self) -> None:
        updated(self.store, DELIVERIES["dense", 1])

    @rule(model=models, generation=generations)
    def wished(self, model: str, generation: int) -> None:
        self.wishes[model] = DELIVERIES[model, generation]

    @rule(model=models, seed=st.integers(0, 99), size=st.sampled_from([512, 1024, 4096]), sync=st.booleans())
    def blocks_come(self, model: str, seed: int, size: int, sync: bool) -> None:
        wish = self.wish(model)
        incoming = self.store.incoming(wish.desired, size)
        chance = random.Random(seed)
        for number in chance.sample(range(incoming.blocks), incoming.blocks):
            if chance.random() < 0.8:
                incoming.put(number, wish.block(number, size))
        if sync:
            incoming.sync()

    @rule(model=models)
    def admitted(self, model: str) -> None:
        try:
            assert self.store.admit(self.wish(model).desired).ref == self.wish(model).ref
        except StoreError as error:
            # Never "damaged": what the map calls whole is whole.
            if error.category != "download":
                raise

    @rule(model=models)
    def trial(self, model: str) -> None:
        wish = self.wish(model)
        if self.store.has(wish.id) and self.state(model).committed != wish.ref:
            try:
                self.store.begin_trial(model, self.store.admit(wish.desired).ref)
            except StoreError as error:
                if error.category not in ("stale", "known_bad", "interrupted"):
                    raise

    @rule(model=models)
    def probation(self, model: str) -> None:
        if self.state(model).candidate:
            self.store.begin_probation(model)

    @rule(model=models)
    def committed(self, model: str) -> None:
        tried = self.state(model).candidate
        if tried:
            self.store.commit(model)
            assert self.state(model).committed == tried.ref

    @rule(model=models)
    def rejected(self, model: str) -> None:
        if self.state(model).candidate:
            self.store.reject(model, "trial", "no")

    @rule(model=models)
    def reverted(self, model: str) -> None:
        if self.state(model).committed:
            self.store.revert(model, "crashes", "again and again")

    @rule()
    def counted(self) -> None:
        self.store.started()

    @rule(keep=st.booleans())
    def collected(self, keep: bool) -> None:
        wanted = [name for wish in self.wishes.values() for name in wish.kept] if keep else []
        self.store.collect(wanted)
        if not keep:
            demand_tidy(self.place, self.store)

    @rule(model=models, generation=generations, left=st.integers(0, 80), power=st.booleans(), seed=st.integers(0, 999))
    def cut_in_an_update(self, model: str, generation: int, left: int, power: bool, seed: int) -> None:
        before = {name: self.state(name) for name in MODELS}
        wish = DELIVERIES[model, generation]
        self.left = left
        with suppress(Cut):
            updated(self.store, wish)
        self.left = None
        self.power_lost(seed) if power else self.killed()
        now = self.state(model)
        assert now.committed in (before[model].committed, wish.ref)
        assert now.floor >= before[model].floor
        for other in MODELS:
            assert other == model or self.state(other) == before[other]

    @rule(left=st.integers(0, 30), power=st.booleans(), seed=st.integers(0, 999))
    def cut_in_a_collection(self, left: int, power: bool, seed: int) -> None:
        self.left = left
        with suppress(Cut):
            self.store.collect(())
        self.left = None
        self.power_lost(seed) if power else self.killed()

    @rule()
    def killed(self) -> None:
        """The process ends; what it wrote is there, whether it was synced or not."""
        before = {name: self.state(name) for name in MODELS}
        self.store.close()
        self.store = opened(self.place, self.disk)
        self.came_back(before)

    @rule(seed=st.integers(0, 999))
    def power_lost(self, seed: int) -> None:
        before = {name: self.state(name) for name in MODELS}
        self.store.close()
        for op in self.disk.ops:
            self.medium.do(op)
        states = [*self.medium.states(seed)]
        shutil.rmtree(self.place)
        self.place = self.base / str(int(self.place.name) + 1)
        self.place.mkdir()
        written_out(random.Random(seed).choice(states), self.place)
        self.began()
        self.came_back(before)

    def came_back(self, before: dict[str, ModelState]) -> None:
        for model in MODELS:
            assert demand_sound(self.store, model).floor >= before[model].floor

    @precondition(lambda self: self.left is None)
    @invariant()
    def sound(self) -> None:
        for model in MODELS:
            demand_sound(self.store, model)


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=60, stateful_step_count=25, deadline=None, derandomize=True)
