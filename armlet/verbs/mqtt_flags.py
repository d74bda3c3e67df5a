"""Flags that the verbs of updates have in common: the broker, topics, devices."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armlet.errors import ArmletError, Kind
from armlet.verbs.passphrase import from_variable

if TYPE_CHECKING:
    from armlet.updates.broker import Broker
    from armlet.updates.routes import Routes

HELP = {
    "broker": "host or host:port (default port: 1883, with TLS 8883)",
    "ca": "PEM file of who signed the broker's certificate; speaks TLS",
    "tls": "speak TLS, with the system's authorities",
    "cert": "our certificate, for brokers that ask for one",
    "key-file": "its key (default: in the same file)",
    "username": "at the broker",
    "password-file": "a file with the password in its first line",
    "password-env": "the environment variable that holds the password",
    "prefix": "how topics begin, as in the devices' file (default: armlet/v1/{device})",
    "topic": "KIND=TEMPLATE where the devices' file has topic_KIND; may be given several times",
    "device": "may be given several times",
    "devices-file": "a file with a device on each line",
}
ITERABLE = ["device", "topic"]
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@\s]+)(?::([0-9]{1,5}))?")
_LONGEST_PASSWORD = 4096


@dataclass(frozen=True)
class Flags:
    """As they are typed; each is empty where it was not given. The fields are the flags' names."""

    broker: str = ""
    ca: str = ""
    tls: bool = False
    cert: str = ""
    key_file: str = ""
    username: str = ""
    password_file: str = ""
    password_env: str = ""
    prefix: str = ""
    topic: Sequence[str] = ()
    device: Sequence[str] = ()
    devices_file: str = ""

    def where(self) -> Broker:
        """Raises:
        ArmletError: (INPUT) a flag is none, or lacks another one.
        """
        from armlet.updates.broker import Broker

        found = _BROKER.fullmatch(self.broker)
        port = int(found[2] or 0) if found else 0
        if not found or (found[2] and not 0 < port < 65536):
            raise _input(
                f'--broker: "{self.broker}" is no broker', "write host, or host:port, as --broker localhost:1883"
            )
        tls = bool(self.tls or self.ca or self.cert)
        if self.key_file and not self.cert:
            raise _input("--key-file is the key of a certificate, and there is none", "--cert client.pem")
        if (self.password_file or self.password_env) and not self.username:
            raise _input("there is a password, and nobody whose it is", "--username NAME")
        if self.password_file and self.password_env:
            raise _input("there are two passwords", "give one of --password-file and --password-env")
        return Broker(
            host=found[1].strip("[]"),
            port=port or (8883 if tls else 1883),
            tls=tls,
            ca=_path(self.ca),
            cert=_path(self.cert),
            key=_path(self.key_file),
            username=self.username,
            password=self._password(),
        )

    def routes(self) -> Routes:
        """Raises ArmletError (INPUT)."""
        from armlet.updates.routes import routes

        return routes(self.prefix, self.topic or (), self.devices())

    def devices(self) -> tuple[str, ...]:
        """Raises ArmletError (INPUT)."""
        from armlet.updates.routes import devices

        return devices(self.device or (), _path(self.devices_file))

    def _password(self) -> str:
        if self.password_env:
            return from_variable(self.password_env, os.environ)
        if not self.password_file:
            return ""
        try:
            with Path(self.password_file).open(encoding="utf-8") as stream:
                found = stream.read(_LONGEST_PASSWORD).split("\n")[0].rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            what = getattr(error, "strerror", None) or "it is no text"
            raise _input(f"--password-file: {self.password_file} cannot be read: {what}", "check the path") from error
        if not found:
            raise _input(f"--password-file: {self.password_file} has no password", "write it into the first line")
        return found


def with_broker(body: Callable[..., None]) -> Callable[..., None]:
    """Has a task take these flags beside its own, and its body take them as ``flags``."""
    shared = {field.name: () if field.name in ITERABLE else field.default for field in fields(Flags)}

    @functools.wraps(body)
    def taking(*args: Any, **given: Any) -> None:
        flags = {name: given.pop(name) for name in shared if given.get(name)}
        body(*args, flags=Flags(**flags), **{name: value for name, value in given.items() if name not in shared})

    own = [one for one in inspect.signature(body).parameters.values() if one.name != "flags"]
    more = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None if name in ITERABLE else default)
        for name, default in shared.items()
    ]
    # Invoke makes flags of what this says.
    taking.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    return taking


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _input(what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT)
