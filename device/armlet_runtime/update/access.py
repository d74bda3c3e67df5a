"""Where the broker is and who asks: what of it comes from files is read anew for each connection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LACKING = (
    "there is no library for MQTT: install paho-mqtt (Debian: python3-paho-mqtt; pip: armlet-runtime[mqtt]); "
    "models are served, and no updates come"
)


class BrokerError(Exception):
    """No connection; the text says why."""


@dataclass(frozen=True)
class Access:
    """Where a broker is, and who asks."""

    host: str
    port: int
    client_id: str
    keepalive: int = 60
    """Seconds."""
    username: str = ""
    password_file: Path | None = None
    tls: bool = False
    ca: Path | None = None
    """None: the system's."""
    cert: Path | None = None
    key: Path | None = None
    version5: bool = False
    session_seconds: int = 7 * 86400
    """How long the broker keeps what it has not delivered; MQTT 5 only."""


def lacking() -> str:
    """What to install; empty: all is there."""
    try:
        import paho.mqtt.client  # noqa: F401
    except ImportError:
        return LACKING
    return ""


def password(access: Access) -> str | None:
    """The first line of its file. Raises BrokerError."""
    if access.password_file is None:
        return None
    try:
        demand_files(access.password_file)
        return access.password_file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise BrokerError(f"{access.password_file}: {getattr(error, 'strerror', None) or error}") from error


def demand_files(*paths: Path | None) -> None:
    """Raises BrokerError where one of them is there and no file."""
    for path in paths:
        # Opening a pipe would wait for somebody to write into it.
        if path is not None and path.exists() and not path.is_file():
            raise BrokerError(f"{path} is no file")
