"""Which operators a model needs of its runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from armlet.errors import ArmletError, Kind
from armlet.onnx.convert import save_optimised
from armlet.onnx.levels import INT8, LEVELS, level_of
from armlet.onnx.libraries import library
from armlet.onnx.reading import Limits, Shapes, nodes, opsets_of, read
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.sku import Flavor, Provider

Required = dict[str, dict[int, set[str]]]
"""Domain (``ai.onnx`` for ONNX's own) -> opset -> operator names."""


def required(
    model: Path,
    *,
    providers: Sequence[Provider],
    flavor: Flavor = "minimal",
    shapes: Shapes | None = None,
    limits: Limits | None = None,
) -> Required:
    """The operators that a runtime meets in a model.

    A minimal runtime meets those that are left after the optimisation that ``convert`` makes for the same arguments.
    Any other optimises by itself when it loads the model, as far as its user lets it: the operators of every level
    count then. What a provider's layout transformation adds is not among them.

    Raises:
        ArmletError: the model cannot be read or optimised.
    """
    source = read(model, shapes=shapes, limits=limits)
    levels = (level_of(source, providers),) if flavor == "minimal" else (*LEVELS.values(), INT8)
    optimised = [
        library("onnx").load_model_from_string(save_optimised(source, level, save_as="ONNX", where=model))
        for level in levels
    ]
    found: Required = {}
    for one in optimised if flavor == "minimal" else [source, *optimised]:
        opsets = opsets_of(one)
        for node in nodes(one.graph):
            domain = node.domain or ONNX_DOMAIN
            if domain not in opsets:
                raise _no_opset(model, node.op_type, domain)
            found.setdefault(domain, {}).setdefault(opsets[domain], set()).add(node.op_type)
    return found


def element_types(model: Path, *, shapes: Shapes | None = None) -> frozenset[str]:
    """Types of the elements of every tensor in a model, constants included, as ONNX names them in lower case.

    Raises:
        ArmletError: the model cannot be read, or is not sound.
    """
    onnx = library("onnx")
    plain = read(model, shapes=shapes)
    try:
        source = library("onnx.shape_inference").infer_shapes(plain)
    except Exception as error:  # onnx's own exceptions share no base class.
        raise _input(model, f"its types cannot be told: {str(error).strip()}", _CHECK) from error
    tensors = [*source.graph.initializer, *(one.t for node in nodes(source.graph) for one in node.attribute)]
    values = [*source.graph.input, *source.graph.output, *source.graph.value_info]
    numbers = {tensor.data_type for tensor in tensors} | {value.type.tensor_type.elem_type for value in values}
    names = onnx.TensorProto.DataType
    if unknown := sorted(numbers - set(names.values())):
        what = f"has a tensor of the element type {unknown[0]}, which ONNX {onnx.__version__} does not know"
        raise _input(model, what, _CHECK)
    return frozenset(names.Name(number).lower() for number in numbers if number)


_CHECK = "give a file that onnx.checker.check_model accepts"


def _no_opset(model: Path, operator: str, domain: str) -> ArmletError:
    return _input(model, f"uses {operator} of {domain}, and does not say which opset of it", _CHECK)


def _input(model: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(model))
