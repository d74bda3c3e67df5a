"""What follows from what: candidates, what is committed, what is bad; and the state as a file's content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from armlet_runtime.store.state import LONGEST_REASON, MOST_BAD, ModelState, Ref, State
from armlet_runtime.store.state_file import Newer, decoded, encoded, settled
from armlet_runtime.update.interface import Category
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.deliveries import delivery


def ref(number: int) -> Ref:
    return Ref(f"{number:064x}", f"1.{number}", number)


def committed(*numbers: int) -> ModelState:
    state = ModelState()
    for number in numbers:
        state = state.tried(ref(number)).on_probation().with_committed()
    return state


def test_an_update_from_trial_to_committed() -> None:
    state = committed(1).tried(ref(2))
    assert state.candidate
    assert (state.candidate.phase, state.candidate.attempts, state.committed, state.floor) == ("trial", 1, ref(1), 1)
    state = state.on_probation()
    assert state.candidate
    assert (state.candidate.phase, state.committed) == ("probation", ref(1))
    assert set(state.refs) == {ref(1), ref(2)}
    assert state.with_committed() == ModelState(ref(2), ref(1), None, (), 2)


def test_attempts_go_on_and_begin_anew_with_another() -> None:
    state = committed(1).tried(ref(2)).on_probation().tried(ref(2))
    assert state.candidate
    assert (state.candidate.attempts, state.candidate.phase) == (2, "trial")
    other = state.tried(ref(3))
    assert other.candidate
    assert (other.candidate.attempts, other.bad) == (1, ())


def test_what_was_rejected_is_bad() -> None:
    state = committed(1).tried(ref(5)).rejected("budget", "too slow")
    assert (state.committed, state.candidate, state.floor) == (ref(1), None, 5)
    assert state.refusal_of(ref(5)) == ("known_bad", "it failed before (budget): too slow")
    assert state.refusal_of(ref(4))[0] == "stale"
    assert state.refusal_of(replace(ref(5), id="f" * 64))[0] == "stale"
    assert state.refusal_of(ref(6)) == ("", "")


def test_what_was_reverted_is_bad_and_the_one_before_serves() -> None:
    state = committed(1, 2).reverted("crashes", "five")
    assert (state.committed, state.previous, state.floor) == (ref(1), None, 2)
    assert state.refusal_of(ref(2))[0] == "known_bad"
    # To the payload of the factory.
    assert state.reverted("crashes", "five").committed is None


def test_what_is_there_already_is_no_refusal() -> None:
    state = committed(1, 2).tried(ref(3))
    assert [state.refusal_of(ref(number))[0] for number in (1, 2, 3)] == ["stale", "", ""]
    wish = delivery(9).desired
    assert state.refusal(wish) == ("", "")
    assert state.refusal(replace(wish, generation=2))[0] == "stale"


def test_nothing_is_done_to_what_is_not_there() -> None:
    state = committed(1)
    for does in (state.on_probation, state.with_committed, lambda: state.rejected("trial", "no")):
        with pytest.raises(ValueError, match="no candidate"):
            does()
    with pytest.raises(ValueError, match="nothing is committed"):
        ModelState().reverted("crashes", "no")
    with pytest.raises(ValueError, match="committed already"):
        state.tried(ref(1))
    assert state.withdrawn() == state


def test_the_list_of_the_bad_is_bounded_and_the_floor_covers_the_rest() -> None:
    state = ModelState()
    for number in range(1, MOST_BAD + 10):
        state = state.tried(ref(number)).rejected("trial", "x" * 1000)
    assert len(state.bad) == MOST_BAD
    assert {len(one.reason) for one in state.bad} == {LONGEST_REASON}
    assert state.refusal_of(ref(1))[0] == "stale"
    # A long life makes no long file.
    assert len(encoded(State(1, 0, {"m": state}))) < 20_000


texts = st.text(max_size=50)
refs = st.integers(1, 20).map(ref)
categories = st.sampled_from(["trial", "probation", "crashes"])
moves = st.lists(
    st.one_of(
        st.tuples(st.just("tried"), refs),
        st.just(("on_probation",)),
        st.just(("with_committed",)),
        st.just(("withdrawn",)),
        st.tuples(st.sampled_from(["rejected", "reverted"]), categories, texts),
    ),
    max_size=20,
)


def lived(state: ModelState, path: list[tuple[Any, ...]]) -> ModelState:
    for name, *arguments in path:
        if name == "tried" and state.refusal_of(arguments[0])[0]:
            continue
        try:
            moved: ModelState = getattr(state, name)(*arguments)
        except ValueError:
            continue
        assert moved.floor >= state.floor
        state = moved
    return state


@settings(max_examples=50)
@given(moves, moves, st.integers(0, 9))
def test_any_life_is_sound_and_comes_back_from_the_file(
    path: list[tuple[Any, ...]], other: list[tuple[Any, ...]], starts: int
) -> None:
    state = State(7, starts, {"a": lived(ModelState(), path), "b": lived(ModelState(), other)})
    for model in state.models.values():
        assert not {one.id for one in model.bad}.intersection(found.id for found in model.refs)
        assert model.committed is None or model.committed.generation <= model.floor
    assert decoded(encoded(state)) == state


WHOLE = State(3, 2, {"m": committed(1, 2).tried(ref(3)).rejected("trial", 'say "no"\n')})


def test_every_torn_or_changed_copy_is_told_from_a_whole_one() -> None:
    data = encoded(WHOLE)
    for end in range(len(data) - 1):
        with pytest.raises(ValueError, match=r"."):
            decoded(data[:end])
    for place in range(len(data) - 1):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises((ValueError, Newer)):
            decoded(bytes(changed))
    with pytest.raises(ValueError, match=r"."):
        decoded(bytes(len(data)))


@settings(max_examples=50)
@given(st.binary(max_size=99) | st.lists(st.integers() | st.text()).map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_damaged(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(data)


def test_the_higher_sequence_counts() -> None:
    older, newer = encoded(WHOLE), encoded(replace(WHOLE, sequence=4, starts=0))
    for pair in ((older, newer), (newer, older)):
        found = settled([("a", pair[0]), ("b", pair[1])])
        assert (found.state.sequence, found.agree, found.newer, found.notes) == (4, False, False, ())
    assert settled([("a", newer), ("b", newer)]).agree
    found = settled([("a", older), ("b", b"{}")])
    assert found.state == WHOLE
    assert len(found.notes) == 1
    found = settled([("a", b""), ("b", b"{")])
    assert found.state == State()
    assert "lost" in found.notes[-1]
    assert settled([("a", None), ("b", None)]).notes == ()


def test_a_newer_schema_is_not_read_and_its_older_copy_is() -> None:
    strange = json.dumps({"schema": 2, "what": "ever"}).encode()
    found = settled([("state.a", strange), ("state.b", encoded(WHOLE))])
    assert (found.state, found.newer) == (WHOLE, True)
    assert found.notes == ("state.a is of schema 2, and this version knows 1",)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("committed", "id"), "../../etc"),
        (("committed", "generation"), -1),
        (("committed", "generation"), True),
        (("candidate", "phase"), "perhaps"),
        (("bad", 0, "category"), "unheard"),
        (("floor",), "1"),
        (("bad",), {}),
    ],
)
def test_a_copy_with_a_right_sum_and_wrong_content_is_damaged(place: tuple[Any, ...], value: Any) -> None:
    state = State(3, 2, {"m": committed(1).tried(ref(2)).rejected("trial", "no").tried(ref(3))})
    fields = json.loads(encoded(state))
    at = fields["state"]["models"]["m"]
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(ValueError, match=r"."):
        decoded(resealed(fields))


def resealed(fields: dict[str, Any]) -> bytes:
    rest = {key: value for key, value in fields.items() if key != "sha256"}
    plain = json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
    return json.dumps({**rest, "sha256": hashlib.sha256(plain).hexdigest()}).encode()


def test_categories_of_reports_are_those_of_the_state() -> None:
    category: Category = "interrupted"
    state = State(1, 0, {"m": committed(1).tried(ref(2)).rejected(category, "\ud800")})
    assert decoded(encoded(state)) == state
