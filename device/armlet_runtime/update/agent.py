"""What turns wishes into payloads that serve, one model after the other, in one thread; and takes back what is bad.

The way of one update is :mod:`armlet_runtime.update.course`; docs/updates.md draws it. Every call from outside is
quick and takes any thread.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, Sequence

from armlet_runtime.serve.backoff import Backoff
from armlet_runtime.serve.payloads import Candidate
from armlet_runtime.update.caretaker import Caretaker
from armlet_runtime.update.course import LOOK_SECONDS, Course
from armlet_runtime.update.ending import End
from armlet_runtime.update.interface import Category, Desired

log = logging.getLogger("armlet.update")

MOST_MODELS = 64
"""Wished for, that nobody knows: whoever invents names must not fill the memory."""
MOST_DAMAGED = 3
"""Archives of one wish that may come damaged."""
RETRY_SECONDS = 30.0
LONGEST_RETRY_SECONDS = 3600.0


@dataclass
class _Task:
    """Of one model. Whoever changes it holds the agent's lock."""

    wish: Desired | None = None
    resume: Desired | None = None
    """What the last run was trying; a wish comes before it."""
    turn: int = 0
    """Grows with each new wish."""
    due: float | None = None
    damaged: int = 0
    backoff: Backoff = field(default_factory=lambda: Backoff(RETRY_SECONDS, LONGEST_RETRY_SECONDS))


class Agent:
    """Started by :meth:`start`, ended by :meth:`stop`.

    ``enabled``: whether the device's file lets a model serve. ``pause`` is there for tests: waits for at most so many
    seconds, and ``clock`` says how late it is.
    """

    def __init__(
        self,
        course: Course,
        *,
        enabled: Callable[[str], bool] = lambda _: True,
        spread: Callable[[], float] = lambda: random.uniform(0.8, 1.2),
        pause: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._course = course
        self._store, self._board, self._catalogue = course.store, course.board, course.catalogue
        self._enabled = enabled
        self._spread = spread
        self._pause = pause
        self._clock = clock
        self._changed = threading.Condition()
        self._tasks: dict[str, _Task] = {}
        self._crashes: dict[str, tuple[Candidate, str]] = {}
        self._under_way = ""
        self._stopping = False
        self._care = Caretaker(course, self.models, clock())
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)

    def start(self) -> None:
        """Go on where the last run was interrupted, and take wishes; returns at once."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End: a download is cut short and kept, an activation is waited for at most that long."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def wish(self, model: str, desired: Desired | None) -> None:
        """A model is to be served like that; None: nobody wishes anything any more.

        The newest wish counts. The same again only has the state told again (so MQTT calls this for each message, and
        for nothing else). For a model that nobody knows it is a first payload.
        """
        if desired is not None and self._catalogue.factory_first and self._care.is_new(desired):
            log.warning("payloads of the store may serve again: another one is wished for")
            self._end_breaker()
        known = self._catalogue.names()
        with self._changed:
            strangers = self._tasks.keys() - known
            if model not in {*known, *strangers} and len(strangers) >= MOST_MODELS:
                log.error("%s: more than %d models that are not here are wished for", model, MOST_MODELS)
                return
            task = self._tasks.setdefault(model, _Task())
            same = task.wish == desired
            if not same:
                now = self._clock()
                if desired is not None and task.resume is not None and task.resume.payload != desired.payload:
                    task.resume = None
                resumes = desired is None and task.resume is not None
                task.wish, task.turn, task.damaged = desired, task.turn + 1, 0
                task.due = now if desired is not None or resumes else None
                task.backoff.reset()
                self._changed.notify_all()
            idle = desired is None and self._under_way != model
            if idle and task.resume is None:
                del self._tasks[model]
        if same:
            self._board.again([model])
        elif idle:
            self._board.tell(model, "IDLE")

    def refuse(self, model: str, category: Category, reason: str) -> None:
        """A wish could not be read (``category`` "manifest"): only told, what is under way goes on."""
        self._board.refused(model, category=category, reason=reason)

    def models(self) -> Sequence[str]:
        """Names of all that there are now, sorted: those that serve, those in the store, those that were wished for."""
        with self._changed:
            wished = list(self._tasks)
        return sorted({*self._catalogue.names(), *wished})

    def crashing(self, payload: Candidate, how: str) -> None:
        """The worker of what serves fails again and again. For the engine, which holds its lock."""
        with self._changed:
            self._crashes[payload.model] = (payload, how)
            self._changed.notify_all()

    # What goes on around an update (:class:`~armlet_runtime.update.ending.Watch`).

    def cancelled(self) -> bool:
        """Whether a download should make room: for the end, a newer wish, or a payload that crashes."""
        with self._changed:
            task = self._tasks.get(self._under_way)
            return self._stopping or bool(self._crashes) or task is None or task.turn != self._turn

    def stopping(self) -> bool:
        """Whether the service ends."""
        return self._stopping

    def newest(self) -> Desired | None:
        """The wish that counts now."""
        with self._changed:
            task = self._tasks.get(self._under_way)
            return task.wish if task is not None else None

    def pause(self, seconds: float) -> None:
        """For that long, or until something is to be looked at; what cannot wait for a verdict is done meanwhile."""
        if self._pause is not None:
            self._pause(seconds)
        else:
            with self._changed:
                if not self._stopping:
                    self._changed.wait(seconds)
        self._mind()

    # The thread.

    def _run(self) -> None:
        while not self._course.engine.settled() and not self._stopping:
            time.sleep(0.05)
        self.begin()
        while not self._stopping:
            try:
                wait = self.step()
            except Exception:
                # Nothing of it may keep the service from serving, nor later wishes from being followed.
                log.exception("an update met what it should not")
                wait = LOOK_SECONDS
            with self._changed:
                if wait and not self._stopping and not self._crashes:
                    self._changed.wait(wait)

    def begin(self) -> None:
        """Take up what the last run left."""
        if self._store.flapping:
            told = "the service did not stay up of late: the payloads of the rootfs serve until it does"
            self._board.alert("", "flapping", told)
        for model in self.models():
            self._board.tell(model, "IDLE")
            candidate = self._store.state(model).candidate
            if candidate is None:
                continue
            ref = candidate.ref
            with self._changed:
                task = self._tasks.setdefault(model, _Task())
                task.resume = Desired(model, ref.version, ref.generation, ref.id, 0, "")
                task.due = self._clock() if task.due is None else task.due
        # What has come of an archive is for a wish that is yet to come again.
        self._care.collect(None)

    def step(self) -> float:
        """What is due, if anything; seconds until there may be more."""
        self._mind()
        with self._changed:
            now = self._clock()
            ready = {
                name: task.due
                for name, task in self._tasks.items()
                if task.due is not None and task.due <= now and not (self._waits and task.wish is None)
            }
            if not ready:
                return LOOK_SECONDS
            # Names that somebody made up do not keep those waiting that serve here.
            known = self._catalogue.names()
            model = min(ready, key=lambda name: (name not in known, ready[name], name))
            task = self._tasks[model]
            desired, task.due, self._turn = task.wish or task.resume, None, task.turn
            self._under_way = model
        if desired is not None:
            self._follow(model, task, desired)
        with self._changed:
            self._under_way = ""
        return 0.0

    _turn = 0

    @property
    def _waits(self) -> bool:
        return self._catalogue.factory_first

    def _follow(self, model: str, task: _Task, desired: Desired) -> None:
        if not self._enabled(model):
            end: End | None = End("FAILED", "manifest", "this device's configuration switches the model off")
        else:
            end = self._guarded(model, desired)
        retry = None
        with self._changed:
            newer = task.turn != self._turn
            left = newer and task.wish is None and task.due is None
            if end is None and not left:
                task.due = task.due if newer else self._clock()
                return
            end = end or End("IDLE")
            if left and end.state == "FAILED":
                # Nobody wishes it any more, so nobody is told why it came to nothing.
                end = End("IDLE")
            if task.resume == desired or (task.resume is not None and task.resume.payload == desired.payload):
                task.resume = None
            again = end.again and (end.category != "damaged" or task.damaged + 1 < MOST_DAMAGED)
            task.damaged += end.category == "damaged"
            if again and not newer:
                retry = task.backoff.failed(0.0) * self._spread()
                task.due = self._clock() + retry
        if not (newer and end.state == "FAILED"):
            how = {"category": end.category, "reason": end.reason, "retry_seconds": retry}
            self._board.tell(model, end.state, desired=desired if end.state != "IDLE" else None, **how)
        self._collect()

    def _guarded(self, model: str, desired: Desired) -> End | None:
        try:
            return self._course.follow(desired, self)
        except Exception as error:
            log.exception("%s: an update met what it should not", model)
            self._course.serve_best(model, self)
            return End("FAILED", "store", f"{type(error).__name__}: {error}")

    def _mind(self) -> None:
        """What cannot wait."""
        while True:
            with self._changed:
                if not self._crashes or self._stopping:
                    break
                model = next(iter(self._crashes))
                payload, how = self._crashes.pop(model)
            if self._care.give_back(payload, how, self):
                with self._changed:
                    task = self._tasks.get(model)
                    if task is not None and task.wish is not None and task.wish.payload == payload.payload_sha256:
                        task.due = self._clock()
        self._board.refresh()
        if self._care.look(self._clock(), self):
            self._go_on()

    def _end_breaker(self) -> None:
        """What was left by the last run goes on too."""
        self._catalogue.factory_first = False
        self._go_on()

    def _go_on(self) -> None:
        with self._changed:
            for task in self._tasks.values():
                if task.resume is not None and task.due is None:
                    task.due = self._clock()

    def _collect(self) -> None:
        with self._changed:
            hoped = [task.wish for task in self._tasks.values() if task.wish is not None and task.due is not None]
        self._care.collect(hoped)
