"""Preprocessing inside a model's graph, so that the device feeds raw frames.

Only operators that every opset since 11 has are used: Transpose, Cast, Resize, Gather, Mul, Add, and Shape, Slice and
Concat where frames are scaled and the batch is free.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from armlet.errors import ArmletError, Kind
from armlet.onnx.libraries import library
from armlet.onnx.normalise import DTYPES, PERMUTATIONS, Layout, Wish
from armlet.onnx.reading import input_shapes, opsets_of
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.model_record import Baked

_RESIZE_OPSET = 11
_OPTIONAL_ROI_OPSET = 13
_IMAGE_CHANNELS = (1, 3, 4)
_FOLDS_UP_TO = 1024.0
"""Means, in standard deviations: beyond, x * a + b would lose what x - mean keeps."""


def baked_in(model: Any, wish: Wish, path: Path) -> tuple[Any, Baked, Layout]:
    """A copy of an ``onnx.ModelProto`` that takes raw frames, what is inside, and how the model has its images.

    Raises:
        ArmletError: (INPUT) the wish does not fit the model; ``where`` is ``path``.
    """
    made = copy.deepcopy(model)
    value = _value(made, wish, path)
    sizes = input_shapes(made)[value.name]
    model_layout = _layout(sizes, wish, path)
    channel = 3 if len(sizes) == 4 and model_layout == "nhwc" else 1
    _demand_fit(sizes, wish, channel, opsets_of(made).get(ONNX_DOMAIN, 0), path)
    steps = _Steps(made, value.name)
    element, float32 = value.type.tensor_type.elem_type, library("onnx").TensorProto.FLOAT
    if len(sizes) == 4 and wish.layout != model_layout:
        steps.add("Transpose", perm=list(PERMUTATIONS[wish.layout]))
    # In float32 whatever the model's own numbers are: half precision has too few digits for bytes and their means.
    if wish.dtype != "float32":
        steps.add("Cast", to=float32)
    if wish.resize:
        _resize(steps, sizes, wish.resize, channel)
    if wish.channels == "swapped":
        count = sizes[channel] or len(wish.mean)
        steps.add("Gather", steps.constant("order", [*range(count)][::-1], "int64"), axis=channel)
    _affine(steps, wish, len(sizes), channel)
    if element != float32:
        steps.add("Cast", to=element)
    steps.finish()
    _reshape_input(value, sizes, wish, model_layout, channel)
    value.type.tensor_type.elem_type = library("onnx").TensorProto.DataType.Value(DTYPES[wish.dtype].upper())
    inside = Baked(
        input=value.name,
        dtype=DTYPES[wish.dtype],
        layout=wish.layout,
        resize=wish.resize,
        channels=wish.channels,
        scale=wish.scale,
        mean=wish.mean,
        std=wish.std,
    )
    return made, inside, model_layout


def _value(model: Any, wish: Wish, path: Path) -> Any:
    names = [*input_shapes(model)]
    if wish.tensor is None and len(names) != 1:
        raise _input(path, "has several inputs, and which is meant is not said", f"add tensor=<name>: {_list(names)}")
    name = wish.tensor or names[0]
    if name not in names:
        raise _input(path, f'has no input "{name}"', f"its inputs: {_list(names)}")
    if any(output.name == name for output in model.graph.output):
        raise _input(path, f'its input "{name}" is an output too', "export it without that output")
    value = next(value for value in model.graph.input if value.name == name)
    proto = library("onnx").TensorProto
    if value.type.tensor_type.elem_type not in (proto.FLOAT, proto.FLOAT16, proto.DOUBLE):
        told = proto.DataType.Name(value.type.tensor_type.elem_type).lower()
        raise _input(path, f'its input "{name}" is {told} already', "leave out --normalise: there is nothing to do")
    return value


def _layout(sizes: tuple[int | None, ...], wish: Wish, path: Path) -> Layout:
    if len(sizes) != 4:
        if wish.layout == "nhwc" or wish.resize:
            what = f"takes {len(sizes)} dimensions, and so no images with a layout or a size"
            raise _input(path, what, "leave out layout= and resize=")
        return "nchw"
    if wish.model:
        return wish.model
    return "nhwc" if sizes[3] in _IMAGE_CHANNELS and sizes[1] not in _IMAGE_CHANNELS else "nchw"


def _demand_fit(sizes: tuple[int | None, ...], wish: Wish, channel: int, opset: int, path: Path) -> None:
    if len(sizes) < 2:
        raise _input(path, "takes no dimension of channels", "leave out --normalise")
    count = sizes[channel]
    for key, values in (("mean", wish.mean), ("std", wish.std)):
        if len(values) > 1 and len(values) != (count or len(wish.mean)):
            told = count or f"as many as mean has, {len(wish.mean)}"
            raise _input(path, f"{key} has {len(values)} numbers, and the model's channels are {told}", _PER_CHANNEL)
    if wish.channels == "swapped" and (count or len(wish.mean)) < 2:
        raise _input(path, "has one channel, which cannot be swapped", "leave out channels=")
    if not wish.resize:
        return
    if opset < _RESIZE_OPSET:
        what = f"was written for opset {opset}, and resize= needs {_RESIZE_OPSET}"
        raise _input(path, what, f"raise it: --opset {_RESIZE_OPSET} or newer")
    rows = 1 if channel == 3 else 2
    wanted = sizes[rows : rows + 2]
    if any(size not in (None, new) for size, new in zip(wanted, wish.resize, strict=True)):
        shown = "x".join("?" if size is None else str(size) for size in wanted)
        hint = f"write resize={shown}: it is what frames are scaled to"
        raise _input(path, f"takes images of {shown}, and not of {wish.resize[0]}x{wish.resize[1]}", hint)


_PER_CHANNEL = "give one number, or one for each channel"


class _Steps:
    """Operators in front of a graph, one behind the other; the input keeps its name."""

    def __init__(self, model: Any, name: str) -> None:
        self._graph = model.graph
        self._taken = {name for node in model.graph.node for name in (*node.input, *node.output)}
        self._taken |= {tensor.name for tensor in model.graph.initializer}
        self._name = name
        self._nodes: list[Any] = []
        self.opset = opsets_of(model).get(ONNX_DOMAIN, 0)
        self.last = name

    def add(self, operator: str, *inputs: str, of: str | None = None, **attributes: Any) -> str:
        """Adds an operator on the last value (or ``of`` another, which leaves the last as it is)."""
        result = self._free(operator.lower())
        made = library("onnx.helper").make_node(
            operator, [of or self.last, *inputs], [result], name=result, **attributes
        )
        self._nodes.append(made)
        if of is None:
            self.last = result
        return result

    def constant(self, what: str, values: Any, dtype: str) -> str:
        array = library("numpy").asarray(values, dtype)
        name = self._free(what)
        self._graph.initializer.append(library("onnx.numpy_helper").from_array(array, name))
        return name

    def finish(self) -> None:
        """Has everything that read the input read the last value, and puts the operators first."""
        if self._nodes:
            _rename(self._graph, self._name, self.last)
        old = [*self._graph.node]
        del self._graph.node[:]
        self._graph.node.extend([*self._nodes, *old])

    def _free(self, what: str) -> str:
        names = [f"{self._name}/{what}", *(f"{self._name}/{what}_{n}" for n in range(1, len(self._taken) + 2))]
        name = next(name for name in names if name not in self._taken)
        self._taken.add(name)
        return name


def _rename(graph: Any, old: str, new: str) -> None:
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                _rename(inner, old, new)


def _resize(steps: _Steps, sizes: tuple[int | None, ...], to: tuple[int, int], channel: int) -> None:
    rows = 1 if channel == 3 else 2
    wanted = [*sizes]
    wanted[rows : rows + 2] = to
    if None in wanted:
        shape = steps.add("Shape", of=steps.last)
        parts = []
        for place in (0, channel):
            bounds = [steps.constant("from", [place], "int64"), steps.constant("to", [place + 1], "int64")]
            parts.append(steps.add("Slice", *bounds, of=shape))
        fixed = steps.constant("size", to, "int64")
        first, *rest = [parts[0], fixed, parts[1]] if channel == 3 else [*parts, fixed]
        target = steps.add("Concat", *rest, of=first, axis=0)
    else:
        target = steps.constant("size", wanted, "int64")
    empty = "" if steps.opset >= _OPTIONAL_ROI_OPSET else steps.constant("none", [], "float32")
    steps.add("Resize", empty, empty, target, mode="linear", coordinate_transformation_mode="half_pixel")


def _affine(steps: _Steps, wish: Wish, rank: int, channel: int) -> None:
    """((x * scale) - mean) / std, as x * a + b where that loses nothing; a step that changes nothing is left out."""
    numpy = library("numpy")
    wide = [1] * rank
    wide[channel] = -1
    mean, std = (numpy.asarray(values, numpy.float64).reshape(wide) for values in (wish.mean, wish.std))
    chain: list[tuple[str, Any, int]] = [("Mul", wish.scale / std, 1), ("Add", -mean / std, 0)]
    if float(abs(mean / std).max()) > _FOLDS_UP_TO:
        chain = [("Mul", numpy.full([1] * rank, wish.scale), 1), ("Sub", mean, 0), ("Div", std, 1)]
    for operator, values, neutral in chain:
        if (values != neutral).any():
            steps.add(operator, steps.constant(f"{operator.lower()}_by", values, "float32"))


def _reshape_input(value: Any, sizes: tuple[int | None, ...], wish: Wish, model: Layout, channel: int) -> None:
    dims = [copy.deepcopy(dim) for dim in value.type.tensor_type.shape.dim]
    if sizes[channel] is None and len(wish.mean) > 1:
        dims[channel].Clear()
        dims[channel].dim_value = len(wish.mean)
    if wish.resize:
        rows = 1 if channel == 3 else 2
        for place, name in ((rows, "height"), (rows + 1, "width")):
            dims[place].Clear()
            dims[place].dim_param = name
    if len(sizes) == 4 and wish.layout != model:
        other: Layout = "nchw" if wish.layout == "nhwc" else "nhwc"
        dims = [dims[place] for place in PERMUTATIONS[other]]
    del value.type.tensor_type.shape.dim[:]
    value.type.tensor_type.shape.dim.extend(dims)


def _list(names: list[str]) -> str:
    return ", ".join(names)


def _input(path: Path, what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=str(path))
