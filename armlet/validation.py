"""From a document to a model: pydantic's findings, told with file, line and remedy."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from armlet.spec import patterns, unsupported
from armlet.spec.base import WRONG
from armlet.yamlfile import Document, Key, Problem

M = TypeVar("M", bound=BaseModel)


def did_you_mean(given: object, known: Iterable[str], *, more: str = "") -> str:
    """The hint for a name that is not known: the nearest one where there is one, then all of them while they are few.

    ``more`` is said in place of a list that is long.
    """
    names = list(known)
    if not names:
        return "there are none yet"
    by_small = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(str(given).lower(), by_small, n=1, cutoff=0.6)
    start = f'did you mean "{by_small[near[0]]}"? ' if near else ""
    return start + (f"Known: {', '.join(names)}" if len(names) <= _FEW or not more else more)


_FEW = 40


def validate(model: type[M], document: Document) -> tuple[M | None, list[Problem]]:
    """The model of a document, or null and everything that is wrong with it."""
    problems = list(document.problems)
    try:
        # Through JSON: there a list is the only way to write a tuple, so strict mode takes it.
        made = model.model_validate_json(json.dumps(document.data))
    except ValidationError as error:
        details = [detail for detail in error.errors(include_url=False) if not _echo(detail)]
        return None, problems + [_problem(model, document, detail) for detail in details]
    return (None if problems else made), problems


def _echo(detail: Mapping[str, Any]) -> bool:
    """A list whose items are refused counts as too short, which says nothing that the items have not said."""
    return bool(detail["type"] == "too_short" and detail["input"])


_UNKNOWN = ("extra_forbidden", "literal_error", "string_pattern_mismatch")


def _problem(model: type[BaseModel], document: Document, detail: Mapping[str, Any]) -> Problem:
    key: Key = detail["loc"]
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if key and key[-1] == "[key]":
        key = key[:-1]  # pydantic's way to say that the key itself is meant.
    if kind == WRONG:
        return document.problem((*key, *context["at"]), context["what"], context["hint"])
    name = next((part for part in reversed(key) if isinstance(part, str)), "")
    if kind in _UNKNOWN and (refused := unsupported.refusal(name, given)) is not None:
        return document.problem(key, *refused)
    if kind == "extra_forbidden":
        return document.problem(key, "unknown key", did_you_mean(name, _keys(model, key[:-1])))
    if kind == "missing" and isinstance(key[-1], int):
        return document.problem(
            key[:-1], "has too few values", f"write {_count(model, key[:-1])} values: [first, second]"
        )
    if kind == "too_long" and context.get("max_length"):
        return document.problem(key, "has too many values", f"leave {context['max_length']} of {_shown(given)}")
    if kind == "too_short":
        return document.problem(key, "is empty", f"write at least {context['min_length']}")
    if kind == "missing":
        return document.problem(key, "is missing", f"add `{name}:` here")
    if given is None:
        return document.problem(key, "is empty", "give it a value, or remove the key where it may be left out")
    if kind == "literal_error":
        known = _literals(model, key)
        gone = patterns.RETIRED.get((name, str(given)))
        if gone:
            return document.problem(key, f'"{given}" is not taken any more', gone)
        noun = patterns.NOUNS.get(name, name)
        return document.problem(key, f"unknown {noun} {_shown(given)}", did_you_mean(given, known))
    if kind == "string_pattern_mismatch":
        meaning = patterns.MEANINGS.get(context["pattern"], f"must match {context['pattern']}")
        return document.problem(key, f"{_shown(given)} is not taken", meaning)
    if kind == "string_type" and isinstance(given, (int, float)):
        written = document.source(key)
        return document.problem(key, f"{written} is a number, and text is wanted", f'write it in quotes: "{written}"')
    wanted = patterns.KINDS.get(kind)
    if wanted:
        return document.problem(key, f"{_shown(given)} is not {wanted}", f"write {wanted}")
    return document.problem(key, str(detail["msg"])[:1].lower() + str(detail["msg"])[1:], f"it is {_shown(given)} now")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _type_at(model: type[BaseModel], key: Key) -> Any:
    """The annotated type of the value at a key; null where the model knows of no such place."""
    here: Any = model
    for part in key:
        here = _bare(here)
        if isinstance(here, type) and issubclass(here, BaseModel):
            fields = {info.alias or name: info for name, info in here.model_fields.items()}
            if part not in fields:
                return None
            here = fields[str(part)].annotation
        elif get_origin(here) is dict:
            here = get_args(here)[1]
        elif get_origin(here) is tuple:
            items = get_args(here)
            fixed = Ellipsis not in items and isinstance(part, int) and part < len(items)
            here = items[int(part) if fixed else 0]
        else:
            return None
    return _bare(here)


def _bare(annotation: Any) -> Any:
    """Without ``Annotated`` and without ``| None``."""
    while get_args(annotation):
        arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
        if hasattr(annotation, "__metadata__") or len(arguments) < len(get_args(annotation)):
            annotation = arguments[0]
        else:
            break
    return annotation


def _keys(model: type[BaseModel], key: Key) -> list[str]:
    here = _type_at(model, key)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return [info.alias or name for name, info in here.model_fields.items()]
    return []


def _literals(model: type[BaseModel], key: Key) -> list[str]:
    return [str(value) for value in get_args(_type_at(model, key))]


def _count(model: type[BaseModel], key: Key) -> int:
    return len(get_args(_type_at(model, key)))
