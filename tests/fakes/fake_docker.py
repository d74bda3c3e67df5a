"""A stand-in for the Docker SDK's low-level client: keeps containers and images in dicts, fails where told to."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from docker.errors import APIError, ImageNotFound, NotFound
from requests import Response


def api_error(message: str, status: int = 500) -> APIError:
    response = Response()
    response.status_code = status
    return APIError(message, response=response, explanation=message)


def frame(stream: int, data: bytes) -> bytes:
    """One piece of an exec's multiplexed output."""
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


class FakeResponse:
    """What ``requests`` returns for a streamed post."""

    def __init__(self, body: bytes, status_code: int = 200) -> None:
        self.status_code = status_code
        self.text = body.decode(errors="replace")
        self.raw = io.BytesIO(body)

    def __enter__(self) -> FakeResponse:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def iter_lines(self) -> Iterator[bytes]:
        yield from self.raw.read().splitlines()


class FakeDocker:
    """One engine. ``fail`` maps a method's name to the exception that it raises."""

    base_url = "http+docker://fake"
    api_version = "1.41"

    def __init__(self, info: Mapping[str, Any] | None = None) -> None:
        self._info = dict(info or {})
        self.containers_made: dict[str, dict[str, Any]] = {}
        self.images: dict[str, str] = {}
        self.execs: list[dict[str, Any]] = []
        self.exec_output = b""
        self.exec_code: int | None = 0
        self.posted: list[tuple[str, Mapping[str, str]]] = []
        self.answer: Callable[[str, Mapping[str, str]], FakeResponse] | None = None
        self.fail: dict[str, BaseException] = {}
        self.pull_messages: tuple[dict[str, str], ...] = ({"status": "Pulling"},)

    def _may_fail(self, method: str) -> None:
        if method in self.fail:
            raise self.fail[method]

    def close(self) -> None:
        return None

    def info(self) -> dict[str, Any]:
        self._may_fail("info")
        return self._info

    def inspect_image(self, tag: str) -> dict[str, Any]:
        if tag not in self.images:
            raise ImageNotFound(f"No such image: {tag}")
        return {"Id": self.images[tag]}

    def pull(self, reference: str, *, stream: bool, decode: bool) -> Iterator[dict[str, str]]:
        self._may_fail("pull")
        yield from self.pull_messages
        if not any("error" in message for message in self.pull_messages):
            self.images[reference] = "sha256:pulled"

    def create_host_config(self, **settings: Any) -> dict[str, Any]:
        return settings

    def create_container(self, image: str, *, name: str, **settings: Any) -> dict[str, str]:
        if name in self.containers_made:
            raise api_error(f"name {name} is taken", 409)
        self.containers_made[name] = {"image": image, "running": False, **settings}
        self._may_fail("create_container")
        return {"Id": name}

    def start(self, name: str) -> None:
        self._may_fail("start")
        self.containers_made[name]["running"] = True

    def remove_container(self, name: str, *, force: bool, v: bool) -> None:
        assert force
        self._may_fail("remove_container")
        if name not in self.containers_made:
            raise NotFound(f"No such container: {name}")
        del self.containers_made[name]

    def containers(self, *, all: bool, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        key, _, value = filters["label"].partition("=")
        return [
            {"Names": [f"/{name}"], "Labels": made["labels"]}
            for name, made in self.containers_made.items()
            if made["labels"].get(key) == value
        ]

    def inspect_container(self, name: str) -> dict[str, Any]:
        if name not in self.containers_made:
            raise NotFound(f"No such container: {name}")
        return {"State": {"Running": self.containers_made[name]["running"]}}

    def exec_create(self, container: str, argv: list[str], **settings: Any) -> dict[str, str]:
        self.execs.append({"container": container, "argv": argv, **settings})
        return {"Id": str(len(self.execs))}

    def exec_inspect(self, _exec: str) -> dict[str, Any]:
        return {"ExitCode": self.exec_code}

    def post(self, url: str, **settings: Any) -> FakeResponse:
        path = url.removeprefix(f"{self.base_url}/v{self.api_version}")
        parameters = settings.get("params", {})
        self.posted.append((path, parameters))
        if self.answer is not None:
            return self.answer(path, parameters)
        if path.startswith("/exec/"):
            self._may_fail("exec_start")
            return FakeResponse(self.exec_output)
        tag = parameters.get("t") or f"{parameters['repo']}:{parameters['tag']}"
        self.images[tag] = "sha256:made"
        return FakeResponse(json.dumps({"stream": "Step 1/1 : FROM scratch\n"}).encode())
