"""What this machine is and has, gathered once, so that ``doctor`` can judge it without touching anything."""

from __future__ import annotations

import errno
import getpass
import importlib.util
import os
import shutil
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from armlet.engine.elsewhere import Tunnel
from armlet.errors import ArmletError
from armlet.process import Command, Runner

ENGINE_SOCKET = "/var/run/docker.sock"
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_SCHEME = "unix://"
_PATIENCE_S = 30.0


class EngineState(Enum):
    """What became of the attempt to reach the Docker engine."""

    REACHABLE = "reachable"
    ABSENT = "not installed"
    STOPPED = "not running"
    DENIED = "no permission"
    ELSEWHERE = "DOCKER_HOST does not answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A machine as ``doctor`` sees it. Sizes are bytes."""

    apt: bool
    user: str
    root: bool
    sudo: bool
    """sudo works without asking for a password."""
    systemd: bool
    programs: Mapping[str, str]
    """Name -> path of those that are there, of the names asked for."""
    files: frozenset[str]
    """The files that are there, of those asked for."""
    venv: bool
    """The interpreter can make virtual environments."""
    engine: EngineState
    engine_place: str
    free_disk: int
    memory: int

    @property
    def may_install(self) -> bool:
        return self.root or self.sudo


def search_path(environment: Mapping[str, str] = os.environ) -> str:
    """PATH with the system administrator's folders, which an ordinary user's PATH may lack."""
    return f"{environment.get('PATH', os.defpath)}:{_SBIN}"


def engine_state(place: str, *, installed: bool) -> EngineState:
    """Tries the engine at ``place`` (a ``DOCKER_HOST`` value, or empty for the default socket)."""
    if place.startswith("ssh:"):
        return EngineState.REACHABLE if _leads_to_one(place) else EngineState.ELSEWHERE
    if place and not place.startswith(_SCHEME):
        return EngineState.REACHABLE if _answers(place) else EngineState.ELSEWHERE
    path = place.removeprefix(_SCHEME) or ENGINE_SOCKET
    missing = EngineState.STOPPED if installed else EngineState.ABSENT
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(_PATIENCE_S)
        code = client.connect_ex(path)
        # An engine takes connections before it is ready to answer, and may still fail in between.
        if code == 0 and _pings(client):
            return EngineState.REACHABLE
    if code in (errno.EACCES, errno.EPERM):
        return EngineState.DENIED
    return missing if path == ENGINE_SOCKET else EngineState.ELSEWHERE


def user_name() -> str:
    """The user's name; the number where there is no name, as for ``docker run --user 1234``."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _pings(client: socket.socket) -> bool:
    try:
        client.sendall(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")
        return client.recv(16).startswith(b"HTTP/1.")
    except OSError:
        return False


def _leads_to_one(place: str) -> bool:
    try:
        tunnel = Tunnel(place)
    except (ArmletError, OSError, ValueError):
        return False
    return engine_state(tunnel.url, installed=False) is EngineState.REACHABLE


def _answers(place: str) -> bool:
    import docker  # needed for remote engines alone, and slow to import
    from docker.errors import DockerException

    try:
        client = docker.DockerClient(base_url=place, timeout=5)
    except (DockerException, OSError):
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()


def _memory(field: str) -> int:
    """Bytes, by the name of a line of ``/proc/meminfo``; 0 where there is none."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def available_memory() -> int:
    """Bytes that programs may still take without swapping."""
    return _memory("MemAvailable")


def _free_disk(folder: Path) -> int:
    """Of the file system on which ``folder`` is, or would be made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def survey(
    runner: Runner,
    cache: Path,
    *,
    programs: Iterable[str],
    files: Iterable[str],
    environment: Mapping[str, str] = os.environ,
) -> Facts:
    """Looks at this machine; changes nothing, and raises nothing for what is missing."""
    path = search_path(environment)
    found = {name: place for name in programs if (place := shutil.which(name, path=path))}
    root = os.geteuid() == 0
    place = environment.get("DOCKER_HOST", "")
    return Facts(
        apt=shutil.which("apt-get", path=path) is not None,
        user="root" if root else user_name(),
        root=root,
        sudo=not root and shutil.which("sudo", path=path) is not None and _sudo_works(runner),
        systemd=Path("/run/systemd/system").is_dir(),
        programs=found,
        files=frozenset(name for name in files if Path(name).exists()),
        venv=importlib.util.find_spec("ensurepip") is not None,
        engine=engine_state(place, installed="dockerd" in found),
        engine_place=place or f"{_SCHEME}{ENGINE_SOCKET}",
        free_disk=_free_disk(cache),
        memory=_memory("MemTotal"),
    )


def _sudo_works(runner: Runner) -> bool:
    return runner.run(Command(argv=("sudo", "-n", "true"))).code == 0
