"""Between Python arrays and ``OrtValue``."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any, Sequence

from . import _metadata, _numpy, _types
from ._api_table import ONNXType
from ._buffers import PinnedBuffer
from ._errors import OrtError, invalid, unsupported
from ._library import Library
from ._tensor import Tensor, flatten, pack

_PYTHON_VALUES = (list, tuple, bool, int, float)


@dataclass(frozen=True)
class Elements:
    """A Python value seen as a tensor: ``data`` is a C-contiguous buffer, or a flat list for strings."""

    element: _types.ElementType
    shape: tuple[int, ...]
    data: Any
    copied: bool


def elements_of(value: Any, wanted: _types.ElementType | None) -> Elements:
    """``value`` as a tensor of type ``wanted``, or of its own type when that is None.

    Takes NumPy arrays and scalars, :class:`Tensor`, whatever has the buffer protocol, and nested lists or
    bare Python values. What is not C-contiguous is copied; no element is ever converted.
    Raises :class:`OrtError` when the types differ or cannot be told.
    """
    if isinstance(value, Tensor):
        return _checked(Elements(value.element, value.shape, value.data, copied=False), wanted)
    if _holds_strings(value, wanted):
        shape, flat = _strings_of(value)
        return _checked(Elements(_types.STRING, shape, flat, copied=True), wanted)
    # NumPy's float64 is a float too, but it has a type of its own to be checked.
    if isinstance(value, _PYTHON_VALUES) and not hasattr(value, "dtype"):
        if wanted is None:
            raise invalid("a list does not say its element type; pass an array or a Tensor")
        shape, flat = flatten(value)
        return Elements(wanted, shape, pack(flat, wanted), copied=True)
    return _checked(_elements_of_buffer(value), wanted)


def elements_for(kind: str, arg: _metadata.NodeArg, value: Any) -> Elements:
    """``value`` as the tensor that ``arg``, an "input" or "output" by ``kind``, is; errors name it."""
    try:
        if not arg.type.startswith("tensor("):
            raise unsupported(f"{arg.type} cannot be passed through this binding, only tensors can")
        return elements_of(value, _types.of_name(arg.type))
    except OrtError as error:
        raise OrtError(error.code, f'{kind} "{arg.name}": {error.message}') from error


def _elements_of_buffer(value: Any) -> Elements:
    view, foreign = _view_of(value)
    element = foreign or _types.of_format(view.format, view.itemsize)
    if element is None:
        raise invalid(f'no tensor has elements of buffer format "{view.format}" (in native byte order)')
    data = view if view.c_contiguous else view.tobytes()
    return Elements(element, tuple(view.shape or ()), data, copied=not view.c_contiguous)


def _view_of(value: Any) -> tuple[memoryview, _types.ElementType | None]:
    """A view of any buffer, and its element type where the view's own format does not tell."""
    try:
        return memoryview(value), None
    except (TypeError, ValueError) as error:
        foreign = _foreign_type(value)
        if foreign is None:
            raise invalid(f"{type(value).__name__} is no array, buffer or list: {error}") from error
        return memoryview(value.view(foreign.carrier)), foreign


def _foreign_type(value: Any) -> _types.ElementType | None:
    """The type of an array of ml_dtypes, such as bfloat16, which the buffer protocol cannot express."""
    name = str(getattr(getattr(value, "dtype", None), "name", "")).replace("_", "")
    return _types.of_name(name) if name.startswith(("bfloat16", "float8")) else None


def _holds_strings(value: Any, wanted: _types.ElementType | None) -> bool:
    if hasattr(value, "dtype"):
        return getattr(value.dtype, "kind", "") in ("U", "S", "O")
    return isinstance(value, str) or (wanted is _types.STRING and isinstance(value, (bytes, *_PYTHON_VALUES)))


def _strings_of(value: Any) -> tuple[tuple[int, ...], list[Any]]:
    if hasattr(value, "dtype"):
        shape, flat = tuple(value.shape), value.reshape(-1).tolist()
    else:
        shape, flat = flatten(value)
    return shape, flat


def _checked(elements: Elements, wanted: _types.ElementType | None) -> Elements:
    given = elements.element
    if wanted is None or given is wanted or given.dtype == wanted.carrier:
        return Elements(wanted or given, elements.shape, elements.data, elements.copied)
    raise invalid(f"{given} given, {wanted} wanted")


def create_value(
    library: Library, elements: Elements, *, writable: bool = False, in_place: bool = False
) -> tuple[int, PinnedBuffer | None]:
    """A new ``OrtValue`` over the elements, and what must stay alive as long as it does.

    The value shares the buffer, except that strings are copied, and elements that begin at an address which is
    no multiple of their size: 32-bit ARM has loads that fault there. Raises :class:`OrtError` for such a buffer
    where ``in_place`` rules a copy out. ``writable`` is for buffers that ONNX Runtime will write to. The caller
    releases the value.
    """
    api = library.api
    shape = (ctypes.c_int64 * len(elements.shape))(*elements.shape)
    if elements.element is _types.STRING:
        pointer = api.pointer("CreateTensorAsOrtValue", library.allocator, shape, len(shape), elements.element.code)
        try:
            _write_strings(library, pointer, elements.data)
        except BaseException:
            api.ReleaseValue(pointer)
            raise
        return pointer, None
    try:
        pin = PinnedBuffer(elements.data, writable=writable)
        if pin.nbytes and pin.address % elements.element.itemsize:
            if in_place:
                raise invalid("the buffer begins at an address that is no multiple of its elements' size")
            # Bytes of their own begin where any element may.
            pin = PinnedBuffer(bytes(elements.data))
    except (BufferError, ValueError) as error:
        raise invalid(f"the buffer cannot be used: {error}") from error
    pointer = api.pointer(
        "CreateTensorWithDataAsOrtValue",
        library.cpu_memory,
        pin.address,
        pin.nbytes,
        shape,
        len(shape),
        elements.element.code,
    )
    return pointer, pin


def _write_strings(library: Library, pointer: int, strings: Sequence[Any]) -> None:
    for index, text in enumerate(strings):
        if isinstance(text, str):
            # What read_strings could not decode goes back as the bytes it was.
            text = text.encode("utf-8", "surrogateescape")
        if not isinstance(text, bytes):
            raise invalid(f"{text!r} is no str or bytes; tensor(string) wanted")
        # FillStringTensor would end each string at its first NUL.
        target = library.api.pointer("GetResizedStringTensorElementBuffer", pointer, index, len(text))
        ctypes.memmove(target, text, len(text))


def read_value(library: Library, pointer: int) -> Any:
    """A copy of an ``OrtValue``: an array for a tensor, a list for a sequence, None for an empty optional.

    Raises :class:`OrtError` for maps, sparse tensors and opaque values.
    """
    api = library.api
    if not pointer or not api.out(ctypes.c_int, "HasValue", pointer):
        return None
    kind = api.out(ctypes.c_int, "GetValueType", pointer)
    if kind == ONNXType.TENSOR:
        return read_tensor(library, pointer)
    if kind != ONNXType.SEQUENCE:
        raise unsupported(f"values of kind {ONNXType(kind).name.lower()} are not supported by this binding")
    items = []
    for index in range(api.size("GetValueCount", pointer)):
        item = api.pointer("GetValue", pointer, index, library.allocator)
        try:
            items.append(read_value(library, item))
        finally:
            api.ReleaseValue(item)
    return items


def read_tensor(library: Library, pointer: int) -> Any:
    """A copy of a tensor ``OrtValue``: a NumPy array, or a :class:`Tensor` without NumPy."""
    element, shape = tensor_type(library, pointer)
    if element is _types.STRING:
        return _array_of_strings(read_strings(library, pointer, math.prod(shape)), shape)
    nbytes = math.prod(shape) * element.itemsize
    address = library.api.pointer("GetTensorMutableData", pointer)
    if _numpy.numpy is None:
        return Tensor(ctypes.string_at(address, nbytes) if nbytes else b"", element.dtype, shape)
    array = _numpy.numpy.empty(shape, element.array_dtype)
    ctypes.memmove(array.__array_interface__["data"][0], address, nbytes)
    return array


def tensor_type(library: Library, pointer: int) -> tuple[_types.ElementType, tuple[int, ...]]:
    """Element type and shape of a tensor ``OrtValue``."""
    info = library.api.pointer("GetTensorTypeAndShape", pointer)
    try:
        return _types.of_code(_metadata.element_code(library, info)), _metadata.dimensions(library, info)
    finally:
        library.api.ReleaseTensorTypeAndShapeInfo(info)


def read_strings(library: Library, pointer: int, count: int) -> list[str]:
    """The elements of a string tensor; bytes that are not UTF-8 become surrogate escapes."""
    nbytes = library.api.size("GetStringTensorDataLength", pointer)
    content = ctypes.create_string_buffer(max(nbytes, 1))
    offsets = (ctypes.c_size_t * count)()
    library.api.GetStringTensorContent(pointer, content, nbytes, offsets, count)
    ends = [*offsets[1:], nbytes]
    raw = content.raw
    return [raw[start:end].decode("utf-8", "surrogateescape") for start, end in zip(offsets, ends)]


def _array_of_strings(strings: list[str], shape: tuple[int, ...]) -> Any:
    if _numpy.numpy is None:
        return Tensor(strings, "string", shape)
    array = _numpy.numpy.empty(len(strings), object)
    array[:] = strings
    return array.reshape(shape)


class ValueArray:
    """The ``OrtValue*`` array of one call: a context manager that releases the values it owns."""

    def __init__(self, library: Library, count: int) -> None:
        self._library = library
        self._owned = [True] * count
        self._pins: list[PinnedBuffer | None] = []
        self.pointers = (ctypes.c_void_p * count)()

    def set(self, index: int, elements: Elements, *, writable: bool = False) -> None:
        """Make the value at ``index``."""
        self.pointers[index], pin = create_value(self._library, elements, writable=writable)
        self._pins.append(pin)

    def lend(self, index: int, pointer: int) -> None:
        """Use someone else's value at ``index``."""
        self._owned[index] = False
        self.pointers[index] = pointer

    def take(self, index: int) -> int:
        """The value at ``index``, which is now the caller's to release."""
        self._owned[index] = False
        return self.pointers[index] or 0

    def __enter__(self) -> ValueArray:
        return self

    def __exit__(self, *_: object) -> None:
        for pointer, owned in zip(self.pointers, self._owned):
            if pointer and owned:
                self._library.api.ReleaseValue(pointer)
