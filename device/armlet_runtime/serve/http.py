"""An HTTP/1.1 server that a slow or broken client cannot hold up.

One thread accepts, reads and watches the clock; a request reaches a :class:`~.lanes.Lane` only when all of it is
there. So a client that stalls costs a buffer and no thread, and whoever comes too many is told so at once.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import selectors
import socket
import threading
import time
from collections import deque
from typing import Mapping

from . import listening
from .connection import Budget, Connection
from .crowd import Crowd
from .endpoints import HttpRequest, Router, error_response, overloaded
from .http_message import CONTINUE, HttpError, Response, render
from .lanes import Lane, LanePlan
from .limits import Limits

log = logging.getLogger(__name__)
_TICK = 1.0
_LOOK = 0.1
_PAUSE = 0.1
_SILENCE = 60.0
_LIVE = 5.0
_ACCEPTED_AT_ONCE = 16


class Server:
    """Takes connections from :meth:`start` to :meth:`stop`. Raises :class:`~.listening.ListenError` when made."""

    def __init__(
        self, address: listening.Address, router: Router, lanes: Mapping[str, LanePlan], limits: Limits
    ) -> None:
        self._address = address
        self._router = router
        self._limits = limits
        self._budget = Budget(limits.bodies_bytes)
        self._finished: deque[Connection] = deque()
        self._draining = False
        self._stopping = False
        self._accept_at = self._look_at = self._tell_at = 0.0
        self._tick = time.monotonic()
        self._listener: socket.socket | None = listening.listen(address, limits.connections)
        self.where = listening.describe(address, self._listener)
        """For people: ``http://127.0.0.1:8080`` or ``unix:/run/armlet/serve.sock``."""
        self._crowd = Crowd(limits)
        self.lanes = {name: Lane(name, plan) for name, plan in lanes.items()}
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def port(self) -> int:
        """Of TCP, also where any was asked for."""
        return int(self.where.rpartition(":")[2])

    @property
    def connections(self) -> int:
        """Open now."""
        return len(self._crowd)

    def live(self) -> bool:
        """Whether the reading thread makes progress."""
        return self._thread.is_alive() and time.monotonic() - self._tick < _LIVE

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self, seconds: float = 0.0) -> None:
        """Take nothing new, give what is under way so many seconds to end, then close."""
        if not self._thread.is_alive():
            self._close()
            return
        self._draining = True
        self._crowd.wake()
        end = time.monotonic() + seconds
        while len(self._crowd) and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.01)
        self._stopping = True
        self._crowd.wake()
        self._thread.join()

    def _run(self) -> None:
        assert self._listener is not None
        self._crowd.listen_on(self._listener, True)
        try:
            while not self._stopping:
                ready = self._crowd.events(_PAUSE if self._accept_at or self._draining else _TICK)
                self._tick = now = time.monotonic()
                for who, mask in ready:
                    if isinstance(who, Connection):
                        self._guarded(who, mask, now)
                    else:
                        self._accept(who, now)
                while self._finished:
                    self._guarded(self._finished.popleft(), 0, now)
                self._look_after(now)
        finally:
            self._close()

    def _close(self) -> None:
        for lane in self.lanes.values():
            lane.stop()
        self._crowd.close()
        if self._listener is not None:
            listening.forget(self._address, self._listener)
            self._listener = None

    def _accept(self, listener: socket.socket, now: float) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                sock = listener.accept()[0]
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Without a free descriptor the listener stays readable: look the other way for a moment.
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    if now >= self._tell_at:
                        log.warning("cannot accept: %s", error)
                        self._tell_at = now + _SILENCE
                    self._crowd.listen_on(listener, False)
                    self._accept_at = now + _PAUSE
                return
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._welcome(Connection(sock, self._limits, now), now)

    def _welcome(self, connection: Connection, now: float) -> None:
        if self._crowd.crammed and not self._crowd.drop_lingering():
            connection.socket.close()
            return
        turned_away = self._crowd.full and not self._make_room(now)
        self._crowd.add(connection)
        if turned_away:
            self._refuse(connection, overloaded("too many connections", self._limits.retry_after), now, last=True)
        self._crowd.watch(connection)

    def _make_room(self, now: float, state: str = "") -> bool:
        """Whether one could be sent away for another."""
        slow = self._crowd.who_gives_way(now, state)
        if slow is None:
            return False
        if slow.state in ("head", "body"):
            self._refuse(slow, HttpError(408, "the request came too slowly, and others wait"), now, last=True)
        self._drop(slow)
        return True

    def _guarded(self, connection: Connection, mask: int, now: float) -> None:
        """Go on with a connection; whatever fails is its own failure."""
        if connection not in self._crowd:
            return
        try:
            if not mask:
                self._handed_back(connection, now)
            if mask & selectors.EVENT_READ:
                connection.receive(now)
            if mask & selectors.EVENT_WRITE and connection.state == "writing" and connection.send(now):
                self._sent(connection, now)
            if not connection.gone:
                self._advance(connection, now)
            if connection.cut_short:
                self._refuse(connection, HttpError(400, "the request ends before it is complete"), now, last=True)
            if connection.over:
                self._drop(connection)
            self._crowd.watch(connection)
        except Exception:
            log.exception("a connection failed")
            self._drop(connection)

    def _advance(self, connection: Connection, now: float) -> None:
        """Go as far as what has come allows; returns when more is needed or an answer is being made."""
        while connection.state in ("idle", "head", "body"):
            if connection.state != "body":
                try:
                    if not self._begin(connection, now):
                        return
                except HttpError as error:
                    # What follows a malformed head, or a body that is not read, cannot be told from a request.
                    last = connection.head is None or connection.head.length > 0
                    self._refuse(connection, error, now, last=last)
                    continue
            if connection.filled < len(connection.body):
                return
            self._dispatch(connection, now)

    def _begin(self, connection: Connection, now: float) -> bool:
        """Whether a head has come; its body is started."""
        head = connection.next_head(now)
        if head is None:
            return False
        connection.endpoint, connection.parameters = self._router.find(head)
        most = connection.endpoint.body_bytes
        if head.length > most:
            raise HttpError(413, f"the body has {head.length} bytes, at most {most} are taken here")
        while not self._budget.take(head.length):
            if not self._make_room(now, "body"):
                raise overloaded("too many bytes are in hand", self._limits.retry_after)
        connection.taken = head.length
        connection.start_body(head.length, now)
        if head.expects_continue and connection.filled < head.length:
            with contextlib.suppress(OSError):
                connection.socket.send(CONTINUE)
        return True

    def _dispatch(self, connection: Connection, now: float) -> None:
        assert connection.endpoint is not None
        connection.state = "busy"
        if not self.lanes[connection.endpoint.lane].offer(lambda: self._work(connection, now)):
            self._refuse(connection, overloaded("too many requests wait", self._limits.retry_after), now)

    def _work(self, connection: Connection, received: float) -> None:
        """In a lane's thread, which has the connection's answer to itself until it hands it back."""
        endpoint, head = connection.endpoint, connection.head
        assert endpoint is not None
        assert head is not None
        body, connection.body = connection.body, bytearray()
        request = HttpRequest(
            head, connection.parameters, memoryview(body), lambda: connection.gone or connection.ended, received
        )
        try:
            response = endpoint.handle(request)
        except HttpError as error:
            response = error_response(error)
        except Exception:
            log.exception("%s failed", endpoint.name)
            response = error_response(HttpError(500, "internal error; the service's log has more"))
        self._say(connection, response)
        if not connection.gone:
            connection.send(time.monotonic())
        self._finished.append(connection)
        self._crowd.wake()

    def _say(self, connection: Connection, response: Response) -> None:
        """Queue an answer and give back what the request took."""
        self._give_back(connection)
        connection.keep_alive = connection.keep_alive and not self._draining
        with_body = connection.head is None or connection.head.method != "HEAD"
        connection.out.extend(render(response, with_body=with_body, keep_alive=connection.keep_alive))
        self._router.answered(connection.endpoint.name if connection.endpoint else "", response.status)

    def _refuse(self, connection: Connection, error: HttpError, now: float, *, last: bool = False) -> None:
        connection.keep_alive = connection.keep_alive and not last
        self._say(connection, error_response(error))
        connection.state, connection.last_byte = "writing", now
        if connection.send(now):
            self._sent(connection, now)

    def _handed_back(self, connection: Connection, now: float) -> None:
        connection.state, connection.last_byte = "writing", now
        if connection.gone or not connection.out:
            self._sent(connection, now)

    def _sent(self, connection: Connection, now: float) -> None:
        """All of an answer has gone."""
        if connection.keep_alive:
            connection.reset(now)
        else:
            connection.linger(now)

    def _drop(self, connection: Connection) -> None:
        if connection.state != "busy":
            self._give_back(connection)
        self._crowd.drop(connection)

    def _give_back(self, connection: Connection) -> None:
        taken, connection.taken = connection.taken, 0
        self._budget.give(taken)

    def _look_after(self, now: float) -> None:
        """What is due by the clock; not after every event, since it goes through all connections."""
        if now < self._look_at and not self._draining:
            return
        self._look_at = now + _LOOK
        if self._listener is not None and self._draining:
            # Closing it would break off those who have connected already, and perhaps asked.
            for _ in range(0, 2 * self._limits.connections, _ACCEPTED_AT_ONCE):
                self._accept(self._listener, now)
            self._crowd.listen_on(self._listener, False)
            listening.forget(self._address, self._listener)
            self._listener = None
        elif self._listener is not None and self._accept_at and now > self._accept_at:
            self._accept_at = 0.0
            self._crowd.listen_on(self._listener, True)
        for connection in self._crowd:
            if self._draining and connection.state == "idle" and now - connection.since > _LOOK:
                self._drop(connection)
            elif connection.expired(now):
                if connection.state in ("head", "body"):
                    self._refuse(connection, HttpError(408, "the request did not come in time"), now, last=True)
                    self._crowd.watch(connection)
                else:
                    self._drop(connection)
