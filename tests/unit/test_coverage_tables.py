"""Tables of what providers take: kernels, layouts, what is bound to ONNX Runtime's text; and those that are there."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from armlet.coverage import core, elements, generate, tables
from armlet.coverage.core import Restated
from armlet.coverage.cpp import Unlowerable
from armlet.coverage.kernels import kernels
from armlet.errors import ArmletError, Kind
from tests.conftest import ROOT

MACRO = """
#define CREATE(Start, Op, Domain) BuildKernelCreateInfo< \\
    ONNX_OPERATOR_KERNEL_CLASS_NAME(kXnnpackExecutionProvider, Domain, Start, Op)>
#define POOL(op, type, first, last) \\
  ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_EX(op, kOnnxDomain, first, last, type, kAcl, \\
    KernelDefBuilder().TypeConstraint("T", DataTypeImpl::GetTensorType<type>()), Pool<type, A<1>>);
static const BuildKernelCreateInfoFn table[] = {
  BuildKernelCreateInfo<void>,  // nothing
  CREATE(13, Softmax, kOnnxDomain),
  BuildKernelCreateInfo<ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_CLASS_NAME(kAcl, kOnnxDomain, 1, 7, float, MaxPool)>,
};
POOL(MaxPool, float, 1, 7)
ONNX_OPERATOR_KERNEL_EX(
    Softmax, kOnnxDomain, 13, kXnnpackExecutionProvider,
    KernelDefBuilder()
        .TypeConstraint("T", {DataTypeImpl::GetTensorType<float>(), DataTypeImpl::GetTensorType<MLFloat16>(),})
        .TypeConstraint("I", DataTypeImpl::GetTensorType<int64_t>()),
    Softmax);
"""


def test_kernels_have_versions_and_types() -> None:
    pool, softmax = kernels({"a.cc": MACRO}, defined=())
    assert (pool.op, pool.since, pool.until, pool.types) == ("MaxPool", 1, 7, (("T", ("float",)),))
    assert softmax.types == (("T", ("float", "float16")), ("I", ("int64",)))
    assert [version for version in range(20) if softmax.serves(version)] == [13]
    assert [version for version in range(20) if pool.serves(version)] == list(range(1, 8))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("POOL(MaxPool", "POOL(MinPool", "MaxPool 1 is registered, and defined nowhere"),
        ('.TypeConstraint("I"', '.MayInplace("I"', "built by something unknown"),
        ("DataTypeImpl::GetTensorType<int64_t>()", "AllTypes()", "types of an unknown form"),
        ("kOnnxDomain, 13, kXnn", "kNewDomain, 13, kXnn", "a kernel of an unknown form"),
        ("Softmax);", "Softmax;", "a bracket that does not close"),
    ],
)
def test_kernels_of_another_form_end_the_generation(old: str, new: str, what: str) -> None:
    with pytest.raises(Unlowerable, match=what):
        kernels({"a.cc": MACRO.replace(old, new)}, defined=())


def test_what_is_restated_is_bound_to_its_text_and_not_to_its_spaces() -> None:
    text = "int A::f(int a) const { return a; }\nA::A(int a) : b{a} {\n}\nint g() { return f(1); }"
    row = Restated("a.cc", "A::f", "units", "")
    known = Restated("a.cc", "A::f", "units", core.hashed(text, row))
    assert core.check({"a.cc": text.replace("{ return a; }", "{\n  // why\n  return a;\n}")}, [known])
    with pytest.raises(Unlowerable, match=r"A::f is not what armlet/coverage/units\.py restates"):
        core.check({"a.cc": text.replace("return a;", "return b;")}, [known])
    with pytest.raises(Unlowerable, match="no function A::h"):
        core.hashed(text, Restated("a.cc", "A::h", "units", ""))
    assert "b{a}" in core.body(text, Restated("a.cc", "A::A", "units", ""))


def test_sources_that_are_not_there_are_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match="no sources like") as caught:
        generate.generate("xnnpack", tmp_path)
    assert caught.value.kind is Kind.INPUT
    assert "docs/inspecting.md" in caught.value.hint


@pytest.mark.parametrize("provider", generate.RECIPES)
def test_the_projects_tables_can_be_read(provider: str) -> None:
    table = tables.load(ROOT, "onnxruntime-1.21.0", provider)
    assert table.kernels
    assert set(table.rules.values()) <= set(table.functions)
    text = tables.place(ROOT, "onnxruntime-1.21.0", provider).read_text()
    assert tables.text(json.loads(text)) == text


def test_a_table_that_is_missing_or_of_another_schema_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArmletError, match="no table of what xnnpack takes in other") as caught:
        tables.load(tmp_path, "other", "xnnpack")
    assert caught.value.kind is Kind.INPUT
    path = tables.place(tmp_path, "other", "xnnpack")
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 99}')
    with pytest.raises(ArmletError, match="schema 99"):
        tables.load(tmp_path, "other", "xnnpack")


def test_elements_have_onnxs_numbers_and_sizes() -> None:
    kinds = onnx.TensorProto.DataType
    assert {name: kinds.Value(name) for name in elements.NUMBERS} == dict(elements.NUMBERS)
    for name in ("FLOAT", "INT8", "BOOL", "INT64", "FLOAT16", "COMPLEX128"):
        number = elements.NUMBERS[name]
        assert elements.bytes_of(number, 3) == 3 * onnx.helper.tensor_dtype_to_np_dtype(number).itemsize
    assert elements.bytes_of(elements.NUMBERS["INT4"], 3) == 2
    assert elements.bytes_of(elements.NUMBERS["BFLOAT16"], 3) == 6
