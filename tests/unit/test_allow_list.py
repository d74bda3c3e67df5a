"""Operators put into a SKU's file: every other character stays where it was."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest

from armlet.allow_list import Entry, Item, merged, missing, rendered
from armlet.errors import ArmletError, Kind
from armlet.spec.sku import Allow
from armlet.yamlfile import parse

FILE = """\
schema: 1  # of the format
runtime:
  flavor: minimal
  operators:
    # Kept whatever happens.
    models: []
    allow:
      - opsets: [11, 17]
        operators:
          # The first.
          - Add
          - Conv  # with its reason
          # What follows Relu.
          - Relu

      # Of another domain.
      - opsets: [1, 1]
        operators: ["com.microsoft:FusedConv"]
    # What kernels are compiled for.
    types: [float, int64]
floors:
  glibc: "2.36"
"""


def entry(*names: str, opsets: tuple[int, int] = (11, 17), domain: str = "ai.onnx", why: str = "") -> Entry:
    return Entry(domain=domain, opsets=opsets, items=tuple(Item(name=name, why=why) for name in names))


def put(text: str, *entries: Entry, types: tuple[str, ...] = ()) -> str:
    return merged(parse(text, file="sku.yaml"), entries, types)


def added(before: str, after: str) -> list[str]:
    """The new lines; fails where a line is gone."""
    changes = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    assert [line for line in changes if line[0] == "-"] == []
    return [line[2:] for line in changes]


def allowed(text: str) -> Any:
    return parse(text, file="sku.yaml").get("runtime", "operators", "allow")


def test_an_operator_goes_to_its_place_in_the_alphabet() -> None:
    after = put(FILE, entry("BatchNormalization", "Abs", "Tanh", why="net (float)"))
    assert added(FILE, after) == [
        "          - Abs  # net (float)",
        "          - BatchNormalization  # net (float)",
        "          - Tanh  # net (float)",
    ]
    assert allowed(after)[0]["operators"] == ["Abs", "Add", "BatchNormalization", "Conv", "Relu", "Tanh"]
    lines = after.splitlines()
    # A comment stays with the operator that it is about.
    assert lines[lines.index("          # What follows Relu.") + 1] == "          - Relu"


def test_another_range_is_an_entry_of_its_own_behind_the_last() -> None:
    after = put(FILE, entry("Erf", opsets=(18, 18)))
    assert added(FILE, after) == ["      - opsets: [18, 18]", "        operators:", "          - Erf"]
    assert allowed(after)[2] == {"opsets": [18, 18], "operators": ["Erf"]}


def test_a_list_in_one_line_grows_there() -> None:
    after = put(FILE, entry("Gelu", domain="com.microsoft", opsets=(1, 1), why="net"), types=("bool", "uint8"))
    assert 'operators: ["com.microsoft:FusedConv", "com.microsoft:Gelu"]\n' in after
    assert "types: [float, int64, bool, uint8]\n" in after
    assert len(after.splitlines()) == len(FILE.splitlines())


@pytest.mark.parametrize(
    ("without", "parts"),
    [
        ("    allow:\n", 1),
        ("  operators:\n", 2),
    ],
)
def test_a_list_that_is_not_there_is_begun(without: str, parts: int) -> None:
    start = FILE.index(without)
    text = FILE[:start] + FILE[FILE.index("floors:") :]
    after = put(text, entry("Conv"))
    assert allowed(after) == [{"opsets": [11, 17], "operators": ["Conv"]}]
    assert len(added(text, after)) == parts + 3


def test_a_file_without_a_last_newline() -> None:
    short = FILE[: FILE.index("    # What kernels")].rstrip("\n")
    assert allowed(put(short, entry("Erf", opsets=(18, 18))))[2]["operators"] == ["Erf"]


def test_a_list_over_several_lines_stays_whole() -> None:
    text = FILE.replace('["com.microsoft:FusedConv"]', '[\n          "com.microsoft:FusedConv",\n        ]  # both\n')
    after = put(text, entry("Erf", opsets=(18, 18)))
    assert allowed(after)[1:] == [
        {"opsets": [1, 1], "operators": ["com.microsoft:FusedConv"]},
        {"opsets": [18, 18], "operators": ["Erf"]},
    ]


@pytest.mark.parametrize(
    "allow",
    ["allow: [{opsets: [11, 17], operators: [Add]}]\n", "allow: []\n", "allow:\n      -\n        opsets: [1, 1]\n"],
)
def test_a_layout_that_nothing_can_be_put_into_is_refused(allow: str) -> None:
    text = FILE[: FILE.index("allow:")] + allow + FILE[FILE.index("floors:") :]
    with pytest.raises(ArmletError, match="laid out") as caught:
        put(text, entry("Erf", opsets=(18, 18)))
    assert caught.value.kind is Kind.INPUT
    assert "without --write" in caught.value.hint


def test_a_reason_stays_on_its_line() -> None:
    text = rendered([entry("Conv", why="a\nb: ü # c")])
    assert text.splitlines()[-1] == "    - Conv  # a?b: ? # c"


def test_what_is_printed_can_be_pasted() -> None:
    entries = [entry("Add", "Conv", why="net"), entry("Gelu", domain="com.microsoft", opsets=(1, 1))]
    pasted = parse("allow:\n" + rendered(entries, indent=2), file="x").data["allow"]
    rules = [Allow.model_validate_json(json.dumps(rule)) for rule in pasted]
    assert missing(entries, rules) == ()


def test_missing_is_what_is_not_allowed_for_the_whole_range() -> None:
    rules = [
        Allow(opsets=(11, 13), operators=("Add", "Conv")),
        Allow(opsets=(14, 17), operators=("Add",)),
        Allow(opsets=(1, 1), operators=("com.microsoft:Gelu",)),
    ]
    wanted = [entry("Add", "Conv", "Relu"), entry("Gelu", domain="com.microsoft", opsets=(1, 1))]
    assert [item.name for one in missing(wanted, rules) for item in one.items] == ["Conv", "Relu"]
