"""``runtime.json``: made from measured facts, written in one form, read with patience."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from armlet import digest
from armlet.config import Resolved
from armlet.errors import ArmletError, Kind
from armlet.gates import Artefact
from armlet.gates.shipping import MACHINES
from armlet.gates.symbols import highest
from armlet.spec.runtime import (
    Kernels,
    Requires,
    RuntimeManifest,
    ShippedFile,
    ShippedWheel,
    SourceSetRef,
    Target,
    ToolchainRef,
)
from armlet.spec.sku import DOMAINS_LEFT_OUT

SCHEMA = 1
FILE = "runtime.json"


def assemble(
    resolved: Resolved,
    artefact: Artefact,
    *,
    build_id: str,
    kernel: str,
    operators: Mapping[str, Mapping[str, tuple[Kernels, ...]]] | None,
    image: str,
    compiler: str,
    wheel: Path | None = None,
) -> RuntimeManifest:
    """The manifest of an artefact that passed the gates.

    Args:
        build_id: id of the step that packs it.
        kernel: the oldest kernel its libc starts on, as the libc's ABI note says.
        operators: kernels by domain and operator; None for the flavor ``full``.
        image: the toolchain image's digest.
        compiler: what the compiler calls itself.
        wheel: the Python wheel's file, where there is one.
    """
    elves = [elf for _, elf in artefact.elf_files()]
    glibc = highest(elves, "GLIBC_")
    assert glibc is not None, "the gate glibc refuses a library that asks for none"
    source_set = resolved.source_set
    left_out = DOMAINS_LEFT_OUT.get(resolved.sku.runtime.flavor, frozenset())
    return RuntimeManifest(
        sku=resolved.sku.name,
        build_id=build_id,
        ort_version=source_set.version,
        ort_format_version=source_set.ort_format,
        onnx_ir_max=source_set.onnx_ir_max,
        opsets={domain: opset for domain, opset in source_set.opsets.items() if domain not in left_out},
        flavor=resolved.sku.runtime.flavor,
        target=Target(
            triple=resolved.toolchain.triple,
            arch=resolved.toolchain.arch,
            float_abi=MACHINES[resolved.toolchain.arch].float_abi,
            isa=resolved.cpu.march,
            cpu=resolved.cpu.name,
        ),
        requires=Requires(
            glibc=glibc,
            glibcxx=highest(elves, "GLIBCXX_"),
            kernel=kernel.removesuffix(".0"),
            libraries=tuple(sorted({name for elf in elves for name in elf.needed} - {elf.soname for elf in elves})),
        ),
        providers=resolved.sku.runtime.providers,
        operators=None if operators is None else {domain: dict(table) for domain, table in operators.items()},
        element_types=resolved.sku.runtime.operators.types,
        files=tuple(_files(artefact)),
        wheel=None if wheel is None else _wheel(wheel, resolved.toolchain.cpython),
        source_set=SourceSetRef(
            name=source_set.name, sha256=digest.of_value(source_set.model_dump(mode="json", by_alias=True))
        ),
        toolchain=ToolchainRef(name=resolved.toolchain.name, image=image, compiler=compiler),
    )


def _wheel(path: Path, cpython: str | None) -> ShippedWheel:
    assert cpython is not None, "the rules refuse a wheel where the toolchain has no CPython"
    return ShippedWheel(filename=path.name, size=path.stat().st_size, sha256=digest.of_file(path), cpython=cpython)


def _files(artefact: Artefact) -> Iterable[ShippedFile]:
    for path, facts in sorted(artefact.files.items()):
        if facts.link is None and path != FILE:
            yield ShippedFile(
                path=path,
                size=facts.size,
                sha256=facts.sha256,
                stripped=None if facts.elf is None else facts.elf.stripped,
                build_id=None if facts.elf is None else facts.elf.build_id,
            )


def render(manifest: RuntimeManifest) -> str:
    """The file's text: sorted keys, two spaces of indent, a newline at the end."""
    return (
        json.dumps(manifest.model_dump(mode="json", by_alias=True), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    )


def demand_of(made: RuntimeManifest, sku: str, dist: Path) -> None:
    """Raises:
    ArmletError: (GATE) what ``dist`` holds was built of another SKU.
    """
    if made.sku != sku:
        raise ArmletError(
            f"what is there was built of {made.sku}, and not of {sku}",
            where=str(dist),
            hint=f"build it again, which mends it: ./inv build --sku {sku}",
            kind=Kind.GATE,
        )


def read_manifest(path: Path) -> RuntimeManifest:
    """Reads a ``runtime.json``; fields that this program does not know are ignored within the same schema.

    Raises:
        ArmletError: (INPUT) it is not there, is no JSON, has another schema, or lacks something.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _unreadable(path, f"is no JSON: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema", "missing") if isinstance(data, dict) else "missing"
        raise ArmletError(
            f"its schema is {found}, this program reads {SCHEMA}",
            where=str(path),
            hint="use the Armlet version that built it, or build it again with this one",
            kind=Kind.INPUT,
        )
    try:
        return RuntimeManifest.model_validate_json(json.dumps(data), extra="ignore")
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise _unreadable(path, f"{key}: {first['msg']}") from error


def _unreadable(path: Path, what: str) -> ArmletError:
    return ArmletError(what, where=str(path), hint="it is damaged or no runtime.json: build it again", kind=Kind.INPUT)
