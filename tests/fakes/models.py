"""Small models and samples for them, and the records that an import and a conversion would leave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper

from armlet import digest
from armlet.onnx.record import write_record
from armlet.spec.model_record import Conversion, ModelRecord, SourceModel

IMPORTED = "2026-01-31T12:00:00Z"


def dense(path: Path, *, weight: float = 1.0, external: str = "") -> Path:
    """``y = Relu(x * w)`` for x of Nx4, y of Nx2; ``external`` names the file beside it that its weights go to."""
    weights = (numpy.arange(8, dtype=numpy.float32).reshape(4, 2) - 3.5) * numpy.float32(weight)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"], name="m"), helper.make_node("Relu", ["m"], ["y"], name="r")],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if external:
        (path.parent / external).parent.mkdir(parents=True, exist_ok=True)
    onnx.save_model(model, str(path), save_as_external_data=bool(external), location=external or None, size_threshold=0)
    return path


def samples(folder: Path, *, count: int = 3, seed: int = 0) -> Path:
    """``x`` of 1x4 each."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = numpy.random.default_rng(seed)
    for index in range(count):
        numpy.savez(folder / f"s{index:03}.npz", x=numbers.standard_normal((1, 4)).astype(numpy.float32))
    return folder


def record(model: Path, *, of: Path | None = None, providers: Sequence[str] = ("xnnpack", "cpu")) -> ModelRecord:
    """Writes a model's record: as imported, or converted from the ONNX model ``of``."""
    conversion = None
    if of is not None:
        conversion = Conversion(
            sku="demo-a53",
            ort_version="1.21.0",
            providers=tuple(providers),  # type: ignore[arg-type]
            level="basic",
            inputs={},
            loaded=False,
            input_sha256=digest.of_file(of),
        )
    made = ModelRecord(
        model=model.name,
        sha256=digest.of_file(model),
        created=IMPORTED,
        source=SourceModel(kind="torch", name="nets:make", sha256="5" * 64, tools={}),
        conversion=conversion,
    )
    write_record(model, made)
    return made
