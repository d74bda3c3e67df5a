"""A request on its way through a queue and a worker."""

from __future__ import annotations

import itertools
import threading
from typing import Mapping

from armlet_runtime import ort
from armlet_runtime.serve.interface import Answer, Refused, Request, TensorInfo

_numbers = itertools.count(1)


class Call:
    """Whoever ends it first has ended it: a worker's answer, a deadline, a caller who has gone."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.number = next(_numbers)
        """Never the same for two in one process."""
        self.payload = ""
        """Which one computes it; empty until one does."""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._answer: Answer | None = None
        self._refusal: Refused | None = None

    @property
    def ended(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._ended.is_set()

    @property
    def answered(self) -> bool:
        """Whether it ended with an answer."""
        return self._answer is not None

    def finish(self, answer: Answer) -> None:
        """Answer it, unless it has ended."""
        self._end(answer, None)

    def refuse(self, refusal: Refused) -> None:
        """Refuse it, unless it has ended."""
        self._end(None, refusal)

    def wait(self, seconds: float) -> bool:
        """Whether it ends within that time."""
        return self._ended.wait(seconds)

    def result(self) -> Answer:
        """The answer of a call that has ended. Raises :class:`Refused`."""
        if self._refusal is not None:
            raise self._refusal
        assert self._answer is not None
        return self._answer

    def _end(self, answer: Answer | None, refusal: Refused | None) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._answer, self._refusal = answer, refusal
                self._ended.set()


def demand_fitting(
    request: Request, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...], most: int
) -> None:
    """Raises :class:`Refused` for names, types, shapes and sizes that a model with these inputs does not take."""
    declared: Mapping[str, TensorInfo] = {info.name: info for info in inputs}
    for name, tensor in request.inputs.items():
        if name not in declared:
            raise Refused("bad_input", f'{request.model} has no input "{name}"; it has {_listed(inputs)}')
        _demand_like(tensor, declared[name])
    missing = [name for name in declared if name not in request.inputs]
    if missing:
        raise Refused("bad_input", f'{request.model} was given no input "{missing[0]}"')
    known = [info.name for info in outputs]
    for name in request.outputs or ():
        if name not in known:
            raise Refused("bad_input", f'{request.model} has no output "{name}"; it has {_listed(outputs)}')
    size = sum(_size(tensor) for tensor in request.inputs.values())
    if size > most:
        raise Refused("too_large", f"the inputs have {size} bytes, more than {most}")


def _demand_like(tensor: ort.Tensor, info: TensorInfo) -> None:
    if tensor.element.name != info.dtype:
        raise Refused("bad_input", f'input "{info.name}" is {tensor.element.name}, and {info.dtype} is wanted')
    fits = len(tensor.shape) == len(info.shape) and all(
        not isinstance(wanted, int) or wanted == size for size, wanted in zip(tensor.shape, info.shape)
    )
    if not fits:
        wanted = ", ".join(str(size) or "?" for size in info.shape)
        raise Refused("bad_input", f'input "{info.name}" has shape {list(tensor.shape)}, and [{wanted}] is wanted')


def _size(tensor: ort.Tensor) -> int:
    if tensor.dtype == "string":
        return sum(4 + len(text) for text in tensor.data)
    return memoryview(tensor.data).nbytes


def _listed(infos: tuple[TensorInfo, ...]) -> str:
    return ", ".join(f'"{info.name}"' for info in infos) or "none"
