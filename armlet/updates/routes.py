"""Topics as seen by the operator: those of many devices, by the device's own templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from armlet_runtime.update import topics

from armlet.errors import ArmletError, Kind

_NAME = re.compile(r"\{([^{}]*)\}")
_VALUES = {"device": topics.DEVICE.pattern, "model": topics.MODEL.pattern}
_LONGEST_LIST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """``prefix`` and ``templates`` as in section ``[mqtt]`` of the devices' file."""

    prefix: str = topics.PREFIX
    templates: Mapping[topics.Kind, str] = field(default_factory=dict)
    only: str = ""
    """The device of topics that do not name one."""

    def of(self, kind: topics.Kind, device: str, model: str, archive: str = "", block: int = 0) -> str:
        """The topic of one device."""
        return topics.Topics(device, self.prefix, self.templates).of(kind, model, archive, block)

    def filters(self, kind: topics.Kind, devices: Sequence[str], model: str = "") -> list[str]:
        """The topics of these devices; of all, where none is named.

        Raises:
            ArmletError: (INPUT) the device is only a part of a level, which no subscription can leave open; or no part
                of the topic, and more than one is meant.
        """
        if "{device}" not in self._text(kind) and len(devices) != 1:
            hint = "name the one that it is: --device; or write {device} into --prefix or --topic"
            raise ArmletError(f"{self._text(kind)} is one device's topic", hint=hint, kind=Kind.INPUT)
        if not devices and not re.search(r"(^|/)\{device\}(/|$)", self._text(kind)):
            hint = "name them: --device, once for each, or --devices-file"
            raise ArmletError(f"not all devices can be listened to with {self._text(kind)}", hint=hint, kind=Kind.INPUT)
        return [self.of(kind, device, model or "+") for device in devices or ["+"]]

    def read(self, kind: topics.Kind, topic: str) -> dict[str, str] | None:
        """Names of the template -> what a topic that came has in their places; None: it is another one."""
        parts = _NAME.split(self._text(kind))
        pattern = "".join(
            f"(?P<{part}>{_VALUES[part]})" if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
        found = re.fullmatch(pattern, topic)
        return {"device": self.only, **found.groupdict()} if found else None

    def _text(self, kind: topics.Kind) -> str:
        return {**topics.TEMPLATES, **self.templates}[kind].replace("{prefix}", self.prefix)


def routes(prefix: str, given: Sequence[str], devices: Sequence[str] = ()) -> Routes:
    """``given``: KIND=TEMPLATE, as ``topic_KIND = TEMPLATE`` in a device's file; ``devices``: whom it is about.

    Raises:
        ArmletError: (INPUT) one of them is none.
    """
    templates: dict[topics.Kind, str] = {}
    try:
        beginning = topics.prefix(prefix) if prefix else topics.PREFIX
    except ValueError as error:
        raise _input(f'--prefix "{prefix}" is none', f"write {error}, as {topics.PREFIX}") from error
    for one in given:
        name, _, text = one.partition("=")
        kind = next((known for known in topics.TEMPLATES if known == name.strip()), None)
        if kind is None:
            raise _input(f'--topic "{one}": "{name}" is no topic', f"KIND=TEMPLATE, with {', '.join(topics.TEMPLATES)}")
        try:
            templates[kind] = topics.template(kind, text.strip())
        except ValueError as error:
            raise _input(f'--topic "{one}" is none', f"write {error}") from error
    return Routes(prefix=beginning, templates=templates, only=devices[0] if len(devices) == 1 else "")


def devices(named: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """Devices that are named, and those of a file: one a line, blank lines and ``#`` comments left out; each once.

    Raises:
        ArmletError: (INPUT) a name is none, or the file cannot be read.
    """
    found = [(name, "--device") for name in named]
    if file is not None:
        try:
            with file.open(encoding="utf-8") as stream:
                lines = stream.read(_LONGEST_LIST).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            what = getattr(error, "strerror", None) or "it is no text"
            raise _input(f"{file} cannot be read: {what}", "a text file with a device on each line") from error
        texts = [(line.partition("#")[0].strip(), f"{file}:{number}") for number, line in enumerate(lines, 1)]
        found += [(text, where) for text, where in texts if text]
    for name, where in found:
        if not topics.DEVICE.fullmatch(name):
            raise ArmletError(
                f'"{name}" is no name of a device',
                hint="up to 64 letters, digits, dots, colons, hyphens and underscores: it is a part of topics",
                kind=Kind.INPUT,
                where=where,
            )
    return tuple(dict.fromkeys(name for name, _ in found))


def _input(what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT)
