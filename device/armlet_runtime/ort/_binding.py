"""Values that stay in place from run to run."""

from __future__ import annotations

import contextlib
import ctypes
import math
from typing import Any, Iterator, Mapping, Sequence

from . import _metadata, _types, _values
from ._buffers import PinnedBuffer
from ._errors import invalid, quoted, unsupported
from ._handles import Handle
from ._library import Library, LibraryLike, load_library
from ._values import Elements, ValueArray


class OrtValue:
    """A tensor in native memory, or over a buffer of the caller's. Make it with a class method.

    Methods have the official package's names. It is released by :meth:`close` or when collected.
    """

    def __init__(self, library: Library, pointer: int, pin: PinnedBuffer | None, *, writable: bool) -> None:
        self._library = library
        self._writable = writable
        self._handle = Handle(self, "OrtValue", pointer, library.api.ReleaseValue, keep=pin)

    @classmethod
    def ortvalue_from_numpy(cls, array: Any, *, library: LibraryLike = None) -> OrtValue:
        """A tensor that shares the memory of a C-contiguous array, :class:`Tensor` or buffer.

        Strings are copied instead. Raises :class:`OrtError` for what is not contiguous, not aligned or of no element
        type.
        """
        return cls.from_elements(load_library(library), _values.elements_of(array, None))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: str, *, library: LibraryLike = None
    ) -> OrtValue:
        """An uninitialised tensor in ONNX Runtime's memory, of type "float32" or "tensor(float)"."""
        loaded = load_library(library)
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        element = _types.of_name(element_type)
        pointer = loaded.api.pointer("CreateTensorAsOrtValue", loaded.allocator, sizes, len(shape), element.code)
        return cls(loaded, pointer, None, writable=True)

    @classmethod
    def from_elements(cls, library: Library, elements: Elements) -> OrtValue:
        """A tensor over checked elements; a copy would not follow what its owner writes, so it is refused."""
        strings = elements.element is _types.STRING
        if elements.copied and not strings:
            raise invalid("only a C-contiguous array can be used in place")
        writable = strings or not memoryview(elements.data).readonly
        pointer, pin = _values.create_value(library, elements, writable=writable, in_place=True)
        return cls(library, pointer, pin, writable=writable)

    @property
    def writable(self) -> bool:
        """Whether a run may write into this value."""
        return self._writable

    @property
    def handle(self) -> Handle:
        """The native object."""
        return self._handle

    def is_tensor(self) -> bool:
        """Whether this is a tensor, not a sequence or map."""
        with self._handle as pointer:
            return bool(self._library.api.out(ctypes.c_int, "IsTensor", pointer))

    def shape(self) -> list[int]:
        """The dimensions; empty for a scalar."""
        return list(self._tensor_type()[1])

    def data_type(self) -> str:
        """The type, such as "tensor(float)"."""
        return str(self._tensor_type()[0])

    def numpy(self) -> Any:
        """A copy, as :meth:`InferenceSession.run` returns it (a :class:`Tensor` without NumPy)."""
        with self._handle as pointer:
            return _values.read_value(self._library, pointer)

    def update_inplace(self, array: Any) -> None:
        """Overwrite the elements with those of an array of the same type and shape."""
        element, shape = self._tensor_type()
        if element is _types.STRING:
            raise unsupported("strings cannot be updated in place")
        if not self._writable:
            raise invalid("this value is over a read-only buffer")
        given = _values.elements_of(array, element)
        if given.shape != shape:
            raise invalid(f"shape {list(given.shape)} given, {list(shape)} wanted")
        source = PinnedBuffer(given.data)
        with self._handle as pointer:
            target = self._library.api.pointer("GetTensorMutableData", pointer)
            ctypes.memmove(target, source.address, math.prod(shape) * element.itemsize)

    def close(self) -> None:
        """Release the value; the buffer it was over stays its owner's."""
        self._handle.close()

    def _tensor_type(self) -> tuple[_types.ElementType, tuple[int, ...]]:
        with self._handle as pointer:
            return _values.tensor_type(self._library, pointer)


class IOBinding:
    """Inputs and outputs bound once and used by many runs. Get it from :meth:`InferenceSession.io_binding`.

    Write new data into a bound input array, run, and read the bound output arrays: nothing is allocated
    or copied. Not to be shared by threads.
    """

    def __init__(
        self,
        library: Library,
        inputs: Mapping[str, _metadata.NodeArg],
        outputs: Mapping[str, _metadata.NodeArg],
    ) -> None:
        self._library = library
        self._known_inputs = inputs
        self._known_outputs = outputs
        self._results: list[OrtValue] = []
        self.inputs: dict[str, OrtValue] = {}
        self.outputs: dict[str, OrtValue | None] = {}

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Use a C-contiguous array in place as an input, now and in later runs; strings are copied now."""
        arg = self._known(self._known_inputs, name, "input")
        self.inputs[name] = OrtValue.from_elements(self._library, _values.elements_for("input", arg, array))

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Use a value as an input."""
        self._known(self._known_inputs, name, "input")
        self.inputs[name] = value

    def bind_output(self, name: str, array: Any = None) -> None:
        """Have an output written into a writable C-contiguous array of its exact type and shape.

        Without ``array``, ONNX Runtime makes a new value in each run: see :meth:`get_outputs`.
        A run raises :class:`OrtError` when the shape turns out to be another.
        """
        arg = self._known(self._known_outputs, name, "output")
        if array is None:
            self.outputs[name] = None
            return
        value = OrtValue.from_elements(self._library, _values.elements_for("output", arg, array))
        self.bind_ortvalue_output(name, value)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Have an output written into a value."""
        self._known(self._known_outputs, name, "output")
        if not value.writable:
            raise invalid(f'output "{name}": the buffer is read-only')
        self.outputs[name] = value

    def clear_binding_inputs(self) -> None:
        """Unbind all inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Unbind all outputs and forget the results."""
        self.outputs.clear()
        self._results = []

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs of the last run, in the order in which they were bound."""
        return [value.numpy() for value in self._results]

    @contextlib.contextmanager
    def lend(self) -> Iterator[tuple[ValueArray, ValueArray]]:
        """Inputs and outputs for one native call, kept from being released during it."""
        with contextlib.ExitStack() as held:
            arrays = []
            for bound in (list(self.inputs.values()), list(self.outputs.values())):
                array = held.enter_context(ValueArray(self._library, len(bound)))
                for index, value in enumerate(bound):
                    if value is not None:
                        array.lend(index, held.enter_context(value.handle))
                arrays.append(array)
            yield arrays[0], arrays[1]

    def receive(self, outputs: ValueArray) -> None:
        """Keep what a call wrote into the array of outputs."""
        self._results = [
            value if value is not None else OrtValue(self._library, outputs.take(index), None, writable=True)
            for index, value in enumerate(self.outputs.values())
        ]

    def _known(self, args: Mapping[str, _metadata.NodeArg], name: str, kind: str) -> _metadata.NodeArg:
        if name not in args:
            raise invalid(f'the model has no {kind} "{name}"; it has {quoted(args)}')
        return args[name]
