"""The little of Redis' protocol (RESP2) that ccache speaks."""

from __future__ import annotations

from typing import Protocol

_MOST_WORDS = 4
_MOST_BYTES = 256 << 20
_LONGEST_LINE = 32

OK = b"+OK\r\n"
NIL = b"$-1\r\n"


class Stream(Protocol):
    def readline(self, size: int, /) -> bytes: ...
    def read(self, size: int, /) -> bytes: ...


class Malformed(Exception):
    """The other side does not speak the protocol, or sends more than anybody should."""


def read_command(stream: Stream) -> list[bytes] | None:
    """The words of the next command; None where the other side has hung up.

    Raises:
        Malformed: it is none.
    """
    if not (head := stream.readline(_LONGEST_LINE)):
        return None
    return [_word(stream) for _ in range(_number(head, b"*", 1, _MOST_WORDS))]


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(data), data)


def number(value: int) -> bytes:
    return b":%d\r\n" % value


def failure(text: str) -> bytes:
    return f"-ERR {text}\r\n".encode()


def _word(stream: Stream) -> bytes:
    size = _number(stream.readline(_LONGEST_LINE), b"$", 0, _MOST_BYTES)
    data = stream.read(size + 2)
    if len(data) != size + 2 or not data.endswith(b"\r\n"):
        raise Malformed("cut off")
    return data[:-2]


def _number(line: bytes, mark: bytes, least: int, most: int) -> int:
    digits = line[1:-2]
    if line[:1] != mark or line[-2:] != b"\r\n" or not digits.isdigit() or not least <= int(digits) <= most:
        raise Malformed(f"no {mark.decode()} with a number from {least} to {most}")
    return int(digits)
