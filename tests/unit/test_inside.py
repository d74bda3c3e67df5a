from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from armlet.engine import ContainerRunner
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Line, Progress, Sink, silent
from armlet.process import Command, Done
from armlet.spec.sku import Allow
from armlet.steps import inside
from armlet.steps.operators import allowed, reduced_config


class FakeContainer:
    """Answers every command with given lines and a given exit code."""

    def __init__(self, lines: list[str], code: int) -> None:
        self.lines, self.code = lines, code

    def run(self, command: Command, emit: Sink = silent) -> Done:
        for line in self.lines:
            emit(Line(text=line))
        return Done(code=self.code, tail=tuple(self.lines))


def run(lines: list[str], code: int, log: Path, emit: Sink = silent) -> None:
    runner = cast(ContainerRunner, FakeContainer(lines, code))
    inside.run(runner, Command(argv=("ninja", "all")), log=log, emit=emit, shell_on_fail=False)


@pytest.mark.parametrize(
    ("lines", "kind", "named"),
    [
        (["[1/2] x", "a.cc:3:1: error: no such type", "b.cc:1:1: error: later"], Kind.BUILD, "no such type"),
        (["ld: a.o: undefined reference to `f'"], Kind.BUILD, "undefined reference"),
        (["cc1plus: fatal error: /build/x: No space left on device"], Kind.HOST, "No space left"),
        (["c++: fatal error: Killed signal terminated program cc1plus"], Kind.HOST, "Killed signal"),
        (["CMake Error at x.cmake:1 (message):"], Kind.BUILD, "CMake Error"),
        (["something else"], Kind.BUILD, "something else"),
    ],
)
def test_a_failure_names_its_first_error_and_the_log(tmp_path: Path, lines: list[str], kind: Kind, named: str) -> None:
    log = tmp_path / "compile.log"
    with pytest.raises(ArmletError) as caught:
        run(lines, 1, log)
    assert named in caught.value.what
    assert caught.value.kind is kind
    assert caught.value.log == log
    assert set(lines) <= set(log.read_text().splitlines())


def test_an_error_of_an_earlier_command_is_not_blamed_again(tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    log.write_text("old.cc:1:1: error: mended since\n")
    with pytest.raises(ArmletError) as caught:
        run(["new.cc:1:1: error: fresh"], 1, log)
    assert "fresh" in caught.value.what


def test_ninjas_count_becomes_progress(tmp_path: Path) -> None:
    events: list[Event] = []
    run(["[3/7] Building x.o", "[warn] y"], 0, tmp_path / "log", events.append)
    assert [event for event in events if isinstance(event, Progress)] == [
        Progress(label="compile", done=3, total=7, unit="files")
    ]


def test_an_allow_list_covers_every_opset_of_its_range() -> None:
    needed = allowed(
        [
            Allow(opsets=(11, 12), operators=("Conv", "com.microsoft:FusedConv")),
            Allow(opsets=(12, 12), operators=("Add",)),
        ]
    )
    assert reduced_config(needed) == (
        "ai.onnx;11;Conv\nai.onnx;12;Add,Conv\ncom.microsoft;11;FusedConv\ncom.microsoft;12;FusedConv\n"
    )


def test_progress_goes_by_what_the_objects_cost() -> None:
    advance = inside.Advance({"a.dir/Unity/unity_0.cxx.o": 90.0, "b.dir/x.c.o": 10.0})
    lines = (
        "[1/4] Generating onnx-ml.pb.cc",
        "[2/4] Building C object b.dir/x.c.o",
        "warning: [3/4] is no line of ninja's",
        "[3/4] Building CXX object a.dir/Unity/unity_0.cxx.o",
        "[4/4] Linking CXX shared library libonnxruntime.so",
    )
    told = [advance.after(line) for line in lines]
    assert [progress and (progress.done, progress.total) for progress in told] == [
        (0, 100),
        (10, 100),
        None,
        (100, 100),
        (100, 100),
    ]


def test_objects_that_nobody_asked_for_do_not_keep_progress_from_its_end() -> None:
    advance = inside.Advance({"a.o": 10.0, "never-built.o": 10.0})
    told = [advance.after(line) for line in ("[1/2] Building C object a.o", "[2/2] Linking x")]
    assert [progress and progress.done for progress in told] == [10, 20]
