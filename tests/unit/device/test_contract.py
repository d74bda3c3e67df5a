"""The contract: what does not fit is told with its remedy, what fits is let through, and nothing makes it fail."""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path
from typing import Any

import armlet_runtime
import pytest
from armlet_runtime._contract_fields import FIELDS, MOST
from armlet_runtime.contract import READS, RULES, Problem, check, fits
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.process import Command, HostRunner
from armlet.spec.payload import PayloadManifest
from armlet.spec.runtime import RuntimeManifest
from tests.fakes.contracts import (
    CASES,
    PAYLOAD,
    RUNTIME,
    WARNED,
    Change,
    answered,
    every_misfit,
    fake_payload,
    fake_runtime,
    kernel,
    putting,
)


def found(change: Change) -> list[Problem]:
    runtime, payload = copy.deepcopy(fake_runtime()), copy.deepcopy(fake_payload())
    change(runtime, payload)
    return check(runtime, payload)


def test_what_fits_is_let_through_without_a_word() -> None:
    assert check(fake_runtime(), fake_payload()) == []


@pytest.mark.parametrize(("kind", "about", "change", "remedy"), CASES, ids=[f"{one[0]}-{one[1]}" for one in CASES])
def test_one_misfit_is_one_problem_with_its_remedy(kind: str, about: str, change: Change, remedy: str) -> None:
    (problem,) = found(change)
    assert (problem.severity, problem.kind, problem.about) == ("problem", kind, about)
    assert remedy in problem.remedy
    assert not fits([problem])


@pytest.mark.parametrize(("kind", "about", "change"), WARNED, ids=[f"{one[0]}-{one[1]}" for one in WARNED])
def test_what_may_still_run_is_a_warning(kind: str, about: str, change: Change) -> None:
    (problem,) = found(change)
    assert (problem.severity, problem.kind, problem.about) == ("warning", kind, about)
    assert fits([problem])


def test_every_rule_has_a_case() -> None:
    assert {rule.kind for rule in RULES} <= {case[0] for case in (*CASES, *WARNED)}


HARMLESS: tuple[Change, ...] = (
    putting(RUNTIME, "ort_version", value="1.21"),
    putting(RUNTIME, "operators", value=None),
    putting(RUNTIME, "element_types", value=None),
    putting(RUNTIME, "future", value={"a": [1]}),
    putting(PAYLOAD, "golden", value=7),
    putting(PAYLOAD, "operators", "ai.onnx", "Conv", 0, "newer", value=[]),
    # The node has nothing for T2: no type that could be wrong.
    putting(PAYLOAD, "operators", "ai.onnx", "QuantizeLinear", 0, "takes", value=[{"T1": ["float"]}]),
)


@pytest.mark.parametrize("change", HARMLESS)
def test_what_asks_for_nothing_more_changes_nothing(change: Change) -> None:
    assert found(change) == []


def test_a_kernel_serves_only_if_all_its_types_go_together() -> None:
    signed, unsigned = {"A": ["int8"], "B": ["int8"]}, {"A": ["uint8"], "B": ["int8", "uint8"]}
    runtime = fake_runtime(operators={"ai.onnx": {"M": kernel(10, [signed, unsigned])}})

    def asking(a: str, b: str) -> bool:
        operators = {"ai.onnx": {"M": kernel(10, [{"A": [a], "B": [b]}])}}
        return fits(check(runtime, fake_payload(operators=operators)))

    pairs = {(a, b) for a in ("int8", "uint8") for b in ("int8", "uint8") if asking(a, b)}
    assert pairs == {("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")}


def test_a_full_runtime_reads_both_formats() -> None:
    for model in ("onnx", "ort"):
        assert check(fake_runtime(flavor="full", operators=None), fake_payload(format=model)) == []
    assert set(READS) == {"minimal", "reduced", "full"}


def test_the_fields_are_those_of_the_specifications() -> None:
    specified = {"runtime": RuntimeManifest.model_fields, "payload": PayloadManifest.model_fields}
    assert all(field.name in specified[field.document] for field in FIELDS)
    known = {f"{field.document}.{field.name}" for field in FIELDS}
    assert {name for rule in RULES for name in rule.reads} <= known


DEEP: Any = json.loads("[" * 500 + "]" * 500)
ODD: tuple[Any, ...] = (
    None, True, -1, 2**80, 1.5, "", "x" * 10**6, "1" * 10**6, "\x1b[2J\u202e", [], {}, [None], {"a": None}, {"": {}},
    DEEP,    {"ai.onnx": {"Conv": [7]}}, {"ai.onnx": {"Conv": [{"since_versions": [1], "takes": [{"T": 1}]}]}},
    list(range(MOST + 1)), ["a"] * (MOST + 1), {str(one): 1 for one in range(MOST + 1)}, [{"name": DEEP}],
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.document}.{field.name}")
def test_a_field_of_another_form_is_told_and_never_raised(field: Any) -> None:
    documents = {"runtime": fake_runtime(), "payload": fake_payload()}
    for value in ODD:
        problems = check(**{**documents, field.document: {**documents[field.document], field.name: value}})
        malformed = [one.about for one in problems if one.kind == "malformed"]
        assert malformed == ([] if field.is_sound(value) else [f"{field.document}.{field.name}"])
        assert all(len(text) < 2000 and text.isprintable() for one in problems for text in one)
    missing = {name: value for name, value in documents[field.document].items() if name != field.name}
    problems = check(**{**documents, field.document: missing})
    assert bool([one for one in problems if one.kind == "malformed"]) == (not field.is_sound(None))


@pytest.mark.parametrize("odd", [value for value in ODD if not isinstance(value, dict)], ids=lambda _: "")
def test_something_else_than_a_manifest_is_told(odd: Any) -> None:
    assert [one.kind for one in check(odd, fake_payload())] == ["schema"]
    assert [one.about for one in check(odd, odd)] == ["runtime", "payload"]


NAMES = st.sampled_from(["ai.onnx", "com.microsoft", "Conv", "T", "float", "since_versions", "takes", "name", "schema"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8) | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@st.composite
def mutated(draw: st.DrawFn, document: dict[str, Any]) -> Any:
    """The document with values anywhere in it replaced, taken out or put in."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 4))):
        inner: Any = made
        while True:
            places = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            if isinstance(inner[place], (dict, list)) and inner[place] and draw(st.booleans()):
                inner = inner[place]
                continue
            if draw(st.booleans()):
                inner[place] = draw(JSON)
            else:
                del inner[place]
            break
    return made


@settings(max_examples=400, deadline=None)
@given(mutated(fake_runtime()) | JSON, mutated(fake_payload()) | JSON)
def test_nothing_makes_it_fail(runtime: Any, payload: Any) -> None:
    for one in check(runtime, payload):
        assert one.severity in ("problem", "warning")
        assert one.kind
        assert one.what
        assert one.remedy


def test_the_largest_hostile_payload_is_answered_in_time() -> None:
    takes = [{"T": ["float16"]}] * MOST
    operators = {"ai.onnx": {f"Op{one}": kernel(1, takes) for one in range(20)} | {"Conv": kernel(11, takes)}}
    before = time.monotonic()
    problems = check(fake_runtime(), fake_payload(operators=operators))
    assert not fits(problems)
    assert time.monotonic() - before < 5
    assert sum(one.kind == "type" for one in problems) == 1, "equal nodes are one problem"


ALONE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from armlet_runtime.contract import check
loaded = {name.partition(".")[0] for name in sys.modules}
documents = json.load(sys.stdin) if len(sys.argv) < 3 else json.loads(sys.argv[2])
print(json.dumps([[list(one) for one in check(*pair)] for pair in documents]))
assert not loaded & {"numpy", "pydantic", "armlet", "ctypes"}, loaded
"""


def test_the_device_gives_the_hosts_answer_with_the_standard_library_alone() -> None:
    folder = str(Path(armlet_runtime.__file__).parents[1])
    pairs = every_misfit()
    argv = (sys.executable, "-S", "-I", "-c", ALONE, folder, json.dumps(pairs))
    done = HostRunner().run(Command(argv=argv))
    assert done.code == 0, done.output
    assert json.loads(done.tail[-1]) == answered(pairs)
