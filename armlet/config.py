"""A SKU with all it refers to, or everything that is wrong with them, with file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel

from armlet import digest, provider_rules
from armlet.case import Case
from armlet.choosing import choose
from armlet.paths import Paths, sample_files
from armlet.recipes import (
    SKUS,
    SOURCE_SETS,
    TOOLCHAINS,
    Shelf,
    Table,
    load_kernel_types,
    load_operators,
    misnamed,
    operators_file,
)
from armlet.rules import check
from armlet.sdks import found as found_sdks
from armlet.spec.base import RELATIVE_PATH
from armlet.spec.cpu import CPUS, Cpu
from armlet.spec.sku import Sku
from armlet.spec.source_set import UPSTREAM_PATCH, Acceleration, Component, Only, SourceSet
from armlet.spec.toolchain import Toolchain
from armlet.spec.unsupported import refusal
from armlet.validation import did_you_mean, validate
from armlet.yamlfile import Document, Key, Problem, dotted, read, refuse

M = TypeVar("M", bound=BaseModel)

_FLOOR = ("floors", "glibc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A SKU and all it refers to, checked on their own and against each other."""

    sku: Sku
    toolchain: Toolchain
    cpu: Cpu
    source_set: SourceSet
    patches: Mapping[str, bytes]
    """Name as in ``Component.patches`` -> content; only those below ``recipes/patches/<version>/``."""
    kernel_types: str | None
    """What the source set's kernels take (:func:`armlet.registrations.kernel_types`); None where nobody has said."""
    samples: Mapping[str, str]
    """Model -> sha256 over the files of its ``samples:``, where it has any."""
    sdks: Mapping[str, Path]
    """Vendors' files by their name -> the folder on this machine."""
    origins: Mapping[str, str]
    """``runtime.flavor`` -> ``recipes/skus/<name>.yaml:7``, or ``default (armlet/spec/sku.py)``; the keys of the
    toolchain, the CPU and the source set begin with ``toolchain.``, ``cpu.`` and ``source_set.``."""

    @property
    def components(self) -> tuple[Component, ...]:
        """Those of the source set's components that are part of this SKU's build."""
        return tuple(one for one in self.source_set.components if self._asks_for(one.only))

    @property
    def acceleration(self) -> Acceleration:
        """How the sources compile faster for this SKU's flavor."""
        return self.source_set.acceleration.of(self.sku.runtime.flavor)

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
    return resolve_document(paths, sku, read(SKUS.path(paths, sku), root=paths.root))


def resolve_document(paths: Paths, name: str, document: Document) -> Resolved:
    """As ``resolve``, of a SKU's document that need not be on disk."""
    sku, problems = validate(Sku, document)
    problems += misnamed(document, name)
    inspected = [TOOLCHAINS.inspect(paths, one) for one in TOOLCHAINS.names(paths)]
    toolchain, toolchain_document = _referred(paths, TOOLCHAINS, document, ("toolchain",), problems)
    source_set, source_document = _referred(paths, SOURCE_SETS, document, ("runtime", "source_set"), problems)
    case = Case(
        sku=document,
        toolchain=toolchain,
        source_set=source_set,
        # One that is broken and not asked for is no reason to stop.
        toolchains=tuple(made for made, _, _ in inspected if made is not None),
        operators=_operators(paths, document, source_set, problems),
    )
    if document.get("toolchain") is None:
        # Where a choice is made, each is asked for.
        problems += [problem for _, _, wrong in inspected for problem in wrong]
        toolchain, found = choose(document, case.toolchains, partial(provider_rules.builds, case))
        toolchain_document = next((inner for made, inner, _ in inspected if made and made == toolchain), None)
        case = replace(case, toolchain=toolchain)
        problems += found
    problems += check(case)
    patches: dict[str, bytes] = {}
    if source_set is not None and source_document is not None:
        patches = _patches(paths, source_set, source_document, problems)
    samples = _samples(paths, document, problems)
    sdks, missing = found_sdks(document, paths.root, os.environ)
    refuse([*problems, *missing])
    assert sku is not None
    assert toolchain is not None
    assert toolchain_document is not None
    assert source_set is not None
    assert source_document is not None
    cpu = CPUS[sku.cpu]
    by = "floors.glibc and runtime.cpython" if sku.runtime.cpython else "floors.glibc"
    chosen = {} if sku.toolchain else {"toolchain": f"chosen by {by} ({document.where(_FLOOR)})"}
    return Resolved(
        sku=sku.model_copy(update={"toolchain": toolchain.name}),
        toolchain=toolchain,
        cpu=cpu,
        source_set=source_set,
        patches=MappingProxyType(patches),
        kernel_types=load_kernel_types(paths, source_set.name),
        samples=MappingProxyType(samples),
        sdks=MappingProxyType(sdks),
        origins=MappingProxyType(
            {
                **_origins(sku, document, "", "armlet/spec/sku.py"),
                **chosen,
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
        unknown = (f'unknown {shelf.noun} "{name}"', did_you_mean(name, known))
        problems.append(document.problem(key, *(refusal(str(key[-1]), name) or unknown)))
        return None, None
    made, inner, found = shelf.inspect(paths, name)
    problems += found
    return made, inner


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


def _samples(paths: Paths, document: Document, problems: list[Problem]) -> dict[str, str]:
    models = document.get("runtime", "operators", "models")
    found: dict[str, str] = {}
    for index, model in enumerate(models if isinstance(models, list) else ()):
        given = model.get("samples") if isinstance(model, dict) else None
        if not isinstance(given, str) or re.fullmatch(RELATIVE_PATH, given) is None:
            continue
        files = sample_files(paths.root / given)
        key, hint = ("runtime", "operators", "models", index, "samples"), "docs/adding-a-sku.md, Samples"
        try:
            found[str(model.get("name"))] = digest.of_files(files, root=paths.root)
        except OSError as error:
            problems.append(document.problem(key, f"{given} cannot be read: {(error.strerror or '').lower()}", hint))
        if not files:
            problems.append(document.problem(key, f"{given} has no *.npz file", hint))
    return found


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
