"""``armlet-serve`` as a process over payloads that were really packed, and what a client asks of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
from armlet_runtime.ort import Tensor
from armlet_runtime.serve.golden import difference, numpy_name, tensor_of

from armlet.payload.keys import Signer, load_signer, new_key
from armlet.payload.pack import pack
from armlet.payload.wish import Delivery, Wish
from tests.conftest import ROOT

HEADER_LENGTH = "Inference-Header-Content-Length"
ON_HOST = (sys.executable, "-m", "armlet_runtime.serve")
HOST_ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "device")}


def host_library() -> Path:
    """The library of PyPI's ``onnxruntime``."""
    (found,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    return found


def free_port() -> int:
    """One on loopback that nobody had a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@dataclass
class Device:
    """A device's files below ``root``: keys, payloads, the runtime's contract, and ``device.conf``."""

    root: Path
    signer: Signer
    port: int

    @classmethod
    def make(cls, root: Path, *, library: Path | str, runtime: Mapping[str, Any], text: str = "") -> Device:
        """``text`` goes behind the section ``[service]``."""
        key = new_key("release", root / "private")
        (root / "keys").mkdir()
        shutil.copy(key.public, root / "keys")
        (root / "runtime.json").write_text(json.dumps(runtime))
        made = cls(root, load_signer(key.private, lambda: ""), free_port())
        service = {
            "payloads": made.payloads,
            "keys": root / "keys",
            "runtime": root / "runtime.json",
            "library": library,
            "listen": f"127.0.0.1:{made.port}",
            "scratch": root,
        }
        lines = ["[service]", *(f"{key} = {value}" for key, value in service.items())]
        made.conf.write_text("\n".join([*lines, text, ""]))
        return made

    @property
    def payloads(self) -> Path:
        return self.root / "payloads"

    @property
    def conf(self) -> Path:
        return self.root / "device.conf"

    def add(self, model: Path, wish: Wish) -> Path:
        """Packs a model into the factory set; returns the payload's folder."""
        place = self.payloads / wish.name / wish.version
        delivery = Delivery(out=self.root / "packed", formats=("folder",))
        made = pack(model, wish, signer=self.signer, delivery=delivery)
        place.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(made.files["folder"], place))

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        """Status, header fields and body of an answer; POST where there is a body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            fields = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET" if body is None else "POST", path, body, fields)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def json(self, path: str, body: Any = None) -> Any:
        """What is answered with 200."""
        status, _, data = self.ask(path, None if body is None else json.dumps(body).encode())
        assert status == 200, (status, data)
        return json.loads(data)

    def infer(self, model: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Binary tensors both ways."""
        body, length = request_of(inputs)
        status, headers, data = self.ask(f"/v2/models/{model}/infer", body, Inference_Header_Content_Length=str(length))
        assert status == 200, (status, data)
        return tensors_of(data, int(headers[HEADER_LENGTH]))

    def state(self, model: str) -> tuple[str, str]:
        """(state, reason) of a model."""
        (row,) = [one for one in self.json("/v2/repository/index", {}) if one["name"] == model]
        return row["state"], row["reason"]

    def demand_golden(self, folder: Path) -> int:
        """Asks for every golden vector of a payload, and compares; returns how many there were."""
        manifest = json.loads((folder / "payload.json").read_bytes())
        for case in manifest["golden"]:
            got = self.infer(manifest["model"], {one["name"]: tensor_of(folder, one) for one in case["inputs"]})
            for one in case["outputs"]:
                found = difference(got[one["name"]], tensor_of(folder, one), case["atol"], case["rtol"])
                assert not found, (case["name"], one["name"], found)
        return len(manifest["golden"])

    def settled(self) -> bool:
        """Whether the service listens, and no model is on its way any more."""
        try:
            return all(one["state"] != "LOADING" for one in self.json("/v2/repository/index", {}))
        except OSError:
            return False

    @contextlib.contextmanager
    def serving(
        self, command: Sequence[str], environment: Mapping[str, str], seconds: float = 60.0
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The service, settled; killed at the end where it still runs."""
        with subprocess.Popen([*command, "--config", str(self.conf)], env=environment) as process:
            try:
                end = time.monotonic() + seconds
                while not self.settled():
                    assert process.poll() is None, f"it ended with {process.returncode}"
                    assert time.monotonic() < end, "it did not settle"
                    time.sleep(0.05)
                yield process
            finally:
                process.kill()


def request_of(inputs: Mapping[str, Tensor]) -> tuple[bytes, int]:
    """The body of an inference that asks for binary outputs, and how much of it is JSON."""
    described = [
        {
            "name": name,
            "datatype": _DATATYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "parameters": {"binary_data_size": len(tensor.data)},
        }
        for name, tensor in inputs.items()
    ]
    text = json.dumps({"inputs": described, "parameters": {"binary_data_output": True}}).encode()
    return b"".join([text, *(bytes(tensor.data) for tensor in inputs.values())]), len(text)


def tensors_of(data: bytes, length: int) -> dict[str, Tensor]:
    """The binary outputs of an answer."""
    found, start = {}, length
    for one in json.loads(data[:length])["outputs"]:
        size = one["parameters"]["binary_data_size"]
        dtype = next(name for name, datatype in _DATATYPES.items() if datatype == one["datatype"])
        found[one["name"]] = Tensor(data[start : start + size], numpy_name(dtype), one["shape"])
        assert math.prod(one["shape"]) * found[one["name"]].element.itemsize == size
        start += size
    assert start == len(data)
    return found


_DATATYPES = {"float32": "FP32", "int64": "INT64"}
