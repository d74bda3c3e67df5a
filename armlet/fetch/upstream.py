"""What ONNX Runtime's and ONNX's sources say about the formats they take: read, so that nobody has to copy it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from armlet.events import Note, Sink
from armlet.fetch.archive import unpack

_FORMAT = "onnxruntime/core/flatbuffers/ort_format_version.h"
_ENVIRONMENT = "onnxruntime/core/session/environment.cc"
_PROTO = "onnx/onnx.in.proto"
_SCHEMA = "onnx/defs/schema.h"

_FILES: Mapping[str, tuple[str, ...]] = {"onnxruntime": (_FORMAT, _ENVIRONMENT), "onnx": (_PROTO, _SCHEMA)}
"""Component -> files of it that are read."""


def read_facts(components: Sequence[Mapping[str, Any]], archives: Mapping[str, Path], emit: Sink) -> dict[str, Any]:
    """``ort_format``, ``onnx_ir_max`` and ``opsets`` of a source set, as far as its archives tell.

    What cannot be read is left out and told.
    """
    texts: dict[str, str] = {}
    for component in components:
        files = _FILES.get(component["name"], ())
        if not files:
            continue
        with tempfile.TemporaryDirectory(prefix="armlet-facts-") as folder:
            unpack(archives[component["name"]], Path(folder), strip=component.get("strip", 1), keep=files)
            texts |= {file: (Path(folder) / file).read_text(encoding="utf-8") for file in files}
    facts = parse_facts(texts)
    missing = {"ort_format", "onnx_ir_max", "opsets"} - set(facts)
    if missing:
        emit(Note(text=f"the sources do not tell {', '.join(sorted(missing))} where we look: check by hand"))
    return facts


def parse_facts(texts: Mapping[str, str]) -> dict[str, Any]:
    """The same from the files' texts; pure."""
    facts: dict[str, Any] = {}
    newest = _number(r"kOrtModelVersion = (\d+)", texts.get(_FORMAT, ""))
    older = re.findall(r"^\s*kOrtModelVersion - (\d+)", texts.get(_FORMAT, ""), re.MULTILINE)
    if newest is not None:
        facts["ort_format"] = [newest - max(map(int, older), default=0), newest]
    ir = re.search(r"^\s*IR_VERSION = (0x[0-9A-Fa-f]+)", texts.get(_PROTO, ""), re.MULTILINE)
    if ir:
        facts["onnx_ir_max"] = int(ir[1], 16)
    opsets = {
        "ai.onnx": _number(r"last_release_version_map_\[ONNX_DOMAIN\] = (\d+)", texts.get(_SCHEMA, "")),
        "ai.onnx.ml": _number(r"last_release_version_map_\[AI_ONNX_ML_DOMAIN\] = (\d+)", texts.get(_SCHEMA, "")),
        "com.microsoft": _number(r"\(onnxruntime::kMSDomain, \d+, (\d+)\)", texts.get(_ENVIRONMENT, "")),
    }
    if all(opsets.values()):
        facts["opsets"] = opsets
    return facts


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None
