"""``recipes/providers/<source set>/<provider>.json``: what a provider takes, as its own sources say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet.coverage.kernels import Kernel
from armlet.errors import ArmletError, Kind
from armlet.registrations import ONNX_DOMAIN

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTable:
    """One provider's kernels and rules."""

    provider: str
    layout: str
    """``NHWC``: nodes whose result depends on the layout are moved to it before they run. Else ``NCHW``."""
    layout_sensitive: frozenset[str]
    nhwc_definitions: Mapping[str, tuple[int, ...]]
    """Operator -> versions that ONNX Runtime defines in that layout; a minimal build asks for no definitions."""
    layout_transparent: frozenset[str]
    """Operators that a change of the layout is pushed through."""
    opsets: tuple[int, int]
    """Oldest and newest opset of a model whose layout can be changed."""
    kernels: tuple[Kernel, ...]
    rules: Mapping[str, str]
    """Operator -> function that judges it; ``*`` for all; ``+`` judges what may be fused into a node in front."""
    functions: Mapping[str, Any]

    def kernel(self, op: str, domain: str, since: int, types: Mapping[str, str]) -> Kernel | None:
        """The one that serves a node. ``types``: type parameter -> its tensors' element."""
        for kernel in self.kernels:
            if (kernel.op, kernel.domain) != (op, domain or ONNX_DOMAIN) or not kernel.serves(since):
                continue
            # A parameter that the definition at hand does not have, or of a type that nobody knows, binds nothing.
            if all(types.get(name, elements[0]) in elements for name, elements in kernel.types):
                return kernel
        return None

    def versions(self, op: str, domain: str) -> list[Kernel]:
        return [kernel for kernel in self.kernels if (kernel.op, kernel.domain) == (op, domain or ONNX_DOMAIN)]


def place(root: Path, source_set: str, provider: str) -> Path:
    return root / "recipes" / "providers" / source_set / f"{provider}.json"


def text(table: Mapping[str, Any]) -> str:
    """The file's text: one kernel, and one statement of a function's first level, on a line."""
    rest = {key: value for key, value in table.items() if key not in ("kernels", "functions")}
    lines = [f" {_plain(key)}: {_plain(value)}" for key, value in sorted(rest.items())]
    kernels = ",\n".join(f"  {_plain(one)}" for one in table["kernels"])
    lines.append(f' "kernels": [\n{kernels}\n ]')
    functions = ",\n".join(_function(name, one) for name, one in sorted(table["functions"].items()))
    lines.append(f' "functions": {{\n{functions}\n }}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _function(name: str, made: Mapping[str, Any]) -> str:
    body = ",\n".join(f"    {_plain(statement)}" for statement in made["body"])
    head = f'"file": {_plain(made["file"])}, "parameters": {_plain(made["parameters"])}'
    return f'  {_plain(name)}: {{{head}, "body": [\n{body}\n  ]}}'


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def load(root: Path, source_set: str, provider: str) -> ProviderTable:
    """The table of a provider in the project ``root``.

    Raises:
        ArmletError: (INPUT) there is none, or it is of another schema.
    """
    path = place(root, source_set, provider)
    try:
        made = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ArmletError(
            f"there is no table of what {provider} takes in {source_set}: {error}",
            hint="./inv sources.providers makes it; docs/inspecting.md says how",
            kind=Kind.INPUT,
            where=str(path.relative_to(root)),
        ) from error
    if made.get("schema") != SCHEMA:
        raise ArmletError(
            f"the table has the schema {made.get('schema')}, and this Armlet reads {SCHEMA}",
            hint="./inv sources.providers makes it anew",
            kind=Kind.INPUT,
            where=str(path.relative_to(root)),
        )
    return ProviderTable(
        provider=made["provider"],
        layout=made["layout"],
        layout_sensitive=frozenset(made["layout_sensitive"]),
        nhwc_definitions={op: tuple(versions) for op, versions in made["nhwc_definitions"].items()},
        layout_transparent=frozenset(made["layout_transparent"]),
        opsets=(made["opsets"][0], made["opsets"][1]),
        kernels=tuple(_kernel(one) for one in made["kernels"]),
        rules=made["rules"],
        functions=made["functions"],
    )


def _kernel(made: Mapping[str, Any]) -> Kernel:
    types = tuple((name, tuple(elements)) for name, elements in sorted(made["types"].items()))
    return Kernel(op=made["op"], domain=made["domain"], since=made["since"], until=made["until"], types=types)
