from __future__ import annotations

import json

import pytest

from armlet.registrations import Registration, kernel_types, kernel_types_text, parse, table, table_text

SOURCE = """
// BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 1, InComment)>,
class ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 1, OnlyDeclared);
Status RegisterKernels(KernelRegistry& registry) {
  static const BuildKernelCreateInfoFn function_table[] = {
      BuildKernelCreateInfo<void>,  // default entry
      BuildKernelCreateInfo<ONNX_OPERATOR_VERSIONED_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 6, 10, Clip)>,
      BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 13,
                                                            Clip)>,
      /* BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 1, Gone)>,
       */
      BuildKernelCreateInfo<ONNX_OPERATOR_VERSIONED_TYPED_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, 6, 12,
                                                                  float, Round)>,
#ifdef HALF
      BuildKernelCreateInfo<ONNX_OPERATOR_TYPED_KERNEL_CLASS_NAME(kCpuExecutionProvider, kMSDomain, 1,
                                                                  MLFloat16, Tiny)>,
#else
      BuildKernelCreateInfo<ONNX_OPERATOR_TYPED_KERNEL_CLASS_NAME(kCpuExecutionProvider, kMSDomain, 1, float, Tiny)>,
#endif
#if !defined(NO_ML)
      BuildKernelCreateInfo<ONNX_OPERATOR_TWO_TYPED_KERNEL_CLASS_NAME(kCpuExecutionProvider, kMLDomain, 2, A, B, Tree)>,
#endif
  };
}
"""

CLIP = Registration(domain="ai.onnx", op="Clip", since=6, until=10, types=())
CLIP13 = Registration(domain="ai.onnx", op="Clip", since=13, until=None, types=())
ROUND = Registration(domain="ai.onnx", op="Round", since=6, until=12, types=("float",))
TINY16 = Registration(domain="com.microsoft", op="Tiny", since=1, until=None, types=("MLFloat16",))
TINY = Registration(domain="com.microsoft", op="Tiny", since=1, until=None, types=("float",))
TREE = Registration(domain="ai.onnx.ml", op="Tree", since=2, until=None, types=("A", "B"))


def test_all_forms_are_read_and_comments_and_declarations_are_not() -> None:
    assert parse(SOURCE) == [CLIP, CLIP13, ROUND, TINY16, TINY, TREE]


def test_what_the_preprocessor_drops_does_not_count() -> None:
    assert parse(SOURCE, defined={"HALF", "NO_ML"}) == [CLIP, CLIP13, ROUND, TINY16]
    assert parse(SOURCE, defined=()) == [CLIP, CLIP13, ROUND, TINY, TREE]


def test_the_table_has_every_start_once_and_sorted() -> None:
    assert table(parse(SOURCE)) == {
        "ai.onnx": {"Clip": [6, 13], "Round": [6]},
        "ai.onnx.ml": {"Tree": [2]},
        "com.microsoft": {"Tiny": [1]},
    }
    assert json.loads(table_text([SOURCE])) == table(parse(SOURCE))


def test_the_table_of_types_is_read_as_it_was_written() -> None:
    types: dict[Registration, dict[str, tuple[str, ...]]] = {
        ROUND: {"T": ("float",)},
        CLIP: {"T": ("float", "seq(tensor(float))")},
        CLIP13: {},
    }
    text = kernel_types_text(types)
    assert kernel_types(text) == types
    assert text == kernel_types_text({one: types[one] for one in reversed(types)})


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        ("BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kNewDomain, 1, X)>", None),
        ("BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, X)>", None),
        ("BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME(kCpuExecutionProvider, kOnnxDomain, one, X)>", None),
        ("#if A > 3\n#endif", ()),
    ],
)
def test_an_unknown_form_is_an_error_and_never_a_gap(text: str, defined: tuple[str, ...] | None) -> None:
    with pytest.raises(ValueError, match=r"unknown form|invalid literal"):
        parse(text, defined=defined)


def test_conditions_that_do_not_pair_are_an_error() -> None:
    for text in ("#endif", "#else", "#ifdef A\n"):
        with pytest.raises(ValueError, match="without"):
            parse(text, defined=())
