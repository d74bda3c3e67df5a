"""Where the broker is and who asks: what of it comes from files is read anew for each connection."""

from __future__ import annotations

import ssl
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


class _Socket(ssl.SSLSocket):
    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except Exception:
            # paho leaves it open.
            self.close()
            raise


def tls_context(access: Access) -> ssl.SSLContext:
    """Raises BrokerError where a file cannot be used."""
    where: Path | str = access.ca or "the system's certificates"
    _demand_files(access.ca, access.cert, access.key)
    try:
        context = ssl.create_default_context(cafile=str(access.ca) if access.ca else None)
        context.sslsocket_class = _Socket
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if access.cert is not None:
            where = access.cert if access.key is None else f"{access.cert} with {access.key}"
            # Without a password of ours, OpenSSL would ask at the terminal.
            context.load_cert_chain(str(access.cert), str(access.key) if access.key else None, password="")
    except OSError as error:
        raise BrokerError(f"{where}: {words(error)}") from error
    return context


def password(access: Access) -> str | None:
    """The first line of its file. Raises BrokerError."""
    if access.password_file is None:
        return None
    try:
        _demand_files(access.password_file)
        return access.password_file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise BrokerError(f"{access.password_file}: {words(error)}") from error


def _demand_files(*paths: Path | None) -> None:
    for path in paths:
        # Opening a pipe would wait for somebody to write into it.
        if path is not None and path.exists() and not path.is_file():
            raise BrokerError(f"{path} is no file")


def words(error: BaseException) -> str:
    """An error in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError):
        return str(error.strerror or error)
    return f"{type(error).__name__}: {error}"
