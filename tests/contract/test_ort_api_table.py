"""The generator of the C API's table, and what ONNX Runtime says of the checked-in one.

That the table is the header's is tested on the header of a build (``tests/integration/test_build.py``).
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from armlet_runtime.ort import _api_table

# Last function of each released version, as onnxruntime_c_api.cc asserts them ("Size of version … API
# cannot change"). They hold for every library from that version on.
LAST_OF_VERSION = {
    "ReleaseCustomOpDomain": 101,
    "ReleaseModelMetadata": 118,
    "AddFreeDimensionOverrideByName": 124,
    "ReleaseAvailableProviders": 126,
    "SetGlobalSpinControl": 149,
    "ReleaseArenaCfg": 157,
    "GetCurrentGpuDeviceId": 161,
    "CreateSessionFromArrayWithPrepackedWeightsContainer": 169,
    "GetSparseTensorIndices": 191,
    "SynchronizeBoundOutputs": 203,
    "SessionOptionsAppendExecutionProvider_MIGraphX": 209,
    "ReleaseKernelInfo": 218,
    "ReleaseCANNProviderOptions": 224,
    "GetSessionConfigEntry": 238,
    "GetBuildInfoString": 254,
    "KernelContext_GetResource": 265,
    "SessionOptionsAppendExecutionProvider_OpenVINO_V2": 275,
    "AddExternalInitializersFromFilesInMemory": 279,
    "SetEpDynamicOptions": 284,
}


def test_positions_are_those_that_onnx_runtime_asserts() -> None:
    assert {name: _api_table.FUNCTIONS[name][0] for name in LAST_OF_VERSION} == LAST_OF_VERSION
    assert sorted(index for index, _ in _api_table.FUNCTIONS.values()) == list(range(285))


HEADER = """
#define ORT_API_VERSION 3
/* struct OrtApi { not this one } */
typedef enum OrtErrorCode { ORT_OK, ORT_FAIL } OrtErrorCode;
typedef enum ONNXType { ONNX_TYPE_UNKNOWN } ONNXType;
typedef enum ONNXTensorElementDataType { ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED } ONNXTensorElementDataType;
typedef enum OrtLoggingLevel { ORT_LOGGING_LEVEL_VERBOSE } OrtLoggingLevel;
typedef enum OrtAllocatorType { OrtInvalidAllocator = -1, OrtDeviceAllocator } OrtAllocatorType;
typedef enum OrtMemType { OrtMemTypeCPUOutput = -1, OrtMemTypeCPU = OrtMemTypeCPUOutput, OrtMemTypeDefault } OrtMemType;
typedef enum GraphOptimizationLevel { ORT_ENABLE_ALL = 99 } GraphOptimizationLevel;
typedef enum ExecutionMode { ORT_SEQUENTIAL } ExecutionMode;
typedef void(ORT_API_CALL* Callback)(void* p);
struct OrtApi {
  OrtStatus*(ORT_API_CALL* Plain)(OrtErrorCode code, _In_ const char* msg)NO_EXCEPTION ORT_ALL_ARGS_NONNULL;
  // a comment; with a semicolon
  ORT_API2_STATUS(Status, _In_reads_(n) const char* const* names, size_t n, Callback f, _In_ void (*g)(void*, size_t),
                  bool b, enum ONNXType t, _In_ const char* rest[]);
  ORT_CLASS_RELEASE(Env);
  void(ORT_API_CALL* Nothing)(void);
MORE
};
"""


def test_generator_reads_every_form(generator: ModuleType) -> None:
    text = generator.render(HEADER.replace("MORE", "").encode())
    for line in (
        "API_VERSION = 3",
        '"Plain": (0, "p:ip"),',
        '"Status": (1, "s:pzpp?ip"),',
        '"ReleaseEnv": (2, "v:p"),',
        '"Nothing": (3, "v:"),',
        "InvalidAllocator = -1\n    DeviceAllocator = 0",
        "CPUOutput = -1\n    CPU = -1\n    Default = 0",
        "ORT_ENABLE_ALL = 99",
    ):
        assert line in text
    compile(text, "table", "exec")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("#ifdef X\nORT_CLASS_RELEASE(Op);\n#endif", "preprocessor lines"),
        ("int something;", "cannot read this member of struct OrtApi: int something"),
        ("ORT_API2_STATUS(New, struct Strange by_value);", "unknown C type Strange"),
    ],
)
def test_generator_refuses_what_it_does_not_know(generator: ModuleType, more: str, message: str) -> None:
    with pytest.raises(generator.HeaderError, match=message):
        generator.render(HEADER.replace("MORE", more).encode())


def test_generator_as_a_program(generator: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "h.h", tmp_path / "table.py"
    source.write_text(HEADER.replace("MORE", ""))
    assert generator.main([str(source), "--output", str(target)]) == 0
    assert "4 functions" in capsys.readouterr().out
    source.write_text("")
    assert generator.main([str(source), "--output", str(target)]) == 2
    assert "no ORT_API_VERSION" in capsys.readouterr().err
