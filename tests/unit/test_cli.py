"""The edge: exit codes, questions, and a front door that opens without Docker or ONNX."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from invoke.exceptions import Exit

from armlet import cli
from armlet.errors import ArmletError, Kind
from armlet.events import Line, Note, silent
from armlet.paths import Paths
from armlet.process import Command, Done, HostRunner
from armlet.suite import check, clean
from tests.fakes.runner import FakeRunner, done

START = "import sys; sys.path.insert(0, sys.argv[1]); from armlet.cli import main; main(*sys.argv[1:])"


def inv(project: Path, *words: str) -> Done:
    return HostRunner().run(Command(argv=(sys.executable, "-I", "-c", START, str(project), *words), cwd=Path("/")))


def project(folder: Path, body: str) -> Path:
    """A project whose one task has this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    (folder / "tasks.py").write_text(
        "from pathlib import Path\n"
        "from invoke.tasks import task\n"
        "from armlet.cli import edge\n"
        "from armlet.errors import ArmletError, Kind\n"
        f"@task\n@edge\ndef go(_context):\n{lines}\n"
    )
    return folder


def run_body(root: Path, folder: Path, body: str) -> Done:
    """Runs that task in a process of its own, with the real modules."""
    start = (
        "import sys; sys.path.insert(0, sys.argv[1]); from armlet.cli import invoke;"
        "sys.exit(invoke('--search-root', sys.argv[2], 'go'))"
    )
    where = project(folder, body)
    return HostRunner().run(Command(argv=(sys.executable, "-I", "-c", start, str(root), str(where))))


@pytest.mark.parametrize("kind", list(Kind))
def test_an_explained_error_ends_with_its_code_and_no_traceback(root: Path, tmp_path: Path, kind: Kind) -> None:
    body = f"raise ArmletError('it broke', hint='mend it', kind=Kind({int(kind)}), where='a.yaml:3')"
    ended = run_body(root, tmp_path, body)
    assert ended.code == kind
    assert ended.tail == ("error: a.yaml:3: it broke", " hint: mend it")


def test_any_other_error_is_our_bug(root: Path, tmp_path: Path) -> None:
    ended = run_body(root, tmp_path, "raise ValueError('odd')")
    assert ended.code == 1
    assert ended.tail[0].startswith("Traceback")
    assert "this is a bug in Armlet" in ended.tail[-1]


def test_an_interruption_is_130_without_a_traceback(root: Path, tmp_path: Path) -> None:
    ended = run_body(root, tmp_path, "raise KeyboardInterrupt")
    assert ended.code == 130
    assert ended.tail == ("interrupted",)


@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.parametrize(("then", "code"), [("pass", 0), ("raise ArmletError('x', hint='', kind=Kind.GATE)", 5)])
def test_a_reader_that_leaves_changes_nothing(root: Path, tmp_path: Path, stream: int, then: str, code: int) -> None:
    # The stream becomes a pipe that nobody reads.
    body = (
        f"import os, sys\nfrom armlet import cli\nfrom armlet.sinks.bars import PlainBar\n"
        f"r, w = os.pipe()\nos.dup2(w, {stream})\nos.close(r)\n"
        f"cli.show('x' * 100000)\nPlainBar(sys.stderr).say('y')\n{then}"
    )
    assert run_body(root, tmp_path, body).code == code


def test_a_result_that_finds_no_room_is_the_hosts_fault(root: Path, tmp_path: Path) -> None:
    body = "import os\nfrom armlet import cli\nos.dup2(os.open('/dev/full', os.O_WRONLY), 1)\ncli.show('x')"
    ended = run_body(root, tmp_path, body)
    assert ended.code == Kind.HOST
    assert ended.tail[0] == "error: /dev/stdout: cannot write: No space left on device"


def test_a_full_disk_is_the_hosts_fault_wherever_it_shows(root: Path, tmp_path: Path) -> None:
    ended = run_body(root, tmp_path, "raise OSError(28, 'No space left on device', '/somewhere')")
    assert ended.code == Kind.HOST
    assert ended.tail[0] == "error: /somewhere: cannot write: No space left on device"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(root: Path, tmp_path: Path, closed: str) -> None:
    mark = tmp_path / "ran"
    folder = project(tmp_path, f"from armlet import cli\ncli.show('x')\nPath({str(mark)!r}).touch()")
    start = "import sys; sys.path.insert(0, sys.argv[1]); from armlet.cli import main; main(sys.argv[2], 'go')"
    shell = ("sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-I", "-c", start, str(root), str(folder))
    assert HostRunner().run(Command(argv=shell)).code == 0
    assert mark.exists()


def test_a_polite_end_cleans_up_like_ctrl_c(root: Path, tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    folder = project(
        tmp_path,
        f"import os, signal\ntry:\n    os.kill(os.getpid(), signal.{signal.SIGTERM.name})\n"
        f"    signal.pause()\nfinally:\n    Path({str(mark)!r}).touch()",
    )
    start = "import sys; sys.path.insert(0, sys.argv[1]); from armlet.cli import main; main(sys.argv[2], sys.argv[3])"
    ended = HostRunner().run(Command(argv=(sys.executable, "-I", "-c", start, str(root), str(folder), "go")))
    assert ended.code == 130
    assert mark.exists()


@pytest.mark.parametrize("words", [("nonsense",), ("build",), ("build", "demo-a53", "--no-such-flag")])
def test_what_cannot_be_parsed_is_the_users_input(root: Path, words: tuple[str, ...]) -> None:
    ended = inv(root, *words)
    assert ended.code == Kind.INPUT
    assert "Traceback" not in ended.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("biuld",), ('error: unknown task "biuld"', ' hint: did you mean "build"? ./inv --list names the tasks')),
        (("--help", "xyzzy"), ('error: unknown task "xyzzy"', " hint: ./inv --list names the tasks")),
        (("build", "x", "--foo"), ('error: unknown flag "--foo"', " hint: ./inv --help build lists what it takes")),
        (("--yes", "doctor"), ('error: unknown flag "--yes"', " hint: ./inv --list names the tasks")),
    ],
)
def test_what_cannot_be_parsed_is_told_as_every_error(
    root: Path, words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert inv(root, *words).tail == expected


def test_without_a_task_there_is_the_list(root: Path) -> None:
    bare = inv(root)
    assert bare.code == 0
    assert bare == inv(root, "--list")


@pytest.mark.parametrize(("code", "expected"), [(7, 7), (-15, 143)])
def test_a_program_run_for_the_user_decides_the_exit_code(code: int, expected: int) -> None:
    cli.end(0)
    with pytest.raises(Exit) as ended:
        cli.end(code)
    assert ended.value.code == expected


def test_an_unknown_sku_is_told_with_the_known_ones(root: Path) -> None:
    ended = inv(root, "build", "--sku", "demo-a35")
    assert ended.code == Kind.INPUT
    assert "demo-a53" in ended.output


def test_listing_needs_nothing_heavy(root: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from armlet.cli import invoke\n"
        "code = invoke('--search-root', sys.argv[1], '--list')\n"
        "heavy = {'docker', 'onnx', 'onnxruntime', 'numpy', 'elftools', 'requests', 'pydantic', 'jinja2'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))\n"
        "sys.exit(code)"
    )
    ended = HostRunner().run(Command(argv=(sys.executable, "-I", "-c", script, str(root)), cwd=Path("/")))
    assert ended.code == 0
    assert ended.tail[-1] == "heavy: []"
    for name in ("demo", "test", "check", "doctor", "build", "gates", "clean", "sku.show", "qemu.smoke"):
        assert f"  {name} " in ended.output


def test_sku_list_prints_results_alone(root: Path) -> None:
    ended = inv(root, "sku.list")
    assert ended.code == 0
    assert "demo-a53" in ended.tail
    assert all(line and " " not in line for line in ended.tail)


def test_our_variables_reach_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    @cli.edge
    def body() -> None:
        raise ArmletError("bad", hint="mend", kind=Kind.INPUT, where="recipes/x.yaml:4")

    with pytest.raises(Exit) as end:
        body()
    assert "::error file=recipes/x.yaml,line=4::bad" in str(end.value.message)
    assert end.value.code == 2


@pytest.mark.parametrize(("text", "value"), [("", None), ("3", 3)])
def test_numbers(text: str, value: int | None) -> None:
    assert cli.number("--jobs", text) == value


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", " 3", "²", "9" * 5000])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(ArmletError) as refused:
        cli.number("--jobs", text)
    assert refused.value.kind is Kind.INPUT


def asker(
    *, root: bool = False, terminal: bool = False, ci: bool = False, ask: Callable[[str], str] = lambda question: ""
) -> cli.Asker:
    return cli.Asker(environment={"CI": "true"} if ci else {}, root=root, terminal=terminal, ask=ask)


@pytest.mark.parametrize(
    ("yes", "who", "allowed"),
    [
        (True, asker(), True),
        (False, asker(ci=True), True),
        (False, asker(root=True), True),
        (False, asker(), False),
        (False, asker(root=True, terminal=True, ask=lambda question: "n\n"), False),
        (False, asker(root=True, terminal=True, ask=lambda question: ""), False),
        (False, asker(terminal=True, ask=lambda question: "y\n"), True),
    ],
)
def test_who_may_change_the_machine(yes: bool, who: cli.Asker, allowed: bool) -> None:
    assert cli.consent(yes=yes, asker=who)(["apt-get install x"]) is allowed


def test_the_question_shows_the_commands() -> None:
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return "n"

    cli.consent(yes=False, asker=asker(terminal=True, ask=answer))(["apt-get install x", "dockerd &"])
    assert "apt-get install x\n  dockerd &" in asked[0]


def test_removing_is_never_agreed_to_by_silence() -> None:
    assert cli.confirmed(yes=False, asker=asker(root=True, ci=True))(["/x"]) is False
    assert cli.confirmed(yes=True, asker=asker())(["/x"]) is True


def test_clean_removes_what_it_is_asked_to(paths: Paths) -> None:
    (paths.root / "dist" / "demo").mkdir(parents=True)
    with pytest.raises(ArmletError, match="nothing was removed"):
        clean(paths, cache=True, consent=lambda folders: False)
    assert (paths.root / "dist").exists()
    assert clean(paths, cache=False, consent=lambda folders: True) == [str(paths.root / "dist")]
    assert paths.cache.exists()
    assert clean(paths, cache=True, consent=lambda folders: True) == [str(paths.cache)]
    assert not paths.cache.exists()


def test_check_runs_every_tool_even_after_a_failure(paths: Paths) -> None:
    runner = FakeRunner({"ruff format": done(1, "would reformat")})
    with pytest.raises(ArmletError) as failed:
        check(paths, runner, silent)
    assert failed.value.kind is Kind.BUILD
    assert "ruff format" in str(failed.value)
    assert "mypy" not in str(failed.value)
    tools = [command.argv[2:4] for command in runner.commands]
    assert tools == [("ruff", "format"), ("ruff", "check"), ("mypy",), ("pytest", "-q")]
    assert all(command.cwd == paths.root for command in runner.commands)


def test_a_run_writes_its_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path))
    with cli.run("build-../x") as (_, emit):
        emit(Note(text="hello"))
    (line,) = (tmp_path / "logs" / "build-.._x.events.jsonl").read_text().splitlines()
    assert json.loads(line)["text"] == "hello"


@pytest.mark.parametrize("chosen", [None, "~no-such-user/cache"])
def test_a_cache_below_an_unknown_home_is_refused(
    chosen: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ArmletError, match="no such home folder") as caught:
        Paths.of(tmp_path, {"ARMLET_CACHE": chosen} if chosen else {})
    assert caught.value.kind is Kind.HOST
    paths = Paths.of(tmp_path, {"ARMLET_CACHE": str(tmp_path / "cache")})
    assert paths.private == (tmp_path, tmp_path / "cache")


@pytest.mark.parametrize("chosen", ["relative", "./cache", "../x"])
def test_a_relative_cache_is_refused(tmp_path: Path, chosen: str) -> None:
    with pytest.raises(ArmletError, match=r"ARMLET_CACHE.*relative") as caught:
        Paths.of(tmp_path, {"ARMLET_CACHE": chosen})
    assert caught.value.kind is Kind.INPUT
    assert f'"$PWD/{chosen}"' in caught.value.hint


def test_a_cache_that_cannot_be_made_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMLET_CACHE", "/dev/null/cache")
    with pytest.raises(ArmletError, match="/dev/null/cache") as caught, cli.run("check"):
        pytest.fail("the block must not run")
    assert "ARMLET_CACHE" in caught.value.hint


def test_an_echoed_tool_goes_to_stdout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path))
    with cli.run("check", echo=True) as (_, emit):
        emit(Note(text="pytest"))
        emit(Line(text="5 passed"))
    captured = capsys.readouterr()
    assert captured.out == "5 passed\n"
    assert "pytest" in captured.err


@dataclass(frozen=True)
class Sample:
    path: Path
    numbers: tuple[int, ...]


def test_results_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    cli.show_json(Sample(path=Path("/x"), numbers=(1, 2)))
    assert json.loads(capsys.readouterr().out) == {"path": "/x", "numbers": [1, 2]}


def test_nothing_to_show_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    cli.show("")
    assert capsys.readouterr().out == ""


def test_the_bootstrap_is_executable(root: Path) -> None:
    assert os.access(root / "inv", os.X_OK)
    assert HostRunner().run(Command(argv=("sh", "-n", str(root / "inv")))).code == 0


def test_the_bootstrap_does_not_empty_an_environment_that_it_is_linked_to(root: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    (theirs / "armlet.stamp").write_text("of another lock")
    (ours / "inv").write_bytes((root / "inv").read_bytes())
    (ours / "requirements.lock").touch()
    (ours / ".venv").symlink_to(theirs)
    ended = HostRunner().run(Command(argv=("sh", str(ours / "inv"), "--list")))
    assert ended.code == Kind.HOST
    assert any(line.startswith(" hint: run: rm ") for line in ended.tail)
    assert (theirs / "armlet.stamp").read_text() == "of another lock"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("build", "--help"), ("--help", "build")),
        (("build", "x", "-h"), ("--help", "build")),
        (("--help",), ("--help",)),
        (("--help", "build"), ("--help", "build")),
        (("build", "x"), ("build", "x")),
        ((), ()),
    ],
)
def test_help_may_be_asked_for_after_the_task(words: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert cli.help_first(words) == expected
