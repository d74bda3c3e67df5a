"""Certificates that tests make: an authority, and whom it vouches for."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """Files in PEM."""

    cert: Path
    key: Path


class Authority:
    """Its files are ``<folder>/<name>.crt`` and ``.key``."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _called(name)
        self._cert = self._signed(self._name, self._key, authority=True)
        self.ca = folder / f"{name}.crt"
        self.ca.write_bytes(self._cert.public_bytes(serialization.Encoding.PEM))

    def vouch(self, name: str, host: str = "localhost", expired: bool = False) -> Pair:
        """For a client of that common name, or a server that is ``host`` and 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        made = self._signed(_called(name), key, host=host, end=-_DAY / 2 if expired else _DAY)
        pair.cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        return pair

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        authority: bool = False,
        host: str = "",
        end: datetime.timedelta = _DAY,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        public = key.public_key()
        own = self._key.public_key()
        builder = (
            x509.CertificateBuilder(self._name, subject, public, x509.random_serial_number(), now - _DAY, now + end)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
        )
        if not authority:
            builder = builder.add_extension(x509.SubjectAlternativeName([address, x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _called(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
