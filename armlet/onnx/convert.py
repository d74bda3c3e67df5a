"""Models as a runtime takes them: in ORT format, made for the providers that will run them, or as ONNX.

ONNX Runtime's own tool converts for the CPU provider unless told otherwise (style Fixed, level all), which is what
``providers=("cpu",)`` gives here. Such a model still loads on a runtime that prefers another provider, and then runs
on the CPU provider without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink, silent
from armlet.files import write_whole
from armlet.onnx import ortfile
from armlet.onnx.folding import folded_by_the_core
from armlet.onnx.levels import LEVELS, Level, level_of
from armlet.onnx.libraries import library
from armlet.onnx.model_files import external
from armlet.onnx.reading import Limits, Shapes, nodes, read
from armlet.onnx.saving import split
from armlet.onnx.soundness import tensors
from armlet.scratch import scratch
from armlet.spec.sku import Provider

_SILENT = 4
"""Log severity: the exception says it all."""
_SPATIAL = frozenset({"Conv", "ConvTranspose", "MaxPool", "AveragePool"})
_LOWEST = -128
_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "Attention", "LSTM", "GRU", "RNN"})
"""What multiplies weights and sums the products; their int8 forms hold these names."""
_NEEDS_KNOWN_SHAPES: frozenset[Provider] = frozenset({"xnnpack"})
"""Providers that make their kernels when the model is loaded, from the channels, height and width known then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A model as it ships. ``size`` in bytes; ``concerns`` are sentences on what will not run as hoped."""

    path: Path
    sha256: str
    size: int
    format_version: int | None
    """Of the ORT format; null: it is an ONNX model."""
    providers: tuple[Provider, ...]
    level: Level | None
    """How far it was optimised; null: that is left to the runtime."""
    operators: dict[str, int]
    """``Conv`` or ``com.microsoft:FusedConv`` -> number of nodes."""
    concerns: tuple[str, ...]
    data: Path | None = None
    """The file with an ONNX model's external data, beside the model; null: the model has everything inside."""


def convert(
    model: Path,
    out: Path,
    *,
    providers: Sequence[Provider],
    shapes: Shapes | None = None,
    limits: Limits | None = None,
    emit: Sink = silent,
) -> Converted:
    """Converts an ONNX model for a runtime with ``providers``; equal input gives equal bytes.

    Args:
        model: an ``.onnx`` file.
        out: where the ``.ort`` file goes; only ever a whole one.
        shapes: inputs whose shapes are fixed for good. XNNPACK leaves every convolution to the CPU provider whose
            height or width is free.
        limits: what the runtime takes; without them, what this machine's ONNX Runtime takes.

    Raises:
        ArmletError: the model cannot be read or converted, or ``out`` has another extension than ``.ort``.
    """
    if out.suffix != ".ort":
        raise ArmletError(
            "a model in ORT format is named *.ort: by that name ONNX Runtime knows the format",
            hint=f"write {out.with_suffix('.ort').name}",
            kind=Kind.INPUT,
            where=str(out),
        )
    source = read(model, shapes=shapes, limits=limits)
    level = level_of(source, providers)
    data = ortfile.canonical(save_optimised(source, level, save_as="ORT", where=model))
    optimised = library("onnx").load_model_from_string(save_optimised(source, level, save_as="ONNX", where=model))
    seen = _concerns(_in_onnxs_operators(source, optimised, level, model), providers)
    concerns = _told((*seen, *_computed_here(source)), model, emit)
    # What was written anew is read once before anything relies on it.
    _session(data, library("onnxruntime").SessionOptions(), (), model)
    return _written(out, data, providers=providers, level=level, operators=_counted(optimised), concerns=concerns)


def keep_onnx(
    model: Path,
    out: Path,
    *,
    providers: Sequence[Provider],
    shapes: Shapes | None = None,
    limits: Limits | None = None,
    emit: Sink = silent,
) -> Converted:
    """The model as a runtime with ONNX's own format takes it, which optimises it for its providers when it loads.

    Nothing changes but the inputs' shapes; arguments as in ``convert``. A model with external data keeps it outside, in
    one file beside ``out``, which is the first of the two to be written.

    Raises:
        ArmletError: the model cannot be read.
    """
    source = read(model, shapes=shapes, limits=limits)
    concerns = _told(_concerns(source, providers), model, emit)
    as_is = library("onnx").load(str(model), load_external_data=False)
    beside = split(source, out, 0) if external(tensors(as_is)) else {}
    for name, content in beside.items():
        write_whole(out.with_name(name), content)
    data: bytes = source.SerializeToString(deterministic=True)
    made = _written(out, data, providers=providers, level=None, operators=_counted(source), concerns=concerns)
    return replace(made, data=out.with_name(next(iter(beside))) if beside else None)


def _told(concerns: tuple[str, ...], model: Path, emit: Sink) -> tuple[str, ...]:
    for concern in concerns:
        emit(Note(text=f"{model.name}: {concern}"))
    return concerns


def _written(
    out: Path,
    data: bytes,
    *,
    providers: Sequence[Provider],
    level: Level | None,
    operators: dict[str, int],
    concerns: tuple[str, ...],
) -> Converted:
    """Writes the model; without a level it was left as it is, an ONNX model."""
    write_whole(out, data)
    return Converted(
        path=out,
        sha256=digest.of_bytes(data),
        size=len(data),
        format_version=None if level is None else ortfile.format_version(data),
        providers=tuple(providers),
        level=level,
        operators=operators,
        concerns=concerns,
    )


def save_optimised(model: Any, level: Level, *, save_as: Literal["ORT", "ONNX"], where: Path) -> bytes:
    """An ``onnx.ModelProto`` after the optimisations of ``level``, serialised.

    Raises:
        ArmletError: ONNX Runtime refuses the model; ``where`` is its file.
    """
    ort = library("onnxruntime")
    with scratch("convert") as folder:
        saved = Path(folder, "model" + (".ort" if save_as == "ORT" else ".onnx"))
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_ENABLE_{level.name.upper()}")
        options.optimized_model_filepath = str(saved)
        options.add_session_config_entry("session.save_model_format", save_as)
        # As upstream's tool does for ARM: int8 activations are fine there, on x86 they are not.
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        _session(model.SerializeToString(deterministic=True), options, level.without, where)
        return saved.read_bytes()


def _session(data: bytes, options: Any, without: tuple[str, ...], where: Path) -> None:
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = 1
    try:
        library("onnxruntime").InferenceSession(
            data, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(without) or None
        )
    except Exception as error:  # The binding's exception classes share no base class of their own.
        raise ArmletError(
            f"ONNX Runtime refuses the model: {error}",
            hint="check the model with onnx.checker.check_model(..., full_check=True)",
            kind=Kind.INPUT,
            where=str(where),
        ) from error


def _counted(optimised: Any) -> dict[str, int]:
    names = (f"{node.domain}:{node.op_type}" if node.domain else node.op_type for node in nodes(optimised.graph))
    return dict(sorted(Counter(names).items()))


def _in_onnxs_operators(source: Any, optimised: Any, level: Level, where: Path) -> Any:
    """The model no further optimised than a provider could take: ONNX infers no shapes behind other operators."""
    plain = LEVELS["xnnpack"]
    if level.name == plain.name:
        return optimised
    return library("onnx").load_model_from_string(save_optimised(source, plain, save_as="ONNX", where=where))


def _concerns(optimised: Any, providers: Sequence[Provider]) -> tuple[str, ...]:
    shapes = () if not _NEEDS_KNOWN_SHAPES & set(providers) else (*_fused_already(optimised), *_free_shapes(optimised))
    return (*shapes, *_lowest_weights(optimised))


def _computed_here(source: Any) -> tuple[str, ...]:
    folded = folded_by_the_core(source.graph)
    if not folded:
        return ()
    told = ", ".join(f"{count} {operator}" for operator, count in sorted(folded.items()))
    return (
        f"{told} of constants alone were computed by this machine: their last bits, and so the file's hash, may be "
        "others on another processor; let the exporter fold them",
    )


def _lowest_weights(optimised: Any) -> tuple[str, ...]:
    to_array, kind = library("onnx.numpy_helper").to_array, library("onnx").TensorProto.INT8
    multiplied = _multiplied(optimised)
    weights = [tensor for tensor in optimised.graph.initializer if tensor.data_type == kind and len(tensor.dims) > 1]
    weights = [tensor for tensor in weights if tensor.name in multiplied]
    count = sum(bool((to_array(tensor) == _LOWEST).any()) for tensor in weights)
    if not count:
        return ()
    return (
        f"{count} of its int8 weights hold {_LOWEST}: two in a row are too much for ONNX Runtime's kernels on 64-bit "
        "cores without dot products; quantise it symmetrically, from -127 to 127",
    )


def _multiplied(optimised: Any) -> set[str]:
    """Names of what products are summed of, before it is dequantised."""
    found = list(nodes(optimised.graph))
    stored = {node.output[0]: node.input[0] for node in found if node.op_type == "DequantizeLinear"}
    products = (node for node in found if any(name in node.op_type for name in _PRODUCTS))
    return {stored.get(name, name) for node in products for name in node.input}


def _fused_already(optimised: Any) -> tuple[str, ...]:
    count = sum(node.domain == "com.microsoft" and node.op_type == "FusedConv" for node in nodes(optimised.graph))
    if not count:
        return ()
    return (
        f"{count} convolutions came fused with their activations (com.microsoft:FusedConv) and will run on the CPU "
        "provider: give the model as it was exported, not one that ONNX Runtime has optimised",
    )


def _free_shapes(optimised: Any) -> tuple[str, ...]:
    inferred = library("onnx.shape_inference").infer_shapes(optimised)
    graph = inferred.graph
    known = {value.name: value.type.tensor_type.shape.dim for value in [*graph.value_info, *graph.input]}
    spatial = [node for node in graph.node if node.op_type in _SPATIAL and not node.domain]
    free = [node for node in spatial if not _is_known(known.get(node.input[0]))]
    if not free:
        return ()
    inputs = ", ".join(value.name for value in graph.input)
    return (
        f"{len(free)} of {len(spatial)} convolutions and poolings have a free channel, height or width and will run on "
        f"the CPU provider: fix the shape of the input ({inputs})",
    )


def _is_known(dims: Any) -> bool:
    return dims is not None and len(dims) > 2 and all(dim.dim_value > 0 for dim in list(dims)[1:])
