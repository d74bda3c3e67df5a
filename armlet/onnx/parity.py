"""The same inputs here and there: how far two makers' outputs are apart, and where they are furthest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.exporting import Run
from armlet.onnx.libraries import library
from armlet.onnx.tolerances import apart
from armlet.spec.model_record import Parity

_SILENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """An element; ``difference`` as :func:`armlet.onnx.tolerances.apart` counts."""

    difference: float
    output: str
    sample: str
    index: tuple[int, ...]
    wanted: float
    got: float
    unknown: str = ""
    """An output that has NaN among its numbers here and there; it has others beside them."""


class Session:
    """A model in this machine's ONNX Runtime.

    Args:
        as_written: nothing is optimised.

    Raises:
        ArmletError: (INPUT) ONNX Runtime refuses it; ``where`` names it.
    """

    def __init__(self, model: Any, where: Path, *, as_written: bool = False) -> None:
        ort = library("onnxruntime")
        options = ort.SessionOptions()
        options.log_severity_level = _SILENT
        options.intra_op_num_threads = 1
        if as_written:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._where = where
        try:
            data = model.SerializeToString()
            self._session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # The binding's exception classes share no base class of their own.
            raise self._refused("ONNX Runtime refuses the model", error) from error
        self.outputs: list[str] = [value.name for value in self._session.get_outputs()]

    def run(self, inputs: Any, name: str) -> tuple[Any, ...]:
        """The outputs as NumPy arrays.

        Raises:
            ArmletError: (INPUT) the model does not take these inputs.
        """
        texts = {key: array.astype(object) if array.dtype.kind == "U" else array for key, array in inputs.items()}
        try:
            found = self._session.run(None, texts)
        except Exception as error:
            raise self._refused(f"ONNX Runtime cannot run the model on {name}", error) from error
        numpy = library("numpy")
        if not all(isinstance(value, numpy.ndarray) for value in found):
            raise ArmletError(
                "gives lists or dictionaries, and payloads have tensors alone",
                hint="export it with tensors (skl2onnx: zipmap=False)",
                kind=Kind.INPUT,
                where=str(self._where),
            )
        return tuple(found)

    def _refused(self, what: str, error: Exception) -> ArmletError:
        return ArmletError(
            f"{what}: {str(error).splitlines()[0]}",
            hint="is it of a newer opset or IR than ONNX Runtime here takes? Try an older one: --opset 17",
            kind=Kind.INPUT,
            where=str(self._where),
        )


def worst_of(run: Run, got: Sequence[Any], names: Sequence[str], where: Path) -> Worst:
    """The element that differs most.

    Raises:
        ArmletError: (INPUT) there are other outputs than wanted, or of other shapes, or an output has nothing but NaN
            and infinities, which compare with nothing.
    """
    if len(got) < len(run.outputs):
        what = f"gives {len(got)} outputs in ONNX, and {len(run.outputs)} where it comes from"
        raise _apart(what, where)
    found = [_worst(name, run, wanted, one, where) for name, wanted, one in zip(names, run.outputs, got, strict=False)]
    unknown = next((one.unknown for one in found if one.unknown), "")
    return replace(max(found, key=lambda one: one.difference), unknown=unknown)


def _worst(name: str, run: Run, wanted: Any, got: Any, where: Path) -> Worst:
    numpy = library("numpy")
    if wanted.shape != got.shape:
        # A list of numbers and a column of them mean the same to scikit-learn.
        if tuple(size for size in wanted.shape if size != 1) != tuple(size for size in got.shape if size != 1):
            shown = " and ".join("x".join(map(str, one.shape)) or "one number" for one in (got, wanted))
            raise _apart(f'its output "{name}" has the shapes {shown} in ONNX and where it comes from', where)
        wanted = wanted.reshape(got.shape)
    unknown = _demand_numbers(name, run, wanted, got, where)
    off = apart(got, wanted)
    if got.dtype.kind in "OU" or wanted.dtype.kind in "OU":
        wanted, got = numpy.zeros(off.shape), off
    if not off.size:
        return Worst(difference=0, output=name, sample=run.name, index=(), wanted=0, got=0)
    place = numpy.unravel_index(int(off.argmax()), off.shape)
    return Worst(
        difference=float(off[place]),
        output=name,
        sample=run.name,
        index=tuple(int(number) for number in place),
        wanted=float(wanted[place]),
        got=float(got[place]),
        unknown=name if unknown else "",
    )


def _demand_numbers(name: str, run: Run, wanted: Any, got: Any, where: Path) -> bool:
    """Whether some numbers are NaN; refuses what has no finite one at either place."""
    numpy = library("numpy")
    kinds = (wanted.dtype.kind, got.dtype.kind)
    if not wanted.size or kinds != ("f", "f"):
        return False
    for array in (wanted, got):
        if not numpy.isfinite(array).any():
            nan = bool(numpy.isnan(array).any())
            raise ArmletError(
                f'its output "{name}" gives nothing but {"NaN" if nan else "infinity"} on {run.name}',
                hint="nothing can be compared: look for a division by 0, a logarithm or numbers too large; or give "
                "samples of yours: --samples",
                kind=Kind.INPUT,
                where=str(where),
            )
    return bool(numpy.isnan(wanted).any())


def unknowns(worst: Sequence[Worst]) -> list[str]:
    """A warning for each output with NaN among its numbers, where those agree."""
    first = {one.unknown: one.sample for one in reversed(worst) if one.unknown}
    return [f'its output "{name}" has NaN among its numbers on {sample}' for name, sample in first.items()]


def demand_close(worst: Sequence[Worst], tolerance: float, where: Path, *, of: str) -> Parity:
    """What there is to tell where all is within the tolerance.

    Raises:
        ArmletError: (INPUT) it is not.
    """
    top = max(worst, key=lambda one: one.difference)
    if not top.difference <= tolerance:
        index = ", ".join(map(str, top.index))
        raise ArmletError(
            f"{of} differs by {top.difference:.3g}, and {tolerance:g} is allowed: {top.output}[{index}] is "
            f"{top.got:.7g} instead of {top.wanted:.7g} on {top.sample}",
            hint="is it deterministic (no dropout, no random numbers)? else look at that output, or allow more: "
            "--tolerance",
            kind=Kind.INPUT,
            where=str(where),
        )
    return Parity(
        samples=len(worst),
        tolerance=tolerance,
        worst=top.difference,
        output=top.output,
        sample=top.sample,
        index=top.index,
        wanted=top.wanted,
        got=top.got,
    )


def _apart(what: str, where: Path) -> ArmletError:
    return ArmletError(what, hint="give its outputs as tensors, in one order", kind=Kind.INPUT, where=str(where))
