"""A model made fit for one SKU's runtime: in its format, within what it reads, for its providers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from armlet.config import Resolved
from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.onnx.convert import Converted, convert, keep_onnx
from armlet.onnx.reading import Limits, Shapes
from armlet.spec.runtime import RuntimeManifest
from armlet.spec.sku import Flavor, Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Taker:
    """What a SKU's runtime takes, be it built or only described."""

    sku: str
    ort_version: str
    flavor: Flavor
    providers: tuple[Provider, ...]
    limits: Limits
    ort_format: tuple[int, int]
    """Oldest and newest version of the ORT format that it reads."""

    @classmethod
    def built(cls, manifest: RuntimeManifest) -> Taker:
        return cls(
            sku=manifest.sku,
            ort_version=manifest.ort_version,
            flavor=manifest.flavor,
            providers=manifest.providers,
            limits=Limits(opsets=manifest.opsets, onnx_ir_max=manifest.onnx_ir_max),
            ort_format=manifest.ort_format_version,
        )

    @classmethod
    def planned(cls, resolved: Resolved) -> Taker:
        runtime, source_set = resolved.sku.runtime, resolved.source_set
        return cls(
            sku=resolved.sku.name,
            ort_version=source_set.version,
            flavor=runtime.flavor,
            providers=runtime.providers,
            limits=Limits(opsets=source_set.opsets, onnx_ir_max=source_set.onnx_ir_max),
            ort_format=source_set.ort_format,
        )

    @property
    def suffix(self) -> str:
        """What a model's file for it ends with."""
        return ".ort" if self.flavor == "minimal" else ".onnx"


def fit(
    model: Path,
    out: Path,
    taker: Taker,
    *,
    providers: Sequence[Provider] | None = None,
    shapes: Shapes | None = None,
    emit: Sink = silent,
) -> Converted:
    """Writes the model to ``out``, which ends with ``taker.suffix``; ``providers`` in place of the runtime's own.

    Raises:
        ArmletError: (INPUT) the model cannot be read or converted, or is more than the runtime takes; (HOST) this
            machine's ONNX Runtime writes a format that the runtime does not read.
    """
    chosen = taker.providers if providers is None else providers
    if taker.flavor != "minimal":
        return keep_onnx(model, out, providers=chosen, shapes=shapes, limits=taker.limits, emit=emit)
    converted = convert(model, out, providers=chosen, shapes=shapes, limits=taker.limits, emit=emit)
    oldest, newest = taker.ort_format
    assert converted.format_version is not None
    if not oldest <= converted.format_version <= newest:
        raise ArmletError(
            f"this machine's ONNX Runtime writes ORT format {converted.format_version}, and {taker.sku} reads "
            f"{oldest} to {newest}",
            hint=f"convert with onnxruntime {taker.ort_version}",
            kind=Kind.HOST,
        )
    return converted
