"""``model.convert`` and ``sku.operators`` as they are typed: the process, what it prints, what it ends with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from armlet.errors import Kind
from armlet.process import Command, Done, HostRunner
from tests.unit.test_conversion import conv


def inv(root: Path, *words: str) -> Done:
    start = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/device']\n"
        "from armlet.cli import main; main(*sys.argv[1:])"
    )
    return HostRunner().run(Command(argv=(sys.executable, "-I", "-c", start, str(root), *words)))


def out(done: Done) -> str:
    """What was printed less the notes, which begin with spaces and go to stderr."""
    return "\n".join(line for line in done.tail if not line.startswith("  model.onnx:"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("model.convert", "m.onnx"), "--sku is missing"),
        (("model.convert", "m.onnx", "--sku", "demo-a53", "--shape", "x"), "is no shape"),
        (("sku.operators", "--from-models", "m.onnx"), "--sku is missing"),
        (("sku.operators", "--sku", "demo-a53"), "--from-models is missing"),
        (("sku.operators", "--sku", "demo-a53", "--from-models", "m.onnx"), "no such file"),
    ],
)
def test_what_is_wrong_is_the_users_input(root: Path, words: tuple[str, ...], part: str) -> None:
    done = inv(root, *words)
    assert done.code == Kind.INPUT, done.output
    assert part in done.output
    assert "Traceback" not in done.output


def test_a_conversion_tells_where_it_is(root: Path, tmp_path: Path) -> None:
    model = conv(tmp_path / "model.onnx", shape=(1, 3, 8, 8))
    place = tmp_path / "net.ort"
    words = ("model.convert", str(model), "--sku", "demo-a53", "--no-load-test", "--out", str(place), "--json")
    done = inv(root, *words)
    assert done.code == 0, done.output
    told = json.loads(out(done))
    assert (told["model"], told["format"], told["level"], told["load_test"]) == (str(place), "ort", "basic", None)
    assert told["operators"] == {"Conv": 1, "Relu": 1}
    assert Path(told["record"]).is_file()


def test_operators_are_printed_as_yaml(root: Path, tmp_path: Path) -> None:
    model = conv(tmp_path / "model.onnx", shape=(1, 3, 8, 8))
    before = (root / "recipes/skus/demo-a53.yaml").read_bytes()
    other = conv(tmp_path / "other.onnx", shape=(1, 3, 8, 8), op="Sigmoid")
    done = inv(root, "sku.operators", "--sku", "demo-a53", "--from-models", str(model), str(other), "--opsets", "11-18")
    assert done.code == 0, done.output
    assert yaml.safe_load(out(done)) == {"allow": [{"opsets": [11, 18], "operators": ["Conv", "Relu", "Sigmoid"]}]}
    assert (root / "recipes/skus/demo-a53.yaml").read_bytes() == before
