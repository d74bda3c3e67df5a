"""The message that says what a device is to serve: right ones, and whatever else somebody may send."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from armlet_runtime.update.desired import LARGEST_MESSAGE, LONGEST_URL, WishError, parse
from armlet_runtime.update.interface import Desired
from hypothesis import given
from hypothesis import strategies as st

SHA, OTHER = "ab" * 32, "cd" * 32
URL = "https://models.example/m-1.2.0.payload?signature=a%2Fb&expires=5"
FIELDS: dict[str, Any] = {
    "schema": 1,
    "model": "m",
    "version": "1.2.0",
    "generation": 7,
    "payload": SHA,
    "archive": {"size": 1000, "sha256": OTHER},
    "url": URL,
}
BLOCKS = {**{key: value for key, value in FIELDS.items() if key != "url"}, "blocks": {"size": 32768}}
WISH = Desired("m", "1.2.0", 7, SHA, 1000, OTHER, URL)


def message(fields: Any = FIELDS, **other: Any) -> bytes:
    """``...`` takes a field out."""
    return json.dumps({key: value for key, value in {**fields, **other}.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("sent", "wish"),
    [
        (message(), WISH),
        (message(model=...), WISH),
        (message(later={"a": [1.5, None, "ä"]}), WISH),
        (b" \n" + json.dumps(FIELDS, indent=4).encode() + b"\r\n", WISH),
        (message(BLOCKS), Desired("m", "1.2.0", 7, SHA, 1000, OTHER, "", 32768)),
        (message(url="https://[fe80::1]:8443/"), replace(WISH, url="https://[fe80::1]:8443/")),
        (b"", None),
    ],
)
def test_what_is_wished(sent: bytes, wish: Desired | None) -> None:
    assert parse(sent, "m") == wish


_ARCHIVES: list[Any] = [
    *(None, 1000, [1000, OTHER], {}, {"size": 1000}, {"sha256": OTHER}, ...),
    *({"size": size, "sha256": OTHER} for size in (0, -5, 1e3, "1000", True, 2**63, 10**300)),
    {"size": 1000, "sha256": OTHER.upper()},
]
_BLOCKS: list[Any] = [
    *(None, 32768, [], {}),
    *({"size": size} for size in (0, -1, 1, 4095, 262145, 2**40, "32768", 32768.0, True)),
]
_URLS: list[Any] = [
    *(None, 5, "", [], "m.payload", "/m.payload", "//models.example/m", "https:", "https:///m", "https://"),
    *("http://models.example/m", "file:///etc/passwd", "ftp://models.example/m", "javascript:alert(1)"),
    *("https://user@models.example/m", "https://user:secret@models.example/m", "https://@models.example/m"),
    *(
        "https://models.example:0/",
        "https://models.example:65536/",
        "https://models.example:x/",
        "https://:443/",
    ),
    *(
        "https://[::1/",
        "https://[zz]/",
        "https://a b/",
        "https://-a/",
        "https://a_b\\c/",
        "https://ä.example/",
    ),
    *(f"https://models.example/{c}" for c in ("\r\nHost: x", "\n", "\t", "\0", " ", "\x7f", "ä", "#a", "\u2028")),
    " https://models.example/m",
    f"https://models.example/{'a' * LONGEST_URL}",
]

REFUSED: dict[str, bytes] = {
    "blank": b" ",
    "no-json": b"{",
    "no-utf8": b'{"a": "\xff"}',
    "utf16": json.dumps(FIELDS).encode("utf-16"),
    "bom": b"\xef\xbb\xbf" + message(),
    "nul": b"\0",
    "list": b"[]",
    "null": b"null",
    "string": b'"m"',
    "number": b"1e999",
    "nan": message(at=float("nan")),
    "infinity": message(at=float("-inf")),
    "twice": message()[:-1] + b', "url": "https://other.example/"}',
    "twice-within": message().replace(b'"size": 1000', b'"size": 1000, "size": 1001'),
    "behind-it": message() + b"{}",
    "half-a-pair": message().replace(b"1.2.0", b"1\\ud800"),
    "half-a-pair-elsewhere": message()[:-1] + b', "x": "\\udc00"}',
    "large": message(x="x" * LARGEST_MESSAGE),
    "deep": b'{"x":' * 5000 + b"1" + b"}" * 5000,
    "deep-lists": b"[" * LARGEST_MESSAGE,
    "deep-in-a-field": message(x=json.loads("[" * 20 + "]" * 20)),
    "long-number": message().replace(b"1000", b"9" * 9000),
    "other-model": message(model="other"),
    "no-model": message(model=None),
    "no-schema": message(schema=...),
    "schema-2": message(schema=2),
    "schema-true": message(schema=True),
    "schema-float": message(schema=1.0),
    **{f"version-{at}": message(version=value) for at, value in enumerate(["", 1, "v1", "1/2", "1\n", "1" * 65, ...])},
    **{
        f"generation-{at}": message(generation=value)
        for at, value in enumerate([0, -1, 7.0, "7", True, None, 2**53 + 1, 10**400, 1e300, ...])
    },
    **{
        f"payload-{at}": message(payload=value)
        for at, value in enumerate(
            ["", SHA[:-1], SHA + "a", SHA.upper(), SHA[:-1] + "\n", 5, [SHA], "../" * 21 + "a", ...]
        )
    },
    **{f"archive-{at}": message(archive=value) for at, value in enumerate(_ARCHIVES)},
    **{f"blocks-{at}": message(BLOCKS, blocks=value) for at, value in enumerate(_BLOCKS)},
    "both": message(blocks={"size": 32768}),
    "neither": message(url=...),
    **{f"url-{at}": message(url=value) for at, value in enumerate(_URLS)},
}


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(sent: bytes) -> None:
    started = time.process_time()
    with pytest.raises(WishError) as caught:
        parse(sent, "m")
    assert time.process_time() - started < 0.5
    assert caught.value.category == "manifest"
    # One line for the log, without what was sent (which may hold secrets, and what a terminal obeys).
    assert caught.value.reason.isprintable()
    assert len(caught.value.reason) < 200
    assert "secret" not in caught.value.reason


@pytest.mark.parametrize("hostile", [b'"\\' * 8191, b'"' + b'\\"' * 8000, b"[]" * 8000, b'{"a":' * 3000])
def test_refusing_takes_no_time(hostile: bytes) -> None:
    started = time.process_time()
    with pytest.raises(WishError):
        parse(hostile, "m")
    assert time.process_time() - started < 0.1


def test_what_is_too_large_for_the_device() -> None:
    assert parse(message(), "m", largest=1000) == WISH
    with pytest.raises(WishError) as caught:
        parse(message(), "m", largest=999)
    assert caught.value.category == "space"


def test_no_wish_of_a_name_that_is_none() -> None:
    for model in ("", "M", "../m", "m/n", "m" * 65, "m\n"):
        with pytest.raises(WishError):
            parse(message(model=...), model)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([SHA, "m", URL]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, "size", "blocks"]), inner),
    max_leaves=12,
)


@given(st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_refused_or_a_wish(sent: bytes) -> None:
    with suppress(WishError):
        parse(sent, "m")


@given(st.dictionaries(st.sampled_from([*FIELDS, "blocks"]), JSON, max_size=2))
def test_a_wish_is_as_it_was_sent(other: dict[str, Any]) -> None:
    fields = {**FIELDS, **other}
    try:
        found = parse(json.dumps(fields).encode(), "m")
    except WishError:
        return
    assert found is not None
    said = (fields["version"], fields["generation"], fields["payload"], fields["archive"]["size"])
    assert (found.version, found.generation, found.payload, found.archive_size) == said
    assert (found.url, found.block_size) == (fields.get("url", ""), fields.get("blocks", {"size": 0})["size"])
