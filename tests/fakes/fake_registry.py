"""A registry of one image on the loopback address: enough of the distribution protocol for a pull by digest."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.fakes.local_server import answering

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@contextmanager
def fake_registry(rootfs: bytes) -> Iterator[str]:
    """Serves a root file system's tar as an image; yields its reference with a digest."""
    layer = gzip.compress(rootfs, compresslevel=1, mtime=0)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(rootfs)]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {
                "mediaType": "application/vnd.docker.container.image.v1+json",
                "size": len(config),
                "digest": _digest(config),
            },
            "layers": [
                {
                    "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                    "size": len(layer),
                    "digest": _digest(layer),
                }
            ],
        }
    ).encode()
    blobs = {_digest(data): data for data in (layer, config, manifest)}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            name = self.path.rpartition("/")[2]
            data = b"{}" if self.path == "/v2/" else blobs.get(name)
            self.send_response(200 if data is not None else 404)
            self.send_header("Content-Length", str(len(data or b"")))
            self.send_header("Content-Type", _MANIFEST if "/manifests/" in self.path else "application/octet-stream")
            self.send_header("Docker-Content-Digest", name)
            self.end_headers()
            if body and data is not None:
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            return None

    with answering(Handler) as place:
        yield f"{place}/base@{_digest(manifest)}"
