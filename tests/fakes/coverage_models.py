"""Small models made at random, one operator or two each, near the borders of what providers take."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from armlet.onnx.samples import Sample

Array = Any


@dataclass
class Draft:
    """A model that is being made; ``rng`` decides."""

    rng: random.Random
    numbers: Any
    opset: int
    nodes: list[Any] = field(default_factory=list)
    inputs: dict[str, tuple[Array, tuple[Any, ...]]] = field(default_factory=dict)
    """Name -> what it is fed, and its declared shape (text where a dimension is free)."""
    constants: list[Any] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def pick(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def array(self, shape: tuple[int, ...], kind: str = "float32", low: int = -4, high: int = 5) -> Array:
        if kind.startswith("float"):
            return self.numbers.standard_normal(shape).astype(kind)
        return self.numbers.integers(max(low, 0) if kind[0] == "u" else low, high, shape).astype(kind)

    def feed(self, array: Array, *, free: tuple[int, ...] = ()) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = (array, tuple(f"d{at}" if at in free else size for at, size in enumerate(array.shape)))
        return name

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def given(self, array: Array, share_constant: float = 0.85) -> str:
        return self.constant(array) if self.chance(share_constant) else self.feed(array)

    def node(self, op: str, inputs: list[str], *, outputs: int = 1, domain: str = "", **attributes: Any) -> list[str]:
        names = [f"t{len(self.nodes)}_{at}" for at in range(outputs)]
        attributes = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(
            helper.make_node(op, inputs, names, name=f"{op.lower()}{len(self.nodes)}", domain=domain, **attributes)
        )
        return names

    def model(self) -> Any:
        graph = helper.make_graph(
            self.nodes,
            "made",
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
                for name, (array, shape) in self.inputs.items()
            ],
            [onnx.ValueInfoProto(name=name) for name in self.outputs],
            self.constants,
        )
        domains = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=8)


def _free(draft: Draft, rank: int) -> tuple[int, ...]:
    """Which dimensions are free: none, the batch, or some other as well."""
    if draft.chance(0.6):
        return ()
    return tuple(sorted({0, *([draft.rng.randrange(rank)] if draft.chance(0.6) else [])}))


def _activation(draft: Draft, name: str) -> str:
    if draft.chance(0.45):
        return name
    if draft.chance(0.5):
        return draft.node("Relu", [name])[0]
    if draft.opset < 11:
        return draft.node("Clip", [name], min=draft.pick(None, -1.0), max=draft.pick(None, 0.5))[0]
    least = draft.pick("", draft.given(numpy.float32(-0.5)))
    most = draft.pick("", draft.given(numpy.float32(0.5)))
    return draft.node("Clip", [name, least, most][: 3 if most else 2 if least else 1])[0]


def _window(draft: Draft, spatial: int, size: int) -> dict[str, Any]:
    """Kernel, strides, padding of a convolution or pooling."""
    kernel = [draft.pick(1, 2, 3)] * spatial
    padding: dict[str, Any] = {}
    if draft.chance(0.4):
        padding["auto_pad"] = draft.pick("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    elif draft.chance(0.5):
        padding["pads"] = [min(1, kernel[0] - 1)] * (2 * spatial)
    strides = [draft.pick(1, 1, 2)] * spatial if draft.chance(0.7) else None
    assert size >= 6
    return {"kernel_shape": kernel, "strides": strides, **padding}


def convolution(draft: Draft) -> None:
    spatial = draft.pick(1, 2, 2, 2, 3)
    group, size = draft.pick(1, 1, 2, 4), 8
    transposed = draft.chance(0.25)
    window = _window(draft, spatial, size)
    if transposed:
        window.pop("auto_pad", None)
    channels, made = 4, 4 * draft.pick(1, 2)
    shape = (channels, made // group) if transposed else (made, channels // group)
    inputs = [
        draft.feed(draft.array((1, channels, *[size] * spatial)), free=_free(draft, spatial + 2)),
        draft.given(draft.array((*shape, *window["kernel_shape"]))),
    ]
    if draft.chance(0.6):
        inputs.append(draft.given(draft.array((made,))))
    dilations = [2] * spatial if draft.chance(0.2) and "auto_pad" not in window else None
    (out,) = draft.node("ConvTranspose" if transposed else "Conv", inputs, group=group, dilations=dilations, **window)
    draft.outputs.append(_activation(draft, out))
    if draft.chance(0.1):
        draft.outputs.append(out)


def pooling(draft: Draft) -> None:
    spatial = draft.pick(1, 2, 2, 2, 2)
    op = draft.pick("MaxPool", "AveragePool")
    kind = (
        draft.pick("float32", "float32", "float32", "int8", "uint8")
        if op == "MaxPool" and draft.opset >= 12
        else "float32"
    )
    window = _window(draft, spatial, 8)
    more: dict[str, Any] = {}
    if draft.opset >= 10:
        more["ceil_mode"] = draft.pick(None, None, 0, 1)
    if op == "MaxPool" and draft.opset >= 10 and draft.chance(0.2) and "auto_pad" not in window:
        more["dilations"] = [draft.pick(1, 2)] * spatial
    if op == "AveragePool":
        more["count_include_pad"] = draft.pick(None, 0, 1)
        if draft.opset >= 19 and draft.chance(0.3) and "auto_pad" not in window:
            more["dilations"] = [draft.pick(1, 2)] * spatial
    outputs = 2 if op == "MaxPool" and draft.chance(0.1) else 1
    x = draft.feed(draft.array((1, 3, *[8] * spatial), kind), free=_free(draft, spatial + 2))
    made = draft.node(op, [x], outputs=outputs, **window, **more)
    draft.outputs += [_activation(draft, made[0]) if kind == "float32" else made[0], *made[1:]]


def softmax(draft: Draft) -> None:
    rank = draft.pick(1, 2, 3, 4)
    x = draft.feed(draft.array((2, 3, 4, 5)[:rank]), free=_free(draft, rank))
    axis = draft.pick(None, -1, rank - 1, draft.rng.randrange(rank))
    if rank == 1 and axis is None and draft.opset < 13:
        axis = 0
    draft.outputs += draft.node("Softmax", [x], axis=axis)


def product(draft: Draft) -> None:
    if draft.chance(0.5):
        transposed = draft.pick(0, 1)
        weights = draft.array((4, 5) if transposed else (5, 4))
        inputs = [draft.feed(draft.array((3, 5)), free=_free(draft, 2)), draft.given(weights)]
        if draft.chance(0.75):
            inputs.append(draft.given(draft.array(draft.pick((4,), (3, 4), (1, 4), (1,), (3, 1)))))
        made = draft.node(
            "Gemm", inputs, transB=transposed, alpha=draft.pick(None, 1.0, 0.5), beta=draft.pick(None, 1.0, 2.0)
        )
    else:
        first, second = draft.pick(
            ((3, 5), (5, 4)), ((5,), (5, 4)), ((3, 5), (5,)), ((2, 3, 5), (5, 4)), ((2, 3, 5), (2, 5, 4))
        )
        made = draft.node(
            "MatMul", [draft.feed(draft.array(first), free=_free(draft, len(first))), draft.given(draft.array(second))]
        )
    draft.outputs.append(_activation(draft, made[0]))


def resize(draft: Draft) -> None:
    kind = draft.pick("float32", "float32", "float32", "uint8", "int8")
    x = draft.feed(draft.array((1, 3, 6, 8), kind), free=_free(draft, 4))
    mode = draft.pick("linear", "linear", "linear", "nearest")
    if draft.opset < 11:
        scales = draft.pick((1, 1, 2, 2), (1, 1, 0.5, 0.5), (1, 1, 1.5, 1))
        made = draft.node("Resize", [x, draft.given(numpy.float32(scales))], mode=mode)
    else:
        how = draft.pick(None, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        more = (
            {"antialias": draft.pick(None, 0, 1)}
            if draft.opset >= 18 and mode == "linear" and kind == "float32"
            else {}
        )
        # The CPU provider ends the program where more than height and width change, unless by the nearest element.
        wide = 2 if mode == "nearest" else 1
        if draft.chance(0.6):
            scales = draft.pick((1, 1, 2, 2), (1, 1, 0.5, 0.5), (1, 1, 1, 3), (1, 1, 1.5, 1), (1, wide, 1, 1))
            inputs = [x, "", draft.given(numpy.float32(scales))]
        else:
            inputs = [
                x,
                "",
                "",
                draft.given(numpy.int64(draft.pick((1, 3, 12, 16), (1, 3, 3, 4), (1, 3 * wide, 6, 8), (1, 3, 1, 8)))),
            ]
        made = draft.node("Resize", inputs, mode=mode, coordinate_transformation_mode=how, **more)
    draft.outputs += made


def quantised_convolution(draft: Draft) -> None:
    kind = draft.pick("int8", "uint8")
    weights = kind if draft.chance(0.8) else draft.pick("int8", "uint8")
    per_channel = draft.chance(0.4)
    scales = numpy.full(6, 0.02, numpy.float32) if per_channel else numpy.float32(0.02)
    points = numpy.zeros(6 if per_channel else (), weights)
    zero = numpy.asarray(draft.pick(0, 3), kind)
    inputs = [
        draft.feed(draft.array((1, 4, 8, 8), kind), free=_free(draft, 4)),
        *(draft.constant(numpy.float32(0.05)), draft.constant(zero)),
        draft.given(draft.array((6, 4, 3, 3), weights)),
        *(draft.constant(scales), draft.constant(points)),
        *(draft.constant(numpy.float32(0.1)), draft.constant(zero)),
    ]
    if draft.chance(0.5):
        inputs.append(draft.given(draft.array((6,), "int32")))
    draft.outputs += draft.node("QLinearConv", inputs)


def quantised_group(draft: Draft) -> None:
    """QuantizeLinear, DequantizeLinear, an operator of floats, QuantizeLinear, DequantizeLinear."""
    kind = draft.pick("int8", "uint8")
    zero = draft.constant(numpy.asarray(0, kind))
    scale, other = draft.constant(numpy.float32(0.05)), draft.constant(numpy.float32(draft.pick(0.05, 1 / 256)))

    def there_and_back(name: str, by: str) -> str:
        return draft.node("DequantizeLinear", [*draft.node("QuantizeLinear", [name, by, zero]), by, zero])[0]

    x = there_and_back(draft.feed(draft.array((1, 4, 8, 8))), scale)
    op = draft.pick("Conv", "MaxPool", "AveragePool", "Softmax", "Resize", "ConvTranspose")
    if op in ("Conv", "ConvTranspose"):
        weight_zero = draft.constant(numpy.asarray(0, draft.pick(kind, kind, "int8")))
        stored = next(one for one in draft.constants if one.name == weight_zero)
        array = draft.constant(draft.array((4, 4, 3, 3), str(numpy_helper.to_array(stored).dtype)))
        weights = draft.node("DequantizeLinear", [array, scale, weight_zero])[0]
        made = draft.node(op, [x, weights])[0]
    elif op == "Softmax":
        made = draft.node(op, [x], axis=draft.pick(-1, 1))[0]
    elif op == "Resize":
        made = draft.node(op, [x, "", draft.constant(numpy.asarray((1, 1, 2, 2), numpy.float32))], mode="linear")[0]
    else:
        made = draft.node(op, [x], kernel_shape=[2, 2], strides=[2, 2])[0]
    if draft.chance(0.3):
        made = draft.node("Relu", [made])[0]
    draft.outputs.append(there_and_back(made, draft.pick(scale, other)))


def chain(draft: Draft) -> None:
    """A small network: what the layout transformation does between nodes shows here."""
    x = draft.feed(draft.array((1, 4, 16, 16)), free=(0,) if draft.chance(0.3) else ())
    name, width = x, 4
    for _ in range(draft.pick(2, 3, 4)):
        made = 4 * draft.pick(1, 2)
        weights = draft.constant(draft.array((made, width, 3, 3)))
        width, before = made, name
        (name,) = draft.node("Conv", [name, weights], pads=[1, 1, 1, 1])
        if draft.chance(0.2) and width == made and before != x:
            name = draft.node("Sigmoid", [name])[0]
        name = _activation(draft, name)
        if draft.chance(0.3):
            name = draft.node("MaxPool", [name], kernel_shape=[2, 2], strides=[1, 1])[0]
        if draft.chance(0.3):
            name = draft.node("Add", [name, draft.constant(numpy.float32(1))])[0]
        if draft.chance(0.25):
            (other,) = draft.node("Relu", [name])
            name = draft.node("Mul", [name, other])[0]
    if draft.chance(0.3):
        name = draft.node("GlobalAveragePool", [name])[0]
    draft.outputs.append(name)


KINDS: tuple[Callable[[Draft], None], ...] = (
    convolution,
    pooling,
    softmax,
    product,
    resize,
    quantised_convolution,
    quantised_group,
    chain,
)


def made_at_random(count: int, seed: int, folder: Path) -> Iterator[tuple[Path, Sample]]:
    """``count`` sound models, each in a file of its own, with one sample; the same for the same seed."""
    number = 0
    while count:
        number += 1
        rng = random.Random(f"{seed}-{number}")
        opset = rng.choice((8, 10, 11, 11, 12, 12, 13, 13, 13, 15, 17, 17, 17, 18, 19, 21))
        draft = Draft(rng, numpy.random.default_rng([seed, number]), opset)
        kind = rng.choice(KINDS)
        if opset < 10 and kind in (resize, quantised_convolution, quantised_group):
            continue
        if opset < 13 and kind is quantised_group:
            continue
        kind(draft)
        model = draft.model()
        inferred = _sound(model)
        if inferred is None:
            continue
        path = folder / f"{number:04d}-{kind.__name__}.onnx"
        path.write_bytes(inferred.SerializeToString())
        yield path, Sample(name=path.stem, inputs={name: array for name, (array, _) in draft.inputs.items()})
        count -= 1


def _sound(model: Any) -> Any | None:
    """The model with its outputs' types; None where ONNX says it means nothing."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(inferred, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    if any(
        not value.type.tensor_type.elem_type or value.type.tensor_type.elem_type == TensorProto.UNDEFINED
        for value in inferred.graph.output
    ):
        return None
    return inferred
