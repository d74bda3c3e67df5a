"""An engine that DOCKER_HOST names may be on another machine, which has none of this one's folders."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from armlet.errors import ArmletError, Kind
from armlet.process import Command, Companion, Runner

if TYPE_CHECKING:
    from armlet.engine.container import Mount

UNSEEN = "bind source path does not exist"
"""What an engine says of a folder that its own machine has not."""
_SSH_SECONDS = 30.0
REMEDY = (
    "this engine does not see this machine's folders, which every step is given: name one that runs here, or one that "
    "has the project and ARMLET_CACHE at the same paths (docs/ci.md)"
)


def demand_shared(runner: Runner, mounts: Sequence[Mount], *, engine: str) -> None:
    """Checks in a running container that a folder is the one that was meant, and no other of the same name.

    Raises:
        ArmletError: (HOST) it is another.
    """
    for mount in mounts:
        if mount.read_only or not mount.source.is_dir():
            continue
        with tempfile.NamedTemporaryFile(dir=mount.source, prefix=".armlet-seen-") as witness:
            seen = runner.run(Command(argv=("test", "-e", f"{mount.target}/{Path(witness.name).name}")))
        if seen.code != 0:
            what = f"the engine at {engine} has another {mount.source} than this machine"
            raise ArmletError(what, hint=REMEDY, kind=Kind.HOST, where="DOCKER_HOST")
        return


class Tunnel:
    """A socket here that leads to an engine's there, through the ``ssh`` that the user has; closed with its owner."""

    def __init__(self, host: str) -> None:
        """``host``: ``ssh://[user@]host[:port][/path/of/the/socket]``.

        Raises:
            OSError: it cannot be reached; the text is what ssh said.
        """
        folder = Path(tempfile.mkdtemp(prefix="armlet-engine-"))
        self._socket, log = folder / "docker.sock", folder / "log"
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        agent = {name: os.environ[name] for name in ("SSH_AUTH_SOCK",) if name in os.environ}
        ssh = Companion(Command(argv=tunnel_argv(host, self._socket), env=agent), log)
        # Runs first: what is made last ends first.
        weakref.finalize(self, ssh.end)
        deadline = time.monotonic() + _SSH_SECONDS
        while not self._socket.exists():
            if not ssh.running or time.monotonic() > deadline:
                said = log.read_text(errors="replace").strip().splitlines()
                raise ConnectionError(said[-1] if said else "ssh does not connect")
            time.sleep(0.05)

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"


def tunnel_argv(host: str, here: Path) -> tuple[str, ...]:
    """The command that makes the socket ``here``, and ends with its input."""
    parts = urlsplit(host)
    there = parts.path.rstrip("/") or "/var/run/docker.sock"
    return (
        *("ssh", "-T", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-L", f"{here}:{there}"),
        *(("-p", str(parts.port)) if parts.port else ()),
        *(("-l", parts.username) if parts.username else ()),
        *("--", str(parts.hostname), "cat"),
    )
