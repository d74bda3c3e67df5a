"""What a SKU's models are as they go into conversion: each as it was handed over, and its int8 version where wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from armlet.events import Sink, silent
from armlet.onnx.models import obtain
from armlet.onnx.quantise import Quantised, quantise
from armlet.onnx.reading import Limits, Shapes
from armlet.onnx.sample_files import samples_of
from armlet.onnx.samples import Sample, samples_for
from armlet.paths import Paths
from armlet.spec.sku import INT8_SUFFIX, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An ONNX model to convert, ``of`` the SKU's file."""

    name: str
    path: Path
    of: Path
    shapes: Shapes
    samples_of: str
    """The name under which its samples are known."""
    samples_in: Path | None = None
    """Folder or file with samples of the user's; None where there are none."""
    quantised: Quantised | None = None
    """How it was made of the SKU's file; None where it is that file."""

    def samples(self) -> tuple[Sample, ...]:
        """What the model is tried on: an int8 version on the samples of the model of floats."""
        if self.samples_in is not None:
            return samples_of(self.samples_in, self.of, self.shapes)
        return samples_for(self.samples_of, self.of, self.shapes)


def versions(
    model: Model,
    paths: Paths,
    folder: Path,
    *,
    limits: Limits | None = None,
    emit: Sink = silent,
) -> Iterator[Version]:
    """The model's file, and then its int8 version, written into ``folder``.

    Raises:
        ArmletError: as :func:`armlet.onnx.models.obtain` and :func:`armlet.onnx.quantise.quantise`.
    """
    file = obtain(model, paths, emit)
    own = None if model.samples is None else paths.root / model.samples
    float_version = Version(
        name=model.name, path=file, of=file, shapes=model.inputs, samples_of=model.name, samples_in=own
    )
    yield float_version
    if model.quantise is None:
        return
    name = model.name + INT8_SUFFIX
    made = quantise(
        file,
        folder / f"{name}.onnx",
        how=model.quantise,
        samples=float_version.samples(),
        shapes=model.inputs,
        limits=limits,
        emit=emit,
    )
    # The int8 model has its shapes fixed for good.
    yield replace(float_version, name=name, path=made.path, quantised=made)
