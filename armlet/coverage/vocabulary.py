"""The words of ONNX Runtime's graph API that a provider's rules may use. One that is not here ends the generation.

What a word means is in ``armlet/coverage/values.py``; how the rules read it, in ``armlet/coverage/evaluate.py``.
"""

from __future__ import annotations

from armlet.coverage.elements import NUMBERS as ELEMENTS

_METHODS = """
    OpType Domain SinceVersion Name GetNode Inputs Outputs InputDefs OutputDefs GetAttributes UnitType ModelPath
    Exists TypeAsProto Type Shape
    dim dim_size dim_value has_dim_value NumDimensions Size has_tensor_type tensor_type has_elem_type elem_type
    GetConstantInitializer IsConstantInitializer dims data_type DataAsSpan
    f i s IsOK
    find at count begin end cbegin cend size empty push_back clear has_value value
"""
METHODS: dict[str, frozenset[int]] = {
    **dict.fromkeys(_METHODS.split(), frozenset()),
    "GetAttr": frozenset({1}),
    "GetAttrs": frozenset({1}),
    "GetAttrOrDefault": frozenset(),
}
"""Method -> positions of arguments that it writes to without ``&``."""

_FIELDS = """
    node_arg quant_param scale zero_point first second
    ceil_mode auto_pad kernel_shape count_include_pad default_dilations
"""
FIELDS = frozenset(_FIELDS.split())

_FUNCTIONS = """
    std::find std::abs std::round fabs gsl::narrow_cast
    graph_utils::GetNodeAttribute graph_utils::GetInputEdge StringToAutoPadType Status::OK
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())

_TYPES = """
    PoolAttributes Initializer ProtoHelperNodeContext OpNodeProtoHelper TensorShape TensorShapeVector ComputeTypeSet
    std::string std::vector std::pair std::unordered_map std::unordered_set
"""
TYPES = frozenset(_TYPES.split())
"""What may be made; numbers and the provider's own structures apart."""

_NUMBERS = "int int8_t int16_t int32_t int64_t uint8_t uint32_t size_t bool float double auto"
NUMBERS = frozenset(_NUMBERS.split())

SYMBOLS: dict[str, object] = {
    **{f"ONNX_NAMESPACE::TensorProto_DataType_{name}": number for name, number in ELEMENTS.items()},
    "ONNX_NAMESPACE::TensorProto_DataType_UNDEFINED": 0,
    **{
        name: {"symbol": name}
        for name in (
            "AutoPadType::NOTSET",
            "AutoPadType::VALID",
            "AutoPadType::SAME_UPPER",
            "AutoPadType::SAME_LOWER",
            "NodeUnit::Type::QDQGroup",
            "NodeUnit::Type::SingleNode",
        )
    },
    "onnxruntime::kOnnxDomain": "",
    "kOnnxDomain": "",
    "kMSInternalNHWCDomain": "com.ms.internal.nhwc",
    "kMSDomain": "com.microsoft",
}
"""Constants of ONNX Runtime and ONNX -> number, text, or a symbol that is equal to itself alone."""

IGNORED = frozenset({"LOGS_DEFAULT"})
"""Statements that begin with one of these do nothing that matters here."""

RETURN_IF, RETURN_UNLESS, RETURN_ERROR, THROW = (
    "ORT_RETURN_IF",
    "ORT_RETURN_IF_NOT",
    "ORT_RETURN_IF_ERROR",
    frozenset({"ORT_THROW", "ORT_NOT_IMPLEMENTED"}),
)
