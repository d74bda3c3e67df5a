"""Talking to the container engine through the Docker SDK, which is imported only when an engine is needed."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from requests.exceptions import RequestException

from armlet.engine.container import ContainerRunner, Lines, Mount, bind, client_program, interrupts_wait
from armlet.engine.context import write_context
from armlet.engine.elsewhere import Tunnel, demand_shared
from armlet.engine.failures import explained, is_full, malformed_host, refused, unreachable
from armlet.engine.owner import is_stale, labels_of_this_process
from armlet.engine.space import require_space
from armlet.engine.surroundings import BASE_ENVIRONMENT, Surroundings
from armlet.errors import ArmletError, Kind
from armlet.events import Line, Sink, silent

if TYPE_CHECKING:
    from docker import APIClient

LABEL = "armlet"
_LOCAL = "unix:///var/run/docker.sock"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONNECT_SECONDS = 20
_ANSWER_SECONDS = 600


class Engine:
    """A container engine that answered. Make one with ``connect``."""

    def __init__(self, api: APIClient, tunnel: Tunnel | None = None, surroundings: Surroundings | None = None) -> None:
        self._api = api
        self._tunnel = tunnel
        self._surroundings = surroundings or Surroundings()
        weakref.finalize(self, api.close)
        self._info: dict[str, Any] = api.info()

    @classmethod
    def connect(cls, surroundings: Surroundings | None = None) -> Engine:
        """Reaches the engine that ``DOCKER_HOST`` names, else the local one.

        Raises:
            ArmletError: (HOST) it is not installed, not running, not permitted, or the address is wrong.
        """
        try:
            from docker import from_env
            from docker.errors import DockerException
        except ImportError as error:
            raise ArmletError(
                "the Python package docker is not installed", hint="run through ./inv", kind=Kind.HOST
            ) from error
        host = os.environ.get("DOCKER_HOST") or None
        if host is not None and _is_malformed(host):
            raise malformed_host(host)
        try:
            tunnel = Tunnel(host) if host is not None and host.startswith("ssh:") else None
            # Not the SDK's own ssh: it hangs up while a command's output is still on its way.
            place = tunnel.url if tunnel else host or _LOCAL
            _knock(place)
            api = from_env(timeout=_CONNECT_SECONDS, environment={**os.environ, "DOCKER_HOST": place}).api
            api.timeout = _ANSWER_SECONDS
            return cls(api, tunnel, surroundings)
        except (DockerException, OSError, ValueError) as error:
            raise unreachable(error, host) from error

    @property
    def user(self) -> str:
        """``uid:gid`` under which commands run, so that what they write belongs to the caller on the host."""
        if (uid := self._surroundings.uid) is not None:
            return f"{uid}:{uid}"
        # A rootless engine maps the caller to the container's root; any other number would be a stranger.
        return "0:0" if self._has("rootless") else f"{os.getuid()}:{os.getgid()}"

    def image_exists(self, tag: str) -> bool:
        return self.image_id(tag) is not None

    def image_id(self, tag: str) -> str | None:
        """The engine's own id (``sha256:…``) of an image; None when it has no such image."""
        from docker.errors import ImageNotFound

        with explained(f"looking for image {tag}"):
            try:
                return str(self._api.inspect_image(tag)["Id"])  # type: ignore[no-untyped-call]
            except ImageNotFound:
                return None

    def pull(self, reference: str, emit: Sink = silent) -> str | None:
        """Pulls an image; returns its id, or None when no registry answers or has it.

        Raises:
            ArmletError: the disk is full.
        """
        from docker.errors import DockerException

        if (here := self.image_id(reference)) is not None:
            return here
        try:
            for message in self._api.pull(reference, stream=True, decode=True):
                said = str(message.get("error") or message.get("status") or "")
                if "error" in message and is_full(said):
                    raise refused(f"pulling {reference}", said)
                emit(Line(text=said))
            return self.image_id(reference)
        except (DockerException, RequestException) as error:
            if is_full(str(error)):
                raise refused(f"pulling {reference}", str(error)) from error
            emit(Line(text=str(error)))
            return None

    def build(
        self,
        *,
        tag: str,
        context: Mapping[str, bytes | Path],
        build_args: Mapping[str, str] | None = None,
        emit: Sink = silent,
        host_network: bool = False,
    ) -> str:
        """Builds an image from a context (path in it -> content, with a ``Dockerfile``); returns the image's id.

        ``host_network`` lets the instructions reach a proxy or mirror on this machine's loopback address.

        Raises:
            ArmletError: (BUILD) an instruction failed; (HOST) the engine cannot.
        """
        parameters = {
            "t": tag,
            "rm": "1",
            "forcerm": "1",
            "buildargs": json.dumps(dict(build_args or {}), sort_keys=True),
            "labels": json.dumps({f"{LABEL}.image": "1"}),
            **({"networkmode": "host"} if host_network else {}),
        }
        with tempfile.TemporaryFile() as archive:
            write_context(context, archive)
            archive.seek(0)
            self._told(f"building image {tag}", "/build", parameters, archive, emit)
        return self._known(tag)

    def import_rootfs(self, tar: Path, tag: str, emit: Sink = silent) -> str:
        """Makes an image of one layer from a root file system's tar; returns the image's id."""
        repository, _, label = tag.partition(":")
        parameters = {"fromSrc": "-", "repo": repository, "tag": label or "latest"}
        with tar.open("rb") as archive:
            self._told(f"importing {tar.name} as {tag}", "/images/create", parameters, archive, emit)
        return self._known(tag)

    @contextmanager
    def container(
        self,
        *,
        image: str,
        mounts: Sequence[Mount] = (),
        name: str,
        workdir: str = "/tmp",
    ) -> Iterator[ContainerRunner]:
        """A running container without network, not even to the host, that is gone when the block ends, however it ends.

        ``name`` gets a random suffix.
        """
        full_name = f"{name}-{secrets.token_hex(4)}"
        around = self._surroundings
        with explained(f"starting a container of {image}"):
            settings = self._api.create_host_config(
                auto_remove=True,
                init=True,
                network_mode="none",
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                userns_mode="host" if self._has("userns") else None,
                mounts=[bind(mount, around.view) for mount in mounts],
            )
            try:
                with interrupts_wait():
                    self._api.create_container(
                        image,
                        entrypoint=["sleep"],
                        command=["infinity"],
                        name=full_name,
                        hostname=around.hostname,
                        user=self.user,
                        environment=dict(around.environment),
                        working_dir=around.view.inside(workdir),
                        labels={LABEL: "1", **labels_of_this_process()},
                        host_config=settings,
                    )
                    self._api.start(full_name)
            except BaseException:
                self._remove(full_name)
                raise
        shared = [mount.source for mount in mounts if not mount.read_only]
        runner = ContainerRunner(self._api, full_name, user=self.user, surroundings=around, shared=shared)
        try:
            if named := os.environ.get("DOCKER_HOST"):
                demand_shared(runner, mounts, engine=named)
            yield runner
        finally:
            self._remove(full_name)

    def sweep(self) -> tuple[str, ...]:
        """Removes the containers of runs that were killed on this machine; returns their names."""
        with explained("looking for left-over containers"):
            found = self._api.containers(all=True, filters={"label": f"{LABEL}=1"})
        stale = tuple(entry["Names"][0].lstrip("/") for entry in found if is_stale(entry["Labels"]))
        for name in stale:
            self._remove(name)
        return stale

    def require_space(self, needed: int, *, what: str) -> None:
        """Checks that the engine's own folder has ``needed`` bytes free (an engine elsewhere is not asked).

        Raises:
            ArmletError: (HOST) less is free.
        """
        require_space(Path(str(self._info.get("DockerRootDir") or "/nowhere")), needed, what=what)

    def shell_argv(self, *, image: str) -> tuple[str, ...]:
        """The command that opens a shell in a new container, as shut in as a build's, on the caller's terminal."""
        return (
            *(client_program(), "run", "--rm", "--interactive", "--tty", "--init", "--network=none"),
            *("--cap-drop=ALL", "--security-opt=no-new-privileges"),
            *(("--userns=host",) if self._has("userns") else ()),
            *(f"--user={self.user}", "--workdir=/tmp", f"--label={LABEL}=shell", "--entrypoint=bash"),
            *(f"--env={name}={value}" for name, value in BASE_ENVIRONMENT.items()),
            image,
        )

    def _has(self, option: str) -> bool:
        return any(f"name={option}" in str(entry).split(",") for entry in self._info.get("SecurityOptions") or ())

    def _known(self, tag: str) -> str:
        made = self.image_id(tag)
        if made is None:
            raise refused(f"making image {tag}", "the engine says done, yet has no such image")
        return made

    def _told(self, what: str, path: str, parameters: Mapping[str, str], body: BinaryIO, emit: Sink) -> None:
        """Sends a tar and follows the engine's account of the work; leaving early makes the engine stop it."""
        with (
            explained(what),
            self._api.post(
                f"{self._api.base_url}/v{self._api.api_version}{path}",
                params=dict(parameters),
                data=body,
                headers={"Content-Type": "application/x-tar"},
                stream=True,
                timeout=None,
            ) as response,
        ):
            if response.status_code >= 400:
                raise refused(what, response.text.strip())
            # What a tool writes to its standard error comes in red, and in pieces of a line.
            lines = Lines(lambda text: emit(Line(text=text)))
            for line in response.iter_lines():
                message = json.loads(line) if line.strip() else {}
                if "error" in message:
                    lines.close()
                    raise refused(what, str(message["error"]).strip(), kind=Kind.BUILD)
                lines.feed(_COLOUR.sub("", str(message.get("stream", ""))).encode())
            lines.close()

    def _remove(self, name: str) -> None:
        from docker.errors import APIError, NotFound

        with explained(f"removing container {name}"), interrupts_wait():
            try:
                self._api.remove_container(name, force=True, v=True)
            except NotFound:
                return
            except APIError as error:
                # The engine's own auto-remove got there first.
                if error.status_code != 409:
                    raise


def _knock(host: str) -> None:
    """Opens and closes a local socket: the operating system's own error tells more than what the SDK makes of it."""
    scheme, _, path = host.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_CONNECT_SECONDS)
            probe.connect(path)


def _is_malformed(host: str) -> bool:
    scheme, separator, rest = host.partition("://")
    return not separator or scheme not in {"unix", "tcp", "http", "https", "ssh"} or not rest
