"""Samples from files: ``.npz`` archives, each one set of inputs by name."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.reading import Shapes, input_shapes, read
from armlet.onnx.samples import Sample
from armlet.paths import sample_files

EXPECTED = "expected"
"""Array in a sample's file that is no input: the class that is right, as one whole number."""
_HINT = "write it with numpy.savez(path, <input name>=<array>, ...)"


def load_samples(place: Path) -> tuple[Sample, ...]:
    """The samples in a folder's ``*.npz`` files, by name, or the one of a single such file.

    Raises:
        ArmletError: (INPUT) there is none, or a file is no archive of plain arrays.
    """
    files = sample_files(place)
    if not files:
        raise _input(place, "has no *.npz file", _HINT)
    return tuple(_load(file) for file in files)


def samples_of(place: Path, model: Path, shapes: Shapes) -> tuple[Sample, ...]:
    """The samples in ``place``, which are such as an ONNX model takes whose inputs are fixed to ``shapes``.

    Raises:
        ArmletError: as :func:`load_samples` and :func:`demand_fit`, or the model cannot be read.
    """
    samples, source = load_samples(place), read(model, shapes=shapes)
    dtype_of = library("onnx.helper").tensor_dtype_to_np_dtype
    types = {value.name: dtype_of(value.type.tensor_type.elem_type) for value in source.graph.input}
    demand_fit(samples, {name: (types[name], shape) for name, shape in input_shapes(source).items()})
    return samples


def demand_fit(samples: tuple[Sample, ...], inputs: Mapping[str, tuple[Any, tuple[int | None, ...]]]) -> None:
    """Does nothing where every sample has the model's inputs: name -> (NumPy dtype, shape with None where it is free).

    Raises:
        ArmletError: (INPUT) a sample lacks one, has one too many, or of another type or shape.
    """
    for sample in samples:
        if sample.inputs.keys() != inputs.keys():
            has, asks = ", ".join(sorted(sample.inputs)) or "none", ", ".join(sorted(inputs))
            raise _input(Path(sample.name), f"has the inputs {has}, and the model asks for {asks}", _HINT)
        for name, array in sample.inputs.items():
            dtype, shape = inputs[name]
            fits = len(shape) == array.ndim and all(
                want is None or want == size for want, size in zip(shape, array.shape, strict=True)
            )
            if array.dtype != dtype or not fits:
                wanted = "x".join("?" if size is None else str(size) for size in shape)
                found = "x".join(map(str, array.shape))
                what = f'its "{name}" is {array.dtype} {found}, and the model takes {dtype} {wanted}'
                raise _input(Path(sample.name), what, "write it in the model's own type and shape")


def _load(file: Path) -> Sample:
    numpy = library("numpy")
    try:
        # From memory: numpy.load leaves the file of a broken archive open.
        with numpy.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise _input(file, f"cannot be read: {error.strerror or error}", _HINT) from error
    # A single array (*.npy) is no archive; broken archives raise what the module or its decompressor raises.
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _input(file, f"is no archive of plain arrays: {error}", _HINT) from error
    expected = arrays.pop(EXPECTED, None)
    if expected is not None and (expected.dtype.kind not in "iu" or expected.size != 1):
        raise _input(file, f'its "{EXPECTED}" is no single whole number', _HINT)
    if not arrays:
        raise _input(file, "has no inputs", _HINT)
    return Sample(name=file.stem, inputs=arrays, expected=None if expected is None else int(expected.item()))


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
