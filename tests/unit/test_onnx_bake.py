"""Preprocessing inside the graph equals the same in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from armlet.errors import ArmletError, Kind
from armlet.onnx.bake import baked_in
from armlet.onnx.normalise import Layout, Wish, in_numpy, resized, wish_of

WHERE = Path("m.onnx")
IMAGENET = "mean=0.485,0.456,0.406 std=0.229,0.224,0.225"


def model(*shape: int | str, opset: int = 17, element: int = TensorProto.FLOAT, inputs: int = 1) -> Any:
    """Gives back what it is fed, so that what comes before it is all there is to see."""
    names = ["x", "x2", "x3"][:inputs]
    free = [None] * len(shape)
    nodes = [helper.make_node("Identity", [name], [f"y{name}"]) for name in names]
    # A graph inside reads the input too.
    inner = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["i"])], "i", [], [helper.make_tensor_value_info("i", element, free)]
    )
    nodes.append(helper.make_node("If", ["c"], ["inner"], then_branch=inner, else_branch=inner))
    outputs = [
        helper.make_tensor_value_info(name, element, free) for name in (*(f"y{name}" for name in names), "inner")
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, element, shape) for name in names],
        outputs,
        [helper.make_tensor("c", TensorProto.BOOL, [], [True])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(made: Any, frames: Any) -> Any:
    onnx.checker.check_model(made, full_check=True)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    first, inner = session.run(None, {"x": frames})
    assert (first == inner).all()
    return first


def frames_of(shape: tuple[int, ...], dtype: str) -> Any:
    generator = numpy.random.default_rng(1)
    if numpy.dtype(dtype).kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    bounds = numpy.iinfo(dtype)
    return generator.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21])
@pytest.mark.parametrize(
    ("wish", "shape", "frames", "layout"),
    [
        (f"{IMAGENET} layout=nhwc input=uint8", ("n", 3, 8, 6), (2, 8, 6, 3), "nchw"),
        (f"{IMAGENET} layout=nhwc", (1, 3, 8, 6), (1, 8, 6, 3), "nchw"),
        (f"{IMAGENET} layout=nchw channels=swapped", ("n", 3, 8, 6), (2, 3, 8, 6), "nchw"),
        (f"{IMAGENET} layout=nhwc channels=swapped", ("n", 8, 6, 3), (2, 8, 6, 3), "nhwc"),
        (f"{IMAGENET} layout=nchw", ("n", 8, 6, 3), (2, 3, 8, 6), "nhwc"),
        (f"{IMAGENET} layout=nhwc resize=8x6", (1, 3, 8, 6), (1, 13, 5, 3), "nchw"),
        (f"{IMAGENET} layout=nhwc resize=8x6", ("n", 3, 8, 6), (2, 4, 31, 3), "nchw"),
        (f"{IMAGENET} layout=nhwc resize=8x6", ("n", 8, 6, 3), (2, 4, 31, 3), "nhwc"),
        (f"{IMAGENET} resize=8x6", ("n", 3, "h", "w"), (3, 3, 16, 12), "nchw"),
        ("layout=nhwc scale=1 mean=127.5 std=127.5", (1, 1, 4, 4), (1, 4, 4, 1), "nchw"),
        ("input=int16 scale=1/32768", ("n", 2, 50), (2, 2, 50), "nchw"),
        ("input=float32 mean=20,50,1 std=5,10,0.1", ("n", 3), (4, 3), "nchw"),
        ("input=float32 mean=1000000 std=0.5", ("n", 3), (4, 3), "nchw"),
        ("input=float32 mean=3", ("n", 3), (4, 3), "nchw"),
        ("input=float16", ("n", 3), (4, 3), "nchw"),
    ],
)
def test_the_graph_does_what_numpy_does(
    wish: str, shape: tuple[int | str, ...], frames: tuple[int, ...], layout: Layout, opset: int
) -> None:
    asked = wish_of(wish)
    made, baked, told = baked_in(model(*shape, opset=opset), asked, WHERE)
    assert told == layout
    fed = frames_of(frames, asked.dtype)
    got = run(made, fed)
    wanted = in_numpy(fed, baked, model=layout)
    assert got.dtype == numpy.float32
    assert got.shape == wanted.shape
    numpy.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-5)
    # Not the same by being nothing: what went in comes out changed, unless nothing was asked for.
    assert wish == "input=float16" or got.shape != fed.shape or not numpy.array_equal(got, fed)


def test_numpy_itself_does_what_the_record_says() -> None:
    """By hand, one pixel: (200 / 255 - 0.485) / 0.229 in the first channel, which was the last before the swap."""
    _, baked, layout = baked_in(model(1, 3, 1, 1), wish_of(f"{IMAGENET} layout=nhwc channels=swapped"), WHERE)
    found = in_numpy(numpy.array([[[[10, 20, 200]]]], numpy.uint8), baked, model=layout)
    assert found.ravel() == pytest.approx(
        [(200 / 255 - 0.485) / 0.229, (20 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225]
    )


def test_scaling_follows_the_documented_definition() -> None:
    """Half pixels: the centre of a new pixel lies at (place + 0.5) * old / new - 0.5 of the old ones."""
    line = numpy.array([0, 10, 20, 30], numpy.float32)
    assert resized(line, 0, 2).tolist() == [5, 25]
    assert resized(line, 0, 8).tolist() == [0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30]
    assert resized(line, 0, 4).tolist() == line.tolist()
    assert resized(line, 0, 1).tolist() == [15]


def test_the_input_keeps_its_name_and_gets_the_callers_shape_and_type() -> None:
    made, baked, _ = baked_in(model("n", 3, 8, 6), wish_of(f"{IMAGENET} layout=nhwc resize=8x6"), WHERE)
    (entry,) = made.graph.input
    dims = [dim.dim_param or dim.dim_value for dim in entry.type.tensor_type.shape.dim]
    assert (entry.name, entry.type.tensor_type.elem_type) == ("x", TensorProto.UINT8)
    assert dims == ["n", "height", "width", 3]
    assert (baked.input, baked.dtype, baked.layout, baked.resize) == ("x", "uint8", "nhwc", (8, 6))
    assert (baked.scale, baked.mean) == (1 / 255, (0.485, 0.456, 0.406))


def test_half_precision_models_compute_in_single_before() -> None:
    source = model(1, 3, 4, 4, element=TensorProto.FLOAT16)
    made, baked, layout = baked_in(source, wish_of(f"{IMAGENET} layout=nhwc"), WHERE)
    fed = frames_of((1, 4, 4, 3), "uint8")
    got = run(made, fed)
    assert got.dtype == numpy.float16
    assert (got == in_numpy(fed, baked, model=layout).astype(numpy.float16)).mean() > 0.95


def test_one_of_several_inputs() -> None:
    source = model(1, 3, 4, 4, inputs=3)
    made, baked, _ = baked_in(source, wish_of(f"{IMAGENET} layout=nhwc tensor=x2"), WHERE)
    assert baked.input == "x2"
    kinds = [value.type.tensor_type.elem_type for value in made.graph.input]
    assert kinds == [TensorProto.FLOAT, TensorProto.UINT8, TensorProto.FLOAT]


def test_only_what_changes_something_is_added() -> None:
    made, _, _ = baked_in(model("n", 3), wish_of("input=float32 mean=1"), WHERE)
    assert [node.op_type for node in made.graph.node] == ["Add", "Identity", "If"]
    made, _, _ = baked_in(model(1, 3, 4, 4), wish_of(f"{IMAGENET} layout=nhwc"), WHERE)
    assert [node.op_type for node in made.graph.node][:4] == ["Transpose", "Cast", "Mul", "Add"]


@pytest.mark.parametrize(
    ("wish", "shape", "part"),
    [
        ("mean=1,2", ("n", 3, 8, 6), "mean has 2 numbers, and the model's channels are 3"),
        ("mean=1,2,3 std=1,2", ("n", "c", 8, 6), "std has 2 numbers"),
        ("resize=9x9", ("n", 3, 8, 6), "takes images of 8x6, and not of 9x9"),
        ("resize=9x9", ("n", 3), "takes 2 dimensions, and so no images"),
        ("layout=nhwc", ("n", 3, 8), "takes 3 dimensions, and so no images"),
        ("channels=swapped", ("n", 1, 8, 6), "has one channel"),
        ("tensor=z", ("n", 3, 8, 6), 'has no input "z"'),
        ("mean=1", ("n",), "takes no dimension of channels"),
    ],
)
def test_a_wish_that_does_not_fit_the_model(wish: str, shape: tuple[int | str, ...], part: str) -> None:
    with pytest.raises(ArmletError) as caught:
        baked_in(model(*shape), wish_of(wish), WHERE)
    assert part in caught.value.what
    assert (caught.value.kind, caught.value.where) == (Kind.INPUT, "m.onnx")


def test_inputs_that_need_a_name_an_older_opset_and_whole_numbers() -> None:
    for source, wish, part in (
        (model(1, 3, 8, 6, inputs=2), "mean=1", "has several inputs"),
        (model(1, 3, 8, 6, opset=10), "resize=8x6", "was written for opset 10"),
        (model(1, 3, 8, 6, element=TensorProto.UINT8), "mean=1", 'its input "x" is uint8 already'),
    ):
        with pytest.raises(ArmletError) as caught:
            baked_in(source, wish_of(wish), WHERE)
        assert part in caught.value.what


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mena=1", 'did you mean "mean"?'),
        ("mean", "Known: mean"),
        ("mean=1 mean=2", "give it once"),
        ("mean=a", "write for example"),
        ("mean=nan", "for example"),
        ("scale=1/0", "write for example"),
        ("scale=1,2", "for example"),
        ("std=0", "training's own numbers"),
        ("layout=chw", "known: nhwc, nchw"),
        ("input=string", "known: uint8"),
        ("resize=0x4", "resize=224x224"),
        ("resize=224", "resize=224x224"),
        ("channels=bgr", "known: as-is, swapped"),
    ],
)
def test_what_is_not_understood_gets_a_hint(text: str, part: str) -> None:
    with pytest.raises(ArmletError) as caught:
        wish_of(text)
    assert part in caught.value.hint


def test_bytes_are_scaled_to_one_unless_told_otherwise() -> None:
    assert wish_of("") == Wish(scale=1 / 255)
    assert wish_of("input=float32").scale == 1
    assert wish_of("scale=1").scale == 1
