"""Which providers are tried, in which order, and what is told of the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from armlet_runtime import ort
from armlet_runtime.serve.chain import MOST, Wanted, attempts, first_that_works, short_of, usable, wanted

REPORTED = ("XnnpackExecutionProvider", "ACLExecutionProvider", "CPUExecutionProvider")
PAYLOAD = [{"name": "xnnpack", "options": {"intra_op_num_threads": "2"}}, {"name": "cpu", "options": {}}]


def names(chain: Sequence[Wanted]) -> list[str]:
    return [choice.name for choice in chain]


def refuse(reason: str) -> ort.OrtError:
    return ort.OrtError(ort.OrtErrorCode.FAIL, reason)


def test_the_payload_says_which() -> None:
    assert wanted(PAYLOAD, None, {}) == [Wanted("xnnpack", {"intra_op_num_threads": "2"}), Wanted("cpu")]


def test_the_device_has_the_last_word() -> None:
    chain = wanted(PAYLOAD, ("VSINPU", "XnnpackExecutionProvider"), {"xnnpack": {"a": "b"}, "vsinpu": {"c": "d"}})
    assert chain == [
        Wanted("vsinpu", {"c": "d"}),
        Wanted("xnnpack", {"intra_op_num_threads": "2", "a": "b"}),
        Wanted("cpu"),
    ]


@pytest.mark.parametrize(
    ("device", "chain"),
    [(("cpu",), ["cpu"]), (("acl", "cpu", "xnnpack"), ["acl", "cpu"]), (("acl", "acl"), ["acl", "cpu"])],
)
def test_what_would_never_be_used_is_left_out(device: tuple[str, ...], chain: list[str]) -> None:
    assert names(wanted(PAYLOAD, device, {})) == chain


def test_what_is_not_there_is_skipped_with_the_reason() -> None:
    chain = [Wanted("cuda"), Wanted("acl"), Wanted("xnnpack"), Wanted("cpu")]
    left, skipped = usable(chain, REPORTED, {"acl": "its driver crashed"})
    assert names(left) == ["xnnpack", "cpu"]
    assert skipped == {
        "cuda": "this runtime was built without it; it has acl, cpu, xnnpack",
        "acl": "its driver crashed",
    }


def test_a_chain_is_bounded() -> None:
    chain = [*(Wanted(f"p{number}") for number in range(MOST + 2)), Wanted("cpu")]
    left, skipped = usable(chain, [*(f"P{number}ExecutionProvider" for number in range(MOST + 2)), REPORTED[2]], {})
    assert names(left) == [f"p{number}" for number in range(MOST)] + ["cpu"]
    assert list(skipped) == [f"p{MOST}", f"p{MOST + 1}"]


def test_less_and_less_is_tried() -> None:
    tried = [names(attempt) for attempt in attempts([Wanted("a"), Wanted("b"), Wanted("cpu")])]
    assert tried == [["a", "b", "cpu"], ["a", "cpu"], ["b", "cpu"], ["cpu"]]


@pytest.mark.parametrize(
    ("broken", "used", "skipped"),
    [
        (set(), ["a", "b", "cpu"], {}),
        ({"b"}, ["a", "cpu"], {"b": "a,b,cpu"}),
        ({"a"}, ["b", "cpu"], {"a": "a,b,cpu"}),
        ({"a", "b"}, ["cpu"], {"a": "a,b,cpu", "b": "a,b,cpu"}),
    ],
)
def test_the_longest_chain_that_works(broken: set[str], used: list[str], skipped: dict[str, str]) -> None:
    def make(attempt: Sequence[Wanted]) -> str:
        if broken & set(names(attempt)):
            raise refuse(",".join(names(attempt)))
        return "a session"

    made, chain, reasons = first_that_works([Wanted("a"), Wanted("b"), Wanted("cpu")], make)
    assert (made, names(chain), reasons) == ("a session", used, skipped)


def test_where_nothing_works_it_is_the_model() -> None:
    def make(attempt: Sequence[Wanted]) -> str:
        raise refuse(f"{len(attempt)} providers")

    with pytest.raises(ort.OrtError, match="1 providers"):
        first_that_works([Wanted("a"), Wanted("cpu")], make)


def test_shares() -> None:
    shares = {"XnnpackExecutionProvider": 0.5, "CPUExecutionProvider": 0.5}
    assert short_of({"xnnpack": 0.5}, shares) == []
    assert short_of({"xnnpack": 0.6, "acl": 0.1}, shares) == [
        "xnnpack ran 50% of the nodes, and min_provider_share asks for 60%",
        "acl ran 0% of the nodes, and min_provider_share asks for 10%",
    ]
    assert short_of({"xnnpack": 0.1}, {}) != []
