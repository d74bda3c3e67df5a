"""What is done to a model of floats so that ONNX Runtime's quantiser takes all of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import LEVELS
from armlet.onnx.libraries import library
from armlet.onnx.reading import Limits, nodes, opsets_of
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.sku import Quantise

_PER_CHANNEL_OPSET = 13
"""The first whose DequantizeLinear takes a scale per channel; a model for an older one is raised to it."""
_OLDEST_OPSET = 10
"""The first with QuantizeLinear."""
_SILENT = 4


def prepared(source: Any, how: Quantise, limits: Limits, path: Path, *, whole: str) -> Any:
    """The model, optimised as far as every provider bears it, of an opset that can say what is wanted.

    Args:
        whole: how the user asks for one scale for all channels.

    Raises:
        ArmletError: (INPUT) it cannot be raised to the opset that is needed.
    """
    data = save_optimised(source, LEVELS["xnnpack"], save_as="ONNX", where=path)
    optimised = library("onnx").load_model_from_string(data)
    wanted = _PER_CHANNEL_OPSET if how.per_channel else _OLDEST_OPSET
    opset = opsets_of(optimised).get(ONNX_DOMAIN, 0)
    newest = limits.opsets.get(ONNX_DOMAIN)
    if newest is not None and newest < wanted:
        what = f"its int8 version needs opset {wanted}, and this runtime implements up to {newest}"
        raise _input(path, what, f"{whole}, or choose a newer source set")
    if opset < wanted:
        optimised = _raised(optimised, opset, wanted, path, whole)
    _list_biases(optimised)
    _tell_types(optimised)
    library("onnxruntime.quantization.quant_utils").add_pre_process_metadata(optimised)
    return optimised


def baked(model: Any, inputs: Collection[str]) -> list[str]:
    """Names of the nodes that the importer put in front of a model, between it and these inputs."""
    marks = "|".join(map(re.escape, inputs))
    return [
        node.name
        for node in model.graph.node
        if inputs and re.fullmatch(rf"(?:{marks})/{node.op_type.lower()}(?:_\d+)?", node.name)
    ]


def _names(stem: str) -> Iterator[str]:
    while True:
        yield stem
        stem += "_"


def _list_biases(model: Any) -> None:
    """Constant biases of Gemm become lists of a number per column, which is all that the quantiser takes.

    Rows (scikit-learn's) and single numbers mean the same as a list; what differs from row to row is added behind.
    Each Gemm gets a list of its own: others may read the same constant in its old shape.
    """
    helper, constants = library("onnx.helper"), {tensor.name: tensor for tensor in model.graph.initializer}
    old = [*model.graph.node]
    del model.graph.node[:]
    for place, node in enumerate(old):
        model.graph.node.append(node)
        bias = constants.get(node.input[2]) if node.op_type == "Gemm" and len(node.input) > 2 else None
        if bias is None:
            continue
        gemm, values = model.graph.node[-1], library("onnx.numpy_helper").to_array(bias)
        columns = _columns(gemm, constants)
        if columns is None or values.shape == (columns,):
            continue
        name = next(name for name in _names(f"{bias.name}/list_{place}") if name not in constants)
        if values.shape[:-1] in ((), (1,)):
            values = library("numpy").broadcast_to(values.reshape(-1), (columns,))
            gemm.input[2] = name
        else:
            values = values * values.dtype.type(_attribute(gemm, "beta", 1.0))
            result, gemm.output[0] = gemm.output[0], f"{name}/product"
            del gemm.input[2]
            model.graph.node.append(helper.make_node("Add", [gemm.output[0], name], [result], name=name))
        model.graph.initializer.append(library("onnx.numpy_helper").from_array(values, name))
    _drop_unread(model, {tensor.name for tensor in constants.values()})


def _columns(gemm: Any, constants: Any) -> int | None:
    weight = constants.get(gemm.input[1])
    return None if weight is None else int(weight.dims[0 if _attribute(gemm, "transB", 0) else 1])


def _attribute(node: Any, name: str, default: float) -> float:
    values = (library("onnx.helper").get_attribute_value(one) for one in node.attribute if one.name == name)
    return float(next(values, default))


def _drop_unread(model: Any, names: set[str]) -> None:
    names = (
        names
        - {name for node in nodes(model.graph) for name in node.input}
        - {value.name for value in model.graph.output}
    )
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name in names]:
        model.graph.initializer.remove(tensor)


def _tell_types(model: Any) -> None:
    """Writes the types of all values into the model, as ONNX Runtime infers them.

    ONNX infers none behind operators of ``ai.onnx.ml``, and the quantiser leaves out what has no type.
    """
    onnx, ort = library("onnx"), library("onnxruntime")
    trial = onnx.ModelProto()
    trial.CopyFrom(model)
    told = {value.name for value in (*model.graph.output, *model.graph.value_info)}
    names = [name for node in model.graph.node for name in node.output if name and name not in told]
    trial.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = ort.SessionOptions()
    options.log_severity_level = _SILENT
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(trial.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # Outputs that are no tensors; what has no type then is told of.
        return
    types = {"tensor(float)": onnx.TensorProto.FLOAT, "tensor(float16)": onnx.TensorProto.FLOAT16}
    inferred = onnx.shape_inference.infer_shapes(model)
    known = {value.name for value in inferred.graph.value_info}
    for value in session.get_outputs():
        if value.type in types and value.name not in told | known:
            model.graph.value_info.add(name=value.name).type.tensor_type.elem_type = types[value.type]


def _raised(model: Any, opset: int, wanted: int, path: Path, whole: str) -> Any:
    try:
        return library("onnx.version_converter").convert_version(model, wanted)
    except Exception as error:  # The converter raises whatever its C++ half throws.
        raise _input(
            path,
            f"was written for opset {opset}, its int8 version needs {wanted}, and onnx cannot convert it: {error}",
            f"export it again with opset {wanted} or newer" + (f", or {whole}" if wanted > _OLDEST_OPSET else ""),
        ) from error


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
