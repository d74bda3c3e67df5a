"""One layer from SKUs and payloads, written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from armlet.errors import ArmletError, Kind
from armlet.layers import facts, tree
from armlet.layers import yocto as layer
from armlet.paths import Paths
from armlet.scratch import scratch

_MACHINE = r"[a-z0-9][a-z0-9.-]*"
_BASE = r"https?://[^\s\"'${};]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    rows: tuple[tuple[str, str, str], ...]
    """(recipe, what it is, which SKUs or processor it is for)."""
    tree: tree.Written


def yocto(
    paths: Paths,
    out: Path,
    *,
    skus: Sequence[str],
    payloads: Sequence[Path] = (),
    keys: Sequence[Path] = (),
    choices: layer.Choices | None = None,
) -> Emitted:
    """Raises:
    ArmletError: as ``gather`` and ``write``; (INPUT) a machine is given a SKU that is not in the layer.
    """
    chosen = choices or layer.Choices()
    _demand_sense(chosen, skus)
    with scratch("layer") as folder:
        known = facts.gather(paths, skus=skus, payloads=payloads, keys=keys, layout=layer.LAYOUT, scratch=folder)
        written = tree.write(out, "yocto", layer.files(paths.root, known, chosen))
        return Emitted(rows=tuple(_rows(known)), tree=written)


def machines(pairs: Iterable[str]) -> dict[str, str]:
    """Machine -> SKU, from ``<machine>=<sku>``.

    Raises:
        ArmletError: (INPUT) it is written otherwise, or a machine is there twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        machine, _, sku = pair.partition("=")
        if not re.fullmatch(_MACHINE, machine) or not sku or machine in found:
            hint = "--machine raspberrypi4-64=gateway-a72, once for each; BitBake wants small letters"
            raise ArmletError(f'--machine: "{pair}" is no machine and SKU', hint=hint, kind=Kind.INPUT)
        found[machine] = sku
    return found


def _demand_sense(choices: layer.Choices, skus: Sequence[str]) -> None:
    for machine, sku in choices.machines.items():
        if sku not in skus:
            what = f"the machine {machine} is to get {sku}, which is not in the layer"
            raise ArmletError(what, hint=f"add it: --sku {sku}", kind=Kind.INPUT)
    if choices.base and not re.fullmatch(_BASE, choices.base):
        hint = "--base https://<host>/<folder>"
        raise ArmletError(f'--base: "{choices.base}" is no address to fetch from', hint=hint, kind=Kind.INPUT)


def _rows(known: facts.Facts) -> Iterable[tuple[str, str, str]]:
    for runtime in known.runtimes:
        made = runtime.built.manifest
        yield (
            runtime.package,
            f"ONNX Runtime {made.ort_version}, {made.flavor}",
            f"{made.target.arch}, {made.target.isa}",
        )
    for model in known.models:
        yield model.package, f"{model.version}, generation {model.epoch}", ", ".join(model.skus)
