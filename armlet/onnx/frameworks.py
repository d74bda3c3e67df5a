"""The Python that a framework runs in: an environment of its own, made when first needed, or one of the user's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from armlet import digest
from armlet.errors import ArmletError, Kind, host_error, is_host_error
from armlet.events import Note, Sink, silent
from armlet.files import alone, write_whole
from armlet.paths import Paths
from armlet.process import Command, Done, Runner, checked
from armlet.store import remove_tree

Framework = Literal["torch", "tf", "sklearn"]

PROBES: dict[Framework, str] = {
    "torch": "import torch, onnxscript",
    "tf": "import tensorflow, tf2onnx",
    "sklearn": "import sklearn, skl2onnx",
}
"""What must work in it; a wheel that installs is not yet one that loads."""

_STAMP = "armlet.stamp"
_NO_ROOM = "No space left on device"
_OWN = "or name a Python that has the framework: --python /path/to/venv/bin/python"
_WITHOUT: dict[Framework, str] = {
    "torch": "the lock takes PyTorch's CPU build (2.13.0+cpu for Python 3.11 on x86-64): name the folder or index that "
    "has it in PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL, ",
    "tf": "is the package index reachable (PIP_INDEX_URL, proxy, PIP_CERT)? ",
    "sklearn": "is the package index reachable (PIP_INDEX_URL, proxy, PIP_CERT)? ",
}


def interpreter(
    framework: Framework, paths: Paths, runner: Runner, *, python: str | None = None, emit: Sink = silent
) -> Path:
    """The program to run a framework's exporter with.

    Args:
        python: the user's own, taken as it is; None: an environment in the cache, made from the framework's lock.

    Raises:
        ArmletError: (INPUT) the user's is no program; (HOST) the environment cannot be made.
    """
    return _users(python) if python else _made(framework, paths, runner, emit)


def _users(python: str) -> Path:
    # Not resolved: a link in a virtual environment is what makes it one.
    path = Path(python).expanduser().absolute()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise ArmletError(
            "is no Python interpreter", hint="name one: --python venv/bin/python", kind=Kind.INPUT, where=python
        )
    return path


def _made(framework: Framework, paths: Paths, runner: Runner, emit: Sink) -> Path:
    lock = paths.root / f"requirements-{framework}.lock"
    root = paths.cache / "frameworks"
    identity = digest.of_value([digest.of_file(lock), sys.version_info[:2], sys.base_prefix])
    folder = root / f"{framework}-{identity[:16]}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with alone(root / f".{folder.name}.lock", emit, waiting=f"another run makes the {framework} environment"):
            if not _is_whole(folder, identity):
                _make(framework, folder, lock, runner, emit)
                write_whole(folder / _STAMP, identity.encode())
    except OSError as error:
        if is_host_error(error):
            raise host_error(error, folder) from error
        raise
    return folder / "bin" / "python"


def _is_whole(folder: Path, identity: str) -> bool:
    """The stamp is written last; a Python that was removed from the machine leaves a link to nothing."""
    try:
        return (folder / _STAMP).read_text() == identity and (folder / "bin" / "python").exists()
    except OSError:
        return False


def _make(framework: Framework, folder: Path, lock: Path, runner: Runner, emit: Sink) -> None:
    emit(Note(text=f"making an environment for {framework} in {folder}"))
    remove_tree(folder)
    python = str(folder / "bin" / "python")
    install = ("-I", "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "install")
    locked = ("--require-hashes", "--only-binary", ":all:", "--no-deps", "--requirement", str(lock))
    what = f"cannot make an environment for {framework}"
    try:
        for argv in (
            (sys.executable, "-I", "-m", "venv", "--clear", str(folder)),
            (python, *install, *locked),
            (python, "-I", "-c", PROBES[framework]),
        ):
            command = Command(argv=argv, explain=lambda _code, tail: _explained(framework, tail))
            _checked(runner, command, what, folder, emit)
    except BaseException:
        remove_tree(folder)
        raise


def _checked(runner: Runner, command: Command, what: str, folder: Path, emit: Sink) -> Done:
    try:
        return checked(runner, command, what=what, kind=Kind.HOST, emit=emit)
    except ArmletError as error:
        raise ArmletError(error.what, hint=error.hint, kind=Kind.HOST, where=str(folder)) from error


def _explained(framework: Framework, tail: tuple[str, ...]) -> str:
    said = "\n".join(tail)
    if _NO_ROOM in said:
        return "free some space (the cache may be on a larger disk: ARMLET_CACHE)"
    last = next((line.strip() for line in reversed(tail) if line.strip()), "nothing")
    return f"it said: {last}; {_WITHOUT[framework]}{_OWN}"
