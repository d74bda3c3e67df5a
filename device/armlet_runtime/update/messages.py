"""What a device tells over MQTT, as bytes. Pure."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

from armlet_runtime import stamps
from armlet_runtime.update.interface import Desired, Report

SCHEMA = 1
LONGEST_REASON = 1000
"""Characters: a state is to fit into the memory of whoever reads it."""
ONLINE, OFFLINE = b"online", b"offline"


def state(report: Report, when: float) -> bytes:
    """``when``: seconds since 1970, for those who read it."""
    active, desired = report.active, report.desired
    return _json(
        {
            "schema": SCHEMA,
            "model": report.model,
            "state": report.state,
            "active": None
            if active is None
            else {
                "version": active.version,
                "generation": active.generation,
                "payload": active.payload,
                "source": active.source,
            },
            "desired": None
            if desired is None
            else {"version": desired.version, "generation": desired.generation, "payload": desired.payload},
            "phase": report.phase,
            "category": report.category,
            "reason": report.reason[:LONGEST_REASON],
            "progress": report.progress if report.progress is None else round(report.progress, 4),
            "retry_seconds": report.retry_seconds if report.retry_seconds is None else round(report.retry_seconds, 1),
            "at": stamps.utc(when),
        }
    )


def wanted(desired: Desired, numbers: Sequence[int]) -> bytes:
    """Blocks that are asked for."""
    return _json(
        {
            "schema": SCHEMA,
            "model": desired.model,
            "payload": desired.payload,
            "archive": desired.archive_sha256,
            "size": desired.block_size,
            "blocks": list(numbers),
        }
    )


def telemetry(snapshot: Mapping[str, float], when: float) -> bytes:
    """As :class:`armlet_runtime.serve.sinks.FileSink` writes it."""
    return _json({"time": stamps.utc(when), "metrics": dict(sorted(snapshot.items()))})


def alert(model: str, kind: str, text: str, when: float) -> bytes:
    """``model`` is empty where it is about the device."""
    return _json(
        {"schema": SCHEMA, "model": model, "kind": kind, "text": text[:LONGEST_REASON], "at": stamps.utc(when)}
    )


def model_of(message: bytes) -> str:
    """The model that a wish names, whatever else is in it; empty: none. The caller bounds its length."""
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        return ""
    model = found.get("model") if isinstance(found, dict) else None
    return model if isinstance(model, str) else ""


def _json(value: dict[str, Any]) -> bytes:
    # Half a surrogate pair, which a hostile reason might hold, becomes an escape and stays valid.
    return json.dumps(value, separators=(",", ":")).encode("ascii")
