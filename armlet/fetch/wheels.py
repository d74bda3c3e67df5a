"""A wheel by project, version and hash, through pip: it knows the user's index, proxy and credentials."""

from __future__ import annotations

import sys
from pathlib import Path

from armlet.events import Sink
from armlet.fetch.transport import Again, PlaceFailed
from armlet.process import Command, Runner
from armlet.spec.toolchain import Wheel

_OPTIONS = (
    "--no-deps",
    "--require-hashes",
    "--only-binary=:all:",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar=off",
    "--timeout=20",
    "--retries=3",
)


def download_wheel(wheel: Wheel, folder: Path, runner: Runner, emit: Sink) -> Path:
    """Lets pip put the wheel into ``folder`` (which it may fill with what it likes) and returns its path there.

    Raises:
        PlaceFailed: pip did not find it, or found another content.
    """
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wheel.project}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    target = folder / "wheels"
    command = Command(
        argv=(
            # -I: the folder that this runs in must not shadow a module.
            *(sys.executable, "-I", "-m", "pip", "download"),
            *_OPTIONS,
            *_tags(wheel.filename),
            *("--dest", str(target), "--requirement", str(requirements)),
        )
    )
    done = runner.run(command, emit)
    found = sorted(target.glob("*.whl"))
    if done.code != 0 or len(found) != 1:
        raise PlaceFailed(_reason(done.tail, done.code), again=Again.NEVER)
    return found[0]


def _tags(filename: str) -> tuple[str, ...]:
    """Asks for the wheel's own platform and Python, whichever this machine has."""
    python, abi, platforms = filename.removesuffix(".whl").split("-")[-3:]
    options = [f"--platform={platform}" for platform in platforms.split(".")]
    if python.startswith("cp"):
        options += ["--implementation=cp", f"--python-version={python[2:].partition('.')[0]}", f"--abi={abi}"]
    return tuple(options)


def _reason(tail: tuple[str, ...], code: int) -> str:
    """pip's own words: everything from its first error on, which names both hashes where they differ."""
    start = next((number for number, line in enumerate(tail) if line.startswith("ERROR:")), None)
    if start is None:
        return f"pip ended with {code}: {tail[-1] if tail else 'no output'}"
    return " ".join(line.removeprefix("ERROR:").strip() for line in tail[start:] if "[notice]" not in line).strip()
