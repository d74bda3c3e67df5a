"""S3: a server of its protocol (moto's) that checks who signs what."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
import requests
from moto.server import ThreadedMotoServer

from armlet.errors import ArmletError, Kind
from armlet.events import Event, Note, silent
from armlet.fetch.transport import Patience
from armlet.remote.artefacts import Artefacts
from armlet.remote.objects import Objects, Unavailable
from armlet.remote.publish import publish
from armlet.remote.settings import address
from armlet.store import Store

ID = "a" * 64
POLICY = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'


@dataclass(frozen=True)
class Server:
    endpoint: str
    key: str
    secret: str


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """With a bucket and a user who may use it. From then on it checks every signature."""
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    known = {"endpoint_url": endpoint, "region_name": "eu-west-1"}
    known |= {"aws_access_key_id": "setup", "aws_secret_access_key": "setup"}
    iam = boto3.client("iam", **known)
    iam.create_user(UserName="ci")
    iam.put_user_policy(UserName="ci", PolicyName="all", PolicyDocument=POLICY)
    made = iam.create_access_key(UserName="ci")["AccessKey"]
    boto3.client("s3", **known).create_bucket(
        Bucket="firmware", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    requests.post(f"{endpoint}/moto-api/reset-auth", data=b"0", timeout=10).raise_for_status()
    yield Server(endpoint=endpoint, key=made["AccessKeyId"], secret=made["SecretAccessKey"])
    requests.post(f"{endpoint}/moto-api/reset-auth", data=b"inf", timeout=10)
    running.stop()


@pytest.fixture(autouse=True)
def machine(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret)


def objects(prefix: str = "ci") -> Objects:
    return Objects(address("X", f"s3://firmware/{prefix}"), patience=Patience(connect=5.0, silence=10.0, attempts=1))


@pytest.mark.parametrize("name", ["plain", "a/b/c.tar.xz", "armlet_1.21.0+armlet1~rc1_arm64.deb", "with space", "ä"])
@pytest.mark.parametrize("data", [b"", b"x", bytes(100_000)], ids=["empty", "short", "long"])
def test_what_is_written_is_read(name: str, data: bytes) -> None:
    objects().write(name, io.BytesIO(data), len(data))
    assert objects().size(name) == len(data)
    got = io.BytesIO()
    assert objects().read(name, got, most=1 << 20) is not None
    assert got.getvalue() == data


def test_what_is_not_there() -> None:
    assert objects().size("nothing") is None
    assert objects().read("nothing", io.BytesIO(), most=10) is None


def test_finished_steps_and_published_files(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").write_text("content")
    Artefacts(objects("steps"), write=True, emit=silent).offer("compile", ID, tmp_path / "made")
    store = Store(tmp_path / "store")
    assert Artefacts(objects("steps"), write=False, emit=silent).bring("compile", ID, store)
    assert (store[ID] / "file").read_text() == "content"
    files = {"file": tmp_path / "made" / "file"}
    assert publish(files, "demo/1", objects("releases"), silent).sent == ("file",)
    assert publish(files, "demo/1", objects("releases"), silent).sent == ()
    files["file"].write_text("other")
    with pytest.raises(ArmletError) as caught:
        publish(files, "demo/1", objects("releases"), silent)
    assert caught.value.kind is Kind.INPUT


def test_a_wrong_key_is_told_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng-s3cret")
    with pytest.raises(Unavailable, match="403 SignatureDoesNotMatch"):
        objects().write("x", io.BytesIO(b"x"), 1)
    told: list[Event] = []
    store = Artefacts(objects(), write=True, emit=told.append)
    assert not store.bring("compile", ID, Store(tmp_path))
    (warning,) = [event.text for event in told if isinstance(event, Note)]
    assert "403" in warning
    assert "wr0ng" not in warning


def test_without_credentials_there_is_a_warning_and_a_local_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    told: list[Event] = []
    assert not Artefacts(objects(), write=True, emit=told.append).bring("compile", ID, Store(tmp_path))
    assert len(told) == 1
