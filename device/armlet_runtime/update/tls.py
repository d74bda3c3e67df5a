"""TLS to a broker. Apart from the rest, since the library takes memory that a device without MQTT is spared."""

from __future__ import annotations

import ssl
from pathlib import Path

from armlet_runtime.update.access import Access, BrokerError, demand_files


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
    demand_files(access.ca, access.cert, access.key)
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


def words(error: BaseException) -> str:
    """An error in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError):
        return str(error.strerror or error)
    return f"{type(error).__name__}: {error}"
