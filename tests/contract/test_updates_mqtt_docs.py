"""docs/updates-mqtt.md and the shipped ACL say what the device does."""

from __future__ import annotations

import dataclasses
import re

from armlet_runtime.serve import config
from armlet_runtime.update import topics
from armlet_runtime.update.mqtt_settings import READERS, TOPIC, MqttSettings

from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "updates-mqtt.md").read_text(encoding="utf-8")
ACL = (ROOT / "device" / "mqtt" / "armlet.acl").read_text(encoding="utf-8")


def rows() -> dict[str, str]:
    """Key -> default, as it is written."""
    return {key: default.strip() for key, default in re.findall(r"^\| `(\w+)` \|(.*?)\|", TEXT, re.MULTILINE)}


def told(value: object) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, (int, float)) else f"`{value}`"


def test_each_key_and_its_default() -> None:
    written = rows()
    for one in dataclasses.fields(MqttSettings):
        if one.name != "templates":
            assert written[one.name] == told(one.default), one.name
    for kind, template in topics.TEMPLATES.items():
        assert written[TOPIC + kind] == f"`{template}`"
    assert READERS.keys() <= written.keys()


def test_the_examples_are_some() -> None:
    examples = [text for text in re.findall(r"```ini\n(.*?)```", TEXT, re.DOTALL) if "[mqtt]" in text]
    assert len(examples) == 3
    for example in examples:
        read = config.parse(example).mqtt
        assert read is not None
        assert read.name == "gateway-7"


def test_the_acl_has_every_topic_once() -> None:
    rules = set(re.findall(r"^pattern (read|write) (\S+)$", ACL, re.MULTILINE))
    made = topics.Topics("%u")
    wanted = {("read", topic) for topic in made.filters}
    for kind in topics.TEMPLATES:
        if kind not in topics.RECEIVED:
            wanted.add(("write", made.of(kind, "+")))
    assert rules == wanted


def test_every_metric_is_told() -> None:
    source = (ROOT / "device" / "armlet_runtime" / "update" / "mqtt.py").read_text(encoding="utf-8")
    names = set(re.findall(r'"(armlet_mqtt_\w+)"', source))
    assert len(names) == 5
    assert names <= set(re.findall(r"armlet_mqtt_\w+", TEXT))


def test_every_kind_of_alert_is_told() -> None:
    sources = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "device" / "armlet_runtime" / "update").glob("*.py")
    )
    kinds = set(re.findall(r'(?:\.alert|Alert)\([^"()]*(?:"", )?"(\w+)"', sources))
    assert {"crash_loop", "disk_low", "provider_share", "flapping"} <= kinds
    assert {*kinds, "drift", "failed", "rolled_back"} <= rows().keys() | set(
        re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    )
