"""Downloads against a real socket: what arrives, what is left behind, and what is said."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note, Progress
from armlet.fetch import Places, Wanted, fetch
from tests.fakes.downloads import DATA, FakeNoRunner, get, left, part_of, wanted_from
from tests.fakes.mirror import FakeMirror, Fault


@pytest.fixture
def mirror() -> Iterator[FakeMirror]:
    with FakeMirror(files={"a.tar": DATA}).serving() as serving:
        yield serving


@pytest.fixture
def other() -> Iterator[FakeMirror]:
    with FakeMirror(files={"a.tar": DATA}).serving() as serving:
        yield serving


def test_a_file_arrives_whole_with_progress_and_without_leftovers(mirror: FakeMirror, tmp_path: Path) -> None:
    events: list[Event] = []
    path = get(wanted_from(mirror), tmp_path, events)
    assert path.read_bytes() == DATA
    assert left(tmp_path) == ["a.tar"]
    progress = [event for event in events if isinstance(event, Progress)]
    assert (progress[-1].done, progress[-1].total, progress[-1].unit) == (len(DATA), len(DATA), "bytes")


def test_a_second_fetch_asks_nobody(mirror: FakeMirror, tmp_path: Path) -> None:
    first = get(wanted_from(mirror), tmp_path)
    assert get(wanted_from(mirror), tmp_path) == first
    assert len(mirror.seen) == 1


def test_a_damaged_file_in_the_cache_is_replaced_and_told(mirror: FakeMirror, tmp_path: Path) -> None:
    path = get(wanted_from(mirror), tmp_path)
    path.write_bytes(b"damaged")
    events: list[Event] = []
    assert get(wanted_from(mirror), tmp_path, events).read_bytes() == DATA
    assert any(isinstance(event, Note) and "damaged" in event.text for event in events)


def test_several_files_come_back_in_the_order_asked_for(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.files = {name: name.encode() * 99 for name in ("c", "a", "b")}
    wanted = [
        Wanted(filename=name, sha256=hashlib.sha256(data).hexdigest(), size=None, urls=(f"{mirror.url}/{name}",))
        for name, data in mirror.files.items()
    ]
    paths = fetch(wanted, tmp_path, lambda event: None, places=Places(), runner=FakeNoRunner())
    assert [path.name for path in paths] == ["c", "a", "b"]


def test_a_part_is_gone_on_with(mirror: FakeMirror, tmp_path: Path) -> None:
    wanted = wanted_from(mirror)
    part_of(wanted, tmp_path).write_bytes(DATA[:1234])
    assert get(wanted, tmp_path).read_bytes() == DATA
    assert mirror.seen == [("a.tar", "bytes=1234-")]
    assert left(tmp_path) == ["a.tar"]


def test_a_finished_part_needs_no_network(tmp_path: Path) -> None:
    wanted = wanted_from(FakeMirror(url="http://127.0.0.1:9"))
    part_of(wanted, tmp_path).write_bytes(DATA)
    assert get(wanted, tmp_path).read_bytes() == DATA


def test_a_server_without_ranges_sends_it_anew(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.ranges = False
    wanted = wanted_from(mirror)
    part_of(wanted, tmp_path).write_bytes(b"x" * 1234)
    assert get(wanted, tmp_path).read_bytes() == DATA


def test_a_wrong_part_is_thrown_away_and_the_same_place_asked_once_more(mirror: FakeMirror, tmp_path: Path) -> None:
    wanted = wanted_from(mirror)
    part_of(wanted, tmp_path).write_bytes(b"x" * 1234)
    assert get(wanted, tmp_path).read_bytes() == DATA
    assert mirror.seen == [("a.tar", "bytes=1234-"), ("a.tar", None)]


@pytest.mark.parametrize("size", [len(DATA), None])
def test_a_part_longer_than_the_file_is_thrown_away(mirror: FakeMirror, tmp_path: Path, size: int | None) -> None:
    wanted = wanted_from(mirror, size=size)
    part_of(wanted, tmp_path).write_bytes(b"x" * (len(DATA) + 10))
    assert get(wanted, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("reset", [False, True])
def test_a_cut_connection_is_resumed(mirror: FakeMirror, tmp_path: Path, reset: bool) -> None:
    mirror.faults = deque([Fault(after=200_000, reset=reset)])
    assert get(wanted_from(mirror), tmp_path).read_bytes() == DATA
    ((_, first), (_, second)) = mirror.seen
    assert first is None
    # After a reset the kernel may drop what it had not handed over yet.
    assert reset or second == "bytes=200000-"


@pytest.mark.parametrize("size", [len(DATA), None])
def test_chunked_replies_are_taken(mirror: FakeMirror, tmp_path: Path, size: int | None) -> None:
    mirror.chunked = True
    assert get(wanted_from(mirror, size=size), tmp_path).read_bytes() == DATA


def test_a_busy_server_is_asked_again(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.faults = deque([Fault(status=503, headers={"Retry-After": "0"}), Fault(status=429)])
    assert get(wanted_from(mirror), tmp_path).read_bytes() == DATA
    assert len(mirror.seen) == 3


def test_a_server_that_stays_busy_is_given_up(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.faults = deque([Fault(status=500)] * 9)
    with pytest.raises(ArmletError, match=r"HTTP 500 \(3 attempts\)"):
        get(wanted_from(mirror), tmp_path)
    assert len(mirror.seen) == 3


def test_a_place_without_the_file_is_asked_once_and_the_next_one_has_it(
    mirror: FakeMirror, other: FakeMirror, tmp_path: Path
) -> None:
    mirror.files.clear()
    assert get(wanted_from(mirror, other), tmp_path).read_bytes() == DATA
    assert (len(mirror.seen), len(other.seen)) == (1, 1)


@pytest.mark.parametrize("fault", [Fault(after=100_000, stall=True), Fault(after=100_000, trickle=True)])
def test_a_stalling_place_is_left_for_the_next_which_goes_on(
    mirror: FakeMirror, other: FakeMirror, tmp_path: Path, fault: Fault
) -> None:
    mirror.faults = deque([fault])
    start = time.monotonic()
    assert get(wanted_from(mirror, other), tmp_path).read_bytes() == DATA
    assert time.monotonic() - start < 5
    assert len(mirror.seen) == 1
    ((_, resumed),) = other.seen
    assert resumed is not None
    assert int(resumed.strip("bytes=-")) >= 100_000


def test_a_stalling_place_gets_a_second_chance_where_there_is_no_other(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.faults = deque([Fault(after=100_000, stall=True)])
    assert get(wanted_from(mirror), tmp_path).read_bytes() == DATA
    assert mirror.seen[1] == ("a.tar", "bytes=100000-")


def test_wrong_bytes_of_the_right_length_name_both_hashes_and_keep_nothing(mirror: FakeMirror, tmp_path: Path) -> None:
    lie = b"x" * len(DATA)
    mirror.files["a.tar"] = lie
    with pytest.raises(ArmletError) as caught:
        get(wanted_from(mirror), tmp_path)
    assert hashlib.sha256(lie).hexdigest() in caught.value.what
    assert hashlib.sha256(DATA).hexdigest() in caught.value.what
    assert caught.value.kind is Kind.HOST
    assert "ARMLET_MIRRORS" in caught.value.hint
    assert left(tmp_path) == []


def test_a_reply_of_another_length_is_not_even_read(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.files["a.tar"] = b"<html>log in first</html>"
    with pytest.raises(ArmletError, match=rf"offers 25 bytes, expected {len(DATA)}"):
        get(wanted_from(mirror), tmp_path)
    assert left(tmp_path) == []


def test_a_reply_without_end_is_cut_off(mirror: FakeMirror, tmp_path: Path) -> None:
    mirror.files["a.tar"], mirror.chunked = DATA * 4, True
    with pytest.raises(ArmletError, match="more than"):
        get(wanted_from(mirror), tmp_path)
    assert left(tmp_path) == []


def test_the_next_place_after_a_lie_starts_from_nothing(mirror: FakeMirror, other: FakeMirror, tmp_path: Path) -> None:
    mirror.files["a.tar"] = b"x" * len(DATA)
    events: list[Event] = []
    assert get(wanted_from(mirror, other), tmp_path, events).read_bytes() == DATA
    assert other.seen == [("a.tar", None)]
    assert any(isinstance(event, Note) and "wrong content" in event.text for event in events)


def test_when_all_fail_the_error_lists_each_place_and_why(
    mirror: FakeMirror, other: FakeMirror, tmp_path: Path
) -> None:
    mirror.files.clear()
    other.faults = deque([Fault(status=403)])
    dead = FakeMirror(url="http://127.0.0.1:9")
    with pytest.raises(ArmletError) as caught:
        get(wanted_from(mirror, other, dead), tmp_path)
    lines = caught.value.what.splitlines()
    assert "3 places" in lines[0]
    assert lines[1].endswith("HTTP 404")
    assert lines[2].endswith("HTTP 403")
    # Only the reason: not the connection, as Python shows it.
    assert ": failed to establish a new connection: [Errno 111]" in lines[3]
    assert "Connection(" not in lines[3]


def test_no_place_at_all_is_an_error_of_its_own(tmp_path: Path) -> None:
    wanted = Wanted(filename="a.deb", sha256="0" * 64, size=1, debian="pool/a.deb")
    with pytest.raises(ArmletError, match="no place is known") as caught:
        get(wanted, tmp_path)
    assert "ARMLET_DEBIAN_MIRROR" in caught.value.hint


@pytest.mark.parametrize("name", ["a.tar", hashlib.sha256(DATA).hexdigest()])
def test_a_mirror_of_ones_own_may_be_a_folder(mirror: FakeMirror, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "mein Spiegel ü"
    folder.mkdir()
    (folder / name).write_bytes(DATA)
    places = Places(own=(f"file://{folder}",))
    assert get(wanted_from(mirror), tmp_path / "cache", places=places).read_bytes() == DATA
    assert mirror.seen == []


def test_a_copy_of_the_cache_is_a_mirror(mirror: FakeMirror, tmp_path: Path) -> None:
    get(wanted_from(mirror), tmp_path / "old")
    mirror.seen.clear()
    places = Places(own=(f"file://{tmp_path / 'old'}",))
    assert get(wanted_from(mirror), tmp_path / "new", places=places).read_bytes() == DATA
    assert mirror.seen == []


def test_a_part_is_gone_on_with_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(DATA)
    wanted = wanted_from()
    part_of(wanted, tmp_path / "cache").write_bytes(DATA[:5000])
    places = Places(own=(f"file://{tmp_path}",))
    assert get(wanted, tmp_path / "cache", places=places).read_bytes() == DATA
