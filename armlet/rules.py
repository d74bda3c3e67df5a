"""Combinations that a SKU may not ask for, each with its reason.

The rules look at the document, not at a validated model, so that they speak up beside unknown keys and typing errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from armlet.case import Case, Rule
from armlet.choosing import floors_told, is_glibc, old_enough
from armlet.int8_rules import int8
from armlet.operator_rules import allow
from armlet.provider_rules import providers
from armlet.python_rules import python
from armlet.spec import unsupported
from armlet.spec.base import version_key
from armlet.spec.cpu import CPUS
from armlet.validation import did_you_mean
from armlet.yamlfile import Problem


def _cpu(case: Case) -> Iterator[Problem]:
    given = case.sku.get("cpu")
    if not isinstance(given, str):
        return
    known = [name for name, cpu in CPUS.items() if case.toolchain is None or cpu.arch == case.toolchain.arch]
    cpu = CPUS.get(given)
    in_32_bit = f"{given.lower()}-aarch32"
    if cpu is None:
        near = in_32_bit if in_32_bit in known and case.toolchain is not None else given
        unknown = (f'unknown CPU "{given}"', did_you_mean(near, known))
        yield case.sku.problem(("cpu",), *(unsupported.refusal("cpu", given) or unknown))
    elif case.toolchain is not None and cpu.arch != case.toolchain.arch:
        yield case.sku.problem(
            ("cpu",),
            f"{given} is an {cpu.arch} core, and {case.toolchain.name} compiles for {case.toolchain.arch}",
            did_you_mean(in_32_bit, known) if in_32_bit in known else f"CPUs of this toolchain: {', '.join(known)}",
        )


def _glibc(case: Case) -> Iterator[Problem]:
    floor = case.sku.get("floors", "glibc")
    if case.toolchain is None or not is_glibc(floor):
        return
    if version_key(floor) >= version_key(case.toolchain.floors.glibc):
        return
    same = [toolchain for toolchain in case.toolchains if toolchain.arch == case.toolchain.arch]
    fitting = [toolchain.name for toolchain in old_enough(same, floor)]
    yield case.sku.problem(
        ("floors", "glibc"),
        f"a rootfs with glibc {floor} cannot run what {case.toolchain.name} links, which needs "
        f"{case.toolchain.floors.glibc}",
        f"toolchains that fit: {', '.join(fitting)}; or leave toolchain: out, and the newest of them is chosen"
        if fitting
        else f"no {case.toolchain.arch} toolchain goes that far back; floors to be had: {floors_told(same)}; "
        "or add a toolchain (docs/adding-a-toolchain.md)",
    )


def _some_operators(case: Case) -> Iterator[Problem]:
    runtime = case.sku.get("runtime")
    if not isinstance(runtime, dict) or runtime.get("flavor") not in ("minimal", "reduced"):
        return
    operators = runtime.get("operators", {})
    if isinstance(operators, dict) and not operators.get("models") and not operators.get("allow"):
        yield case.sku.problem(
            ("runtime", "operators"),
            f"flavor: {runtime['flavor']} keeps only named operators, and none are named",
            "add models: or allow: (docs/adding-a-sku.md)",
        )


def _full_allow(case: Case) -> Iterator[Problem]:
    if case.sku.get("runtime", "flavor") == "full" and case.sku.get("runtime", "operators", "allow"):
        yield case.sku.problem(
            ("runtime", "operators", "allow"),
            "flavor: full keeps every operator: there is nothing to allow",
            "leave allow: out, or write flavor: reduced",
        )


def _models(case: Case) -> Iterator[Problem]:
    models = case.sku.get("runtime", "operators", "models")
    seen: set[str] = set()
    for index, model in enumerate(models if isinstance(models, list) else ()):
        if not isinstance(model, dict):
            continue
        key = ("runtime", "operators", "models", index)
        places = [place for place in ("path", "wheel") if model.get(place) is not None]
        if len(places) != 1:
            what = "has no place" if not places else "has two places"
            yield case.sku.problem(
                key, what, "give one of path: (a file of this project) and wheel: (a file in a wheel)"
            )
        name = model.get("name")
        if isinstance(name, str) and name in seen:
            yield case.sku.problem((*key, "name"), f'"{name}" is given twice', "give every model a name of its own")
        elif isinstance(name, str):
            seen.add(name)


RULES: tuple[Rule, ...] = (_cpu, python, *providers, _glibc, _some_operators, _full_allow, _models, int8, allow)


def check(case: Case) -> list[Problem]:
    """Everything that the rules have against a SKU."""
    return [problem for rule in RULES for problem in rule(case)]
