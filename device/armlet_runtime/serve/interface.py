"""What the engine (processes, sessions, queues) and the front end (HTTP, metrics) know of each other.

Times are seconds of :func:`time.monotonic` unless a field says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Literal, Mapping, Protocol, Sequence

from armlet_runtime import ort

RefusalKind = Literal[
    "unknown_model", "not_ready", "bad_input", "overloaded", "deadline", "too_large", "cancelled", "internal"
]
REFUSAL_KINDS: tuple[RefusalKind, ...] = (
    "unknown_model",
    "not_ready",
    "bad_input",
    "overloaded",
    "deadline",
    "too_large",
    "cancelled",
    "internal",
)
State = Literal["loading", "ready", "failed", "unloaded"]
Tensors = Mapping[str, ort.Tensor]


class Refused(Exception):
    """A request that gets no answer; the text says why, for the one who asked.

    ``retry_after``: seconds after which it is worth another try; None where it never is or nobody knows.
    """

    def __init__(self, kind: RefusalKind, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind
        self.message = message
        self.retry_after = retry_after


@dataclass(frozen=True)
class TensorInfo:
    """An input or output: ``dtype`` as ONNX names it (``float``, ``int64``: ``Tensor.element.name``).

    A dimension of ``shape`` is a number, or the name of a free one (empty: it has none).
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class ModelInfo:
    """One model as it is served now."""

    name: str
    version: str
    generation: int
    sha256: str
    """Of the model file; empty while nothing of the payload could be read."""
    payload_sha256: str
    """Of ``payload.json``, and so of everything in the payload; empty likewise."""
    state: State
    reason: str
    """Why it is not ready, or why another payload does not serve in place of the one that does; else empty."""
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    providers: tuple[str, ...] = ()
    """The chain in use, by ONNX Runtime's names."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Provider that was wanted -> why it is not in the chain."""
    provider_share: Mapping[str, float] = field(default_factory=dict)
    """Provider -> share of the nodes that it ran at warm-up; they add up to 1. Empty: no profile could be written."""
    nodes: tuple[tuple[str, str, str], ...] = ()
    """(node, operator, provider) in the order in which they ran, layout conversions included."""
    pid: int | None = None
    since: float = 0.0
    """When it came into this state."""


@dataclass
class Request:
    """One inference."""

    model: str
    version: str | None
    """None: whichever serves."""
    inputs: Tensors
    outputs: Sequence[str] | None
    """Names, in the order of the answer; None: all."""
    deadline: float
    id: str = ""


@dataclass(frozen=True)
class Answer:
    """What came of a request."""

    version: str
    """Of the payload that computed it: another may have taken over since the request came."""
    outputs: Tensors


class Engine(Protocol):
    """What answers requests."""

    def models(self) -> Sequence[ModelInfo]:
        """Every model of the configuration, sorted by name, whatever its state."""

    def infer(self, request: Request, cancelled: Callable[[], bool]) -> Answer:
        """Block until it is answered, at the latest until its deadline; ``cancelled`` is asked now and then.

        Raises :class:`Refused`.
        """

    def load(self, model: str) -> None:
        """Serve ``model``, as its payload is now; blocks until it is ready. Raises :class:`Refused`.

        Where one serves already the new one is tried first, and the old one stays if that fails. Where the payload
        that serves is still the best, and another was refused, that is an error too.
        """

    def unload(self, model: str) -> None:
        """Answer what has been accepted and end the worker. Raises :class:`Refused` for an unknown model."""

    def live(self) -> bool:
        """Whether the engine itself makes progress."""

    def ready(self) -> bool:
        """Whether every model that is to be served is."""


class Telemetry(Protocol):
    """What the engine and the front end report into; each call is quick, raises nothing, and takes any thread."""

    def observed(self, model: str, seconds: float, outcome: str) -> None:
        """A request ended: ``outcome`` is "ok" or the kind of refusal."""

    def queue_depth(self, model: str, depth: int) -> None:
        """Requests that wait for the model now."""

    def inputs(self, model: str, tensors: Tensors) -> None:
        """What a request gave; the buffers may be reused once the call is over."""

    def outputs(self, model: str, tensors: Tensors) -> None:
        """What a request got; the buffers may be reused once the call is over."""

    def worker(self, model: str, event: str) -> None:
        """Of a worker: "started", "ready", "crashed", "stalled", "failed", "swapped", "stopped"."""


class NoTelemetry:
    """Reports that nobody wants."""

    def observed(self, model: str, seconds: float, outcome: str) -> None: ...

    def queue_depth(self, model: str, depth: int) -> None: ...

    def inputs(self, model: str, tensors: Tensors) -> None: ...

    def outputs(self, model: str, tensors: Tensors) -> None: ...

    def worker(self, model: str, event: str) -> None: ...
