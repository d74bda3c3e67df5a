"""A SKU with all it refers to, or everything that is wrong with them, with file and line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from armlet.errors import ArmletError, Kind
from armlet.files import write_whole
from armlet.paths import Paths
from armlet.recipes import SKUS, SOURCE_SETS, TOOLCHAINS, Shelf, Table, load_operators, misnamed, operators_file
from armlet.rules import Case, check
from armlet.spec.base import NAME, Name
from armlet.spec.cpu import CPUS, Cpu
from armlet.spec.patterns import MEANINGS
from armlet.spec.sku import Sku
from armlet.spec.source_set import Component, Only, SourceSet
from armlet.spec.toolchain import Toolchain
from armlet.validation import did_you_mean, validate
from armlet.yamlfile import Document, Key, Problem, dotted, parse, read, refuse

M = TypeVar("M", bound=BaseModel)

UPSTREAM_PATCH = "onnxruntime:"
"""How the name of a patch begins that ONNX Runtime's own tree carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A SKU and all it refers to, checked on their own and against each other."""

    sku: Sku
    toolchain: Toolchain
    cpu: Cpu
    source_set: SourceSet
    patches: Mapping[str, bytes]
    """Name as in ``Component.patches`` -> content; only those below ``recipes/patches/<version>/``."""
    origins: Mapping[str, str]
    """``runtime.flavor`` -> ``recipes/skus/<name>.yaml:7``, or ``default (armlet/spec/sku.py)``; the keys of the
    toolchain, the CPU and the source set begin with ``toolchain.``, ``cpu.`` and ``source_set.``."""

    @property
    def components(self) -> tuple[Component, ...]:
        """Those of the source set's components that are part of this SKU's build."""
        return tuple(one for one in self.source_set.components if self._asks_for(one.only))

    def _asks_for(self, only: Only) -> bool:
        runtime = self.sku.runtime
        return (
            only.arch in (None, self.toolchain.arch)
            and (only.provider is None or only.provider in runtime.providers)
            and only.python in (None, runtime.python)
        )


def resolve(paths: Paths, sku: str) -> Resolved:
    """A SKU with all it refers to.

    Raises:
        ArmletError: all that is wrong with the files involved, at once.
    """
    SKUS.require(paths, sku)
    return _resolve(paths, sku, read(SKUS.path(paths, sku), root=paths.root))


def _resolve(paths: Paths, name: str, document: Document) -> Resolved:
    sku, problems = validate(Sku, document)
    problems += misnamed(document, name)
    toolchain, toolchain_document = _referred(paths, TOOLCHAINS, document, ("toolchain",), problems)
    source_set, source_document = _referred(paths, SOURCE_SETS, document, ("runtime", "source_set"), problems)
    case = Case(
        sku=document,
        toolchain=toolchain,
        source_set=source_set,
        toolchains=tuple(_sound_toolchains(paths)),
        operators=_operators(paths, document, source_set, problems),
    )
    problems += check(case)
    patches: dict[str, bytes] = {}
    if source_set is not None and source_document is not None:
        patches = _patches(paths, source_set, source_document, problems)
    refuse(problems)
    assert sku is not None
    assert toolchain is not None
    assert toolchain_document is not None
    assert source_set is not None
    assert source_document is not None
    cpu = CPUS[sku.cpu]
    return Resolved(
        sku=sku,
        toolchain=toolchain,
        cpu=cpu,
        source_set=source_set,
        patches=MappingProxyType(patches),
        origins=MappingProxyType(
            {
                **_origins(sku, document, "", "armlet/spec/sku.py"),
                **_origins(toolchain, toolchain_document, "toolchain.", "armlet/spec/toolchain.py"),
                **{f"cpu.{key}": "armlet/spec/cpu.py" for key in asdict(cpu)},
                **_origins(source_set, source_document, "source_set.", "armlet/spec/source_set.py"),
            }
        ),
    )


def describe(resolved: Resolved) -> list[tuple[str, str, str]]:
    """(key, value, origin) of everything that a SKU comes to, in the order of its spec, then of what it refers to."""
    models: tuple[tuple[str, Any], ...] = (
        ("", resolved.sku.model_dump(by_alias=True)),
        ("toolchain.", resolved.toolchain.model_dump(by_alias=True)),
        ("cpu.", asdict(resolved.cpu)),
        ("source_set.", resolved.source_set.model_dump(by_alias=True)),
    )
    return [
        (prefix + dotted(key), _shown(value), resolved.origins[prefix + dotted(key)])
        for prefix, data in models
        for key, value in _leaves(data)
    ]


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, (tuple, list, frozenset, Mapping)):
        items = sorted(value) if isinstance(value, frozenset) else value
        return ", ".join(str(item) for item in items) or "-"
    return str(value)


def _leaves(value: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """The scalars and the lists of scalars of nested data."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*key, name))
    elif isinstance(value, (tuple, list)) and any(isinstance(item, Mapping) for item in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*key, index))
    else:
        yield key, value


def _origins(model: BaseModel, document: Document, prefix: str, module: str) -> dict[str, str]:
    return {
        prefix + dotted(key): document.where(key) if key in document.lines else f"default ({module})"
        for key, _ in _leaves(model.model_dump(by_alias=True))
    }


def _referred(
    paths: Paths, shelf: Shelf[M], document: Document, key: Key, problems: list[Problem]
) -> tuple[M | None, Document | None]:
    """What a key of the SKU names: null, with the reason added to ``problems``, where it is not there or not sound."""
    name = document.get(*key)
    if not isinstance(name, str):
        return None, None
    known = shelf.names(paths)
    if name not in known:
        problems.append(document.problem(key, f'unknown {shelf.noun} "{name}"', did_you_mean(name, known)))
        return None, None
    made, inner, found = shelf.inspect(paths, name)
    problems += found
    return made, inner


def _sound_toolchains(paths: Paths) -> Iterator[Toolchain]:
    """Those a hint may name: one that is broken and not asked for is no reason to stop."""
    for name in TOOLCHAINS.names(paths):
        made, _, _ = TOOLCHAINS.inspect(paths, name)
        if made is not None:
            yield made


def _operators(paths: Paths, document: Document, source_set: SourceSet | None, problems: list[Problem]) -> Table | None:
    key = ("runtime", "operators", "allow")
    if source_set is None or not document.get(*key):
        return None
    table = load_operators(paths, source_set.name)
    if table is None:
        missing = operators_file(paths, source_set.name).relative_to(paths.root).as_posix()
        hint = f"{missing} is not there; docs/adding-a-sku.md says how to write it"
        problems.append(document.problem(key, f"the operators of {source_set.name} are not known", hint))
    return table


def _patches(paths: Paths, source_set: SourceSet, document: Document, problems: list[Problem]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for index, component in enumerate(source_set.components):
        for place, name in enumerate(component.patches):
            if name.startswith(UPSTREAM_PATCH):
                continue
            path = paths.patch(f"{source_set.version}/{name}")
            try:
                found[name] = path.read_bytes()
            except OSError as error:
                key = ("components", index, "patches", place)
                what = f"the patch {name} cannot be read: {(error.strerror or '').lower()}"
                hint = f"expected at {path.relative_to(paths.root).as_posix()}"
                problems.append(document.problem(key, what, hint))
    return found


def new_sku(
    paths: Paths, name: str, *, like: str = "demo-a53", toolchain: str | None = None, cpu: str | None = None
) -> Path:
    """Writes ``recipes/skus/<name>.yaml``: a copy of ``like``, comments and all, with other values; returns its path.

    What a comment says of ``like`` alone is left out.

    Raises:
        ArmletError: the name is bad or taken, or the new SKU would not be sound; nothing is written then.
    """
    _check_new_name(paths, name)
    SKUS.require(paths, like)
    if toolchain is not None and toolchain not in (known := TOOLCHAINS.names(paths)):
        raise _flag("toolchain", f'unknown toolchain "{toolchain}"', did_you_mean(toolchain, known))
    if cpu is not None and cpu not in CPUS:
        raise _flag("cpu", f'unknown CPU "{cpu}"', did_you_mean(cpu, CPUS))
    template = read(SKUS.path(paths, like), root=paths.root)
    # Before any change: a mistake of the template's own is told with its file.
    old = _resolve(paths, like, template).sku
    text = template.text
    changes = {
        ("name",): name,
        ("description",): f"{name} ({cpu or old.cpu})",
        ("toolchain",): toolchain,
        ("cpu",): cpu,
    }
    spans = [(template.spans[key], value) for key, value in changes.items() if value and key in template.spans]
    for (start, end), value in sorted(spans, reverse=True):
        text = text[:start] + _plain(value) + text[end:]
    text = _OF_THE_TEMPLATE.sub("", text).replace(f"--sku {like} ", f"--sku {name} ")
    _resolve(paths, name, parse(text, file="the new SKU"))
    target = SKUS.path(paths, name)
    write_whole(target, text.encode())
    return target


_OF_THE_TEMPLATE = re.compile(r"^# (?:This one is the demonstration|To make your own): .*\n", re.MULTILINE)


def _flag(name: str, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=f"--{name}")


def _check_new_name(paths: Paths, name: str) -> None:
    where = f"{SKUS.folder}/{name}.yaml"
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        wanted = f"{MEANINGS[NAME]}; at most 64"
        raise ArmletError(f'"{name}" is no name for a SKU', hint=wanted, kind=Kind.INPUT) from None
    if name.endswith((".yaml", ".yml")):
        hint = f"write {name.rpartition('.')[0]}: the file gets its ending by itself"
        raise ArmletError(f'"{name}" is no name for a SKU', hint=hint, kind=Kind.INPUT)
    if SKUS.path(paths, name).exists():
        raise ArmletError(
            "is there already", hint="choose another name, or edit that file", kind=Kind.INPUT, where=where
        )


def _plain(value: str) -> str:
    """The text as YAML: in quotes only where YAML would read a number or a truth value."""
    return value if parse(f"key: {value}", file="").get("key") == value else json.dumps(value)
