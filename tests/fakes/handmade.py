"""Payload folders made by hand, and what stands in for the check of their signatures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from armlet_runtime.serve.payloads import BadPayload, Verified

ONNX_NAMES = {"float32": "float", "float64": "double"}
Arrays = Mapping[str, Any]


def write(
    root: Path,
    model: str,
    data: bytes,
    inputs: Sequence[tuple[str, str, Sequence[int | str]]],
    outputs: Sequence[tuple[str, str, Sequence[int | str]]],
    *,
    version: str = "1.0",
    generation: int = 1,
    golden: Sequence[tuple[Arrays, Arrays]] = (),
    **fields: Any,
) -> Path:
    """``root/<model>/<version>`` with a model and its payload.json; tensors are (name, ONNX type, shape)."""
    folder = root / model / version
    folder.mkdir(parents=True)
    files = {"model.onnx": data}
    cases = []
    for number, (given, wanted) in enumerate(golden):
        case: dict[str, Any] = {"name": f"case {number}", "atol": 1e-5, "rtol": 1e-5}
        for kind, arrays in (("inputs", given), ("outputs", wanted)):
            case[kind] = [_golden(f"golden/{number}.{name}.bin", name, np.asarray(a)) for name, a in arrays.items()]
            files.update({f"golden/{number}.{name}.bin": np.asarray(a).tobytes() for name, a in arrays.items()})
        cases.append(case)
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    manifest = {
        "schema": 1,
        "model": model,
        "version": version,
        "generation": generation,
        "description": f"The model {model}",
        "licence": "MIT",
        "files": [
            {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for path, content in files.items()
        ],
        "format": "onnx",
        "inputs": [{"name": n, "dtype": t, "shape": list(s)} for n, t, s in inputs],
        "outputs": [{"name": n, "dtype": t, "shape": list(s)} for n, t, s in outputs],
        "providers": [{"name": "cpu", "options": {}}],
        "threads": None,
        "golden": cases,
        **fields,
    }
    (folder / "payload.json").write_text(json.dumps(manifest))
    return folder


def verify_hashes(folder: Path) -> Verified:
    """A fake of the real verification: sizes and hashes hold, whoever signed it."""
    try:
        data = (folder / "payload.json").read_bytes()
        manifest: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise BadPayload(["payload.json is no JSON"]) from error
    for entry in manifest["files"]:
        if hashlib.sha256((folder / entry["path"]).read_bytes()).hexdigest() != entry["sha256"]:
            raise BadPayload([f"{entry['path']} is not what was signed"])
    return Verified(manifest, hashlib.sha256(data).hexdigest())


def _golden(file: str, name: str, array: Any) -> dict[str, Any]:
    dtype = ONNX_NAMES.get(array.dtype.name, array.dtype.name)
    return {"name": name, "dtype": dtype, "shape": list(array.shape), "file": file}
