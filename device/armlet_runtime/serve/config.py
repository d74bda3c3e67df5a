"""The device's own file, ``/etc/armlet/device.conf``: what differs from one device of a fleet to the next.

The tables below are the whole of it: section, key, how its value is read. docs/service.md has the meanings.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping

from armlet_runtime.serve import ini, values
from armlet_runtime.serve.chain import key_of
from armlet_runtime.serve.limits import Limits
from armlet_runtime.serve.listening import Address, TcpAddress
from armlet_runtime.serve.queue import Policy
from armlet_runtime.update import mqtt_settings, settings
from armlet_runtime.update.mqtt_settings import MqttSettings
from armlet_runtime.update.settings import Updates

DEFAULT = Path("/etc/armlet/device.conf")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SECONDS = values.number(0.1, 86_400)


class ConfigError(Exception):
    """The file cannot be used; ``problems`` has one line each, with file and line number where there is one."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Service:
    """Section ``[service]``."""

    payloads: Path = Path("/usr/lib/armlet/models")
    """``<model>/<version>/payload.json``."""
    runtime: Path | None = Path("/usr/share/armlet/runtime.json")
    """The runtime's contract; None: models are not checked against it."""
    library: Path | None = None
    """``libonnxruntime.so``; None: where the binding looks."""
    keys: Path | None = Path("/etc/armlet/keys")
    """Public keys, ``*.pub``; None: signatures are not checked."""
    payload_mb: int = 512
    """Most that the files of one payload may have together."""
    scratch: Path | None = None
    """A folder for profiles while models warm up; None: the system's temporary one, or ``/dev/shm``."""
    listen: Address = field(default_factory=TcpAddress)
    start_seconds: float = 120.0
    """Within which a worker must have loaded and tried its model."""
    stall_seconds: float = 10.0
    """A worker that shows no life for that long is replaced."""
    run_seconds: float = 60.0
    """A worker that computes one answer for longer is replaced."""
    drain_seconds: float = 10.0
    """Within which what has been accepted must be answered when the service ends."""
    telemetry: Path | None = None
    """A file that a snapshot of all metrics is appended to; None: only /metrics has them."""
    telemetry_seconds: float = 60.0
    message_mb: int = 64
    """Most that the tensors of one request, or of one answer, may have together."""


@dataclass(frozen=True)
class ModelSettings:
    """Section ``[models]`` for all of them, and ``[model:<name>]`` over it."""

    enabled: bool = True
    providers: tuple[str, ...] | None = None
    """None: the payload's own chain."""
    min_provider_share: Mapping[str, float] = field(default_factory=dict)
    """Provider -> least share of the nodes that it must run at warm-up."""
    cores: int | None = None
    """None: a fair share of what other models leave."""
    threads: int | None = None
    """None: what the payload says, else one per core."""
    memory_mb: int | None = None
    """A worker beyond it is replaced; None: no limit."""
    queue: int = 16
    """Requests that wait, beside the one in hand."""
    policy: Policy = "drop-newest"


@dataclass(frozen=True)
class DeviceConfig:
    """The whole file."""

    service: Service = field(default_factory=Service)
    http: Limits = field(default_factory=Limits)
    defaults: ModelSettings = field(default_factory=ModelSettings)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    updates: Updates = field(default_factory=Updates)
    provider_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Short name -> its options, over those of the payload."""
    mqtt: MqttSettings | None = None
    """None: no updates over MQTT, and no telemetry."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Section -> where it begins: for problems that show later."""

    def model(self, name: str) -> ModelSettings:
        """What holds for a model."""
        return self.models.get(name, self.defaults)


Reader = Callable[[str], Any]

_SERVICE: Mapping[str, Reader] = {
    "payloads": values.path,
    "runtime": values.path_or_none,
    "library": values.path_or_none,
    "keys": values.path_or_none,
    "payload_mb": values.whole(1, 65_536),
    "scratch": values.path_or_none,
    "listen": values.address,
    "start_seconds": _SECONDS,
    "stall_seconds": values.number(2, 86_400),
    "run_seconds": _SECONDS,
    "drain_seconds": values.number(0, 86_400),
    "telemetry": values.path_or_none,
    "telemetry_seconds": _SECONDS,
    "message_mb": values.whole(1, 1024),
}
_MODEL: Mapping[str, Reader] = {
    "enabled": values.switch,
    "providers": values.providers,
    "min_provider_share": values.shares,
    "cores": values.whole(1, 1024),
    "threads": values.whole(1, 1024),
    "memory_mb": values.whole(1, 1 << 20),
    "queue": values.whole(1, 65_536),
    "policy": values.policy,
}
_HTTP: Mapping[str, Reader] = {
    f.name: _SECONDS if isinstance(f.default, float) else values.whole(1, 1 << 40) for f in dataclasses.fields(Limits)
}
_PLAIN: Mapping[str, Mapping[str, Reader]] = {
    "service": _SERVICE,
    "http": _HTTP,
    "models": _MODEL,
    "updates": settings.READERS,
    "mqtt": mqtt_settings.READERS,
}


def load(path: Path) -> DeviceConfig:
    """Reads the file. Raises :class:`ConfigError`, also where it cannot be read."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: not UTF-8 at byte {error.start}"]) from error


def parse(text: str, name: str = "device.conf") -> DeviceConfig:
    """Raises :class:`ConfigError` with everything that is wrong; ``name`` is what the file is called in it."""
    sections, problems = ini.parse(text)
    read = {section.name: _read(section, problems) for section in sections}
    problems += [problem for section in sections if section.name == "mqtt" for problem in _apart(section, read["mqtt"])]
    if problems:
        raise ConfigError([f"{name}:{line}: {what}" for line, what in sorted(problems)])
    defaults = ModelSettings(**read.get("models", {}))
    return DeviceConfig(
        service=Service(**read.get("service", {})),
        http=Limits(**read.get("http", {})),
        defaults=defaults,
        updates=Updates(**read.get("updates", {})),
        models={key: dataclasses.replace(defaults, **found) for key, found in _named(read, "model")},
        provider_options={key_of(key): found for key, found in _named(read, "provider")},
        mqtt=mqtt_settings.settings(read["mqtt"]) if "mqtt" in read else None,
        lines={section.name: section.line for section in sections},
    )


def _apart(section: ini.Section, found: Mapping[str, Any]) -> list[ini.Problem]:
    """What does not go together in ``[mqtt]``."""
    lines = {key.lower(): entry.line for key, entry in section.entries.items()}
    return [ini.Problem(lines.get(key, section.line), what) for key, what in mqtt_settings.problems(found)]


def _named(read: Mapping[str, dict[str, Any]], kind: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name.partition(":")[2].strip(), found) for name, found in read.items() if name.startswith(kind + ":")]


def _read(section: ini.Section, problems: list[ini.Problem]) -> dict[str, Any]:
    kind, colon, name = section.name.partition(":")
    if colon and kind == "provider":
        # Options are the provider's own affair; an empty one is given as it stands.
        return {key: entry.value for key, entry in section.entries.items()}
    if colon and kind == "model":
        if not _NAME.fullmatch(name.strip()):
            problems.append(ini.Problem(section.line, f'"{ini.shown(name)}" is no model\'s name'))
        return _values(section, _MODEL, problems)
    if section.name not in _PLAIN:
        known = [*(f"[{name}]" for name in _PLAIN), "[model:<name>]", "[provider:<name>]"]
        what = f"unknown section [{ini.shown(section.name)}]{ini.near(f'[{section.name}]', known)}"
        problems.append(ini.Problem(section.line, what))
        return {}
    return _values(section, _PLAIN[section.name], problems)


def _values(section: ini.Section, readers: Mapping[str, Reader], problems: list[ini.Problem]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for written, (text, line) in section.entries.items():
        key = written.lower()
        if key not in readers:
            what = f'unknown key "{ini.shown(written)}" in [{section.name}]{ini.near(key, readers)}'
            problems.append(ini.Problem(line, what))
            continue
        try:
            found[key] = readers[key](text)
        except ValueError as error:
            problems.append(ini.Problem(line, f'{key} is "{ini.shown(text)}"; wanted: {error}'))
    return found
