from __future__ import annotations

from collections.abc import Mapping

import pytest

from armlet import prune
from armlet.spec.cpu import Feature
from armlet.spec.source_set import Acceleration, Skip, Sources

TREE: Mapping[str, str] = {
    "/t/cpu/conv.cc": '#include "cpu/conv.h"\nONNX_CPU_OPERATOR_KERNEL(\n  Conv, 11, Build(), Conv<float>);',
    "/t/cpu/conv.h": '#include "cpu/conv_base.h"',
    "/t/cpu/conv_base.h": "",
    "/t/cpu/conv_base.cc": '#include "cpu/conv_base.h"',
    "/t/cpu/rnn.cc": '#include "cpu/rnn_helpers.h"\nONNX_CPU_OPERATOR_KERNEL(RNN, 7, Build(), RNN);',
    "/t/cpu/rnn_helpers.h": "",
    "/t/cpu/rnn_helpers.cc": '#include "cpu/rnn_helpers.h"',
    "/t/cpu/gone.cc": "// ONNX_CPU_OPERATOR_KERNEL(Conv, 1, Build(), Old);\nREGISTER_TYPED(Gone, float)",
    "/t/cpu/factory.cc": "",
    "/t/session/session.cc": "#include <core/public.h>",
    "/public/core/public.h": "",
    "/t/core/public.cc": "",
}
TARGETS = {
    prune.PROVIDER_TARGET: [
        "/t/cpu/conv.cc",
        "/t/cpu/conv_base.cc",
        "/t/cpu/rnn.cc",
        "/t/cpu/rnn_helpers.cc",
        "/t/cpu/gone.cc",
        "/t/cpu/factory.cc",
        "/t/core/public.cc",
    ],
    "onnxruntime_session": ["/t/session/session.cc"],
    "re2": ["/re2/re2.cc"],
}


def needed(alive: set[str], always: tuple[str, ...] = ()) -> frozenset[str]:
    return prune.provider_sources_needed(
        TARGETS,
        known=frozenset({"Conv", "RNN", "Gone"}),
        alive=frozenset(alive),
        read=TREE.get,
        include_roots=("/t", "/public"),
        always=[Sources(sources=pattern) for pattern in always],
    )


def test_a_surviving_kernel_keeps_its_source_and_what_its_headers_lead_to() -> None:
    assert {"/t/cpu/conv.cc", "/t/cpu/conv_base.cc"} <= needed({"Conv"})


def test_a_source_none_of_whose_kernels_survive_goes_and_its_helpers_with_it() -> None:
    assert not {"/t/cpu/rnn.cc", "/t/cpu/rnn_helpers.cc"} & needed({"Conv"})
    assert {"/t/cpu/rnn.cc", "/t/cpu/rnn_helpers.cc"} <= needed({"RNN"})


def test_a_registration_in_a_comment_keeps_nothing() -> None:
    assert "/t/cpu/gone.cc" not in needed({"Conv"})


def test_another_targets_public_header_keeps_its_implementation() -> None:
    assert "/t/core/public.cc" in needed(set())


def test_the_table_keeps_what_no_header_leads_to() -> None:
    assert "/t/cpu/factory.cc" not in needed({"Conv"})
    assert "/t/cpu/factory.cc" in needed({"Conv"}, (r"/factory\.cc$",))


def test_a_typed_registration_macro_is_recognised() -> None:
    text = "REG_ELEMENTWISE_TYPED_KERNEL(Add, 14, float, Add);\n#define REGISTER_X(T) x\nREGISTER_X(int)"
    assert prune.registered_operators(text, frozenset({"Add", "Sub"})) == {"Add"}


RULES = (
    Skip(targets="re2", unless=("Gone",)),
    Skip(targets="onnx.*session", sources="session", unless_cpu=("fp16",)),
    Skip(targets="onnx.*", sources="absent"),
)


@pytest.mark.parametrize(
    ("alive", "features", "left_out"),
    [
        ({"Conv"}, set(), {"/re2/re2.cc", "/t/session/session.cc"}),
        ({"Conv", "Gone"}, set(), {"/t/session/session.cc"}),
        ({"Conv"}, {"fp16"}, {"/re2/re2.cc"}),
    ],
)
def test_a_table_leaves_sources_out_unless_an_operator_or_the_core_needs_them(
    alive: set[str], features: set[Feature], left_out: set[str]
) -> None:
    found = prune.skipped(TARGETS, RULES, alive=frozenset(alive), features=frozenset(features))
    assert found == left_out


def test_entries_hold_for_the_flavors_they_name() -> None:
    everywhere, elsewhere = Sources(sources="re2"), Sources(sources="session", flavors=("full",))
    made = Acceleration(
        keep=(everywhere, elsewhere),
        apart=(elsewhere,),
        skip=(Skip(targets="a", flavors=("reduced",)),),
        batches={"a": 2},
    )
    minimal, full = made.of("minimal"), made.of("full")
    assert [[one.sources for one in hints.keep] for hints in (minimal, full)] == [["re2"], ["re2", "session"]]
    assert ([one.sources for one in minimal.apart], [one.sources for one in full.apart]) == ([], ["session"])
    assert (minimal.skip, full.skip) == ((), ())
    assert [one.targets for one in made.of("reduced").skip] == ["a"]
    assert minimal.batches == {"a": 2}
    # What holds for another flavor alone changes nothing here.
    assert minimal == Acceleration(keep=(everywhere,), batches={"a": 2}).of("minimal")
