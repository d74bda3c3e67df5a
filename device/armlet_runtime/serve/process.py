"""A worker as the supervisor sees it: a process, a channel to it, and the one call that it has in hand."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Iterable, Protocol

import armlet_runtime
from armlet_runtime.serve.call import Call
from armlet_runtime.serve.interface import REFUSAL_KINDS, Answer, RefusalKind, Refused
from armlet_runtime.serve.job import Fault, Job, Ready
from armlet_runtime.serve.wire import Channel, Frame, Hangup, WireError

MODULE = "armlet_runtime.serve.worker"
_REAP_SECONDS = 2.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Owner(Protocol):
    """Who is told what becomes of a worker, by a thread of the worker's own."""

    def became_ready(self, worker: WorkerProcess, ready: Ready) -> None:
        """It has loaded and tried its model."""

    def failed(self, worker: WorkerProcess, reason: str, fault: Fault = "trial") -> None:
        """It says that its model cannot be served; it ends by itself."""

    def ended(self, worker: WorkerProcess) -> None:
        """It is gone, whatever the reason; nothing more comes from it."""


class WorkerProcess:
    """Started when made. The thread that makes it has to live as long as it does: the kernel ends them together.

    Raises :class:`OSError` where no process can be started.
    """

    def __init__(self, job: Job, owner: Owner, python: str = sys.executable) -> None:
        self.job = job
        self.started = self.heard = time.monotonic()
        """``heard``: when it last showed life."""
        self.busy_since: float | None = None
        self.tried: tuple[str, ...] = ()
        """The chain of providers that it tried last."""
        self.gone = threading.Event()
        self.killed_for = ""
        """Why the supervisor ended it, empty where it did not."""
        self.leaving = False
        """Takes no more calls."""
        self._owner = owner
        self._lock = threading.Lock()
        self._call: Call | None = None
        self._idle = threading.Event()
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [
                    python,
                    "-X",
                    "faulthandler",
                    "-m",
                    MODULE,
                    str(theirs.fileno()),
                    str(os.getpid()),
                    _listed(job.cores),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._channel = Channel(ours, job.message_bytes)
        threading.Thread(target=self._listen, name=f"from {job.model}", daemon=True).start()

    @property
    def how(self) -> str:
        """How it ended, for a sentence that begins with "the worker"."""
        if self.killed_for:
            return self.killed_for
        code = self._process.returncode
        if code is None:
            return "does not end, not even when it is killed"
        return f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"

    @property
    def crashed(self) -> bool:
        """Whether it ended in a way that only a fault inside it explains."""
        faults = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
        return -(self._process.returncode or 0) in faults

    def compute(self, call: Call) -> bool:
        """Have a call computed; blocks until the worker is free again. False: it was going, and never saw the call."""
        wanted = call.request.version
        call.payload = self.job.payload
        if wanted not in (None, self.job.version):
            # It came while another version served.
            what = f"{self.job.model} has no version {wanted} any more; it serves {self.job.version}"
            call.refuse(Refused("unknown_model", what))
            return True
        with self._lock:
            if self.gone.is_set() or self.killed_for:
                return False
            self._idle.clear()
            self._call = call
            self.busy_since = time.monotonic()
        outputs = call.request.outputs
        header = {"op": "infer", "id": call.number, "outputs": None if outputs is None else list(outputs)}
        try:
            self._channel.send(header, call.request.inputs)
        except Hangup:
            pass  # The thread that listens sees it too, and ends the call.
        except Exception as error:
            # Before anything was sent. Whatever it is, the next call is to find the worker free.
            call.refuse(Refused("too_large" if isinstance(error, WireError) else "internal", str(error)))
            self._free()
        self._idle.wait()
        return True

    def cancel(self, call: Call) -> None:
        """Have the worker drop a call, if it has that one in hand."""
        with self._lock:
            ours = self._call is call
        if ours:
            # A worker that has stopped reading must not stop the one who cancels: it is given up for other reasons.
            threading.Thread(target=self._try_send, args=({"op": "cancel", "id": call.number},), daemon=True).start()

    def stop(self, seconds: float) -> None:
        """Let it end once it has answered; kill it after that time. Blocks until it is gone."""
        threading.Thread(target=self._try_send, args=({"op": "stop"},), daemon=True).start()
        if not self.gone.wait(seconds):
            self.kill("did not end when told to")
            self.gone.wait(_REAP_SECONDS * 2)

    def kill(self, why: str) -> None:
        """End it now; ``why`` continues "the worker ..."."""
        with self._lock:
            self.killed_for = self.killed_for or why
        self._process.kill()
        # A process that hangs in the kernel outlives its killing; nobody is to wait for it.
        self._channel.close()

    def forgive(self, seconds: float) -> None:
        """Have so much of the time until now not count against it."""
        now = time.monotonic()
        with self._lock:
            self.started, self.heard = min(now, self.started + seconds), min(now, self.heard + seconds)
            if self.busy_since is not None:
                self.busy_since = min(now, self.busy_since + seconds)

    def memory(self) -> int:
        """Bytes that it has in memory now; 0 where that cannot be told."""
        try:
            text = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii")
            return int(text.split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            return 0

    def _listen(self) -> None:
        try:
            self._channel.send({"op": "start", "job": self.job.as_json()})
            while True:
                frame = self._channel.receive()
                self.heard = time.monotonic()
                self._take(frame)
        except Hangup:
            pass
        except (WireError, KeyError, TypeError, ValueError) as error:
            self.killed_for = self.killed_for or f"spoke nonsense: {error}"
        if self.killed_for:
            self._process.kill()
        if not self._reaped():
            self.killed_for = self.killed_for or "hung up, and did not end"
            self._process.kill()
            self._reaped()
        with self._lock:
            self.gone.set()
            call = self._call
        if call is not None:
            call.refuse(Refused("internal", f"the worker of {self.job.model} {self.how}; this request is lost"))
        self._free()
        self._channel.close()
        self._owner.ended(self)

    def _reaped(self) -> bool:
        try:
            self._process.wait(_REAP_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _take(self, frame: Frame) -> None:
        header = frame.header
        if frame.op == "ready":
            self._owner.became_ready(self, Ready.of_json(header["ready"]))
        elif frame.op == "failed":
            self._owner.failed(self, str(header["reason"]), "budget" if header.get("budget") else "trial")
        elif frame.op == "trying":
            self.tried = tuple(map(str, header["providers"]))
        elif frame.op in ("answer", "error"):
            self._answered(frame)

    def _answered(self, frame: Frame) -> None:
        with self._lock:
            call = self._call
        if call is None or call.number != frame.header["id"]:
            return
        if frame.op == "answer":
            call.finish(Answer(self.job.version, frame.tensors))
        else:
            kinds: list[RefusalKind] = [known for known in REFUSAL_KINDS if known == frame.header["kind"]]
            kind = kinds[0] if kinds else "internal"
            call.refuse(Refused(kind, str(frame.header["message"])))
        self._free()

    def _free(self) -> None:
        with self._lock:
            self._call = None
            self.busy_since = None
        self._idle.set()

    def _try_send(self, header: dict[str, object]) -> None:
        try:
            self._channel.send(header)
        except Hangup:
            return


def _listed(cores: Iterable[int]) -> str:
    return ",".join(map(str, cores))


def _environment() -> dict[str, str]:
    package = str(Path(armlet_runtime.__file__).resolve().parent.parent)
    paths = [package, os.environ.get("PYTHONPATH", "")]
    # Each arena of the allocator keeps what its threads once had; a worker computes in one thread of Python's.
    return {"MALLOC_ARENA_MAX": "2", **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def signal_name(number: int) -> str:
    """Of what ended a process, for a sentence."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
