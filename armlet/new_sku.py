"""A new SKU, written after another."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from armlet.config import resolve_document
from armlet.errors import ArmletError, Kind
from armlet.files import write_whole
from armlet.paths import Paths
from armlet.recipes import SKUS, TOOLCHAINS
from armlet.spec.base import NAME, VERSION, Name
from armlet.spec.cpu import CPUS
from armlet.spec.patterns import MEANINGS
from armlet.spec.unsupported import refusal
from armlet.validation import did_you_mean
from armlet.yamlfile import Document, Key, parse, read


def new_sku(
    paths: Paths,
    name: str,
    *,
    like: str = "demo-a53",
    toolchain: str | None = None,
    cpu: str | None = None,
    glibc: str | None = None,
) -> Path:
    """Writes ``recipes/skus/<name>.yaml``: a copy of ``like``, comments and all, with other values; returns its path.

    What a comment says of ``like`` alone is left out. With ``glibc`` (the rootfs's) or a ``cpu`` of another
    architecture, and no ``toolchain``, the new SKU names none: its floor chooses, and brings its own CPython.

    Raises:
        ArmletError: the name is bad or taken, or the new SKU would not be sound; nothing is written then.
    """
    _check_new_name(paths, name)
    SKUS.require(paths, like)
    if toolchain is not None and toolchain not in (known := TOOLCHAINS.names(paths)):
        unknown = (f'unknown toolchain "{toolchain}"', did_you_mean(toolchain, known))
        raise _flag("toolchain", *(refusal("toolchain", toolchain) or unknown))
    if cpu is not None and cpu not in CPUS:
        raise _flag("cpu", *(refusal("cpu", cpu) or (f'unknown CPU "{cpu}"', did_you_mean(cpu, CPUS))))
    if glibc is not None and re.fullmatch(VERSION, glibc) is None:
        raise _flag("glibc", f'"{glibc}" is no version', MEANINGS[VERSION])
    template = read(SKUS.path(paths, like), root=paths.root)
    # Before any change: a mistake of the template's own is told with its file.
    resolved = resolve_document(paths, like, template)
    old, text = resolved.sku, template.text
    chosen = toolchain is None and (glibc is not None or CPUS[cpu or old.cpu].arch != resolved.toolchain.arch)
    changes = {
        ("name",): name,
        ("description",): f"{name} ({cpu or old.cpu})",
        ("toolchain",): toolchain,
        ("cpu",): cpu,
        ("floors", "glibc"): glibc,
    }
    edits = [(*template.spans[key], _plain(value)) for key, value in changes.items() if value and key in template.spans]
    if chosen:
        edits += _without(template, ("toolchain",))
    elif toolchain and ("toolchain",) not in template.spans:
        start = template.start_of_line(("cpu",))
        edits.append((start, start, f"toolchain: {toolchain}\n"))
    if chosen or toolchain:
        edits += _without(template, ("runtime", "cpython"))
    for start, end, value in sorted(edits, reverse=True):
        text = text[:start] + value + text[end:]
    text = _OF_THE_TEMPLATE.sub("", text).replace(f"--sku {like} ", f"--sku {name} ")
    resolve_document(paths, name, parse(text, file="the new SKU"))
    target = SKUS.path(paths, name)
    write_whole(target, text.encode())
    return target


def _without(template: Document, key: Key) -> list[tuple[int, int, str]]:
    """The edit (start, end, new text) that takes a key's line out; none where there is none."""
    if key not in template.spans:
        return []
    end = template.text.find("\n", template.spans[key][1]) + 1
    return [(template.start_of_line(key), end or len(template.text), "")]


_OF_THE_TEMPLATE = re.compile(r"^# (?:This one is |To make your own: ).*\n", re.MULTILINE)


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
    there = [file for file in SKUS.files(paths) if file.casefold() == f"{name}.yaml"]
    if there:
        what = (
            "is there already" if f"{name}.yaml" in there else f"differs only in case from {there[0]}, which is there"
        )
        raise ArmletError(what, hint="choose another name, or edit that file", kind=Kind.INPUT, where=where)


def _plain(value: str) -> str:
    """The text as YAML: in quotes only where YAML would read a number or a truth value."""
    return value if parse(f"key: {value}", file="").get("key") == value else json.dumps(value)
