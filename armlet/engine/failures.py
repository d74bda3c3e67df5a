"""What the engine's refusals mean for the reader: each gets its own text and command."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from armlet.engine.elsewhere import REMEDY, UNSEEN
from armlet.engine.space import disk_full
from armlet.errors import ArmletError, Kind

_REMEDIES = (
    ("container-init binary", "Podman's init process is a package of its own: sudo apt install catatonit"),
    (UNSEEN, REMEDY),
)
_NO_SPACE = ("no space left on device", "disk quota exceeded")


def is_systemd() -> bool:
    return Path("/run/systemd/system").is_dir()


def start_command() -> str:
    """How this machine starts its Docker engine."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    if is_systemd():
        return f"{sudo}systemctl start docker"
    return f"{sudo}sh -c 'dockerd >/var/log/dockerd.log 2>&1 &'"


def unreachable(error: BaseException, docker_host: str | None) -> ArmletError:
    """The error for an engine that could not be talked to."""
    code = getattr(error, "errno", None)
    sudo = "" if os.geteuid() == 0 else "sudo "
    if code in (errno.EACCES, errno.EPERM):
        return _host(
            "no permission to use the Docker engine",
            f"{sudo}usermod -aG docker $USER, then log in again (or now: newgrp docker)",
            docker_host,
        )
    if docker_host is not None:
        # ssh knows better than anybody what is wrong with the way there.
        told = f": {error}" if docker_host.startswith("ssh:") else ""
        return _host(
            f"no engine answers at DOCKER_HOST={docker_host}{told}",
            "start it (for Podman: systemctl --user start podman.socket), or: unset DOCKER_HOST",
            docker_host,
        )
    if shutil.which("dockerd") is None and code == errno.ENOENT:
        return _host(
            "no Docker engine is installed", f"./inv doctor --fix, or: {sudo}apt install docker.io", docker_host
        )
    return _host("the Docker engine is not running", f"./inv doctor --fix, or: {start_command()}", docker_host)


def malformed_host(docker_host: str) -> ArmletError:
    return _host(
        f'DOCKER_HOST="{docker_host}" is not the address of an engine',
        "use unix:///path/to/docker.sock, tcp://host:port or ssh://user@host, or: unset DOCKER_HOST",
        docker_host,
    )


def is_full(said: str) -> bool:
    """Whether the engine speaks of a full disk."""
    return any(sign in said.lower() for sign in _NO_SPACE)


def refused(what: str, said: str, *, kind: Kind = Kind.HOST) -> ArmletError:
    """The error for a request that the engine answered with a refusal."""
    if is_full(said):
        return disk_full(f"{what}: {said}")
    otherwise = "the lines above say why" if kind is Kind.BUILD else "look at the engine: docker info"
    hint = next((remedy for sign, remedy in _REMEDIES if sign in said), otherwise)
    return ArmletError(f"{what}: {said}", hint=hint, kind=kind)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turns the SDK's and the connection's exceptions into ``ArmletError``."""
    from docker.errors import DockerException

    try:
        yield
    except DockerException as error:
        said = getattr(error, "explanation", None) or str(error)
        raise refused(what, str(said).strip()) from error
    except (RequestException, HTTPError) as error:
        raise ArmletError(
            f"{what}: the connection to the engine broke: {error}",
            hint=f"see whether it still runs: docker info; start it: {start_command()}",
            kind=Kind.HOST,
        ) from error


def _host(what: str, hint: str, docker_host: str | None) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.HOST, where="" if docker_host is None else "DOCKER_HOST")
