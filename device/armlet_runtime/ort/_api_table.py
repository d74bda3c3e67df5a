"""Positions, signatures and enums of ONNX Runtime's C API.

Generated from onnxruntime_c_api.h by device/tools/generate_api.py; edit that instead.
"""

from __future__ import annotations

import enum

HEADER_SHA256 = "7783e9664bdb0b1b36145b5c8587dd1bc9a399aa000edf2e3dd03003cafc6882"
API_VERSION = 21

FUNCTIONS: dict[str, tuple[int, str]] = {
    "CreateStatus": (0, "p:ip"),
    "GetErrorCode": (1, "i:p"),
    "GetErrorMessage": (2, "p:p"),
    "CreateEnv": (3, "s:ipp"),
    "CreateEnvWithCustomLogger": (4, "s:ppipp"),
    "EnableTelemetryEvents": (5, "s:p"),
    "DisableTelemetryEvents": (6, "s:p"),
    "CreateSession": (7, "s:pppp"),
    "CreateSessionFromArray": (8, "s:ppzpp"),
    "Run": (9, "s:ppppzpzp"),
    "CreateSessionOptions": (10, "s:p"),
    "SetOptimizedModelFilePath": (11, "s:pp"),
    "CloneSessionOptions": (12, "s:pp"),
    "SetSessionExecutionMode": (13, "s:pi"),
    "EnableProfiling": (14, "s:pp"),
    "DisableProfiling": (15, "s:p"),
    "EnableMemPattern": (16, "s:p"),
    "DisableMemPattern": (17, "s:p"),
    "EnableCpuMemArena": (18, "s:p"),
    "DisableCpuMemArena": (19, "s:p"),
    "SetSessionLogId": (20, "s:pp"),
    "SetSessionLogVerbosityLevel": (21, "s:pi"),
    "SetSessionLogSeverityLevel": (22, "s:pi"),
    "SetSessionGraphOptimizationLevel": (23, "s:pi"),
    "SetIntraOpNumThreads": (24, "s:pi"),
    "SetInterOpNumThreads": (25, "s:pi"),
    "CreateCustomOpDomain": (26, "s:pp"),
    "CustomOpDomain_Add": (27, "s:pp"),
    "AddCustomOpDomain": (28, "s:pp"),
    "RegisterCustomOpsLibrary": (29, "s:ppp"),
    "SessionGetInputCount": (30, "s:pp"),
    "SessionGetOutputCount": (31, "s:pp"),
    "SessionGetOverridableInitializerCount": (32, "s:pp"),
    "SessionGetInputTypeInfo": (33, "s:pzp"),
    "SessionGetOutputTypeInfo": (34, "s:pzp"),
    "SessionGetOverridableInitializerTypeInfo": (35, "s:pzp"),
    "SessionGetInputName": (36, "s:pzpp"),
    "SessionGetOutputName": (37, "s:pzpp"),
    "SessionGetOverridableInitializerName": (38, "s:pzpp"),
    "CreateRunOptions": (39, "s:p"),
    "RunOptionsSetRunLogVerbosityLevel": (40, "s:pi"),
    "RunOptionsSetRunLogSeverityLevel": (41, "s:pi"),
    "RunOptionsSetRunTag": (42, "s:pp"),
    "RunOptionsGetRunLogVerbosityLevel": (43, "s:pp"),
    "RunOptionsGetRunLogSeverityLevel": (44, "s:pp"),
    "RunOptionsGetRunTag": (45, "s:pp"),
    "RunOptionsSetTerminate": (46, "s:p"),
    "RunOptionsUnsetTerminate": (47, "s:p"),
    "CreateTensorAsOrtValue": (48, "s:ppzip"),
    "CreateTensorWithDataAsOrtValue": (49, "s:ppzpzip"),
    "IsTensor": (50, "s:pp"),
    "GetTensorMutableData": (51, "s:pp"),
    "FillStringTensor": (52, "s:ppz"),
    "GetStringTensorDataLength": (53, "s:pp"),
    "GetStringTensorContent": (54, "s:ppzpz"),
    "CastTypeInfoToTensorInfo": (55, "s:pp"),
    "GetOnnxTypeFromTypeInfo": (56, "s:pp"),
    "CreateTensorTypeAndShapeInfo": (57, "s:p"),
    "SetTensorElementType": (58, "s:pi"),
    "SetDimensions": (59, "s:ppz"),
    "GetTensorElementType": (60, "s:pp"),
    "GetDimensionsCount": (61, "s:pp"),
    "GetDimensions": (62, "s:ppz"),
    "GetSymbolicDimensions": (63, "s:ppz"),
    "GetTensorShapeElementCount": (64, "s:pp"),
    "GetTensorTypeAndShape": (65, "s:pp"),
    "GetTypeInfo": (66, "s:pp"),
    "GetValueType": (67, "s:pp"),
    "CreateMemoryInfo": (68, "s:piiip"),
    "CreateCpuMemoryInfo": (69, "s:iip"),
    "CompareMemoryInfo": (70, "s:ppp"),
    "MemoryInfoGetName": (71, "s:pp"),
    "MemoryInfoGetId": (72, "s:pp"),
    "MemoryInfoGetMemType": (73, "s:pp"),
    "MemoryInfoGetType": (74, "s:pp"),
    "AllocatorAlloc": (75, "s:pzp"),
    "AllocatorFree": (76, "s:pp"),
    "AllocatorGetInfo": (77, "s:pp"),
    "GetAllocatorWithDefaultOptions": (78, "s:p"),
    "AddFreeDimensionOverride": (79, "s:ppq"),
    "GetValue": (80, "s:pipp"),
    "GetValueCount": (81, "s:pp"),
    "CreateValue": (82, "s:pzip"),
    "CreateOpaqueValue": (83, "s:pppzp"),
    "GetOpaqueValue": (84, "s:ppppz"),
    "KernelInfoGetAttribute_float": (85, "s:ppp"),
    "KernelInfoGetAttribute_int64": (86, "s:ppp"),
    "KernelInfoGetAttribute_string": (87, "s:pppp"),
    "KernelContext_GetInputCount": (88, "s:pp"),
    "KernelContext_GetOutputCount": (89, "s:pp"),
    "KernelContext_GetInput": (90, "s:pzp"),
    "KernelContext_GetOutput": (91, "s:pzpzp"),
    "ReleaseEnv": (92, "v:p"),
    "ReleaseStatus": (93, "v:p"),
    "ReleaseMemoryInfo": (94, "v:p"),
    "ReleaseSession": (95, "v:p"),
    "ReleaseValue": (96, "v:p"),
    "ReleaseRunOptions": (97, "v:p"),
    "ReleaseTypeInfo": (98, "v:p"),
    "ReleaseTensorTypeAndShapeInfo": (99, "v:p"),
    "ReleaseSessionOptions": (100, "v:p"),
    "ReleaseCustomOpDomain": (101, "v:p"),
    "GetDenotationFromTypeInfo": (102, "s:ppp"),
    "CastTypeInfoToMapTypeInfo": (103, "s:pp"),
    "CastTypeInfoToSequenceTypeInfo": (104, "s:pp"),
    "GetMapKeyType": (105, "s:pp"),
    "GetMapValueType": (106, "s:pp"),
    "GetSequenceElementType": (107, "s:pp"),
    "ReleaseMapTypeInfo": (108, "v:p"),
    "ReleaseSequenceTypeInfo": (109, "v:p"),
    "SessionEndProfiling": (110, "s:ppp"),
    "SessionGetModelMetadata": (111, "s:pp"),
    "ModelMetadataGetProducerName": (112, "s:ppp"),
    "ModelMetadataGetGraphName": (113, "s:ppp"),
    "ModelMetadataGetDomain": (114, "s:ppp"),
    "ModelMetadataGetDescription": (115, "s:ppp"),
    "ModelMetadataLookupCustomMetadataMap": (116, "s:pppp"),
    "ModelMetadataGetVersion": (117, "s:pp"),
    "ReleaseModelMetadata": (118, "v:p"),
    "CreateEnvWithGlobalThreadPools": (119, "s:ippp"),
    "DisablePerSessionThreads": (120, "s:p"),
    "CreateThreadingOptions": (121, "s:p"),
    "ReleaseThreadingOptions": (122, "v:p"),
    "ModelMetadataGetCustomMetadataMapKeys": (123, "s:pppp"),
    "AddFreeDimensionOverrideByName": (124, "s:ppq"),
    "GetAvailableProviders": (125, "s:pp"),
    "ReleaseAvailableProviders": (126, "s:pi"),
    "GetStringTensorElementLength": (127, "s:pzp"),
    "GetStringTensorElement": (128, "s:pzzp"),
    "FillStringTensorElement": (129, "s:ppz"),
    "AddSessionConfigEntry": (130, "s:ppp"),
    "CreateAllocator": (131, "s:ppp"),
    "ReleaseAllocator": (132, "v:p"),
    "RunWithBinding": (133, "s:ppp"),
    "CreateIoBinding": (134, "s:pp"),
    "ReleaseIoBinding": (135, "v:p"),
    "BindInput": (136, "s:ppp"),
    "BindOutput": (137, "s:ppp"),
    "BindOutputToDevice": (138, "s:ppp"),
    "GetBoundOutputNames": (139, "s:ppppp"),
    "GetBoundOutputValues": (140, "s:pppp"),
    "ClearBoundInputs": (141, "v:p"),
    "ClearBoundOutputs": (142, "v:p"),
    "TensorAt": (143, "s:ppzp"),
    "CreateAndRegisterAllocator": (144, "s:ppp"),
    "SetLanguageProjection": (145, "s:pi"),
    "SessionGetProfilingStartTimeNs": (146, "s:pp"),
    "SetGlobalIntraOpNumThreads": (147, "s:pi"),
    "SetGlobalInterOpNumThreads": (148, "s:pi"),
    "SetGlobalSpinControl": (149, "s:pi"),
    "AddInitializer": (150, "s:ppp"),
    "CreateEnvWithCustomLoggerAndGlobalThreadPools": (151, "s:ppippp"),
    "SessionOptionsAppendExecutionProvider_CUDA": (152, "s:pp"),
    "SessionOptionsAppendExecutionProvider_ROCM": (153, "s:pp"),
    "SessionOptionsAppendExecutionProvider_OpenVINO": (154, "s:pp"),
    "SetGlobalDenormalAsZero": (155, "s:p"),
    "CreateArenaCfg": (156, "s:ziiip"),
    "ReleaseArenaCfg": (157, "v:p"),
    "ModelMetadataGetGraphDescription": (158, "s:ppp"),
    "SessionOptionsAppendExecutionProvider_TensorRT": (159, "s:pp"),
    "SetCurrentGpuDeviceId": (160, "s:i"),
    "GetCurrentGpuDeviceId": (161, "s:p"),
    "KernelInfoGetAttributeArray_float": (162, "s:pppp"),
    "KernelInfoGetAttributeArray_int64": (163, "s:pppp"),
    "CreateArenaCfgV2": (164, "s:ppzp"),
    "AddRunConfigEntry": (165, "s:ppp"),
    "CreatePrepackedWeightsContainer": (166, "s:p"),
    "ReleasePrepackedWeightsContainer": (167, "v:p"),
    "CreateSessionWithPrepackedWeightsContainer": (168, "s:ppppp"),
    "CreateSessionFromArrayWithPrepackedWeightsContainer": (169, "s:ppzppp"),
    "SessionOptionsAppendExecutionProvider_TensorRT_V2": (170, "s:pp"),
    "CreateTensorRTProviderOptions": (171, "s:p"),
    "UpdateTensorRTProviderOptions": (172, "s:pppz"),
    "GetTensorRTProviderOptionsAsString": (173, "s:ppp"),
    "ReleaseTensorRTProviderOptions": (174, "v:p"),
    "EnableOrtCustomOps": (175, "s:p"),
    "RegisterAllocator": (176, "s:pp"),
    "UnregisterAllocator": (177, "s:pp"),
    "IsSparseTensor": (178, "s:pp"),
    "CreateSparseTensorAsOrtValue": (179, "s:ppzip"),
    "FillSparseTensorCoo": (180, "s:pppzppz"),
    "FillSparseTensorCsr": (181, "s:pppzppzpz"),
    "FillSparseTensorBlockSparse": (182, "s:pppzppzp"),
    "CreateSparseTensorWithValuesAsOrtValue": (183, "s:pppzpzip"),
    "UseCooIndices": (184, "s:ppz"),
    "UseCsrIndices": (185, "s:ppzpz"),
    "UseBlockSparseIndices": (186, "s:ppzp"),
    "GetSparseTensorFormat": (187, "s:pp"),
    "GetSparseTensorValuesTypeAndShape": (188, "s:pp"),
    "GetSparseTensorValues": (189, "s:pp"),
    "GetSparseTensorIndicesTypeShape": (190, "s:pip"),
    "GetSparseTensorIndices": (191, "s:pipp"),
    "HasValue": (192, "s:pp"),
    "KernelContext_GetGPUComputeStream": (193, "s:pp"),
    "GetTensorMemoryInfo": (194, "s:pp"),
    "GetExecutionProviderApi": (195, "s:pIp"),
    "SessionOptionsSetCustomCreateThreadFn": (196, "s:pp"),
    "SessionOptionsSetCustomThreadCreationOptions": (197, "s:pp"),
    "SessionOptionsSetCustomJoinThreadFn": (198, "s:pp"),
    "SetGlobalCustomCreateThreadFn": (199, "s:pp"),
    "SetGlobalCustomThreadCreationOptions": (200, "s:pp"),
    "SetGlobalCustomJoinThreadFn": (201, "s:pp"),
    "SynchronizeBoundInputs": (202, "s:p"),
    "SynchronizeBoundOutputs": (203, "s:p"),
    "SessionOptionsAppendExecutionProvider_CUDA_V2": (204, "s:pp"),
    "CreateCUDAProviderOptions": (205, "s:p"),
    "UpdateCUDAProviderOptions": (206, "s:pppz"),
    "GetCUDAProviderOptionsAsString": (207, "s:ppp"),
    "ReleaseCUDAProviderOptions": (208, "v:p"),
    "SessionOptionsAppendExecutionProvider_MIGraphX": (209, "s:pp"),
    "AddExternalInitializers": (210, "s:pppz"),
    "CreateOpAttr": (211, "s:ppiip"),
    "ReleaseOpAttr": (212, "v:p"),
    "CreateOp": (213, "s:pppippipiiip"),
    "InvokeOp": (214, "s:pppipi"),
    "ReleaseOp": (215, "v:p"),
    "SessionOptionsAppendExecutionProvider": (216, "s:ppppz"),
    "CopyKernelInfo": (217, "s:pp"),
    "ReleaseKernelInfo": (218, "v:p"),
    "GetTrainingApi": (219, "p:I"),
    "SessionOptionsAppendExecutionProvider_CANN": (220, "s:pp"),
    "CreateCANNProviderOptions": (221, "s:p"),
    "UpdateCANNProviderOptions": (222, "s:pppz"),
    "GetCANNProviderOptionsAsString": (223, "s:ppp"),
    "ReleaseCANNProviderOptions": (224, "v:p"),
    "MemoryInfoGetDeviceType": (225, "v:pp"),
    "UpdateEnvWithCustomLogLevel": (226, "s:pi"),
    "SetGlobalIntraOpThreadAffinity": (227, "s:pp"),
    "RegisterCustomOpsLibrary_V2": (228, "s:pp"),
    "RegisterCustomOpsUsingFunction": (229, "s:pp"),
    "KernelInfo_GetInputCount": (230, "s:pp"),
    "KernelInfo_GetOutputCount": (231, "s:pp"),
    "KernelInfo_GetInputName": (232, "s:pzpp"),
    "KernelInfo_GetOutputName": (233, "s:pzpp"),
    "KernelInfo_GetInputTypeInfo": (234, "s:pzp"),
    "KernelInfo_GetOutputTypeInfo": (235, "s:pzp"),
    "KernelInfoGetAttribute_tensor": (236, "s:pppp"),
    "HasSessionConfigEntry": (237, "s:ppp"),
    "GetSessionConfigEntry": (238, "s:pppp"),
    "SessionOptionsAppendExecutionProvider_Dnnl": (239, "s:pp"),
    "CreateDnnlProviderOptions": (240, "s:p"),
    "UpdateDnnlProviderOptions": (241, "s:pppz"),
    "GetDnnlProviderOptionsAsString": (242, "s:ppp"),
    "ReleaseDnnlProviderOptions": (243, "v:p"),
    "KernelInfo_GetNodeName": (244, "s:ppp"),
    "KernelInfo_GetLogger": (245, "s:pp"),
    "KernelContext_GetLogger": (246, "s:pp"),
    "Logger_LogMessage": (247, "s:pippip"),
    "Logger_GetLoggingSeverityLevel": (248, "s:pp"),
    "KernelInfoGetConstantInput_tensor": (249, "s:pzpp"),
    "CastTypeInfoToOptionalTypeInfo": (250, "s:pp"),
    "GetOptionalContainedTypeInfo": (251, "s:pp"),
    "GetResizedStringTensorElementBuffer": (252, "s:pzzp"),
    "KernelContext_GetAllocator": (253, "s:ppp"),
    "GetBuildInfoString": (254, "p:"),
    "CreateROCMProviderOptions": (255, "s:p"),
    "UpdateROCMProviderOptions": (256, "s:pppz"),
    "GetROCMProviderOptionsAsString": (257, "s:ppp"),
    "ReleaseROCMProviderOptions": (258, "v:p"),
    "CreateAndRegisterAllocatorV2": (259, "s:ppppppz"),
    "RunAsync": (260, "s:ppppzpzppp"),
    "UpdateTensorRTProviderOptionsWithValue": (261, "s:ppp"),
    "GetTensorRTProviderOptionsByName": (262, "s:ppp"),
    "UpdateCUDAProviderOptionsWithValue": (263, "s:ppp"),
    "GetCUDAProviderOptionsByName": (264, "s:ppp"),
    "KernelContext_GetResource": (265, "s:piip"),
    "SetUserLoggingFunction": (266, "s:ppp"),
    "ShapeInferContext_GetInputCount": (267, "s:pp"),
    "ShapeInferContext_GetInputTypeShape": (268, "s:pzp"),
    "ShapeInferContext_GetAttribute": (269, "s:ppp"),
    "ShapeInferContext_SetOutputTypeShape": (270, "s:pzp"),
    "SetSymbolicDimensions": (271, "s:ppz"),
    "ReadOpAttr": (272, "s:pipzp"),
    "SetDeterministicCompute": (273, "s:p?"),
    "KernelContext_ParallelFor": (274, "s:ppzzp"),
    "SessionOptionsAppendExecutionProvider_OpenVINO_V2": (275, "s:pppz"),
    "SessionOptionsAppendExecutionProvider_VitisAI": (276, "s:pppz"),
    "KernelContext_GetScratchBuffer": (277, "s:ppzp"),
    "KernelInfoGetAllocator": (278, "s:pip"),
    "AddExternalInitializersFromFilesInMemory": (279, "s:ppppz"),
    "CreateLoraAdapter": (280, "s:ppp"),
    "CreateLoraAdapterFromArray": (281, "s:pzpp"),
    "ReleaseLoraAdapter": (282, "v:p"),
    "RunOptionsAddActiveLoraAdapter": (283, "s:pp"),
    "SetEpDynamicOptions": (284, "s:pppz"),
}


class OrtErrorCode(enum.IntEnum):
    """``enum OrtErrorCode`` of the C API."""

    OK = 0
    FAIL = 1
    INVALID_ARGUMENT = 2
    NO_SUCHFILE = 3
    NO_MODEL = 4
    ENGINE_ERROR = 5
    RUNTIME_EXCEPTION = 6
    INVALID_PROTOBUF = 7
    MODEL_LOADED = 8
    NOT_IMPLEMENTED = 9
    INVALID_GRAPH = 10
    EP_FAIL = 11


class ONNXType(enum.IntEnum):
    """``enum ONNXType`` of the C API."""

    UNKNOWN = 0
    TENSOR = 1
    SEQUENCE = 2
    MAP = 3
    OPAQUE = 4
    SPARSETENSOR = 5
    OPTIONAL = 6


class ONNXTensorElementDataType(enum.IntEnum):
    """``enum ONNXTensorElementDataType`` of the C API."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22


class OrtLoggingLevel(enum.IntEnum):
    """``enum OrtLoggingLevel`` of the C API."""

    VERBOSE = 0
    INFO = 1
    WARNING = 2
    ERROR = 3
    FATAL = 4


class OrtAllocatorType(enum.IntEnum):
    """``enum OrtAllocatorType`` of the C API."""

    InvalidAllocator = -1
    DeviceAllocator = 0
    ArenaAllocator = 1


class OrtMemType(enum.IntEnum):
    """``enum OrtMemType`` of the C API."""

    CPUInput = -2
    CPUOutput = -1
    CPU = -1
    Default = 0


class GraphOptimizationLevel(enum.IntEnum):
    """``enum GraphOptimizationLevel`` of the C API."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """``enum ExecutionMode`` of the C API."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1
