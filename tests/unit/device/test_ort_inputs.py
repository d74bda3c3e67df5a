"""A wrong call is refused with a code and a message that names what is wrong."""

from __future__ import annotations

import array
import pickle
from typing import Any

import numpy as np
import onnx
import pytest
from armlet_runtime import ort
from armlet_runtime.ort._values import create_value, elements_of

GOOD = np.ones((1, 3), np.float32)
INVALID = ort.OrtErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ({"x": GOOD}, 'no value for input "y"'),
        ({"x": GOOD, "y": GOOD, "q": GOOD}, 'the model has no input "q"; it has "x", "y"'),
        ({"x": GOOD, "y": GOOD.astype(float)}, 'input "y": tensor(double) given, tensor(float) wanted'),
        ({"x": GOOD, "y": GOOD.astype(object)}, 'input "y": tensor(string) given, tensor(float) wanted'),
        ({"x": GOOD, "y": b"abc"}, 'input "y": tensor(uint8) given, tensor(float) wanted'),
        ({"x": GOOD, "y": GOOD.astype(">f4")}, 'buffer format ">f" (in native byte order)'),
        ({"x": GOOD, "y": GOOD.astype(complex)}, 'no tensor has elements of buffer format "Zd"'),
        ({"x": GOOD, "y": np.float64(1)}, 'input "y": tensor(double) given, tensor(float) wanted'),
        ({"x": GOOD, "y": np.str_("a")}, 'input "y": tensor(string) given, tensor(float) wanted'),
        ({"x": GOOD, "y": None}, 'input "y": NoneType is no array, buffer or list'),
        ({"x": GOOD, "y": "text"}, 'input "y": tensor(string) given, tensor(float) wanted'),
        ({"x": GOOD, "y": [[1, 2, 3], [4, 5]]}, "the nested lists are ragged"),
        ({"x": GOOD, "y": [[1, 2, [3]]]}, "the nested lists are ragged"),
        ({"x": GOOD, "y": [["1", 2, 3]]}, 'input "y": not all values fit float32'),
        ({"x": GOOD, "y": GOOD[0]}, "Invalid rank for input: y"),
        ({"x": GOOD, "y": np.ones((1, 4), np.float32)}, "Got invalid dimensions for input: y"),
    ],
)
def test_feeds(session: ort.InferenceSession, feed: dict[str, Any], message: str) -> None:
    with pytest.raises(ort.OrtError) as caught:
        session.run(None, feed)
    assert message in str(caught.value)
    assert caught.value.code is INVALID
    assert session.run(None, {"x": GOOD, "y": GOOD})[0].tolist() == [[2, 2, 2]]


def test_names_of_outputs(session: ort.InferenceSession) -> None:
    with pytest.raises(ort.OrtError, match='the model has no output "q"; it has "z"'):
        session.run(["q"], {"x": GOOD, "y": GOOD})
    assert len(session.run([], {"x": GOOD, "y": GOOD})) == 1
    assert len(session.run(["z", "z"], {"x": GOOD, "y": GOOD})) == 2


def test_integers_must_fit(build: Any) -> None:
    model = build("Identity", [("x", "INT8", ["n"])], [("y", "INT8", ["n"])])
    with ort.InferenceSession(model) as session:
        assert session.run(None, {"x": array.array("b", [1, -1])})[0].tolist() == [1, -1]
        for wrong in ([128], [1.5], ["a"]):
            with pytest.raises(ort.OrtError, match="not all values fit int8"):
                session.run(None, {"x": wrong})


def test_bools_are_not_any_object(build: Any) -> None:
    model = build("Identity", [("x", "BOOL", ["n"])], [("y", "BOOL", ["n"])])
    with ort.InferenceSession(model) as session:
        assert session.run(None, {"x": [True, 0]})[0].tolist() == [True, False]
        with pytest.raises(ort.OrtError, match="only True, False, 1 and 0"):
            session.run(None, {"x": ["yes"]})


def test_strings_are_not_any_object(build: Any) -> None:
    model = build("Identity", [("x", "STRING", ["n"])], [("y", "STRING", ["n"])])
    with ort.InferenceSession(model) as session:
        for value in (["a", 3], 3, np.array(["a", 3], object)):
            with pytest.raises(ort.OrtError, match="3 is no str or bytes"):
                session.run(None, {"x": value})


def test_sequences_and_maps(build: Any) -> None:
    sequence = onnx.helper.make_tensor_sequence_value_info("s", onnx.TensorProto.FLOAT, None)
    with ort.InferenceSession(build("SequenceConstruct", [("x", "FLOAT", [2])], [sequence])) as session:
        assert session.get_outputs()[0].type == "seq(tensor(float))"
        (items,) = session.run(None, {"x": [1, 2]})
        assert [item.tolist() for item in items] == [[1, 2]]

    with ort.InferenceSession(build("SequenceLength", [sequence], [("n", "INT64", [])])) as session:
        with pytest.raises(ort.OrtError, match=r'input "s": seq\(tensor\(float\)\) cannot be passed') as caught:
            session.run(None, {"s": [GOOD]})
        assert caught.value.code is ort.OrtErrorCode.NOT_IMPLEMENTED

    floats = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    maps = onnx.helper.make_sequence_type_proto(onnx.helper.make_map_type_proto(onnx.TensorProto.INT64, floats))
    zipped = build(
        "ZipMap",
        [("x", "FLOAT", [1, 2])],
        [onnx.helper.make_value_info("m", maps)],
        domain="ai.onnx.ml",
        classlabels_int64s=[0, 1],
    )
    with ort.InferenceSession(zipped) as session:
        assert session.get_outputs()[0].type == "seq(map(int64,tensor(float)))"
        with pytest.raises(ort.OrtError, match="values of kind map are not supported") as caught:
            session.run(None, {"x": [[1, 2]]})
        assert caught.value.code is ort.OrtErrorCode.NOT_IMPLEMENTED


def test_optional_outputs(build: Any) -> None:
    helper = onnx.helper
    floats = helper.make_tensor_type_proto(1, [2])
    output = helper.make_value_info("o", helper.make_optional_type_proto(floats))
    with ort.InferenceSession(build("Optional", [], [output], type=floats)) as session:
        assert session.get_outputs()[0].type == "optional(tensor(float))"
        assert session.run(None, {}) == [None]
    with ort.InferenceSession(build("Optional", [("x", "FLOAT", [2])], [output])) as session:
        assert session.run(None, {"x": [1, 2]})[0].tolist() == [1, 2]


def test_error_of_a_kernel(build: Any) -> None:
    model = build("Gather", [("x", "FLOAT", [2]), ("i", "INT64", [1])], [("y", "FLOAT", [1])])
    with ort.InferenceSession(model) as session, pytest.raises(ort.OrtError, match="indices element out of"):
        session.run(None, {"x": [1, 2], "i": [5]})


def test_errors_can_be_pickled() -> None:
    error = ort.LibraryError(INVALID, "no")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, copy.message, str(copy)) == (
        ort.LibraryError,
        INVALID,
        "no",
        "INVALID_ARGUMENT: no",
    )


def test_elements_at_odd_addresses_are_copied(session: ort.InferenceSession, library: ort.Library) -> None:
    raw = bytearray(13)
    view = memoryview(raw)[1:]
    view[:] = GOOD.tobytes()
    odd = ort.Tensor(view, "float32", (1, 3))
    assert session.run(None, {"x": odd, "y": odd})[0].tolist() == [[2, 2, 2]]
    elements = elements_of(odd, None)
    pointer, pin = create_value(library, elements)
    library.api.ReleaseValue(pointer)
    assert pin is not None
    assert pin.address % 4 == 0
    # What is used in place cannot be a copy.
    with pytest.raises(ort.OrtError, match="no multiple of its elements' size"):
        session.io_binding().bind_cpu_input("x", odd)
