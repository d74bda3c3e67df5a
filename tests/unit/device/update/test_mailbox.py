"""What waits between two threads stays within bounds."""

from __future__ import annotations

from armlet_runtime.update import mailbox
from armlet_runtime.update.mailbox import Block, Inbox, Outbox, Wish
from armlet_runtime.update.topics import Match

SHA = "ab" * 32


def taken(inbox: Inbox) -> list[Wish | Block]:
    return list(iter(inbox.take, None))


def test_the_newest_wish_of_each_model() -> None:
    inbox = Inbox()
    for model, message in (("m", b"1"), ("n", b"2"), ("m", b"3")):
        assert inbox.put(Match("desired", model), f"t/{model}", message)
    assert taken(inbox) == [Wish("n", b"2"), Wish("m", b"3")]


def test_wishes_of_a_topic_without_a_model_stay_apart() -> None:
    inbox = Inbox()
    for message in (b"1", b"2", b"1"):
        inbox.put(Match("desired"), "t", message)
    assert taken(inbox) == [Wish("", b"2"), Wish("", b"1")]


def test_a_flood_of_wishes() -> None:
    inbox = Inbox()
    for number in range(1000):
        inbox.put(Match("desired", f"m{number}"), f"t/{number}", b"x" * 100_000)
    found = taken(inbox)
    assert len(found) == mailbox.MOST_WISHES
    assert found[-1] == Wish("m999", b"x" * (mailbox.LARGEST_WISH + 1))
    assert inbox.dropped["full"] == 1000 - mailbox.MOST_WISHES


def test_only_blocks_that_were_asked_for_and_each_once() -> None:
    inbox = Inbox()
    inbox.ask(SHA, 10, [1, 2, 3])
    for number, data in ((2, b"x" * 10), (2, b"y"), (4, b"z"), (1, b""), (1, b"x" * 11), (3, b"w")):
        inbox.put(Match("block", "m", SHA, number), "t", data)
    inbox.put(Match("block", "m", "cd" * 32, 1), "t", b"x")
    inbox.put(None, "t", b"x")
    assert taken(inbox) == [Block(SHA, 2, b"x" * 10), Block(SHA, 3, b"w")]
    assert inbox.dropped == {"unasked": 3, "size": 2, "foreign": 1}


def test_the_oldest_question_is_forgotten() -> None:
    inbox = Inbox()
    inbox.ask(SHA, 10, range(mailbox.MOST_BLOCKS + 2))
    inbox.ask(SHA, 10, [2])
    inbox.ask(SHA, 10, [99])
    let_in = [number for number in range(100) if inbox.put(Match("block", "m", SHA, number), "t", b"x")]
    assert let_in == [2, *range(4, mailbox.MOST_BLOCKS + 2), 99]


def test_states_are_told_once_and_again_after_a_connection() -> None:
    outbox = Outbox()
    for topic, message in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        outbox.state(topic, message)
    assert list(iter(outbox.next_state, None)) == [("a", b"3"), ("b", b"2")]
    assert outbox.idle
    outbox.again()
    assert sorted(iter(outbox.next_state, None)) == [("a", b"3"), ("b", b"2")]


def test_a_question_is_for_one_connection() -> None:
    outbox, old, new = Outbox(), object(), object()
    for message, link in ((b"1", old), (b"2", new), (b"3", old)):
        outbox.question("q", message, link)
    assert outbox.next_question(new) == ("q", b"2")
    assert outbox.next_question(new) is None
    assert outbox.idle


def test_what_goes_out_is_bounded() -> None:
    outbox = Outbox()
    for number in range(1000):
        outbox.state(f"t{number}", b"x")
        outbox.alert(b"%d" % number)
        outbox.question("q", b"%d" % number, outbox)
    states = list(iter(outbox.next_state, None))
    assert len(states) == mailbox.MOST_STATES
    assert states[-1][0] == "t999"
    assert len(list(iter(lambda: outbox.next_question(outbox), None))) == mailbox.MOST_BLOCKS
    alerts = list(iter(outbox.next_alert, None))
    assert (len(alerts), alerts[-1]) == (mailbox.MOST_ALERTS, b"999")


def test_alerts_that_did_not_arrive_go_first_where_there_is_room() -> None:
    outbox = Outbox()
    outbox.alert(b"new")
    outbox.back([b"1", b"2"])
    assert list(iter(outbox.next_alert, None)) == [b"1", b"2", b"new"]
    for number in range(mailbox.MOST_ALERTS):
        outbox.alert(b"%d" % number)
    outbox.back([b"1", b"2"])
    assert next(iter(outbox.next_alert, None)) == b"0"
