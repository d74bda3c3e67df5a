"""One model in a process of its own: ``python -m armlet_runtime.serve.worker <descriptor> <supervisor's pid> <cores>``.

The main thread computes, one request after the other; one thread reads what the supervisor says, and one shows it
that the process lives. It ends when the supervisor hangs up, whatever it is doing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from queue import SimpleQueue
from typing import Any, Mapping, Sequence

_STARTED = time.monotonic()
if __name__ == "__main__":
    # Reading all these modules is work too, and other models' cores are not for that.
    with contextlib.suppress(OSError, ValueError):
        os.sched_setaffinity(0, set(map(int, sys.argv[3].split(","))))
# A worker gets and gives raw elements; NumPy would cost it some 20 MB.
sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]

from armlet_runtime import ort  # noqa: E402
from armlet_runtime.serve import confine  # noqa: E402
from armlet_runtime.serve.golden import BudgetError, TrialError  # noqa: E402
from armlet_runtime.serve.job import BEAT_SECONDS, Job, Ready  # noqa: E402
from armlet_runtime.serve.trial import Trial  # noqa: E402
from armlet_runtime.serve.wire import Channel, Frame, Hangup, WireError  # noqa: E402

_FAULTS_OF_THE_CALLER = (ort.OrtErrorCode.INVALID_ARGUMENT,)


class Worker:
    """Answers requests that come over a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._requests: SimpleQueue[Frame | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._running: tuple[int, ort.RunOptions] | None = None
        self._cancelled = -1

    def serve(self) -> int:
        """Until the supervisor says stop; returns the process's exit code."""
        job = self._begin(self._channel.receive())
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()
        try:
            session, ready = Trial(job, self._trying).run()
        except (TrialError, ort.OrtError, OSError, MemoryError, WireError) as error:
            reason = getattr(error, "message", "") or str(error) or type(error).__name__
            self._channel.send({"op": "failed", "reason": reason, "budget": isinstance(error, BudgetError)})
            return 1
        told = Ready(**{**vars(ready), "seconds": time.monotonic() - _STARTED})
        self._channel.send({"op": "ready", "ready": told.as_json()})
        while True:
            frame = self._requests.get()
            if frame is None:
                return 0
            self._answer(session, frame)

    def _begin(self, frame: Frame) -> Job:
        job = Job.of_json(frame.header["job"])
        confine.name_process(f"armlet:{job.model}")
        confine.go_first()
        confine.stay_on(job.cores)
        confine.limit_memory(job.memory_mb)
        self._channel.max_body = job.message_bytes
        return job

    def _trying(self, names: Sequence[str]) -> None:
        self._channel.send({"op": "trying", "providers": list(names)})

    def _listen(self) -> None:
        try:
            while True:
                frame = self._channel.receive()
                if frame.op == "infer":
                    self._requests.put(frame)
                elif frame.op == "cancel":
                    self._cancel(int(frame.header["id"]))
                elif frame.op == "stop":
                    self._requests.put(None)
        except Hangup:
            os._exit(0)
        except BaseException as error:
            # Whatever it is, the supervisor can do nothing with a worker that does not listen.
            print(f"armlet worker: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    def _beat(self) -> None:
        while True:
            try:
                self._channel.send({"op": "beat"})
            except Hangup:
                os._exit(0)
            time.sleep(BEAT_SECONDS)

    def _cancel(self, number: int) -> None:
        with self._lock:
            self._cancelled = number
            if self._running is not None and self._running[0] == number:
                self._running[1].terminate = True

    def _answer(self, session: ort.InferenceSession, frame: Frame) -> None:
        number = int(frame.header["id"])
        try:
            self._channel.send({"op": "answer", "id": number}, self._run(session, number, frame))
        except ort.OrtError as error:
            kind = "bad_input" if error.code in _FAULTS_OF_THE_CALLER else "internal"
            self._refuse(number, kind, error.message)
        except WireError as error:
            self._refuse(number, "too_large", f"the answer is too large: {error}")
        except MemoryError:
            self._refuse(number, "internal", "the model has not enough memory for this request")

    def _run(self, session: ort.InferenceSession, number: int, frame: Frame) -> Mapping[str, ort.Tensor]:
        wanted = frame.header.get("outputs")
        names = [arg.name for arg in session.get_outputs()] if wanted is None else list(wanted)
        options = ort.RunOptions()
        with self._lock:
            if self._cancelled == number:
                options.terminate = True
            self._running = (number, options)
        try:
            results: list[Any] = session.run(names, frame.tensors, options)
        finally:
            with self._lock:
                self._running = None
        return dict(zip(names, results))

    def _refuse(self, number: int, kind: str, message: str) -> None:
        self._channel.send({"op": "error", "id": number, "kind": kind, "message": message})


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 ended as told, 1 the model cannot be served."""
    descriptor, parent = map(int, (sys.argv[1:] if arguments is None else arguments)[:2])
    # The supervisor ends its workers, after what they have in hand; a signal to the whole group would come before.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    confine.die_with(parent)
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        return Worker(channel).serve()
    except Hangup:
        return 0


if __name__ == "__main__":
    _code = main()
    sys.stderr.flush()
    # Nothing is left to be written, and taking a session apart only costs time.
    os._exit(_code)
