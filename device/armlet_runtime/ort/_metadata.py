"""What a loaded model says of itself."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import List, Union

from . import _types
from ._api_table import ONNXType
from ._library import Library

Shape = List[Union[int, str, None]]


@dataclass(frozen=True)
class NodeArg:
    """One input or output of a model.

    ``type`` is as in ``"tensor(float)"``, ``"seq(tensor(int64))"``. ``shape`` has an int for a fixed
    dimension, a name for a symbolic one, None for an unknown one; it is empty for a scalar, for an unknown
    rank, and for what is no tensor.
    """

    name: str
    type: str
    shape: Shape


@dataclass(frozen=True)
class ModelMetadata:
    """What the exporter wrote into the model, empty where nothing; ``version`` is the model's own."""

    producer_name: str
    graph_name: str
    graph_description: str
    domain: str
    description: str
    version: int
    custom_metadata_map: dict[str, str]


def node_args(library: Library, session: int, kind: str) -> list[NodeArg]:
    """All ``kind`` ("Input", "Output" or "OverridableInitializer") of a session, in the model's order."""
    api = library.api
    found = []
    for index in range(api.size(f"SessionGet{kind}Count", session)):
        name = library.take_string(f"SessionGet{kind}Name", session, index, library.allocator)
        info = api.pointer(f"SessionGet{kind}TypeInfo", session, index)
        try:
            found.append(NodeArg(name, *_describe(library, info)))
        finally:
            api.ReleaseTypeInfo(info)
    return found


def model_metadata(library: Library, session: int) -> ModelMetadata:
    """The metadata of a session's model."""
    api = library.api
    native = api.pointer("SessionGetModelMetadata", session)

    def text(function: str) -> str:
        return library.take_string(function, native, library.allocator)

    try:
        return ModelMetadata(
            producer_name=text("ModelMetadataGetProducerName"),
            graph_name=text("ModelMetadataGetGraphName"),
            graph_description=text("ModelMetadataGetGraphDescription"),
            domain=text("ModelMetadataGetDomain"),
            description=text("ModelMetadataGetDescription"),
            version=int(api.out(ctypes.c_int64, "ModelMetadataGetVersion", native)),
            custom_metadata_map=_custom_metadata(library, native),
        )
    finally:
        api.ReleaseModelMetadata(native)


def element_code(library: Library, tensor_info: int) -> int:
    """ONNX Runtime's number of the element type in an ``OrtTensorTypeAndShapeInfo``."""
    return int(library.api.out(ctypes.c_int, "GetTensorElementType", tensor_info))


def dimensions(library: Library, tensor_info: int) -> tuple[int, ...]:
    """The dimensions in an ``OrtTensorTypeAndShapeInfo``, -1 for those that are not fixed."""
    rank = library.api.size("GetDimensionsCount", tensor_info)
    sizes = (ctypes.c_int64 * rank)()
    library.api.GetDimensions(tensor_info, sizes, rank)
    return tuple(sizes)


def _custom_metadata(library: Library, native: int) -> dict[str, str]:
    keys = ctypes.POINTER(ctypes.c_void_p)()
    count = ctypes.c_int64()
    library.api.ModelMetadataGetCustomMetadataMapKeys(
        native, library.allocator, ctypes.byref(keys), ctypes.byref(count)
    )
    entries = {}
    try:
        for index in range(count.value):
            key = ctypes.string_at(keys[index] or 0)
            entries[key.decode("utf-8", "replace")] = library.take_string(
                "ModelMetadataLookupCustomMetadataMap", native, library.allocator, key
            )
    finally:
        for index in range(count.value):
            library.free(keys[index])
        library.free(ctypes.cast(keys, ctypes.c_void_p).value)
    return entries


def _describe(library: Library, info: int) -> tuple[str, Shape]:
    """Type text and shape of an ``OrtTypeInfo``; what a Cast function returns belongs to ``info``."""
    api = library.api
    kind = api.out(ctypes.c_int, "GetOnnxTypeFromTypeInfo", info)
    if kind in (ONNXType.TENSOR, ONNXType.SPARSETENSOR):
        tensor = api.pointer("CastTypeInfoToTensorInfo", info)
        form = "tensor" if kind == ONNXType.TENSOR else "sparse_tensor"
        element = _types.name_of_code(element_code(library, tensor))
        return f"{form}({element})", _symbolic_shape(library, tensor)
    if kind == ONNXType.SEQUENCE:
        sequence = api.pointer("CastTypeInfoToSequenceTypeInfo", info)
        return f"seq({_inner(library, 'GetSequenceElementType', sequence)})", []
    if kind == ONNXType.MAP:
        mapping = api.pointer("CastTypeInfoToMapTypeInfo", info)
        key = _types.name_of_code(api.out(ctypes.c_int, "GetMapKeyType", mapping))
        return f"map({key},{_inner(library, 'GetMapValueType', mapping)})", []
    if kind == ONNXType.OPTIONAL:
        optional = api.pointer("CastTypeInfoToOptionalTypeInfo", info)
        return f"optional({_inner(library, 'GetOptionalContainedTypeInfo', optional)})", []
    return "opaque" if kind == ONNXType.OPAQUE else "unknown", []


def _inner(library: Library, function: str, outer: int) -> str:
    info = library.api.pointer(function, outer)
    try:
        return _describe(library, info)[0]
    finally:
        library.api.ReleaseTypeInfo(info)


def _symbolic_shape(library: Library, tensor_info: int) -> Shape:
    sizes = dimensions(library, tensor_info)
    names = (ctypes.c_char_p * len(sizes))()
    library.api.GetSymbolicDimensions(tensor_info, names, len(sizes))
    symbols = [(name or b"").decode("utf-8", "replace") or None for name in names]
    return [size if size >= 0 else symbol for size, symbol in zip(sizes, symbols)]
