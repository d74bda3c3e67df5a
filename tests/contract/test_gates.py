"""Every gate of the table lets a good artefact pass, stops a bad one, and is documented."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from armlet.gates import GATES, Artefact, Gate, run_gates
from tests.fakes.artefacts import EXPECTED, fake_armhf_artefact, fake_artefact
from tests.fakes.elf_file import EM_X86_64, FakeElf

ROOT = Path(__file__).resolve().parents[2]

SPOILT: dict[str, tuple[Callable[[], Artefact], str]] = {
    "machine": (
        lambda: fake_artefact(more={"bin/protoc": FakeElf(machine=EM_X86_64).build()}),
        "bin/protoc: is for X86_64",
    ),
    "paths": (lambda: fake_artefact(FakeElf(extra=b"\0/build/src/a.cc\0")), "/build/src/a.cc"),
    "size": (
        lambda: fake_artefact(expected=dataclasses.replace(EXPECTED, budget=100)),
        "more than its budget",
    ),
    "debug": (lambda: fake_artefact(debug={}), "libonnxruntime.so.1.21.0.debug is missing"),
    "float": (lambda: fake_armhf_artefact(flags=0x5000200, TAG_ABI_VFP_ARGS=0), "soft float"),
    "neon": (lambda: fake_armhf_artefact(TAG_ADVANCED_SIMD_ARCH=0), "without NEON"),
    "stack": (lambda: fake_artefact(FakeElf(stack=7)), "PT_GNU_STACK is RWX"),
    "relro": (lambda: fake_artefact(FakeElf(bind_now=False)), "RELRO is partial"),
    "nx": (lambda: fake_artefact(FakeElf(writable_code=True)), "0x1000 is writable and executable"),
    "rpath": (lambda: fake_artefact(FakeElf(runpath="$ORIGIN")), "RPATH/RUNPATH is $ORIGIN"),
    "textrel": (lambda: fake_artefact(FakeElf(text_relocations=True)), "relocations in its code"),
    "needed": (lambda: fake_artefact(FakeElf(needed=("libc.so.6", "libstdc++.so.6"))), "needs libstdc++.so.6"),
    "glibc": (lambda: fake_artefact(FakeElf(asks=(("strlcpy", "GLIBC_2.38"),))), "strlcpy@GLIBC_2.38"),
    "glibcxx": (
        lambda: fake_artefact(FakeElf(asks=(("malloc", "GLIBC_2.17"), ("_Znwm", "GLIBCXX_3.4")))),
        "_Znwm@GLIBCXX_3.4",
    ),
    "exports": (
        lambda: fake_artefact(FakeElf(exports=(*sorted(EXPECTED.exports), "inflate"))),
        "exports inflate@VERS_1.21.0",
    ),
    "undefined": (lambda: fake_artefact(FakeElf(undefined=("xnn_delete_operator",))), "asks for xnn_delete_operator"),
    "soname": (lambda: fake_artefact(FakeElf(soname="libort.so")), "its soname is libort.so"),
}


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize("good", [fake_artefact, fake_armhf_artefact])
def test_a_good_artefact_passes(gate: Gate, good: Callable[[], Artefact]) -> None:
    verdict = gate.check(good())
    assert verdict.problems == ()
    assert verdict.measured


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_bad_artefact_is_stopped_by_this_gate_alone(gate: Gate) -> None:
    spoil, told = SPOILT[gate.name]
    failed = {result.name: result for result in run_gates(spoil()) if not result.ok}
    assert set(failed) == {gate.name}
    problems = failed[gate.name].problems
    assert any(told in problem.what for problem in problems), problems
    assert all(problem.hint for problem in problems)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_each_gate_is_documented(gate: Gate) -> None:
    text = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
    assert re.search(rf"^### `{gate.name}`$", text, re.MULTILINE), f"docs/gates.md lacks ### `{gate.name}`"


def test_the_documentation_names_no_gate_that_is_gone() -> None:
    text = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### `(\w+)`$", text, re.MULTILINE)) == {gate.name for gate in GATES}


def test_names_are_unique() -> None:
    names = [gate.name for gate in GATES]
    assert len(names) == len(set(names))
    assert set(names) == set(SPOILT)


def test_a_module_may_ask_its_host_alone() -> None:
    module = dataclasses.replace(EXPECTED, soname="", from_host=("Py", "_Py"))
    gates = {gate.name: gate for gate in GATES}
    good = fake_artefact(FakeElf(soname="", undefined=("PyList_New", "_Py_NoneStruct")), expected=module)
    assert all(not gates[name].check(good).problems for name in ("undefined", "soname"))
    bad = fake_artefact(FakeElf(soname="", undefined=("PyList_New", "inflate")), expected=module)
    assert "asks for inflate" in gates["undefined"].check(bad).problems[0].what
