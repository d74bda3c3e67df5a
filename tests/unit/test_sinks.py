"""What each sink makes of a run's events."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console as RichConsole

from armlet.errors import ArmletError, Kind
from armlet.events import Event, Line, Note, PlanReady, Progress, StepDone, StepStarted
from armlet.gates import GateResult, Problem
from armlet.pipeline import BuildReport, StepReport
from armlet.sinks import fan_out
from armlet.sinks.bars import LiveBar, PlainBar, amount, duration
from armlet.sinks.ci import GitHubGroups, error_commands
from armlet.sinks.console import Console, Echo, console
from armlet.sinks.jsonl import JsonLines
from armlet.sinks.tables import gates_table, summary, table

PLAN = PlanReady(sku="demo", steps=(("sources", "1"), ("image", "2"), ("compile", "3")))


def started(step: str) -> StepStarted:
    return StepStarted(step=step, id="0")


def finished(step: str, *, cached: bool = False, seconds: float = 12) -> StepDone:
    return StepDone(step=step, id="0", cached=cached, seconds=seconds)


def shown(events: Sequence[Event], *, verbose: bool = False, error: type[BaseException] | None = None) -> str:
    out = io.StringIO()
    try:
        with Console(PlainBar(out), verbose=verbose) as sink:
            for event in events:
                sink(event)
            if error:
                raise error
    except (RuntimeError, KeyboardInterrupt):
        pass
    return out.getvalue()


def test_cached_steps_are_folded_into_one_line() -> None:
    text = shown([PLAN, finished("sources", cached=True), finished("image", cached=True), started("compile")])
    assert text.splitlines() == ["demo: 3 steps", "cached: sources, image"]


def test_steps_that_run_are_numbered_and_timed() -> None:
    text = shown([PLAN, started("image"), Note(text="pulling"), finished("image", seconds=75)])
    assert text.splitlines()[1:] == ["[2/3] image ...", "  pulling", "[2/3] image: done in 1:15"]


def test_tools_are_quiet_until_asked() -> None:
    events: list[Event] = [started("compile"), Line(text="gcc -c a.c"), finished("compile")]
    assert "gcc" not in shown(events)
    assert "  | gcc -c a.c" in shown(events, verbose=True).splitlines()


def test_a_failure_shows_the_last_lines_once() -> None:
    events: list[Event] = [started("compile"), *(Line(text=f"line {number}") for number in range(100))]
    text = shown(events, error=RuntimeError)
    assert text.count("  | line ") == 20
    assert text.endswith("line 99\n")
    assert shown(events, verbose=True, error=RuntimeError).count("line 99") == 1


def test_an_interruption_shows_no_output_of_tools() -> None:
    assert "line" not in shown([started("compile"), Line(text="line")], error=KeyboardInterrupt)


def progress(number: int, total: int = 1000, unit: str = "files") -> Progress:
    return Progress(label="compile", done=number, total=total, unit=unit)


def test_plain_progress_is_throttled_and_says_what_is_left() -> None:
    out = io.StringIO()
    now = [0.0]
    bar = PlainBar(out, clock=lambda: now[0])
    for number in range(1001):
        now[0] = number * 0.1
        bar.update(progress(number))
    lines = out.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "  compile: 100 of 1000 files (10%, 1:30 left)"
    assert lines[-1] == "  compile: 1000 of 1000 files (100%)"


def test_slow_plain_progress_shows_life_every_half_minute() -> None:
    out = io.StringIO()
    now = [0.0]
    bar = PlainBar(out, clock=lambda: now[0])
    for number in range(6):
        now[0] = number * 20.0
        bar.update(progress(number))
    assert len(out.getvalue().splitlines()) == 2


def test_progress_without_a_total_is_no_error() -> None:
    out = io.StringIO()
    bar = PlainBar(out)
    bar.update(progress(0, total=0))
    bar.update(progress(5, total=0))


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    out = io.StringIO()
    terminal = RichConsole(file=out, force_terminal=True, width=100)
    with Console(LiveBar(terminal)) as sink:
        sink(PLAN)
        sink(started("compile"))
        sink(progress(1))
        sink(progress(500))
        sink(Line(text="[red]x"))
        sink(finished("compile"))
    text = out.getvalue()
    assert "500 of 1000 files" in text
    assert "[3/3] compile: done in 12 s" in text
    assert text.rstrip().endswith("12 s")


def test_square_brackets_and_colours_of_tools_survive_a_terminal() -> None:
    out = io.StringIO()
    LiveBar(RichConsole(file=out, force_terminal=True, width=100)).say("[3/9] \x1b[31merror[/]\x1b[0m")
    assert "[3/9] " in out.getvalue()
    assert "error[/]" in out.getvalue()


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "live"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "CI": "true"}, False), ({"TERM": "dumb"}, False), ({}, False)],
)
def test_when_a_bar_is_live(environment: dict[str, str], live: bool) -> None:
    out = FakeTerminal()
    with console(out, environment=environment) as sink:
        sink(progress(0))
        sink(progress(1))
    assert ("\x1b[" in out.getvalue()) is live


def test_json_lines_are_whole_at_every_moment(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "events.jsonl"
    with JsonLines(file, clock=lambda: 1.5) as sink:
        sink(StepDone(step="übersetzen", id="0", cached=False, seconds=1.0, output=Path("/x")))
        assert json.loads(file.read_text()) == {
            "event": "StepDone",
            "time": 1.5,
            "step": "übersetzen",
            "id": "0",
            "cached": False,
            "seconds": 1.0,
            "output": "/x",
        }
        sink(Note(text="a\nb"))
        assert len(file.read_text().splitlines()) == 2


def test_json_lines_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(ArmletError) as failed:
        JsonLines(tmp_path / "logs" / "events.jsonl")
    assert failed.value.kind is Kind.HOST


def test_a_full_disk_is_told() -> None:
    with JsonLines(Path("/dev/full")) as sink, pytest.raises(ArmletError, match="No space left") as failed:
        sink(Note(text="x"))
    assert failed.value.kind is Kind.HOST


def test_fan_out_hands_to_each_in_turn() -> None:
    seen: list[tuple[int, Event]] = []
    sink = fan_out(lambda event: seen.append((1, event)), lambda event: seen.append((2, event)))
    sink(PLAN)
    assert seen == [(1, PLAN), (2, PLAN)]


def test_echo_splits_results_from_news() -> None:
    out = io.StringIO()
    rest: list[Event] = []
    sink = Echo(out, rest.append)
    sink(Line(text="5 passed"))
    sink(Note(text="pytest"))
    assert out.getvalue() == "5 passed\n"
    assert rest == [Note(text="pytest")]


def test_github_groups_open_and_close() -> None:
    out = io.StringIO()
    sink = GitHubGroups(out)
    sink(finished("sources", cached=True))
    sink(started("compile"))
    sink(finished("compile"))
    assert out.getvalue() == "::group::compile\n::endgroup::\n"


def test_github_shows_warnings_and_no_other_notes() -> None:
    out = io.StringIO()
    sink = GitHubGroups(out)
    sink(Note(text="compile: sending it"))
    sink(Note(text="warning: the store is 100% down\nreally"))
    assert out.getvalue() == "::warning::the store is 100%25 down%0Areally\n"


def test_github_shows_each_problem_at_its_line() -> None:
    error = ArmletError(
        'runtime.flavor: bad\n hint: "x"\nrecipes/a b.yaml:9: cpu: 100% wrong',
        hint="mend it",
        kind=Kind.INPUT,
        where="recipes/a b.yaml:7",
    )
    assert error_commands(error) == [
        '::error file=recipes/a b.yaml,line=7::runtime.flavor: bad%0Ahint: "x"',
        "::error file=recipes/a b.yaml,line=9::cpu: 100%25 wrong%0Ahint: mend it",
    ]


def test_github_shows_an_error_without_a_place() -> None:
    error = ArmletError("no engine", hint="start it", kind=Kind.HOST, where="/var/run/docker.sock")
    assert error_commands(error) == ["::error::/var/run/docker.sock: no engine%0Ahint: start it"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.42, "0.4 s"), (12.4, "12 s"), (59.6, "1:00"), (185, "3:05"), (3723, "1:02:03")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5120.0 GiB")]
)
def test_amounts(number: int, text: str) -> None:
    assert amount(number, "bytes") == text


def test_tables_align_and_leave_no_trailing_space() -> None:
    assert table(("a", "b"), [("long", ""), ("x", "y")]).splitlines() == ["a     b", "----  -", "long", "x     y"]


def test_a_very_long_cell_does_not_widen_every_line() -> None:
    lines = table(("a", "b"), [("x" * 500, "1"), ("y", "2")]).splitlines()
    assert len(lines[3]) < 100


GATES = (
    GateResult(name="size", measured="3.1 MiB", problems=()),
    GateResult(name="rpath", measured="1", problems=(Problem(what="has an RPATH", hint="drop -rpath"),)),
)


def test_a_failed_gate_shows_problem_and_remedy() -> None:
    text = gates_table(GATES)
    assert "has an RPATH" in text
    assert "drop -rpath" in text
    assert [line.split()[1] for line in text.splitlines()[2:4]] == ["ok", "failed"]


def test_the_summary_names_every_artefact_with_its_hash(tmp_path: Path) -> None:
    artefact = tmp_path / "runtime.tar.xz"
    artefact.write_bytes(b"abc")
    report = cast(
        BuildReport,
        SimpleNamespace(
            sku="demo",
            artefacts=(artefact,),
            steps=(StepReport(name="compile", id="1", cached=True, seconds=0.5),),
            gates=GATES,
        ),
    )
    row = summary(report).splitlines()[2].split()
    assert row[:4] == ["demo", "runtime.tar.xz", "3", "B"]
    assert row[4] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert row[-1] == "cached"
