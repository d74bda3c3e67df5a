"""Code of ONNX Runtime's core whose meaning ``armlet/coverage`` restates in Python, each bound to its text.

Where a version of ONNX Runtime changes one of them, making the table fails with its name: read what has changed, mend
what restates it, and then write its new hash into ``armlet/coverage/restated.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from armlet import digest
from armlet.coverage.cpp import Unlowerable
from armlet.coverage.kernels import closing
from armlet.registrations import without_comments

WHOLE = "*"
# A constructor's initialisers may have braces as well; its body's opens at the end of a line.
_BODY = re.compile(r"\s*(const\s*)?(noexcept\s*)?(\{|:[^;]*?\{[ \t]*\n)")


@dataclass(frozen=True, slots=True)
class Restated:
    """``function`` of ``file``, or the whole file (``*``), and the module that says in Python what it does."""

    file: str
    function: str
    by: str
    sha256: str


def check(texts: Mapping[str, str], rows: Iterable[Restated]) -> dict[str, str]:
    """``file: function`` -> hash. ``texts``: file -> its text.

    Raises:
        Unlowerable: one is not there, or is not what was restated.
    """
    found = {}
    for row in rows:
        name = f"{row.file}: {row.function}"
        found[name] = hashed(texts[row.file], row)
        if found[name] != row.sha256:
            raise Unlowerable(
                f"{row.file}: {row.function} is not what armlet/coverage/{row.by}.py restates: read what has changed, "
                f"mend that module, then write {found[name]} into armlet/coverage/restated.py"
            )
    return found


def hashed(text: str, row: Restated) -> str:
    """Over what is restated, whatever its spaces and comments.

    Raises:
        Unlowerable: there is no such function.
    """
    return digest.of_bytes(re.sub(r"\s+", " ", body(text, row)).strip().encode())


def body(text: str, row: Restated) -> str:
    """What is restated, without comments.

    Raises:
        Unlowerable: there is no such function.
    """
    plain = without_comments(text)
    if row.function == WHOLE:
        return plain
    bodies = list(_definitions(plain, row.function))
    if not bodies:
        raise Unlowerable(f"{row.file}: no function {row.function}, which armlet/coverage/{row.by}.py restates")
    return "\n".join(bodies)


def _definitions(text: str, name: str) -> Iterator[str]:
    for start in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        end = closing(text, start.end())
        body = _BODY.match(text, end + 1)
        if body:
            yield text[start.start() : closing(text, body.end()) + 1]
