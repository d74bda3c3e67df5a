"""Whether a payload, or a model on its way to one, fits runtimes that were built: the contract check on files."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet_runtime import payload as device
from armlet_runtime import ustar
from armlet_runtime.contract import Problem, check, fits
from armlet_runtime.payload_manifest import MANIFEST
from armlet_runtime.refusal import PayloadError

from armlet import manifest
from armlet.errors import ArmletError, Kind
from armlet.files import open_regular
from armlet.onnx.requires import requires
from armlet.paths import Paths
from armlet.spec.base import NAME

_LARGEST = 64 << 20
"""Bytes of JSON that are read."""
_MODELS = (".ort", ".onnx")
_UNPACKED: Mapping[str, Any] = {
    "schema": 1,
    "providers": [{"name": "cpu"}],
    "min_runtime": "0",
    "max_runtime_tested": "999999999",
}
"""What a model that is not packed yet asks for beside what is in it: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the contract check says of one runtime."""

    sku: str
    runtime: Path
    problems: tuple[Problem, ...]

    @property
    def fits(self) -> bool:
        return fits(self.problems)

    def to_json(self) -> dict[str, Any]:
        problems = [one._asdict() for one in self.problems]
        return {"sku": self.sku, "runtime": str(self.runtime), "fits": self.fits, "problems": problems}


def judge(paths: Paths, payload: Path, *, skus: Sequence[str] = (), against: Sequence[str] = ()) -> list[Verdict]:
    """Checks a payload against the runtimes of SKUs and those that patterns name; without either, all in ``dist``.

    Args:
        payload: a payload's folder, archive or ``payload.json``, or a bare model.
        skus: whose runtime is in ``dist``.
        against: ``runtime.json`` files, folders that hold one, or patterns of either.

    Raises:
        ArmletError: (INPUT) the payload or a runtime is not there or cannot be read.
    """
    files = runtimes(paths, skus, against)
    asked = payload_document(payload)
    documents = [(file, _read(file, "it is damaged or no runtime.json: build it again")) for file in files]
    return [
        Verdict(sku=_sku(document, file), runtime=file, problems=tuple(check(document, asked)))
        for file, document in documents
    ]


def _sku(document: Any, file: Path) -> str:
    name = document.get("sku") if isinstance(document, dict) else None
    return name if isinstance(name, str) and re.fullmatch(NAME, name) else file.parent.name


def runtimes(paths: Paths, skus: Sequence[str], against: Sequence[str]) -> list[Path]:
    """The ``runtime.json`` files that are meant, each once, in the order in which they are named.

    Raises:
        ArmletError: (INPUT) one is not there.
    """
    found = [_built(paths, sku) for sku in skus]
    for pattern in against:
        found += _matching(pattern)
    if not skus and not against:
        found = sorted(paths.dist("*").parent.glob(f"*/{manifest.FILE}"))
        if not found:
            raise _input("nothing is built", "./inv build, or name runtimes with --against", paths.dist("*").parent)
    return list(dict.fromkeys(found))


def _built(paths: Paths, sku: str) -> Path:
    file = paths.dist(sku) / manifest.FILE
    if not file.is_file():
        raise _input(f"nothing is built for {sku}", f"./inv build --sku {sku}", file.parent)
    return file


def _matching(pattern: str) -> list[Path]:
    # A file whose name has brackets is meant as it is, even so.
    named = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  absolute, too
    files = [path / manifest.FILE if path.is_dir() else path for path in map(Path, named)]
    # A folder may be that of all SKUs: dist.
    files = [
        inner
        for file in files
        for inner in ([file] if file.exists() else sorted(file.parent.glob(f"*/{file.name}")) or [file])
    ]
    if not files:
        raise _input("no runtime.json is there", "check --against; ./inv build writes them to dist", Path(pattern))
    return files


def payload_document(path: Path) -> Any:
    """``payload.json`` as parsed; of a bare model, what follows from the model alone.

    Raises:
        ArmletError: (INPUT) it cannot be read.
    """
    if path.suffix.lower() in _MODELS and not path.is_dir():
        return {**_UNPACKED, **_of_model(path)}
    if path.suffix == device.SUFFIX and path.is_file():
        return _of_archive(path)
    return _read(path / MANIFEST if path.is_dir() else path, _PACK_AGAIN)


_PACK_AGAIN = f"give a payload's folder, archive or {MANIFEST}, or a model ({' or '.join(_MODELS)})"


def _of_model(path: Path) -> dict[str, Any]:
    asked = requires(path)
    return {
        "format": asked.format,
        "ort_format_version": asked.ort_format_version,
        "opset_imports": asked.opset_imports,
        "ir_version": asked.ir_version,
        "element_types": list(asked.element_types),
        "operators": {
            domain: {name: [one.model_dump(mode="json") for one in kernels] for name, kernels in operators.items()}
            for domain, operators in asked.operators.items()
        },
    }


def _of_archive(path: Path) -> Any:
    """What a device reads of it; who signed it is another question, ``model.verify``'s."""
    try:
        return device.verify(path, None, limit=ustar.LARGEST).manifest
    except PayloadError as error:
        raise _input(error.what, error.hint, path) from error
    except OSError as error:
        raise _input(f"cannot be read: {(error.strerror or '').lower()}", _PACK_AGAIN, path) from error


def _read(path: Path, hint: str) -> Any:
    try:
        with open_regular(path) as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise _input(f"cannot be read: {(error.strerror or '').lower()}", hint, path) from error
    return _parsed(data, path, hint)


def _parsed(data: bytes, path: Path, hint: str) -> Any:
    if len(data) > _LARGEST:
        raise _input(f"has more than {_LARGEST >> 20} MiB", hint, path)
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _input(f"is no JSON: {error}", hint, path) from error


def demand(verdicts: Iterable[Verdict]) -> None:
    """Raises:
    ArmletError: (GATE) the payload does not fit one of them.
    """
    bad = [one for one in verdicts if not one.fits]
    if bad:
        wrong = next(one for one in bad[0].problems if not fits([one]))
        skus = ", ".join(one.sku for one in bad)
        raise ArmletError(f"it does not fit {skus}: {wrong.what}", hint=wrong.remedy, kind=Kind.GATE)


def _input(what: str, hint: str, where: Path) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(where))
