"""What this machine's ONNX Runtime makes of a model: what the target is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.samples import Sample

_MEND = "mend the model's samples: or inputs: in the SKU; without samples: its name chooses them"


def reference_outputs(
    model: Path, samples: Sequence[Sample], *, as_written: bool = False, hint: str = _MEND
) -> tuple[tuple[Any, ...], ...]:
    """Per sample the model's outputs as NumPy arrays, from the ONNX file as it was handed over.

    Args:
        as_written: nothing is optimised. A quantised model is then computed in float between its QuantizeLinear nodes,
            which is what ONNX says it means: int8 kernels differ from that, and on x86 from processor to processor.
        hint: what to do where the model does not take them.

    Raises:
        ArmletError: the model does not take the samples.
    """
    ort = library("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if as_written:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        return tuple(tuple(session.run(None, dict(sample.inputs))) for sample in samples)
    except Exception as error:  # The binding's exception classes share no base class of their own.
        raise ArmletError(
            f"this machine's ONNX Runtime cannot run the model on its samples: {error}",
            hint=hint,
            kind=Kind.INPUT,
            where=str(model),
        ) from error
