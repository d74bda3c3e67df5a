"""Inference beside a sensor's loop, in one process: neither waits for the other, and buffers are made only once.

with SensorLoop(session, on_result=act, capacity=2, policy="drop-oldest") as loop:
    while True:
        frame = loop.take()
        frame.set("image", camera.read())
        loop.give(frame)
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import Any, Callable, Mapping, Sequence

from armlet_runtime import ort
from armlet_runtime.serve.queue import BoundedQueue, Closed, Full, Policy


class Frame:
    """One set of buffers: filled by the sensor, computed on in place, then used again for another reading."""

    def __init__(self, session: ort.InferenceSession, shapes: Mapping[str, Sequence[int]]) -> None:
        self.inputs: dict[str, ort.Tensor] = {}
        """What :meth:`set` writes into; ``inputs[name].data`` is the bytes, flat, for who writes in place."""
        self.outputs: dict[str, Any] = {}
        """What came of them, valid while ``on_result`` runs."""
        self.error: ort.OrtError | None = None
        """Why there are no outputs."""
        self.given_at = 0.0
        """When the sensor gave it (:func:`time.monotonic`)."""
        self._session = session
        self._binding = session.io_binding()
        self._loose: list[str] = []
        for arg in session.get_inputs():
            self.inputs[arg.name] = _buffer(arg, shapes.get(arg.name, arg.shape))
            self._binding.bind_cpu_input(arg.name, self.inputs[arg.name])
        for arg in session.get_outputs():
            if all(isinstance(size, int) for size in arg.shape):
                self.outputs[arg.name] = _buffer(arg, arg.shape)
                self._binding.bind_output(arg.name, self.outputs[arg.name])
            else:
                self._loose.append(arg.name)
                self._binding.bind_output(arg.name)

    def set(self, name: str, value: Any) -> None:
        """Copy a reading into an input.

        ``value``: nested lists of the input's shape, a NumPy array of its type and shape, an :class:`ort.Tensor` of
        both, or raw elements in native byte order (``bytes`` or another flat buffer of bytes) of its size. Raises
        :class:`KeyError` for an unknown name, :class:`ValueError` where the value does not fit.
        """
        tensor = self.inputs[name]
        try:
            given = ort.Tensor.from_list(value, tensor.dtype) if isinstance(value, (list, tuple)) else value
        except ort.OrtError as error:
            raise ValueError(f'"{name}": {error}') from error
        dtype, shape = getattr(given, "dtype", None), getattr(given, "shape", None)
        if dtype is not None and (str(dtype), tuple(shape or ())) != (tensor.dtype, tensor.shape):
            takes = f"{tensor.dtype} {list(tensor.shape)}"
            raise ValueError(f'"{name}" takes {takes}; {dtype} {list(shape or ())} given')
        raw = memoryview(given.data if isinstance(given, ort.Tensor) else given)
        if dtype is None and (raw.format not in ("B", "b", "c") or raw.ndim != 1):
            raise ValueError(f'"{name}": a buffer that is no array must be of bytes, flat; use .cast("B")')
        if raw.nbytes != tensor.data.nbytes:
            raise ValueError(f'"{name}" takes {tensor.data.nbytes} bytes; {raw.nbytes} given')
        if raw.nbytes:
            tensor.data[:] = raw.cast("B") if raw.c_contiguous else raw.tobytes()

    def compute(self) -> None:
        """Run the model on the inputs; a failure is left in ``error``."""
        try:
            self._session.run_with_iobinding(self._binding)
        except ort.OrtError as error:
            self.error = error
            return
        self.error = None
        if self._loose:
            values = dict(zip([*self.outputs, *self._loose], self._binding.get_outputs()))
            self.outputs.update({name: values[name].numpy() for name in self._loose})


class SensorLoop:
    """A bounded queue of buffers between one sensor's thread and one that computes.

    ``on_result`` gets every frame that was computed, in order, in the computing thread: what it does there delays the
    next one and never the sensor. ``shapes`` fixes free dimensions of inputs. Where the queue is full, ``drop-oldest``
    forgets the oldest reading, ``drop-newest`` the one that is given, and ``block`` makes the sensor wait for at most
    ``patience`` seconds. Raises :class:`ValueError` for an input that has no fixed shape.
    """

    def __init__(
        self,
        session: ort.InferenceSession,
        on_result: Callable[[Frame], None],
        *,
        shapes: Mapping[str, Sequence[int]] | None = None,
        capacity: int = 2,
        policy: Policy = "drop-oldest",
        patience: float = 0.0,
    ) -> None:
        self._queue: BoundedQueue[Frame] = BoundedQueue(capacity, policy)
        self._on_result = on_result
        self._patience = patience
        # One is with the sensor, and one is being computed on.
        self._free = deque(Frame(session, shapes or {}) for _ in range(capacity + 2))
        self._thread = threading.Thread(target=self._run, name="inference", daemon=True)
        self.computed = 0
        """Frames that ``on_result`` got."""
        self.fault: BaseException | None = None
        """What ``on_result`` raised; nothing is computed from then on."""

    @property
    def dropped(self) -> int:
        """Readings that were never computed on."""
        return self._queue.dropped

    def take(self) -> Frame:
        """Buffers to fill; never waits. Raises :class:`RuntimeError` for a second set before the first was given."""
        try:
            return self._free.popleft()
        except IndexError:
            raise RuntimeError("give the frame that was taken before taking another") from None

    def give(self, frame: Frame) -> bool:
        """Hand filled buffers over; whether they were taken. They belong to the loop from here on.

        Raises :class:`RuntimeError` where the loop has ended.
        """
        frame.given_at = time.monotonic()
        try:
            evicted = self._queue.put(frame, frame.given_at + self._patience)
        except Full:
            self._free.append(frame)
            return False
        except Closed:
            self._free.append(frame)
            raise RuntimeError("the loop has ended") from self.fault
        if evicted is not None:
            self._free.append(evicted)
        return True

    def close(self) -> None:
        """Compute what has been given, and end. Raises what ``on_result`` raised."""
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join()
        if self.fault is not None:
            raise self.fault

    def __enter__(self) -> SensorLoop:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.close()
        except BaseException:
            # What went wrong inside the block is the better thing to hear of.
            if kind is None:
                raise

    def _run(self) -> None:
        while True:
            try:
                frame = self._queue.get()
            except Closed:
                return
            frame.compute()
            try:
                self._on_result(frame)
            except BaseException as error:
                self.fault = error
                self._queue.close()
                return
            self.computed += 1
            self._free.append(frame)


def _buffer(arg: ort.NodeArg, shape: Sequence[Any]) -> ort.Tensor:
    if not all(isinstance(size, int) for size in shape):
        raise ValueError(f'"{arg.name}" has free dimensions, {list(shape)}: fix them with shapes=')
    dtype = arg.type[len("tensor(") : -1]
    empty = ort.Tensor(b"", {"float": "float32", "double": "float64"}.get(dtype, dtype), (0,))
    return ort.Tensor(bytearray(math.prod(shape) * empty.element.itemsize), empty.dtype, shape)
