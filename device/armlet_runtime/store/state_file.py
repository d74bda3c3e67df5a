"""The state as a file's content, and which of two copies counts. Pure, and wary: a copy may hold anything.

A copy is a JSON object: ``schema``, ``sequence``, ``sha256`` of the rest of it, ``state``.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Callable, Mapping, NamedTuple, Sequence, TypeVar, get_args

from armlet_runtime.payload_manifest import LARGEST_GENERATION, NAME
from armlet_runtime.store.state import Bad, ModelState, Phase, Ref, State, Tried
from armlet_runtime.update.interface import Category

SCHEMA = 1
LARGEST = 1 << 22
"""Bytes of a copy."""
IDENTITY = re.compile(r"[0-9a-f]{64}")
_MOST = 2**53
_T = TypeVar("_T")


class Newer(Exception):
    """A newer version wrote this copy: it is not to be read, nor to be overwritten."""


class Found(NamedTuple):
    """What two copies say together."""

    state: State
    agree: bool
    """Whether both are whole and the same: nothing has to be written again."""
    newer: bool
    """Whether a newer version wrote one."""
    notes: tuple[str, ...]
    """What is amiss."""


def identity(text: str) -> str:
    """The same. Raises ValueError: it is none."""
    if not IDENTITY.fullmatch(text):
        raise ValueError(f"{text!r} is no sha256")
    return text


def encoded(state: State) -> bytes:
    """The content of a copy."""
    fields = {"schema": SCHEMA, "sequence": state.sequence, "state": _told(state)}
    return _canonical({**fields, "sha256": _digest(fields)}) + b"\n"


def decoded(data: bytes) -> State:
    """Raises:
    Newer: it is of a schema that this version does not know.
    ValueError: it is damaged.
    """
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("it is no object")
    schema = _number(fields.get("schema"))
    if schema > SCHEMA:
        raise Newer(schema)
    digest = fields.pop("sha256", None)
    if digest != _digest(fields):
        raise ValueError("its checksum differs")
    content = fields.get("state")
    if schema != SCHEMA or not isinstance(content, dict):
        raise ValueError("it is no state")
    models = _map(content.get("models"))
    return State(
        _number(fields.get("sequence")),
        _number(content.get("starts")),
        {_text(name, NAME): _model(_map(model)) for name, model in models.items()},
    )


def settled(copies: Sequence[tuple[str, bytes | None]]) -> Found:
    """Of (name, content, or None where there is none): the valid one of the highest sequence."""
    states, notes, newer = [], [], False
    for name, data in copies:
        try:
            states.append(decoded(data) if data is not None else None)
        except Newer as error:
            newer = True
            notes.append(f"{name} is of schema {error}, and this version knows {SCHEMA}")
        except (ValueError, RecursionError) as error:
            notes.append(f"{name} is damaged: {error}")
    valid = [state for state in states if state is not None]
    best = max(valid, key=lambda state: state.sequence, default=State())
    agree = len(valid) == len(copies) and all(state == best for state in valid)
    if notes and not valid and not newer:
        notes.append("what was served, and what was known to be bad, is lost")
    return Found(best, agree, newer, tuple(notes))


def _told(state: State) -> dict[str, Any]:
    return {"starts": state.starts, "models": {name: _told_model(model) for name, model in state.models.items()}}


def _told_model(model: ModelState) -> dict[str, Any]:
    tried = model.candidate
    return {
        "committed": _told_ref(model.committed),
        "previous": _told_ref(model.previous),
        "candidate": tried and {**vars(tried.ref), "phase": tried.phase, "attempts": tried.attempts},
        "bad": [vars(one) for one in model.bad],
        "floor": model.floor,
    }


def _told_ref(ref: Ref | None) -> dict[str, Any] | None:
    return dict(vars(ref)) if ref else None


def _canonical(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(fields)).hexdigest()


def _model(fields: Mapping[str, Any]) -> ModelState:
    bad = fields.get("bad")
    if not isinstance(bad, list):
        raise ValueError("bad is no list")
    return ModelState(
        _maybe(fields.get("committed"), _ref),
        _maybe(fields.get("previous"), _ref),
        _maybe(fields.get("candidate"), _tried),
        tuple(_bad(_map(one)) for one in bad),
        _number(fields.get("floor")),
    )


def _ref(fields: Mapping[str, Any]) -> Ref:
    generation = _number(fields.get("generation"), LARGEST_GENERATION)
    return Ref(_text(fields.get("id"), IDENTITY), _text(fields.get("version")), generation)


def _tried(fields: Mapping[str, Any]) -> Tried:
    phase: Phase = _one_of(fields.get("phase"), get_args(Phase))
    return Tried(_ref(fields), phase, _number(fields.get("attempts")))


def _bad(fields: Mapping[str, Any]) -> Bad:
    category: Category = _one_of(fields.get("category"), get_args(Category))
    generation = _number(fields.get("generation"), LARGEST_GENERATION)
    return Bad(_text(fields.get("id"), IDENTITY), generation, category, _text(fields.get("reason")))


def _maybe(value: Any, read: Callable[[Mapping[str, Any]], _T]) -> _T | None:
    return None if value is None else read(_map(value))


def _map(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.40} is no object")
    return value


def _number(value: Any, most: int = _MOST) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{value!r:.40} is no such number")
    return value


def _text(value: Any, pattern: str | re.Pattern[str] = r"(?s).*") -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise ValueError(f"{value!r:.40} is no such text")
    return value


def _one_of(value: Any, known: Sequence[Any]) -> Any:
    if value not in known:
        raise ValueError(f"{value!r:.40} is none of {', '.join(known)}")
    return value
