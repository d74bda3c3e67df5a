"""How long until the next try, and who computes where."""

from __future__ import annotations

import pytest
from armlet_runtime.serve.backoff import Backoff
from armlet_runtime.serve.cores import budget
from hypothesis import given
from hypothesis import strategies as st


def test_it_doubles_up_to_the_longest_and_forgets_after_health() -> None:
    backoff = Backoff(first=1.0, longest=10.0, healthy=30.0)
    assert [backoff.failed(0.0) for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert backoff.failed(29.9) == 10
    assert [backoff.failed(30.0), backoff.failed(0.0)] == [1, 2]
    backoff.reset()
    assert backoff.failed(0.0) == 1


def test_years_of_failures() -> None:
    backoff = Backoff(failures=10**6)
    assert backoff.failed(0.0) == backoff.longest


@pytest.mark.parametrize(
    ("available", "wanted", "dealt"),
    [
        ([0], {"a": None, "b": 4, "c": None}, {"a": (0,), "b": (0,), "c": (0,)}),
        ([0, 1, 2, 3], {"a": None}, {"a": (0, 1, 2, 3)}),
        ([0, 1, 2, 3], {"a": None, "b": None}, {"a": (0, 1), "b": (2, 3)}),
        ([0, 1, 2, 3], {"a": None, "b": 3}, {"a": (3,), "b": (0, 1, 2)}),
        ([4, 6], {"a": None, "b": None, "c": None}, {"a": (4,), "b": (6,), "c": (4,)}),
        ([2, 3], {}, {}),
    ],
)
def test_deals(available: list[int], wanted: dict[str, int | None], dealt: dict[str, tuple[int, ...]]) -> None:
    assert budget(available, wanted) == dealt


def test_no_core() -> None:
    with pytest.raises(ValueError, match="no core"):
        budget([], {"a": None})


@given(
    st.sets(st.integers(0, 63), min_size=1, max_size=8),
    st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.integers(1, 12)),
)
def test_every_deal_is_fair(available: set[int], wanted: dict[str, int | None]) -> None:
    dealt = budget(available, wanted)
    assert dealt.keys() == wanted.keys()
    for model, cores in dealt.items():
        assert cores
        assert set(cores) <= available
        assert len(cores) == len(set(cores)) <= (wanted[model] or len(available))
    load = [sum(core in cores for cores in dealt.values()) for core in available]
    assert max(load) - min(load) <= 1 or not wanted
