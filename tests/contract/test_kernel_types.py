"""The tables of what kernels take, against ONNX Runtime's own definitions of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pytest

from armlet.kernels import Takes
from armlet.onnx.kernel_types import defined
from armlet.paths import Paths
from armlet.recipes import SOURCE_SETS, load_kernel_types, load_operators
from armlet.registrations import Registration, kernel_types, kernel_types_text, table
from tests.conftest import ROOT

PATHS = Paths(root=ROOT, cache=ROOT / "no-cache")
HALF = ("MLFloat16",)

Key = tuple[str, str, int, int | None]


def types_of(source_set: str) -> dict[Registration, dict[str, tuple[str, ...]]]:
    text = load_kernel_types(PATHS, source_set)
    assert text is not None, "write it (docs/adding-a-sku.md, Operators)"
    assert kernel_types_text(kernel_types(text)) == text, "edited by hand"
    return kernel_types(text)


@pytest.mark.parametrize("source_set", SOURCE_SETS.names(PATHS))
def test_every_operator_with_kernels_is_there(source_set: str) -> None:
    # Half precision is not in every build, and has no operator of its own.
    whole = [one for one in types_of(source_set) if one.types != HALF]
    known = load_operators(PATHS, source_set)
    assert known is not None
    assert {domain: {op: (*since,) for op, since in ops.items()} for domain, ops in table(whole).items()} == {
        domain: dict(ops) for domain, ops in known.items()
    }


def plain(found: Mapping[Key, Sequence[Takes]]) -> dict[Key, list[list[tuple[str, tuple[str, ...]]]]]:
    return {key: sorted(sorted(takes.items()) for takes in kernels) for key, kernels in found.items() if kernels}


def test_they_are_what_onnx_runtime_says() -> None:
    ours: dict[Key, list[Takes]] = defaultdict(list)
    halves = []
    theirs = defined()
    for one, takes in types_of("onnxruntime-1.21.0").items():
        key = (one.domain, one.op, one.since, one.until)
        if takes == {"T": ("float16",)} and takes not in theirs[key]:
            halves.append(one)
        else:
            ours[key].append(takes)
    assert plain(ours) == plain(theirs)
    assert {one.types for one in halves} == {HALF}
    assert {one.op for one in halves} == {
        "AveragePool", "Conv", "FusedConv", "GlobalAveragePool", "LeakyRelu", "MaxPool", "NhwcFusedConv", "Relu",
    }  # fmt: skip


def test_a_kernel_takes_what_its_class_is_made_for() -> None:
    for one, takes in types_of("onnxruntime-1.21.0").items():
        allowed = {kind for types in takes.values() for kind in types}
        for name in one.types:
            plain = name.removesuffix("_t").lower()
            named = {"mlfloat16": "float16", "int4x2": "int4", "uint4x2": "uint4"}.get(plain, plain)
            # A name of several types is one word in the source: int64_t_float_int32_t.
            assert named in allowed or all(
                any(part in kind for kind in allowed) for part in named.split("_") if part != "t"
            )
