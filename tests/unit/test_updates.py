"""Topics of many devices, what devices ask and tell, and what is waited for."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.update import messages
from armlet_runtime.update.interface import Active, Desired, Report
from hypothesis import given
from hypothesis import strategies as st

from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note
from armlet.updates import routes, send, watch
from armlet.updates.broker import Message
from armlet.updates.routes import Routes
from armlet.updates.watch import Goal, Told
from armlet.updates.wish import Archive

SHA, OTHER = "ab" * 32, "cd" * 32
STATE = "armlet/v1/dev-1/models/m/state"
WANTED = "armlet/v1/dev-1/models/m/blocks/wanted"
WISH = Desired("m", "1.2", 7, SHA, 70_000, OTHER, block_size=32768)
ACTIVE = Active("1.2", 7, SHA, "store")


def told(state: Any, device: str = "dev-1", active: Active | None = None, **other: Any) -> Told:
    """As a device tells it and we read it."""
    report = Report("m", state, active, WISH, **other)
    found = watch.read(Routes(), Message(STATE.replace("dev-1", device), messages.state(report, 0), True))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("template", "devices", "filters"),
    [
        ("", [], ["armlet/v1/+/models/+/state"]),
        ("", ["a", "b"], ["armlet/v1/a/models/+/state", "armlet/v1/b/models/+/state"]),
        ("devices/{device}/model/state", [], ["devices/+/model/state"]),
        ("devices/dev-{device}/{model}", ["7"], ["devices/dev-7/+"]),
    ],
)
def test_filters(template: str, devices: list[str], filters: list[str]) -> None:
    made = routes.routes("", [f"state={template}"] if template else [])
    assert made.filters("state", devices) == filters
    topic = made.of("state", "dev.1", "m")
    found = made.read("state", topic)
    assert found is not None
    assert (found["device"], found.get("model", "m")) == ("dev.1", "m")
    for other in (topic + "/x", "x/" + topic, topic[:-1], topic.replace("dev.1", "dev/1"), topic.replace("dev.1", "+")):
        assert made.read("state", other) is None


def test_a_device_that_is_a_part_of_a_level_has_to_be_named() -> None:
    with pytest.raises(ArmletError, match="not all devices") as caught:
        routes.routes("gateways/g-{device}", []).filters("state", [])
    assert caught.value.kind == Kind.INPUT


def test_a_topic_that_is_one_devices() -> None:
    made = routes.routes("plant/7", [], ["dev-1"])
    assert made.filters("state", ["dev-1"]) == ["plant/7/models/+/state"]
    assert made.read("state", "plant/7/models/m/state") == {"device": "dev-1", "model": "m"}
    for several in ([], ["dev-1", "dev-2"]):
        with pytest.raises(ArmletError, match="one device's topic"):
            routes.routes("plant/7", [], several).filters("state", several)


def test_devices_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "fleet"
    file.write_text("a\n\n# none\n b # the second\na\n")
    assert routes.devices(["c", "b"], file) == ("c", "b", "a")
    file.write_text("a\nb/c\n")
    with pytest.raises(ArmletError, match="no name of a device") as caught:
        routes.devices([], file)
    assert caught.value.where == f"{file}:2"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ArmletError, match="cannot be read"):
        routes.devices([], file)


def test_a_question_as_a_device_asks_it() -> None:
    asked = send.question(Routes(), Message(WANTED, messages.wanted(WISH, [0, 2]), False))
    assert asked == send.Question("dev-1", "m", OTHER, 32768, (0, 2))
    assert send.question(Routes(), Message(WANTED, messages.wanted(WISH, [0, 2]), True)) is None


def test_a_state_as_a_device_tells_it() -> None:
    found = told("DOWNLOADING", active=ACTIVE, progress=0.25)
    assert (found.device, found.model, found.state, found.active, found.desired) == (
        "dev-1",
        "m",
        "DOWNLOADING",
        SHA,
        SHA,
    )
    assert watch.cells(found) == ("dev-1", "m", "DOWNLOADING", "1.2 (7)", "1.2 (7)", "25 %")
    again = told("FAILED", category="download", reason="nobody answers", retry_seconds=60)
    assert watch.cells(again)[3:] == ("nothing", "1.2 (7)", "download, nobody answers, again in 60 s")


ANYTHING = st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([SHA, "FAILED"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["state", "active", "progress", "archive", "size", "blocks", "payload"]), inner
        )
    ),
    max_leaves=10,
).map(lambda value: json.dumps(value).encode())


@given(ANYTHING)
def test_whatever_devices_say_is_read_or_nothing(message: bytes) -> None:
    asked = send.question(Routes(), Message(WANTED, message, False))
    assert asked is None or all(number >= 0 for number in asked.blocks)
    found = watch.read(Routes(), Message(STATE, message, False))
    assert found is None or found.state in watch.STATES
    if found is not None:
        watch.cells(found)


def goal(*told_: Told, devices: tuple[str, ...] = ("dev-1", "dev-2"), payload: str = SHA) -> Goal:
    made = Goal("UPDATED", devices, payload)
    for one in told_:
        made.take(one)
    return made


def test_what_is_waited_for() -> None:
    there = told("UPDATED", active=ACTIVE), told("UPDATED", "dev-2", ACTIVE)
    assert goal(*there).reached
    assert not goal(there[0]).reached
    assert not goal(*there, told("TRIAL", "dev-2", ACTIVE)).reached
    # It says so, and serves something else.
    assert not goal(there[0], told("UPDATED", "dev-2", Active("1.1", 6, OTHER, "store"))).reached
    # Of another update.
    assert not goal(*there, payload=OTHER).reached
    assert goal(*there, payload="").reached


def test_what_is_missed() -> None:
    failed, later = told("FAILED", category="trial"), told("FAILED", "dev-2", retry_seconds=5.0)
    assert goal(failed, later).missed(over=False) == []
    assert goal(failed, told("UPDATED", "dev-2", ACTIVE)).missed(over=False) == ["dev-1: FAILED, trial"]
    assert goal(failed, told("ROLLED_BACK", "dev-2")).missed(over=False) == [
        "dev-1: FAILED, trial",
        "dev-2: ROLLED_BACK",
    ]
    assert goal(failed).missed(over=True) == ["dev-1: FAILED, trial", "dev-2: has told nothing of it"]


class FakeConnection:
    """Brings these messages, and takes nothing."""

    def __init__(self, *messages: Message) -> None:
        self.messages: queue.Queue[Message] = queue.Queue()
        for message in messages:
            self.messages.put(message)

    def subscribe(self, filters: list[str]) -> None:
        pass


def test_a_sender_tells_of_devices_that_ask_for_what_it_does_not_have(tmp_path: Path) -> None:
    asked = [Message(WANTED, messages.wanted(WISH, [number]), False) for number in range(3)]
    connection, events = FakeConnection(*asked), list[Event]()
    here = Archive(path=tmp_path / "here.payload", size=1, sha256=SHA)
    sender = send.Sender(connection, Routes(), [here], events.append)  # type: ignore[arg-type]
    sender.run(connection.messages.empty)
    told = [event.text for event in events if isinstance(event, Note)]
    assert "here.payload" in told[0]
    assert [("dev-1" in text, OTHER[:16] in text) for text in told[1:]] == [(True, True)]
