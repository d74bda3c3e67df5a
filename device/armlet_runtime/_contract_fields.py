"""What the fields that the contract reads must be like: whoever wrote the files may have meant ill."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, NamedTuple

SCHEMA = 1
MOST = 10_000
"""Entries of one list or mapping: far more than any model asks for or runtime has."""
_LONGEST = 256
"""Characters of a name."""
_SHOWN = 80
_LARGEST = 2**53
"""What JSON's numbers hold exactly."""
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,5}")


def shown(value: Any) -> str:
    """A name or number as messages have it: one line, not too long."""
    if isinstance(value, str):
        text = "".join(one if one.isprintable() else "?" for one in value[: _SHOWN + 1])
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return str(value) if is_count(value) else "none" if value is None else "neither a name nor a number"


def version_key(version: str) -> tuple[int, ...]:
    """``1.21`` and ``1.21.0`` are one version."""
    parts = [int(part) for part in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


def _is_version(value: Any) -> bool:
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) <= MOST


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) <= MOST and all(_is_name(name) for name in value)


def _is_range(value: Any) -> bool:
    return _are_counts(value) and len(value) == 2


def _are_names(value: Any) -> bool:
    return _is_list(value) and all(_is_name(one) for one in value)


def _are_opsets(value: Any) -> bool:
    return _is_mapping(value) and all(map(is_count, value.values()))


def _are_choices(value: Any) -> bool:
    return (
        _is_list(value)
        and len(value) > 0
        and all(isinstance(one, Mapping) and _is_name(one.get("name")) for one in value)
    )


def _are_operators(value: Any) -> bool:
    return _is_mapping(value) and all(
        _is_mapping(operators)
        and all(_is_list(kernels) and all(map(_is_kernel, kernels)) for kernels in operators.values())
        for operators in value.values()
    )


def _is_kernel(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return _are_counts(value.get("since_versions")) and _or_null(_are_takes)(value.get("takes"))


def _are_counts(value: Any) -> bool:
    return _is_list(value) and all(is_count(one) for one in value)


def _are_takes(value: Any) -> bool:
    return _is_list(value) and all(_is_mapping(one) and all(map(_are_names, one.values())) for one in value)


def _or_null(is_sound: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_sound(value)


class Field(NamedTuple):
    document: str
    """``runtime`` or ``payload``."""
    name: str
    is_sound: Callable[[Any], bool]
    wanted: str
    """What it has to be, in words."""


_KERNELS = "a table of operators with since_versions and takes"
_TYPES = "a list of element types"

FIELDS: tuple[Field, ...] = (
    Field("runtime", "sku", _is_name, "a name"),
    Field("runtime", "flavor", _is_name, "a name"),
    Field("runtime", "ort_version", _is_version, "a version"),
    Field("runtime", "ort_format_version", _is_range, "a pair of numbers"),
    Field("runtime", "onnx_ir_max", is_count, "a number"),
    Field("runtime", "opsets", _are_opsets, "a table of opsets"),
    Field("runtime", "operators", _or_null(_are_operators), _KERNELS),
    Field("runtime", "element_types", _or_null(_are_names), _TYPES),
    Field("runtime", "providers", _are_names, "a list of names"),
    Field("payload", "format", _is_name, "a name"),
    Field("payload", "ort_format_version", _or_null(is_count), "a number"),
    Field("payload", "ir_version", is_count, "a number"),
    Field("payload", "opset_imports", _are_opsets, "a table of opsets"),
    Field("payload", "operators", _are_operators, _KERNELS),
    Field("payload", "element_types", _are_names, _TYPES),
    Field("payload", "providers", _are_choices, "a list of providers by name"),
    Field("payload", "min_runtime", _is_version, "a version"),
    Field("payload", "max_runtime_tested", _is_version, "a version"),
)
"""All that the rules read, the schema apart."""
