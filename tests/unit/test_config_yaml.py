from __future__ import annotations

import os
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet import yamlfile
from armlet.errors import ArmletError, Kind


def refusal(text: str) -> ArmletError:
    with pytest.raises(ArmletError) as caught:
        yamlfile.parse(text, file="x.yaml")
    assert caught.value.kind is Kind.INPUT
    return caught.value


def test_what_is_no_recipe_is_refused_before_it_holds_anything_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "huge.yaml").write_bytes(b"#" * (5 << 20))
    for name, what in (("pipe.yaml", "no regular file"), ("huge.yaml", "5 MiB")):
        with pytest.raises(ArmletError, match=what) as caught:
            yamlfile.read(tmp_path / name, root=tmp_path)
        assert (caught.value.kind, caught.value.where) == (Kind.INPUT, name)


def test_every_key_and_item_knows_its_line() -> None:
    document = yamlfile.parse("a: 1\nb:\n  - x\n  - y: [1,\n     2]\n", file="x.yaml")
    assert document.data == {"a": 1, "b": ["x", {"y": [1, 2]}]}
    assert document.lines[("b",)] == 2
    assert document.lines[("b", 1)] == 4
    assert document.lines[("b", 1, "y", 1)] == 5
    assert document.where(("b", 1, "z", 3)) == "x.yaml:4"


@pytest.mark.parametrize(
    ("written", "value"),
    [("no", "no"), ("on", "on"), ("2024-01-01", "2024-01-01"), ("1:30", "1:30"), ("1_000", "1_000"), ("0x10", "0x10"),
     ("true", True), ("~", None), ("", None), ("2.36", 2.36), ("-3", -3), ("1e3", "1e3"), ("1.0e3", 1000.0),
     ("1.21.0", "1.21.0"), (".nan", ".nan"), ("007", 7), ("'1'", "1")],
)  # fmt: skip
def test_plain_scalars_mean_what_they_look_like(written: str, value: object) -> None:
    data = yamlfile.parse(f"key: {written}\n", file="x.yaml").data
    assert data == {"key": value}
    assert type(data["key"]) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        ("", 1, "is empty", "copy"),
        ("# only a comment\n", 1, "is empty", "copy"),
        ("- a\n- b\n", 1, "must hold keys and values", "schema: 1"),
        ("just text\n", 1, "must hold keys and values", "schema: 1"),
        ("a: 1\n\tb: 2\n", 2, "is no YAML", "no tabs"),
        ("a: 1\nb: c: d\n", 2, "is no YAML", "quotes"),
        ("a: 1\nb: [1, 2\n", 3, "is no YAML", "brackets"),
        ("a: 1\n---\nb: 2\n", 2, "is no YAML", "one document"),
        ("a: &x 1\nb: *x\n", 2, "is no YAML: an alias", "no anchors"),
        ("a: &x [*x]\n", 1, "is no YAML: an alias", "no anchors"),
        ("a: 1\nb: \x07\n", 2, "holds the control character U+0007", "remove"),
        ("a: " + "[" * 5000, 1, "is nested too deeply", "levels"),
        ("a: " + "9" * 5000, 1, "holds a number that cannot be read", "quotes"),
    ],
)
def test_what_is_no_recipe_is_refused_with_its_line(text: str, line: int, what: str, hint: str) -> None:
    error = refusal(text)
    assert error.where == f"x.yaml:{line}"
    assert error.what.startswith(what)
    assert hint in error.hint


def test_a_key_given_twice_names_both_lines() -> None:
    document = yamlfile.parse("a:\n  b: 1\n  c: 2\n  b: 3\n", file="x.yaml")
    (problem,) = document.problems
    assert (problem.where, problem.what) == ("x.yaml:4", "a.b: is given twice")
    assert "line 2" in problem.hint


@pytest.mark.parametrize("text", ["a: !!python/object:os.system x\n", "a: !!binary aGk=\n", "a: !thing x\n"])
def test_tags_are_not_taken(text: str) -> None:
    (problem,) = yamlfile.parse(text, file="x.yaml").problems
    assert problem.where == "x.yaml:1"
    assert "is not taken" in problem.what


def test_keys_must_be_text() -> None:
    (problem,) = yamlfile.parse("? [a]\n: 1\n", file="x.yaml").problems
    assert (problem.where, problem.what) == ("x.yaml:1", "a key must be text")


def test_messages_stay_on_one_line_and_can_be_printed() -> None:
    document = yamlfile.parse('"a\\nb": "x\\ud800"\n', file="x.yaml")
    (problem,) = document.problems
    assert problem.what == '["a\\nb"]: is no valid text'
    told = document.problem(("a\nb",), 'unknown "\x1b[31m"', "")
    assert told.what == '["a\\nb"]: unknown "\\x1b[31m"'


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes("a: 1\r\nb: grün\r\n".encode("utf-8-sig"))
    document = yamlfile.read(path, root=tmp_path)
    assert document.data == {"a": 1, "b": "grün"}
    assert document.lines[("b",)] == 2
    assert document.source(("b",)) == "grün"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: gr\xfcn\n")
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    told = {}
    for name in ("folder.yaml", "latin.yaml", "dangling.yaml", "missing.yaml"):
        with pytest.raises(ArmletError) as caught:
            yamlfile.read(tmp_path / name, root=tmp_path)
        told[name] = f"{caught.value.where}: {caught.value.what}"
    assert told == {
        "folder.yaml": "folder.yaml: is a folder",
        "latin.yaml": "latin.yaml:2: is not UTF-8",
        "dangling.yaml": "dangling.yaml: there is no such file",
        "missing.yaml": "missing.yaml: there is no such file",
    }


@given(st.text(alphabet=string.printable + "äß€\x00\ud800", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    error = _refusal_or_none(text)
    assert error is None or (error.where.startswith("x.yaml:") and error.hint)


def _refusal_or_none(text: str) -> ArmletError | None:
    try:
        yamlfile.parse(text, file="x.yaml")
    except ArmletError as error:
        return error
    return None
