"""Small models that put 8-bit kernels to the test, those of the provider and those of ONNX Runtime itself (MLAS).

Sizes are odd, so that every kernel also meets its left-over rows and columns. Weights reach from -127 to 127: the
quantiser never writes -128, and MLAS's kernel for 64-bit cores without dot products is wrong for two of them in a row
(upstream's issue 31573).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet.files import write_whole
from armlet.onnx.libraries import library
from armlet.onnx.samples import Sample

_OPSET, _DEFINED_OPSET = 13, 21
_ROWS, _DEPTH, _COLUMNS = 7, 67, 19
_CHANNELS, _FILTERS, _HEIGHT, _WIDTH = 8, 12, 9, 11
_STEP = 2.0**-7
"""Of every quantised output: a float of 1 is 128 steps."""

_PRODUCTS = (("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"))
"""Activations, weights: the pairs that ONNX Runtime has kernels for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Probe:
    """A model to try: ``tolerance`` as in the smoke's checks; it needs ``operators``, all of ONNX's own."""

    name: str
    operators: frozenset[str]
    tolerance: float
    write: Callable[[Path], Path]


def exact_outputs(model: Path, samples: Sequence[Sample]) -> tuple[tuple[Any, ...], ...]:
    """Per sample the outputs of a probe by ONNX's own definition of its operators.

    ONNX Runtime is no reference here: its kernels for older x86 processors saturate where they add two products.
    """
    loaded = library("onnx").load_model_from_string(model.read_bytes())
    # The definition of DequantizeLinear has fewer words for older opsets, and means the same.
    loaded.opset_import[0].version = _DEFINED_OPSET
    evaluator = library("onnx.reference").ReferenceEvaluator(loaded)
    numpy = library("numpy")
    return tuple(
        tuple(numpy.asarray(output) for output in evaluator.run(None, dict(sample.inputs))) for sample in samples
    )


def integer_products(out: Path) -> Path:
    """Writes a model of products in whole numbers, which have one right answer: every output is exact."""
    helper, made = library("onnx.helper"), _Parts()
    for activation, weight in _PRODUCTS:
        name = f"{activation}_{weight}"
        shape = (_DEPTH, _COLUMNS)
        inputs = [made.input(activation, (_ROWS, _DEPTH)), made.weights(f"w_{name}", weight, shape)]
        zeros = [made.zero(f"a_{name}", activation, 3), made.zero(f"b_{name}", weight, 0 if weight == "int8" else 5)]
        made.node(helper.make_node("MatMulInteger", [*inputs, *zeros], [name], name=f"matmul_{name}"))
    image = made.input("uint8", (1, _CHANNELS, _HEIGHT, _WIDTH))
    filters = made.weights("filters", "uint8", (_FILTERS, _CHANNELS, 3, 3))
    zeros = [made.zero("image_zero", "uint8", 7), made.zero("filters_zero", "uint8", 9)]
    made.node(helper.make_node("ConvInteger", [image, filters, *zeros], ["conv"], name="conv", pads=[1, 1, 1, 1]))
    made.node(helper.make_node("Cast", ["conv"], ["conv_float"], name="cast", to=library("onnx").TensorProto.FLOAT))
    outputs = ["dynamic", "scale", "zero"]
    made.node(helper.make_node("DynamicQuantizeLinear", ["conv_float"], outputs, name="dynamic"))
    return made.save(out, "integer_products", outputs=[f"{a}_{w}" for a, w in _PRODUCTS] + ["conv", *outputs])


def quantised_layers(out: Path) -> Path:
    """Writes a model of layers that round their results: an output may be off by one step, 1/128.

    XNNPACK takes the convolutions whose activations and weights are of one type; MLAS has the rest.
    """
    helper, made = library("onnx.helper"), _Parts()
    outputs = []
    for activation, weight in _PRODUCTS:
        name = f"{activation}_{weight}"
        # ONNX's own definition of QLinearMatMul wraps around where it should saturate: results stay inside the range.
        dense = made.layer(name, activation, weight, columns=_COLUMNS, depth=_DEPTH, fill=0.25)
        rows = made.input(activation, (_ROWS, _DEPTH))
        weights = made.weights(f"w_{name}", weight, (_DEPTH, _COLUMNS))
        made.node(helper.make_node("QLinearMatMul", dense.inputs(rows, weights), [f"m_{name}"], name=f"matmul_{name}"))
        outputs.append(made.dequantised(f"m_{name}", dense))
    image = {kind: made.input(kind, (1, _CHANNELS, _HEIGHT, _WIDTH)) for kind in ("int8", "uint8")}
    for name, activation, weight, groups in (
        ("dense", "int8", "int8", 1),
        ("depthwise", "int8", "int8", _CHANNELS),
        ("unsigned", "uint8", "uint8", 1),
        ("unsigned_depthwise", "uint8", "uint8", _CHANNELS),
        ("mixed", "uint8", "int8", 1),
        ("mixed_depthwise", "uint8", "int8", _CHANNELS),
    ):
        filters = _FILTERS if groups == 1 else _CHANNELS
        shape = (filters, _CHANNELS // groups, 3, 3)
        layer = made.layer(name, activation, weight, columns=filters, depth=9 * shape[1])
        inputs = layer.inputs(image[activation], made.weights(f"f_{name}", weight, shape))
        node = helper.make_node("QLinearConv", inputs, [f"c_{name}"], name=f"conv_{name}", pads=[1] * 4, group=groups)
        made.node(node)
        outputs.append(made.dequantised(f"c_{name}", layer))
    return made.save(out, "quantised_layers", outputs=outputs)


INT8_PROBES: tuple[Int8Probe, ...] = (
    Int8Probe(
        name="integer-products",
        operators=frozenset({"Cast", "ConvInteger", "DynamicQuantizeLinear", "MatMulInteger"}),
        tolerance=0.0,
        write=integer_products,
    ),
    Int8Probe(
        name="quantised-layers",
        operators=frozenset({"DequantizeLinear", "QLinearConv", "QLinearMatMul"}),
        tolerance=_STEP,
        write=quantised_layers,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """Names of one layer's constants, in ONNX's order: activation, weight and result, each with scale and zero."""

    a: tuple[str, str]
    w: tuple[str, str]
    y: tuple[str, str]

    def inputs(self, activation: str, weights: str) -> list[str]:
        return [activation, *self.a, weights, *self.w, *self.y]


class _Parts:
    """A graph as it grows."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._inputs: dict[str, Any] = {}
        self._constants: list[Any] = []
        self._random = library("numpy").random.default_rng(8)

    def node(self, node: Any) -> None:
        self._nodes.append(node)

    def input(self, kind: str, shape: tuple[int, ...]) -> str:
        name = f"{kind}_{len(shape)}d"
        tensor = library("onnx.helper").np_dtype_to_tensor_dtype(library("numpy").dtype(kind))
        self._inputs[name] = library("onnx.helper").make_tensor_value_info(name, tensor, shape)
        return name

    def constant(self, name: str, values: Any) -> str:
        self._constants.append(library("onnx.numpy_helper").from_array(values, name))
        return name

    def zero(self, name: str, kind: str, value: int) -> str:
        return self.constant(f"{name}_zero", library("numpy").asarray(value, kind))

    def weights(self, name: str, kind: str, shape: tuple[int, ...]) -> str:
        lowest, highest = (-127, 127) if kind == "int8" else (0, 255)
        values = self._random.integers(lowest, highest, shape, dtype=kind, endpoint=True)
        values.flat[:2] = lowest, highest
        return self.constant(name, values)

    def layer(self, name: str, activation: str, weight: str, *, columns: int, depth: int, fill: float = 1.0) -> _Layer:
        """Constants of a layer of ``columns``, each a sum of ``depth`` products; int8 weights have a scale per column.

        With a ``fill`` of 1, about a tenth of the results saturates.
        """
        numpy = library("numpy")
        scales = numpy.float32(fill / 74) * numpy.float32(_STEP) / numpy.sqrt(numpy.float32(depth))
        if weight == "int8":
            scales = scales * numpy.linspace(0.5, 1.5, columns, dtype=numpy.float32)
        zero = numpy.zeros(scales.shape, weight) if weight == "int8" else numpy.asarray(131, weight)
        middle = 0 if activation == "int8" else 128
        return _Layer(
            a=(self.constant(f"{name}_as", numpy.float32(1)), self.zero(f"{name}_a", activation, middle + 3)),
            w=(self.constant(f"{name}_ws", numpy.asarray(scales, numpy.float32)), self.constant(f"{name}_wz", zero)),
            y=(self.constant(f"{name}_ys", numpy.float32(_STEP)), self.zero(f"{name}_y", activation, middle - 5)),
        )

    def dequantised(self, name: str, layer: _Layer) -> str:
        out = f"{name}_float"
        self.node(library("onnx.helper").make_node("DequantizeLinear", [name, *layer.y], [out], name=out))
        return out

    def save(self, out: Path, name: str, *, outputs: list[str]) -> Path:
        onnx, helper = library("onnx"), library("onnx.helper")
        declared = [helper.make_empty_tensor_value_info(output) for output in outputs]
        graph = helper.make_graph(self._nodes, name, list(self._inputs.values()), declared, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=7)
        model = library("onnx.shape_inference").infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model)
        write_whole(out, model.SerializeToString(deterministic=True))
        return out
