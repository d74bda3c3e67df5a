"""The Open Inference Protocol over HTTP: which path answers what."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

import armlet_runtime

from . import datatypes, tensors
from .endpoints import Endpoint, HttpRequest, json_response, overloaded
from .http_message import Head, HttpError, Response
from .interface import Answer, Engine, ModelInfo, RefusalKind, Refused, Request, TensorInfo
from .lanes import LanePlan
from .limits import Limits

EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository", "parameters")
STATUS: Mapping[RefusalKind, int] = {
    "unknown_model": 404,
    "not_ready": 503,
    "bad_input": 400,
    "overloaded": 503,
    "deadline": 504,
    "too_large": 413,
    # What proxies log for such: most of these clients are gone.
    "cancelled": 499,
    "internal": 500,
}
_STATES = {"loading": "LOADING", "ready": "READY", "failed": "UNAVAILABLE", "unloaded": "UNAVAILABLE"}
_CONTROL_BYTES = 64 << 10
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MODEL = ("v2", "models", None)
VERSION = (*MODEL, "versions", None)


@dataclass(frozen=True)
class Route:
    """``path``: None stands for a name."""

    method: str
    path: tuple[str | None, ...]
    endpoint: Endpoint


def lanes(limits: Limits) -> dict[str, LanePlan]:
    """Inferences, loading, and all that is quick do not wait for each other."""
    return {
        "infer": LanePlan(limits.inferences, limits.waiting),
        "control": LanePlan(1, 2),
        "quick": LanePlan(1, limits.connections),
    }


class Routes:
    """Answers from an engine; ``metrics`` gives the text of /metrics, ``count`` hears of every answer."""

    def __init__(
        self, engine: Engine, limits: Limits, metrics: Callable[[], str], count: Callable[[str, int], None]
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._metrics = metrics
        self.answered = count
        index, load = ("v2", "repository", "index"), ("v2", "repository", "models", None)
        quick, control = _CONTROL_BYTES, _CONTROL_BYTES
        table: Sequence[tuple[str, tuple[str | None, ...], str, str, int, Callable[[HttpRequest], Response]]] = (
            ("GET", ("v2",), "server", "quick", quick, self._server),
            ("GET", ("v2", "health", "live"), "live", "quick", quick, self._live),
            ("GET", ("v2", "health", "ready"), "ready", "quick", quick, self._ready),
            ("GET", ("metrics",), "metrics", "quick", quick, self._metrics_text),
            *(
                row
                for model in (MODEL, VERSION)
                for row in (
                    ("GET", model, "model", "quick", quick, self._model),
                    ("GET", (*model, "ready"), "model_ready", "quick", quick, self._model_ready),
                    ("GET", (*model, "config"), "model_config", "quick", quick, self._model_config),
                    ("POST", (*model, "infer"), "infer", "infer", limits.body_bytes, self._infer),
                )
            ),
            ("POST", index, "index", "quick", quick, self._index),
            ("POST", (*load, "load"), "load", "control", control, self._load),
            ("POST", (*load, "unload"), "unload", "control", control, self._unload),
        )
        self.table = tuple(
            Route(method, path, Endpoint(name, lane, most, handle)) for method, path, name, lane, most, handle in table
        )

    def find(self, head: Head) -> tuple[Endpoint, tuple[str, ...]]:
        """See :class:`~.endpoints.Router`."""
        if "origin" in head.headers:
            # A browser says so of a page's requests, and a page from anywhere can reach loopback.
            raise HttpError(403, "web pages are not served")
        found = [route for route in self.table if _matches(route.path, head.path)]
        if not found:
            raise HttpError(404, "there is nothing at this path; the service is below /v2 and at /metrics")
        method = "GET" if head.method == "HEAD" else head.method
        for route in found:
            if route.method == method:
                return route.endpoint, tuple(text for blank, text in zip(route.path, head.path) if blank is None)
        allowed = [name for route in found for name in (["GET", "HEAD"] if route.method == "GET" else [route.method])]
        raise HttpError(405, f"use {' or '.join(allowed)} here", (("Allow", ", ".join(allowed)),))

    def _server(self, _: HttpRequest) -> Response:
        return json_response({"name": "armlet", "version": armlet_runtime.__version__, "extensions": list(EXTENSIONS)})

    def _live(self, _: HttpRequest) -> Response:
        live = self._engine.live()
        return json_response({"live": live}, 200 if live else 503)

    def _ready(self, _: HttpRequest) -> Response:
        ready = self._engine.ready()
        return json_response({"ready": ready}, 200 if ready else 503)

    def _metrics_text(self, _: HttpRequest) -> Response:
        return Response(200, (self._metrics().encode("utf-8"),), METRICS_TYPE)

    def _model(self, request: HttpRequest) -> Response:
        model = self._named(request)
        return json_response(
            {
                "name": model.name,
                "versions": [model.version] if model.version else [],
                "platform": "onnxruntime_onnx",
                "inputs": [_metadata(info) for info in model.inputs],
                "outputs": [_metadata(info) for info in model.outputs],
                "armlet": {
                    "state": model.state,
                    "reason": model.reason,
                    "generation": model.generation,
                    "sha256": model.sha256,
                    "payload_sha256": model.payload_sha256,
                    "providers": list(model.providers),
                    "skipped": dict(model.skipped),
                    "provider_share": dict(model.provider_share),
                    "nodes": [dict(zip(("node", "operator", "provider"), node)) for node in model.nodes],
                },
            }
        )

    def _model_ready(self, request: HttpRequest) -> Response:
        model = self._named(request)
        ready = model.state == "ready"
        return json_response({"name": model.name, "ready": ready}, 200 if ready else 503)

    def _model_config(self, request: HttpRequest) -> Response:
        model = self._named(request)
        return json_response(
            {
                "name": model.name,
                "platform": "onnxruntime_onnx",
                "backend": "onnxruntime",
                "version_policy": {"latest": {"num_versions": 1}},
                "max_batch_size": 0,
                "input": [_configured(info) for info in model.inputs],
                "output": [_configured(info) for info in model.outputs],
            }
        )

    def _infer(self, request: HttpRequest) -> Response:
        if request.cancelled():
            raise HttpError(STATUS["cancelled"], "the client is gone")
        if request.head.headers.get("content-encoding", "identity").lower() != "identity":
            raise HttpError(415, "compressed bodies are not taken")
        asked = tensors.read_request(
            request.body, request.head.headers.get(tensors.HEADER_LENGTH.lower()), self._limits
        )
        model = self._named(request)
        if model.inputs:
            tensors.check(asked, model)
        seconds = min(asked.timeout or self._limits.infer_seconds, self._limits.infer_seconds)
        version = request.parameters[1] if len(request.parameters) > 1 else None
        # From when it came: what it waited for its turn is part of what its client waits.
        deadline = request.received + seconds
        if time.monotonic() > deadline:
            raise HttpError(STATUS["deadline"], "its deadline passed while it waited for its turn")
        job = Request(model.name, version, asked.inputs, asked.outputs, deadline, asked.id)
        answer: Answer = self._asked(lambda: self._engine.infer(job, request.cancelled))
        return tensors.write_response(asked, model.name, answer)

    def _index(self, request: HttpRequest) -> Response:
        only_ready = _options(request, self._limits).get("ready", False)
        if not isinstance(only_ready, bool):
            raise HttpError(400, "ready is neither true nor false")
        return json_response(
            [
                {"name": model.name, "version": model.version, "state": _STATES[model.state], "reason": model.reason}
                for model in self._engine.models()
                if model.state == "ready" or not only_ready
            ]
        )

    def _load(self, request: HttpRequest) -> Response:
        if _options(request, self._limits).get("parameters"):
            raise HttpError(400, "a model is loaded as its payload is; parameters are not taken")
        self._asked(lambda: self._engine.load(request.parameters[0]))
        return json_response({})

    def _unload(self, request: HttpRequest) -> Response:
        _options(request, self._limits)
        self._asked(lambda: self._engine.unload(request.parameters[0]))
        return json_response({})

    def _named(self, request: HttpRequest) -> ModelInfo:
        name, version = (*request.parameters, None)[:2]
        for model in self._engine.models():
            if model.name == name:
                if version not in (None, model.version):
                    raise HttpError(404, f'model "{name}" has no version "{version}" here, but "{model.version}"')
                return model
        raise HttpError(404, f'no model "{name}" here')

    def _asked(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Refused as refused:
            status = STATUS[refused.kind]
            if status == 503:
                wait = self._limits.retry_after if refused.retry_after is None else refused.retry_after
                raise overloaded(refused.message, wait) from None
            raise HttpError(status, refused.message) from None


def _matches(path: Sequence[str | None], asked: Sequence[str]) -> bool:
    return len(path) == len(asked) and all(blank in (None, text) for blank, text in zip(path, asked))


def _options(request: HttpRequest, limits: Limits) -> Mapping[str, Any]:
    """Of a body that may be empty."""
    content = datatypes.parse(request.body, limits) if len(request.body) else {}
    if not isinstance(content, dict):
        raise HttpError(400, "the body is no object")
    return content


def _metadata(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "datatype": datatypes.protocol_name(info.dtype), "shape": _sizes(info)}


def _configured(info: TensorInfo) -> dict[str, Any]:
    name = datatypes.protocol_name(info.dtype)
    return {"name": info.name, "data_type": f"TYPE_{'STRING' if name == 'BYTES' else name}", "dims": _sizes(info)}


def _sizes(info: TensorInfo) -> list[int]:
    return [size if isinstance(size, int) else -1 for size in info.shape]
