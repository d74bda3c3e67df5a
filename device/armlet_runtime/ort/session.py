"""Sessions: a model loaded into ONNX Runtime, ready to run."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Mapping, Sequence, Union

from . import _metadata, _providers
from ._binding import IOBinding
from ._buffers import PinnedBuffer
from ._errors import invalid, quoted
from ._handles import Handle
from ._library import Library, LibraryLike, get_available_providers, load_library
from ._metadata import ModelMetadata, NodeArg
from ._providers import ProviderLike
from ._values import ValueArray, elements_for, read_value
from .options import RunOptions, SessionOptions

# A file's path, or the model itself in any buffer (bytes, mmap, …).
ModelLike = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, Any]


class InferenceSession:
    """A loaded model, with the official package's methods.

    ``path_or_bytes`` is a path, or the model in a buffer. ``providers`` is a list of names or (name,
    options), by priority: "XNNPACK", "ACL", "CPU", in any case, or the official names, and whatever else the
    library reports. The CPU provider is always last. A provider that the library was built without is an error,
    not a silent fallback.
    ``library`` is a path or a :class:`Library`, see :func:`load_library`.

    With XNNPACK, and unless ``sess_options`` says otherwise, ONNX Runtime's own pool gets one thread that
    does not spin, and XNNPACK's gets ``intra_op_num_threads`` from its provider options, or else from
    ``sess_options``, or else one per core that this process may use. Where ACL comes first, which works with
    ONNX Runtime's pool, that pool is left as it is, and XNNPACK's gets one.

    Threads may share a session (with XNNPACK and ACL, ONNX Runtime makes them take turns). It is released by
    :meth:`close`, at the end of a ``with`` block, or when collected; runs that are under way finish first.

    Where the model's bytes are used in place (``session.use_ort_model_bytes_directly``), the session keeps
    their buffer: pass an ``mmap`` and the model is never copied.

    Raises :class:`OrtError` with ONNX Runtime's code and message, or :class:`LibraryError`.
    """

    def __init__(
        self,
        path_or_bytes: ModelLike,
        sess_options: SessionOptions | None = None,
        providers: Sequence[ProviderLike] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        library: LibraryLike = None,
    ) -> None:
        options = sess_options if sess_options is not None else SessionOptions()
        self._library = load_library(library)
        reported = get_available_providers(self._library)
        choices = _providers.choose(providers, provider_options, reported)
        self._providers = [choice.provider.name for choice in choices]
        pointer, keep = _create(self._library, path_or_bytes, options, choices)
        self._handle = Handle(
            self,
            "session",
            pointer,
            self._library.api.ReleaseSession,
            parent=self._library.environment,
            keep=keep,
        )
        with self._handle as session:
            self._inputs = _metadata.node_args(self._library, session, "Input")
            self._outputs = _metadata.node_args(self._library, session, "Output")
            self._initializers = _metadata.node_args(self._library, session, "OverridableInitializer")
        self._feedable = {arg.name: arg for arg in [*self._inputs, *self._initializers]}

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that every run needs, in the model's order."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The initializers that a run may replace, in the model's order."""
        return list(self._initializers)

    def get_modelmeta(self) -> ModelMetadata:
        """What the exporter wrote into the model."""
        with self._handle as session:
            return _metadata.model_metadata(self._library, session)

    def get_providers(self) -> list[str]:
        """Official names of the providers of this session, by priority.

        Which of them runs what is in the profile: see :func:`provider_of_each_node`.
        """
        return list(self._providers)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Compute the named outputs, or all of them for None, from ``{input name: value}``.

        A value is a NumPy array, a :class:`Tensor`, any buffer with shape and format (``memoryview``,
        ``array.array``), or nested lists; its type must be the model's, nothing is converted. bfloat16 and
        float8 go in and out as their bits, in uint16 and uint8. C-contiguous arrays are used in place,
        others are copied.

        Results are NumPy arrays (object arrays of ``str`` for strings), or :class:`Tensor` without NumPy;
        a list for a sequence of tensors; None for an optional output that has no value. Raises
        :class:`OrtError` for a wrong name, type, rank or size, and for whatever fails in the model.
        """
        names = self._chosen_outputs(output_names)
        self._check_feed(input_feed)
        with ValueArray(self._library, len(input_feed)) as inputs:
            for index, (name, value) in enumerate(input_feed.items()):
                inputs.set(index, elements_for("input", self._feedable[name], value))
            with ValueArray(self._library, len(names)) as outputs:
                self._call(list(input_feed), inputs, names, outputs, run_options)
                return [read_value(self._library, pointer or 0) for pointer in outputs.pointers]

    def io_binding(self) -> IOBinding:
        """An empty set of inputs and outputs that stay in place from run to run."""
        return IOBinding(self._library, self._feedable, {arg.name: arg for arg in self._outputs})

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on what is bound; the results are then in ``iobinding``, which serves one run at a time."""
        self._check_feed(iobinding.inputs)
        names = list(iobinding.outputs)
        if not names:
            raise invalid("no output is bound")
        with iobinding.lend() as (inputs, outputs):
            self._call(list(iobinding.inputs), inputs, self._chosen_outputs(names), outputs, run_options)
            iobinding.receive(outputs)

    def end_profiling(self) -> str:
        """Finish the profile and return its path; empty when profiling was not enabled."""
        with self._handle as session:
            return self._library.take_string("SessionEndProfiling", session, self._library.allocator)

    def close(self) -> None:
        """Release the model's memory and threads. Later calls raise :class:`OrtError`."""
        self._handle.close()

    def __enter__(self) -> InferenceSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chosen_outputs(self, output_names: Sequence[str] | None) -> list[str]:
        known = [arg.name for arg in self._outputs]
        unknown = [name for name in output_names or () if name not in known]
        if unknown:
            raise invalid(f"the model has no output {quoted(unknown)}; it has {quoted(known)}")
        return list(output_names or known)

    def _check_feed(self, feed: Mapping[str, Any]) -> None:
        unknown = [name for name in feed if name not in self._feedable]
        if unknown:
            raise invalid(f"the model has no input {quoted(unknown)}; it has {quoted(self._feedable)}")
        missing = [arg.name for arg in self._inputs if arg.name not in feed]
        if missing:
            raise invalid(f"no value for input {quoted(missing)}")

    def _call(
        self,
        input_names: list[str],
        inputs: ValueArray,
        output_names: list[str],
        outputs: ValueArray,
        run_options: RunOptions | None,
    ) -> None:
        with contextlib.ExitStack() as held:
            session = held.enter_context(self._handle)
            options = None if run_options is None else held.enter_context(run_options.native(self._library))
            self._library.api.Run(
                session,
                options,
                _c_strings(input_names),
                inputs.pointers,
                len(input_names),
                _c_strings(output_names),
                len(output_names),
                outputs.pointers,
            )


def _create(
    library: Library, model: ModelLike, options: SessionOptions, choices: Sequence[_providers.Choice]
) -> tuple[int, object]:
    """A new ``OrtSession``, and what must stay alive as long as it does."""
    api = library.api
    native = api.pointer("CreateSessionOptions")
    try:
        options.apply(library, native)
        _providers.configure(library, native, options, choices)
        with library.environment as environment:
            if isinstance(model, (str, os.PathLike)):
                path = os.fsencode(model)
                if b"\0" in path:
                    raise invalid("a path holds no NUL character")  # C would open what is before it.
                return api.pointer("CreateSession", environment, path, native), None
            try:
                pin = PinnedBuffer(model)
            except (TypeError, BufferError) as error:
                raise invalid(f"a model is a path or a buffer, not {type(model).__name__}: {error}") from error
            session = api.pointer("CreateSessionFromArray", environment, pin.address, pin.nbytes, native)
            return session, pin if options.uses_model_bytes_in_place else None
    finally:
        api.ReleaseSessionOptions(native)


def _c_strings(texts: list[str]) -> Any:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
