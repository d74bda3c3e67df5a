"""Section ``[mqtt]`` of the device's file: keys, what they default to, and what goes together."""

from __future__ import annotations

import dataclasses
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, Literal, Mapping

from armlet_runtime.serve import values
from armlet_runtime.update import topics
from armlet_runtime.update.access import Access

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})|\[?[0-9A-Fa-f:.]{2,45}\]?")
_PLAIN_PORT, _TLS_PORT = 1883, 8883


@dataclass(frozen=True)
class MqttSettings:
    """Section ``[mqtt]``; without a host there is no MQTT."""

    host: str = ""
    port: int | None = None
    """None: 1883, with TLS 8883."""
    protocol: Literal["3.1.1", "5"] = "3.1.1"
    device: str | None = None
    """None: the host's name."""
    client_id: str | None = None
    """None: ``armlet-<device>``."""
    prefix: str = topics.PREFIX
    keepalive: int = 60
    """Seconds."""
    username: str = ""
    password_file: Path | None = None
    tls: bool = False
    ca: Path | None = None
    """None: the system's."""
    cert: Path | None = None
    key: Path | None = None
    telemetry_seconds: float = 60.0
    """0: no telemetry."""
    spool_mb: float = 16.0
    """Most that waits on disk while there is no connection."""
    spool_days: float = 14.0
    """Running days after which it is thrown away."""
    disk_low_mb: int = 64
    """With less than that free on the store's disk there is an alert."""
    templates: Mapping[topics.Kind, str] = field(default_factory=dict)
    """Keys ``topic_<kind>``: those that are not as :data:`armlet_runtime.update.topics.TEMPLATES` has them."""

    @property
    def name(self) -> str:
        """The device's, in topics."""
        return self.device or _hostname()

    def access(self) -> Access:
        """Where the broker is."""
        return Access(
            host=self.host.strip("[]"),
            port=self.port or (_TLS_PORT if self.tls else _PLAIN_PORT),
            client_id=self.client_id or f"armlet-{self.name}",
            keepalive=self.keepalive,
            username=self.username,
            password_file=self.password_file,
            tls=self.tls,
            ca=self.ca,
            cert=self.cert,
            key=self.key,
            version5=self.protocol == "5",
        )

    def topics(self) -> topics.Topics:
        """All topics of this device."""
        return topics.Topics(self.name, self.prefix, self.templates)


def _matching(pattern: re.Pattern[str], wanted: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(wanted)
        return text

    return read


def _protocol(text: str) -> str:
    if text not in ("3.1.1", "5"):
        raise ValueError("3.1.1 or 5")
    return text


def _topic(kind: topics.Kind) -> Callable[[str], str]:
    return lambda text: topics.template(kind, text)


TOPIC = "topic_"
READERS: Mapping[str, Callable[[str], Any]] = {
    "host": _matching(_HOST, "a host's name or address"),
    "port": values.whole(1, 65_535),
    "protocol": _protocol,
    "device": _matching(topics.DEVICE, "up to 64 letters, digits, dots, colons, hyphens and underscores"),
    "client_id": _matching(re.compile(r"[ -~]{1,128}"), "1 to 128 printable ASCII characters"),
    "prefix": topics.prefix,
    "keepalive": values.whole(5, 3600),
    "username": _matching(re.compile(r"[^\x00-\x1f\x7f]{1,256}"), "1 to 256 printable characters"),
    "password_file": values.path_or_none,
    "tls": values.switch,
    "ca": values.path_or_none,
    "cert": values.path_or_none,
    "key": values.path_or_none,
    "telemetry_seconds": values.number(0, 86_400),
    "spool_mb": values.number(0.1, 65_536),
    "spool_days": values.number(0.01, 3650),
    "disk_low_mb": values.whole(0, 1 << 20),
    **{TOPIC + kind: _topic(kind) for kind in topics.TEMPLATES},
}


def settings(found: Mapping[str, Any]) -> MqttSettings:
    """Of the values that stand in the section."""
    plain = {key: value for key, value in found.items() if not key.startswith(TOPIC)}
    templates = {kind: found[TOPIC + kind] for kind in topics.TEMPLATES if TOPIC + kind in found}
    return MqttSettings(**plain, templates=templates)


def problems(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, what is wrong) of values that are each right by themselves; key is empty where one is missing."""
    read = settings(found)
    if not read.host:
        yield "", "[mqtt] names no host"
    for key in ("ca", "cert", "key"):
        if found.get(key) and not read.tls:
            yield key, f"{key} is for TLS, and tls is not yes"
    if read.key and not read.cert:
        yield "key", "key is for cert, and there is none"
    if read.password_file and not read.username:
        yield "password_file", "password_file is for username, and there is none"
    if read.device is None and not topics.DEVICE.fullmatch(_hostname()):
        yield "", f'device is missing in [mqtt], and the host\'s name "{_hostname()}" cannot stand in a topic'
        return
    for kind, what in topics.clashes(read.name, read.prefix, read.templates):
        yield TOPIC + kind if TOPIC + kind in found else "prefix", what


def _hostname() -> str:
    return socket.gethostname()


FIELDS = tuple(f.name for f in dataclasses.fields(MqttSettings) if f.name != "templates")
"""Keys that are not templates."""
