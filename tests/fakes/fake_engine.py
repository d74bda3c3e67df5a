"""An engine without processes or sessions: functions over tensors, with what a real one may refuse."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from armlet_runtime.ort import Tensor
from armlet_runtime.serve.interface import Answer, ModelInfo, Refused, Request, TensorInfo, Tensors

Function = Callable[[Tensors], Tensors]
LABELS = ("cat", "dog", "owl")


def info(name: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], version: str = "1.2.0") -> ModelInfo:
    """A model that serves."""
    return ModelInfo(
        name=name,
        version=version,
        generation=3,
        sha256="ab" * 32,
        payload_sha256="cd" * 32,
        state="ready",
        reason="",
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        providers=("XnnpackExecutionProvider", "CPUExecutionProvider"),
        skipped={"ACL": "the library was built without it"},
        provider_share={"XnnpackExecutionProvider": 0.75, "CPUExecutionProvider": 0.25},
        nodes=(("conv1", "Conv", "XnnpackExecutionProvider"), ("top", "ArgMax", "CPUExecutionProvider")),
        pid=1,
    )


def echo(dtype: str = "float", name: str = "echo") -> ModelInfo:
    """One input, which comes back."""
    return info(name, [TensorInfo("x", dtype, ("n",))], [TensorInfo("y", dtype, ("n",))])


def _echo(inputs: Tensors) -> Tensors:
    return {"y": inputs["x"]}


def _classify(inputs: Tensors) -> Tensors:
    scores = inputs["scores"].tolist()
    best = [max(range(len(row)), key=row.__getitem__) for row in scores]
    return {
        "label": Tensor([LABELS[index] for index in best], "string", (len(best),)),
        "score": Tensor.from_list([row[index] for row, index in zip(scores, best, strict=True)], "float32"),
    }


CLASSIFIER = info(
    "animals",
    [TensorInfo("scores", "float", ("batch", len(LABELS)))],
    [TensorInfo("label", "string", ("batch",)), TensorInfo("score", "float", ("batch",))],
)


@dataclass
class FakeEngine:
    """``capacity``: inferences at once, one more is refused; ``seconds``: how long each takes."""

    functions: dict[str, tuple[ModelInfo, Function]] = field(
        default_factory=lambda: {"animals": (CLASSIFIER, _classify), "echo": (echo(), _echo)}
    )
    capacity: int = 1000
    seconds: float = 0.0
    gate: threading.Event | None = None
    """Where there is one, inferences wait for it, their deadline, or their client's end."""
    alive: bool = True
    seen: list[Request] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self.active = 0
        self.cancelled = 0

    def add_echo(self, dtype: str, name: str) -> None:
        """One more model."""
        self.functions[name] = (echo(dtype, name), _echo)

    def models(self) -> Sequence[ModelInfo]:
        return [self.functions[name][0] for name in sorted(self.functions)]

    def infer(self, request: Request, cancelled: Callable[[], bool]) -> Answer:
        model, function = self._found(request.model)
        if model.state != "ready":
            raise Refused("not_ready", f"model {request.model} is {model.state}")
        with self._lock:
            if self.active >= self.capacity:
                raise Refused("overloaded", "the queue is full", 0.5)
            self.active += 1
            if len(self.seen) < 1000:
                self.seen.append(request)
        try:
            self._wait(request, cancelled)
            return Answer(model.version, function(request.inputs))
        finally:
            with self._lock:
                self.active -= 1

    def _wait(self, request: Request, cancelled: Callable[[], bool]) -> None:
        time.sleep(self.seconds)
        while self.gate is not None and not self.gate.wait(0.005):
            if time.monotonic() > request.deadline:
                raise Refused("deadline", "too late")
            if cancelled():
                self.cancelled += 1
                raise Refused("cancelled", "the client is gone")

    def load(self, model: str) -> None:
        self._become(model, "ready")

    def unload(self, model: str) -> None:
        self._become(model, "unloaded")

    def live(self) -> bool:
        return self.alive

    def ready(self) -> bool:
        return all(model.state == "ready" for model in self.models())

    def _become(self, name: str, state: str) -> None:
        model, function = self._found(name)
        self.calls.append((state, name))
        self.functions[name] = (replace(model, state=state), function)  # type: ignore[arg-type]

    def _found(self, name: str) -> tuple[ModelInfo, Function]:
        try:
            return self.functions[name]
        except KeyError:
            raise Refused("unknown_model", f"no model {name}") from None
