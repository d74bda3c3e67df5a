"""update.publish, update.send and update.watch as they are typed, over a real broker, with a device at the end."""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.update.blocks import BlocksFetcher
from armlet_runtime.update.interface import Active, Desired, Report
from armlet_runtime.update.topics import Topics
from invoke.context import Context
from invoke.exceptions import Exit

from armlet.errors import Kind
from armlet.payload.verify import verify
from armlet.verbs import key_new, model_pack, update_publish, update_send, update_watch, update_withdraw
from tests.certificates import Authority
from tests.fakes import models
from tests.fakes.contracts import fake_manifest
from tests.fakes.incoming import FakeIncoming
from tests.mosquitto import Broker, Operator, Recorder, device, until

Run = Callable[..., str]
BLOCK = 4096
OTHER = "ef" * 32


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a verb; what it printed."""
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))

    def running(task: Any, *words: Any, **flags: Any) -> str:
        task(Context(), *map(str, words), **flags)
        return capsys.readouterr().out

    return running


def code(run: Run, *words: Any, **flags: Any) -> int | None:
    with pytest.raises(Exit) as caught:
        run(*words, **flags)
    assert "hint: " in str(caught.value.message)
    assert str(caught.value.message).count("error: ") == 1
    return caught.value.code


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a payload, and the key it was signed with."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARMLET_CACHE", str(folder / "cache"))
        key_new.new(Context(), name="release", out=str(folder / "keys"))
        key_new.new(Context(), name="other", out=str(folder / "other"))
        model = models.dense(folder / "dense.onnx")
        models.record(model)
        model_pack.pack(
            Context(),
            model=str(model),
            name="dense",
            version="1.0",
            generation="3",
            licence="MIT",
            description="Dense",
            samples=str(models.samples(folder / "samples")),
            key=str(folder / "keys" / "release.key"),
            out=str(folder),
            format="payload",
        )
    return folder


@pytest.fixture
def payload(made: Path) -> Path:
    (found,) = made.glob("*.payload")
    return found


@pytest.fixture
def key(made: Path) -> str:
    return str(made / "keys")


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def wished(run: Run, broker: Broker, payload: Path, key: str, **flags: Any) -> dict[str, Any]:
    how = {"blocks": True, "block_size": str(BLOCK), "device": ["dev-1"], **flags}
    found: dict[str, Any] = json.loads(
        run(update_publish.publish, payload, broker=at(broker), key=key, json=True, **how)
    )
    return found


def report(state: Any, wish: Desired, active: str = "", **other: Any) -> Report:
    serves = Active("1.0", 3, active, "store") if active else None
    return Report("dense", state, serves, wish, **other)


def test_from_a_file_to_a_device_that_has_it(run: Run, broker: Broker, payload: Path, key: str) -> None:
    wished(run, broker, payload, key, device=["dev-1", "dev-2"])
    got = Recorder()
    ended = threading.Event()
    outcome: list[Any] = []

    def send() -> None:
        update_send.send(Context(), str(payload), broker=at(broker), seconds="8")
        ended.set()

    def watch() -> None:
        try:
            update_watch.watch(
                Context(), broker=at(broker), device=["dev-1"], until="UPDATED", payload=str(payload), seconds="20"
            )
            outcome.append(0)
        except Exit as end:
            outcome.append(end)

    threads = [threading.Thread(target=send), threading.Thread(target=watch)]
    for thread in threads:
        thread.start()
    with device(broker.port, got) as mqtt:
        until(lambda: got.wishes)
        (model, wish) = got.wishes[0]
        assert model == "dense"
        assert wish is not None
        assert (wish.generation, wish.archive_size, wish.block_size) == (3, payload.stat().st_size, BLOCK)
        blocks = BlocksFetcher(mqtt, first_wait=1.0, patience=15)
        got.deliver = blocks.deliver  # type: ignore[method-assign]
        into = FakeIncoming(wish.archive_size, wish.block_size)
        # What an update before this one came to is not what is waited for.
        mqtt.report(report("UPDATED", wish, OTHER))
        blocks.fetch(wish, into, lambda _: None, lambda: False)
        assert into.content == payload.read_bytes()
        assert outcome == []
        mqtt.report(report("UPDATED", wish, wish.payload))
        threads[1].join(15)
        assert outcome == [0]
    threads[0].join(15)
    assert ended.is_set()


def test_by_url_and_in_a_product_s_own_topics(
    run: Run, broker: Broker, payload: Path, key: str, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet.txt"
    fleet.write_text("# the cellar\ndev-1\n\n  dev-7 # at the door\n")
    topics = ["desired=devices/{device}/model/update", "state=devices/{device}/model/state"]
    got = Recorder()
    own = Topics("dev-1", templates={"desired": "devices/{device}/model/update"})
    with Operator(broker.port) as operator, device(broker.port, got, topics=own):
        url = "https://models.example/dense.payload?signature=a%2Fb"
        told = json.loads(
            run(
                update_publish.publish,
                payload,
                broker=at(broker),
                key=key,
                url=url,
                devices_file=str(fleet),
                topic=topics,
                json=True,
            )
        )
        assert told["topics"] == {name: f"devices/{name}/model/update" for name in ("dev-1", "dev-7")}
        until(lambda: got.wishes)
        assert got.wishes[0][1] is not None
        assert got.wishes[0][1].url == url
        operator.say(
            "devices/dev-7/model/state", b'{"schema":1,"model":"dense","state":"FAILED","category":"trial"}', True
        )
    seen = run(update_watch.watch, broker=at(broker), topic=topics, seconds="1", json=True)
    (line,) = map(json.loads, seen.splitlines())
    assert (line["device"], line["model"], line["state"], line["category"]) == ("dev-7", "dense", "FAILED", "trial")


def test_nothing_is_published_of_what_must_not_be(
    run: Run, broker: Broker, payload: Path, key: str, made: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.payload"
    damaged.write_bytes(payload.read_bytes()[:-2000] + bytes(2000))
    small = tmp_path / "runtime.json"
    small.write_text(fake_manifest(flavor="minimal", operators={}).model_dump_json(by_alias=True))
    fits = tmp_path / "fits.json"
    fits.write_text(fake_manifest(flavor="full", providers=["cpu"]).model_dump_json(by_alias=True))
    good: dict[str, Any] = {"broker": at(broker), "key": key, "blocks": True, "device": ["dev-1"]}
    with Operator(broker.port) as operator:
        refused: list[tuple[Path, dict[str, Any], Kind]] = [
            (payload, {"key": str(made / "other")}, Kind.GATE),
            (damaged, {}, Kind.GATE),
            (payload, {"runtime": [str(small)]}, Kind.GATE),
            (payload, {"key": ""}, Kind.INPUT),
            (payload.parent, {}, Kind.INPUT),
            (tmp_path / "missing.payload", {}, Kind.INPUT),
            (payload, {"blocks": False}, Kind.INPUT),
            (payload, {"url": "https://models.example/"}, Kind.INPUT),
            *(
                (payload, {"blocks": False, "url": url}, Kind.INPUT)
                for url in ("http://a/", "https://u:p@a/", "https://a/ b")
            ),
            *((payload, {"block_size": size}, Kind.INPUT) for size in ("5", "x", "-1", "9999999")),
            (payload, {"device": []}, Kind.INPUT),
            *((payload, {"device": [name]}, Kind.INPUT) for name in ("a/b", "+", "#", "", "a b", "ä", "a\n")),
            (payload, {"devices_file": str(tmp_path / "missing.txt")}, Kind.INPUT),
            (payload, {"prefix": "armlet/#"}, Kind.INPUT),
            (payload, {"topic": ["desire={device}"]}, Kind.INPUT),
            (payload, {"topic": ["desired=x/{devic}"]}, Kind.INPUT),
            (payload, {"broker": ""}, Kind.INPUT),
            (payload, {"broker": "mqtt://a"}, Kind.INPUT),
            (payload, {"broker": "a:70000"}, Kind.INPUT),
        ]
        for words, other, kind in refused:
            assert code(run, update_publish.publish, words, **{**good, **other}) == kind, (words, other)
        run(update_publish.publish, payload, **{**good, "dry_run": True, "broker": "", "runtime": [str(fits)]})
        assert operator.seen == []


def test_who_the_broker_is_and_who_we_are(run: Run, payload: Path, key: str, tmp_path: Path) -> None:
    good, other = Authority(tmp_path, "good"), Authority(tmp_path, "other")
    server, client = good.vouch("broker"), good.vouch("operator")
    passwords, secret, wrong = (tmp_path / name for name in ("passwords", "secret", "wrong"))
    subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "operator", "open sesame"], check=True)
    secret.write_text("open sesame\n")
    wrong.write_text("open barley\n")
    acl = tmp_path / "acl"
    acl.write_text("user operator\ntopic readwrite armlet/v1/dev-1/#\n")
    how: dict[str, Any] = {"key": key, "blocks": True, "device": ["dev-1"]}

    def tried(port: int, **flags: Any) -> int | None:
        return code(run, update_publish.publish, payload, **{"broker": f"127.0.0.1:{port}", **how, **flags})

    listener = f"cafile {good.ca}\ncertfile {server.cert}\nkeyfile {server.key}\nrequire_certificate true\n"
    text = f"allow_anonymous false\npassword_file {passwords}\nacl_file {acl}\n"
    shown = {"ca": str(good.ca), "cert": str(client.cert), "key_file": str(client.key)}
    named = {"username": "operator", "password_file": str(secret)}
    with Broker(tmp_path, text, listener) as running:
        port = running.port
        assert tried(port, **{**shown, "ca": str(other.ca)}, **named) == Kind.INPUT
        assert tried(port, tls=True, **named) == Kind.INPUT
        assert tried(port, ca=str(good.ca), **named) == Kind.HOST
        assert tried(port, **named) == Kind.HOST
        assert tried(port, **shown) == Kind.INPUT
        assert tried(port, **shown, username="operator", password_file=str(wrong)) == Kind.INPUT
        assert tried(port, **shown, username="operator", password_file=str(tmp_path / "missing")) == Kind.INPUT
        assert tried(port, **shown, username="operator", password_env="ARMLET_NOBODY_SET_THIS") == Kind.INPUT
        assert tried(port, **{**shown, "key_file": str(server.key)}, **named) == Kind.INPUT
        assert tried(port, **{**shown, "cert": str(secret)}, **named) == Kind.INPUT
        # Another device's topic.
        assert tried(port, **shown, **named, device=["dev-2"]) == Kind.INPUT
        run(update_publish.publish, payload, broker=f"127.0.0.1:{port}", **how, **shown, **named)
    assert tried(port) == Kind.HOST
    with Broker(tmp_path) as plain:
        assert tried(plain.port, **shown) == Kind.HOST
    assert tried(1883, broker="no-such-host.invalid") == Kind.HOST


def test_a_wish_is_taken_back(run: Run, broker: Broker, payload: Path, key: str) -> None:
    wished(run, broker, payload, key, device=["dev-1", "dev-2"])
    flags: dict[str, Any] = {"broker": at(broker), "model": "dense", "device": ["dev-1"]}
    got, other = Recorder(), Recorder()
    with device(broker.port, got):
        until(lambda: got.wishes)
        found = json.loads(run(update_withdraw.withdraw, json=True, **flags))
        assert found == {"topics": {"dev-1": "armlet/v1/dev-1/models/dense/desired"}}
        until(lambda: got.wishes[-1] == ("dense", None))
    with device(broker.port, other, topics=Topics("dev-2"), client_id="dev-2"):
        until(lambda: other.wishes)
        assert other.wishes[0][1] is not None
    wrong: dict[str, Any]
    for wrong in ({"device": []}, {"model": ""}, {"model": "+"}, {"broker": ""}):
        assert code(run, update_withdraw.withdraw, **{**flags, **wrong}) == Kind.INPUT


def test_senders_answer_what_makes_sense(run: Run, broker: Broker, payload: Path) -> None:
    data = payload.read_bytes()
    sha = hashlib.sha256(data).hexdigest()
    right = {"schema": 1, "model": "dense", "payload": OTHER, "archive": sha, "size": BLOCK, "blocks": [0, 1]}
    hostile: list[Any] = [
        *({**right, "blocks": blocks} for blocks in ([-1], [10**9], ["0"], [True], 0, None, [[0]], [1.0], [10**400])),
        *({**right, "size": size} for size in (0, 1, -BLOCK, 2**40, "4096", None)),
        *({**right, "archive": one} for one in (OTHER, "", 5, "../../etc/passwd")),
        *([], 5, None, {}, "x", right),
    ]
    thread = threading.Thread(
        target=update_send.send, args=(Context(), str(payload)), kwargs={"broker": at(broker), "seconds": "4"}
    )
    thread.start()
    with Operator(broker.port) as operator:
        wanted = "armlet/v1/dev-1/models/dense/blocks/wanted"
        # A broker keeps nothing for who is not there yet.
        until(lambda: operator.say(wanted, json.dumps(right).encode()) or len(operator.seen) > 2)  # type: ignore[func-returns-value]
        operator.say(wanted, b"\xff{")
        operator.say(wanted, b"[" * 5000)
        for question in hostile:
            operator.say(wanted, json.dumps(question).encode())
        thread.join(15)
        answers = {topic: message for topic, message, _ in operator.seen if topic != wanted}
    first = f"armlet/v1/dev-1/models/dense/blocks/{sha}"
    assert answers == {f"{first}/0": data[:BLOCK], f"{first}/1": data[BLOCK : 2 * BLOCK]}


def test_a_file_that_is_replaced_while_it_is_sent(run: Run, broker: Broker, payload: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.payload"
    copy.write_bytes(payload.read_bytes())
    ends: list[int | None] = []
    thread = threading.Thread(
        target=lambda: ends.append(code(run, update_send.send, copy, broker=at(broker), seconds="15"))
    )
    thread.start()
    sha = hashlib.sha256(payload.read_bytes()).hexdigest()
    wish = Desired("dense", "1.0", 3, OTHER, payload.stat().st_size, sha, block_size=BLOCK)
    got = Recorder()
    with device(broker.port, got) as mqtt:
        until(lambda: mqtt.want(wish, [0]) and (time.sleep(0.2) or got.blocks))  # type: ignore[func-returns-value]
        copy.write_bytes(b"another")
        mqtt.want(wish, [1])
        thread.join(15)
    assert ends == [Kind.HOST]


@pytest.mark.parametrize(
    ("state", "other", "seconds", "kind"),
    [
        ("FAILED", {"category": "trial", "reason": "golden vectors differ"}, "20", Kind.TARGET),
        ("ROLLED_BACK", {"category": "probation"}, "20", Kind.TARGET),
        ("FAILED", {"category": "download", "retry_seconds": 60.0}, "1.5", Kind.TARGET),
        ("TRIAL", {"phase": "probation"}, "1.5", Kind.TARGET),
    ],
)
def test_waiting_for_what_does_not_come(
    run: Run, broker: Broker, payload: Path, state: str, other: dict[str, Any], seconds: str, kind: Kind
) -> None:
    sha = verify(payload, key=None, unsigned=True).sha256
    wish = Desired("dense", "1.0", 3, sha, 1, OTHER, block_size=BLOCK)
    flags = {"broker": at(broker), "until": "UPDATED", "payload": str(payload), "seconds": seconds}
    with device(broker.port, Recorder()) as mqtt:
        until(lambda: mqtt.connected)
        mqtt.report(report(state, wish, OTHER, **other))
        started = time.monotonic()
        assert code(run, update_watch.watch, **flags, device=["dev-1"]) == kind
        assert time.monotonic() - started < 10
    wrong: dict[str, Any]
    for wrong in ({"until": "updated"}, {"device": []}, {"until": ""}, {"seconds": "x"}):
        assert code(run, update_watch.watch, **{**flags, "device": ["dev-1"], **wrong}) == Kind.INPUT


def test_what_a_device_tells_is_shown_and_obeyed_by_no_terminal(run: Run, broker: Broker) -> None:
    with Operator(broker.port) as operator:
        for name, message in (
            ("evil", {"state": "FAILED", "reason": "\x1b[2J\nUPDATED", "retry_seconds": 1e300}),
            ("odd", {"state": "IDLE", "active": [], "desired": "x", "progress": "y", "reason": 5}),
            ("none", {"state": "OWNED"}),
        ):
            operator.say(f"armlet/v1/{name}/models/m/state", json.dumps(message).encode(), retain=True)
        operator.say("armlet/v1/deep/models/m/state", b"[" * 60000, retain=True)
    seen = run(update_watch.watch, broker=at(broker), seconds="1")
    assert seen.isascii()
    assert "\x1b" not in seen
    assert sorted(line.split()[0] for line in seen.splitlines()) == ["DEVICE", "evil", "odd"]
