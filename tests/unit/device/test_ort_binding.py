"""Buffers that are bound once and reused by every run."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from armlet_runtime import ort


@pytest.fixture
def arrays() -> tuple[Any, Any, Any]:
    x, y = np.ones((2, 3), np.float32), np.full((2, 3), 10, np.float32)
    return x, y, np.zeros((2, 3), np.float32)


@pytest.fixture
def bound(session: ort.InferenceSession, arrays: tuple[Any, Any, Any]) -> ort.IOBinding:
    binding = session.io_binding()
    for name, value in zip("xy", arrays, strict=False):
        binding.bind_cpu_input(name, value)
    return binding


def test_output_lands_in_the_callers_array(
    session: ort.InferenceSession, bound: ort.IOBinding, arrays: tuple[Any, Any, Any]
) -> None:
    x, _, z = arrays
    bound.bind_output("z", z)
    for value in (1, 2, 3):
        x[:] = value
        session.run_with_iobinding(bound)
        assert z.tolist() == [[10 + value] * 3] * 2
    (result,) = bound.get_outputs()
    assert (result.shape(), result.data_type(), result.is_tensor()) == ([2, 3], "tensor(float)", True)
    assert bound.copy_outputs_to_cpu()[0].tolist() == z.tolist()


def test_output_made_by_onnx_runtime(session: ort.InferenceSession, bound: ort.IOBinding) -> None:
    bound.bind_output("z")
    session.run_with_iobinding(bound)
    (first,) = bound.get_outputs()
    session.run_with_iobinding(bound)
    (second,) = bound.get_outputs()
    assert first is not second
    assert first.numpy().tolist() == [[11] * 3] * 2


def test_values_as_buffers(session: ort.InferenceSession, arrays: tuple[Any, Any, Any]) -> None:
    x, y, _ = arrays
    binding = session.io_binding()
    source = ort.OrtValue.ortvalue_from_numpy(x)
    target = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], "float32")
    binding.bind_ortvalue_input("x", source)
    binding.bind_cpu_input("y", y)
    binding.bind_ortvalue_output("z", target)
    session.run_with_iobinding(binding)
    assert target.numpy().tolist() == [[11] * 3] * 2
    source.update_inplace([[5, 5, 5], [6, 6, 6]])
    session.run_with_iobinding(binding)
    assert target.numpy().tolist() == [[15] * 3, [16] * 3]
    assert x.tolist() == [[5] * 3, [6] * 3]
    for wrong in (np.ones(3, np.float32), np.ones((2, 3))):
        with pytest.raises(ort.OrtError):
            source.update_inplace(wrong)


def test_plain_buffers_without_numpy(session: ort.InferenceSession, no_numpy: None) -> None:
    room = array.array("f", bytes(24))
    binding = session.io_binding()
    binding.bind_cpu_input("x", ort.Tensor.from_list([[1, 2, 3], [4, 5, 6]], "float32"))
    binding.bind_cpu_input("y", ort.Tensor(array.array("f", [1] * 6), "float32", (2, 3)))
    binding.bind_output("z", ort.Tensor(room, "float32", (2, 3)))
    session.run_with_iobinding(binding)
    assert room.tolist() == [2, 3, 4, 5, 6, 7]


def test_a_wrong_shape_is_found_in_the_run(session: ort.InferenceSession, bound: ort.IOBinding) -> None:
    bound.bind_output("z", np.zeros((3, 3), np.float32))
    with pytest.raises(ort.OrtError, match="shape"):
        session.run_with_iobinding(bound)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((2, 3)), r'output "z": tensor\(double\) given'),
        (np.zeros((3, 2), np.float32).T, "only a C-contiguous array can be used in place"),
        (memoryview(bytes(24)).cast("f", (2, 3)), 'output "z": the buffer is read-only'),
        ([[0, 0, 0], [0, 0, 0]], "only a C-contiguous array can be used in place"),
    ],
    ids=["type", "strided", "read-only", "list"],
)
def test_outputs_that_cannot_be_bound(bound: ort.IOBinding, value: Any, message: str) -> None:
    with pytest.raises(ort.OrtError, match=message):
        bound.bind_output("z", value)


def test_incomplete_bindings(session: ort.InferenceSession, bound: ort.IOBinding) -> None:
    with pytest.raises(ort.OrtError, match="no output is bound"):
        session.run_with_iobinding(bound)
    with pytest.raises(ort.OrtError, match='no output "q"; it has "z"'):
        bound.bind_output("q")
    with pytest.raises(ort.OrtError, match='no input "q"; it has "x", "y"'):
        bound.bind_cpu_input("q", np.zeros(1, np.float32))
    bound.bind_output("z")
    bound.clear_binding_inputs()
    with pytest.raises(ort.OrtError, match='no value for input "x", "y"'):
        session.run_with_iobinding(bound)
    bound.clear_binding_outputs()
    assert bound.get_outputs() == []


def test_a_buffer_stays_pinned_until_the_value_is_closed() -> None:
    room = bytearray(12)
    value = ort.OrtValue.ortvalue_from_numpy(ort.Tensor(room, "float32", (3,)))
    with pytest.raises(BufferError):
        room.extend(b"more")
    value.close()
    with pytest.raises(ort.OrtError, match="this OrtValue is closed"):
        value.numpy()


def test_strings_are_copied(build: Any) -> None:
    session = ort.InferenceSession(build("Identity", [("x", "STRING", ["n"])], [("y", "STRING", ["n"])]))
    binding = session.io_binding()
    binding.bind_cpu_input("x", ["a", "bc"])
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == ["a", "bc"]
    with pytest.raises(ort.OrtError, match="strings cannot be updated"):
        binding.get_outputs()[0].update_inplace(["x", "y"])
