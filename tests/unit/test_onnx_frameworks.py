"""Environments of frameworks: made whole, made once, and never half-made. pip itself is a fake here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from armlet.errors import ArmletError, Kind
from armlet.onnx.exporting import export
from armlet.onnx.frameworks import PROBES, Framework, interpreter
from armlet.onnx.model_sources import FRAMEWORKS, source_of
from armlet.paths import Paths
from armlet.process import Command, Done
from tests.conftest import ROOT
from tests.fakes.runner import Answer, FakeRunner, done


def venv(command: Command) -> Done:
    """What ``python -m venv`` leaves."""
    python = Path(command.argv[-1], "bin", "python")
    python.parent.mkdir(parents=True)
    python.touch()
    return done()


@pytest.fixture
def project(paths: Paths) -> Paths:
    (paths.root / "requirements-torch.lock").write_text("torch==1\n")
    return paths


def fake(**answers: Answer) -> FakeRunner:
    return FakeRunner({"-m venv": venv, **{key.replace("_", " "): answer for key, answer in answers.items()}})


def made(paths: Paths, runner: FakeRunner) -> Path:
    return interpreter("torch", paths, runner)


def test_an_environment_is_made_from_the_lock_and_then_found(project: Paths) -> None:
    runner = fake()
    python = made(project, runner)
    assert python.parent.parent.parent == project.cache / "frameworks"
    install = runner.asked[1]
    for flag in ("--require-hashes", "--no-deps", "--only-binary :all:", "requirements-torch.lock"):
        assert flag in install
    assert PROBES["torch"] in runner.asked[2]
    assert made(project, runner) == python
    assert len(runner.asked) == 3


def test_another_lock_means_another_environment(project: Paths) -> None:
    first = made(project, fake())
    (project.root / "requirements-torch.lock").write_text("torch==2\n")
    assert made(project, fake()) != first
    assert first.exists()


def interrupt(_: Command) -> Done:
    raise KeyboardInterrupt


@pytest.mark.parametrize("answer", [done(1, "no matching distribution"), interrupt])
@pytest.mark.parametrize("step", ["install", "import torch"])
def test_what_fails_or_is_interrupted_leaves_nothing(project: Paths, step: str, answer: Answer) -> None:
    runner = FakeRunner({step: answer, "-m venv": venv})
    with pytest.raises((ArmletError, KeyboardInterrupt)):
        made(project, runner)
    assert [path for path in (project.cache / "frameworks").iterdir() if path.is_dir()] == []
    assert made(project, fake()).exists()


def test_what_was_killed_half_way_is_made_anew(project: Paths) -> None:
    python = made(project, fake())
    (python.parent.parent / "armlet.stamp").unlink()
    (python.parent.parent / "half").touch()
    runner = fake()
    assert made(project, runner) == python
    assert len(runner.asked) == 3
    assert not (python.parent.parent / "half").exists()


def test_an_environment_whose_python_went_away_is_made_anew(project: Paths) -> None:
    python = made(project, fake())
    python.unlink()
    python.symlink_to(project.root / "gone")
    runner = fake()
    made(project, runner)
    assert len(runner.asked) == 3


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("ERROR: No matching distribution found for torch==2.13.0+cpu", "PIP_FIND_LINKS"),
        ("OSError: [Errno 28] No space left on device", "free some space"),
        ("ReadTimeoutError", "--python"),
    ],
)
def test_why_it_cannot_be_made(project: Paths, said: str, part: str) -> None:
    with pytest.raises(ArmletError) as caught:
        made(project, fake(install=done(1, said)))
    assert caught.value.kind is Kind.HOST
    assert part in caught.value.hint


def test_the_users_own_python_is_taken_as_it_is(project: Paths, tmp_path: Path) -> None:
    runner = fake()
    link = tmp_path / "python"
    link.symlink_to("/bin/sh")
    assert interpreter("torch", project, runner, python=str(link)) == link
    assert runner.asked == []
    with pytest.raises(ArmletError) as caught:
        interpreter("torch", project, runner, python=str(tmp_path / "none"))
    assert caught.value.kind is Kind.INPUT


def test_every_framework_has_a_lock_and_a_program() -> None:
    for framework in {*FRAMEWORKS.values()}:
        assert (ROOT / f"requirements-{framework}.lock").is_file()
        assert (ROOT / "armlet" / "onnx" / "exporters" / f"{framework}_models.py").is_file()
        assert framework in PROBES


class TestReplies:
    """What comes back of an exporter, from a fake of one."""

    def exported(self, tmp_path: Path, answer: Answer, framework: Framework = "torch") -> object:
        (tmp_path / "m.pt").touch()
        folder = tmp_path / "out"
        folder.mkdir()
        return export(
            source_of("m.pt", tmp_path),
            folder,
            python=Path("python"),
            runner=FakeRunner({"export.py": answer}),
            logs=tmp_path / "logs",
            opset=17,
        )

    def test_runs(self, tmp_path: Path) -> None:
        def answer(command: Command) -> Done:
            request = json.loads(Path(command.argv[-1]).read_text())
            numpy.savez(Path(request["out"], "run-0.npz"), i0=numpy.ones(2), i1=numpy.ones(3), o0=numpy.zeros(1))
            reply = {
                **{"inputs": ["a", "b"], "outputs": None, "runs": [{"name": "r", "file": "run-0.npz"}]},
                **{"notes": ["n"], "tools": {"torch": "2"}, "files": []},
            }
            Path(request["reply"]).write_text(json.dumps(reply))
            return done()

        found = self.exported(tmp_path, answer)
        (run,) = found.runs  # type: ignore[attr-defined]
        assert {name: array.size for name, array in run.inputs.items()} == {"a": 2, "b": 3}
        assert [array.size for array in run.outputs] == [1]

    def test_what_it_leaves_in_the_temporary_folder_goes_with_ours(self, tmp_path: Path) -> None:
        def answer(command: Command) -> Done:
            Path(command.env["TMPDIR"], "torchinductor_user").mkdir()
            return done(-9)

        with pytest.raises(ArmletError):
            self.exported(tmp_path, answer)
        assert list((tmp_path / "out").rglob("torchinductor_user"))

    def test_an_error_is_a_sentence_and_its_trace_a_file(self, tmp_path: Path) -> None:
        def answer(command: Command) -> Done:
            request = json.loads(Path(command.argv[-1]).read_text())
            error = {"what": "it broke", "hint": "mend it", "at": "code.py:3", "trace": "Traceback: long"}
            Path(request["reply"]).write_text(json.dumps({"error": error}))
            return done()

        with pytest.raises(ArmletError) as caught:
            self.exported(tmp_path, answer)
        assert (caught.value.kind, caught.value.where) == (Kind.INPUT, "m.pt (code.py:3)")
        assert caught.value.log is not None
        assert caught.value.log.read_text() == "Traceback: long"

    def test_a_program_that_dies(self, tmp_path: Path) -> None:
        with pytest.raises(ArmletError) as caught:
            self.exported(tmp_path, done(-9, "Killed"))
        assert caught.value.kind is Kind.HOST
        assert "memory" in caught.value.hint

    @pytest.mark.parametrize("reply", [b"", b"{", b"[]", b"3", b"null", b"{}", b"\xff\xfe", b'{"error": 1}'])
    def test_an_answer_that_makes_no_sense(self, tmp_path: Path, reply: bytes) -> None:
        def answer(command: Command) -> Done:
            Path(json.loads(Path(command.argv[-1]).read_text())["reply"]).write_bytes(reply)
            return done()

        with pytest.raises(ArmletError, match="makes no sense") as caught:
            self.exported(tmp_path, answer)
        assert caught.value.kind is Kind.HOST
