"""Has a framework export a model and run it, in a Python of its own."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, Sink, silent
from armlet.files import write_whole
from armlet.onnx.frameworks import PROBES, Framework
from armlet.onnx.libraries import library
from armlet.onnx.model_sources import FRAMEWORKS, Input, Source
from armlet.process import Command, Runner
from armlet.scratch import demand_room

SEED = 20250101
_LONGEST = 200
"""Bytes of a model's name: what a record can name, and file systems still have room for what is named after it."""
_PROGRAM = Path(__file__).parent / "exporters" / "export.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the framework made of one set of inputs: NumPy arrays, the outputs in the framework's order."""

    name: str
    inputs: Mapping[str, Any]
    outputs: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    model: Path
    """As the exporter wrote it, in the folder that it was given."""
    outputs: tuple[str, ...] | None
    """What the model's outputs should be named; None: as they are."""
    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    tools: dict[str, str]
    code: tuple[Path, ...]
    """The user's own files that were imported on the way."""


def export(
    source: Source,
    folder: Path,
    *,
    python: Path,
    runner: Runner,
    logs: Path,
    inputs: Sequence[Input] = (),
    samples: Sequence[Path] = (),
    opset: int,
    trust: bool = False,
    emit: Sink = silent,
) -> Exported:
    """Exports into ``folder`` (which the caller removes), and runs the framework on random inputs and ``samples``.

    Args:
        python: has the framework (``armlet.onnx.frameworks``).
        samples: ``.npz`` files, an array per input.
        trust: the source may be a pickle.

    Raises:
        ArmletError: (INPUT) the source does not load, run or export; (HOST) the program did not come to its end.
    """
    framework = FRAMEWORKS[source.kind]
    reply = folder / "reply.json"
    request = {
        "framework": framework,
        "kind": source.kind,
        "source": source.text,
        "folder": str(source.folder),
        "inputs": [asdict(entry) for entry in inputs],
        "samples": [{"name": file.stem, "file": str(file)} for file in samples],
        "opset": opset,
        "trust": trust,
        "seed": SEED,
        "out": str(folder),
        "reply": str(reply),
    }
    write_whole(folder / "request.json", json.dumps(request).encode())
    emit(Note(text=f"exporting {source.name} with {framework} ({python})"))
    # What frameworks leave in the temporary folder, compiled kernels among it, goes with ours.
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    command = Command(
        # -B: the user's folder is left as it is.
        argv=(str(python), "-I", "-B", "-X", "utf8", str(_PROGRAM), str(folder / "request.json")),
        env={"TMPDIR": str(temporary)},
    )
    done = runner.run(command, emit)
    if not reply.is_file():
        demand_room(folder, done.output)
        raise _ended(source, framework, python, done.code, done.tail)
    try:
        told = json.loads(reply.read_bytes())
        if "error" not in told:
            return _understood(folder, told)
        failed = _failed(source, told["error"], logs)
    # What is no JSON, or other JSON than the program writes, or of other arrays.
    except (ValueError, LookupError, TypeError, AttributeError, zipfile.BadZipFile, FileNotFoundError) as error:
        raise ArmletError(
            f"the exporter's answer makes no sense: {type(error).__name__}",
            hint="does the model's own code write into the exporter's folder, or end its process? try again",
            kind=Kind.HOST,
            where=source.text,
        ) from error
    demand_room(folder, told["error"]["trace"])
    raise failed


def _understood(folder: Path, told: Mapping[str, Any]) -> Exported:
    return Exported(
        model=folder / "model.onnx",
        outputs=tuple(told["outputs"]) if told["outputs"] else None,
        runs=tuple(_run(folder, entry, told["inputs"]) for entry in told["runs"]),
        notes=tuple(told["notes"]),
        tools=told["tools"],
        code=tuple(map(Path, told["files"])),
    )


def _run(folder: Path, entry: dict[str, str], names: list[str]) -> Run:
    with library("numpy").load(folder / entry["file"], allow_pickle=False) as arrays:
        inputs = {name: arrays[f"i{place}"] for place, name in enumerate(names)}
        outputs = tuple(arrays[f"o{place}"] for place in range(len(arrays.files) - len(names)))
    return Run(name=entry["name"], inputs=inputs, outputs=outputs)


def _failed(source: Source, error: dict[str, str], logs: Path) -> ArmletError:
    """What the user's own code or the framework raised; the whole trace goes into a file."""
    log = None
    if error["trace"]:
        log = logs / "model-import.trace.txt"
        write_whole(log, error["trace"].encode())
    where = f"{source.text} ({error['at']})" if error["at"] else source.text
    return ArmletError(error["what"], hint=error["hint"], kind=Kind.INPUT, where=where, log=log)


def _ended(source: Source, framework: Framework, python: Path, code: int, tail: tuple[str, ...]) -> ArmletError:
    last = next((line.strip() for line in reversed(tail) if line.strip()), "nothing")
    if code < 0 or code == 137:
        hint = "was it short of memory? try a machine with more, or a smaller input"
    else:
        hint = f'it said: {last}; try: {python} -c "{PROBES[framework]}"'
    return ArmletError(
        f"the exporter ended with {code} before it was done", hint=hint, kind=Kind.HOST, where=source.text
    )


def demand_writable(out: Path) -> None:
    """Does nothing where a file can be written beside ``out``: better known before minutes of work than after.

    Raises:
        ArmletError: (HOST) it cannot; (INPUT) its name leaves no room for the names of what comes with it.
    """
    if len(out.name.encode()) > _LONGEST:
        raise ArmletError(
            f"has a name of {len(out.name.encode())} bytes, and {_LONGEST} leave room for what lies beside it",
            hint="give a shorter name: --out",
            kind=Kind.INPUT,
            where=str(out),
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        probe = out.parent / f".{out.name}.probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise host_error(error, out) from error
