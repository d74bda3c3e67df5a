"""Samples from files: ``.npz`` archives, each one set of inputs by name."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.reading import Shapes, input_shapes, input_types, read
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
    types = input_types(source, model)
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
        if file.exists() and not file.is_file():
            raise _input(file, "is no file", _HINT)
        # From memory: numpy.load leaves the file of a broken archive open.
        with numpy.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except ArmletError:
        raise
    except OSError as error:
        raise _input(file, f"cannot be read: {error.strerror or error}", _HINT) from error
    except MemoryError as error:
        raise _input(file, f"asks for more memory than there is: {_first_line(error)}", _HINT) from error
    # A single array (*.npy) is no archive; broken ones raise whatever the archive's modules, a decompressor or the
    # tokenizer of headers raise.
    except Exception as error:
        raise _input(file, f"is no archive of plain arrays: {_first_line(error)}", _HINT) from error
    expected = arrays.pop(EXPECTED, None)
    if expected is not None and (expected.dtype.kind not in "iu" or expected.size != 1):
        raise _input(file, f'its "{EXPECTED}" is no single whole number', _HINT)
    if not arrays:
        raise _input(file, "has no inputs", _HINT)
    for name, array in arrays.items():
        _demand_numbers(file, name, array)
    return Sample(name=file.stem, inputs=arrays, expected=None if expected is None else int(expected.item()))


def _demand_numbers(file: Path, name: str, array: Any) -> None:
    if not array.size:
        raise _input(file, f'its "{name}" has no elements: {"x".join(map(str, array.shape))}', _HINT)
    if array.dtype.kind not in "fc":
        return
    finite = int(library("numpy").isfinite(array).sum())
    if finite != array.size:
        what = f'its "{name}" has NaN or infinity among its numbers ({array.size - finite} of {array.size})'
        raise _input(file, what, "nothing can be measured with them: write finite numbers")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
