"""What machines share, with the real things: ccache in its container, Redis, and engines that DOCKER_HOST names."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from armlet import recipes
from armlet.engine import Engine, Mount
from armlet.events import Event, Note, silent
from armlet.paths import Paths
from armlet.process import Command
from armlet.remote import proxy
from armlet.remote.settings import Settings
from armlet.steps import image
from armlet.steps.image import ImageInfo
from tests.fakes.object_server import ObjectServer

pytestmark = pytest.mark.docker

PASSWORD = "p@ss w0rd"
SOURCE = "int twice(int value) { return 2 * value; }\n"
MANY = 6


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.connect()


@pytest.fixture(scope="module")
def toolchain(root: Path, engine: Engine) -> ImageInfo:
    chosen = recipes.TOOLCHAINS.load(Paths.of(root), "aarch64-bookworm")
    return image.ensure(toolchain=chosen, paths=Paths.of(root), engine=engine, emit=silent)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    folder = tmp_path_factory.mktemp("redis")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
    (folder / "redis.conf").write_text(f'requirepass "{PASSWORD}"\n')
    with subprocess.Popen([words[0], str(folder / "redis.conf"), *words[1:]], stdout=subprocess.DEVNULL) as process:
        client = Redis(port=port, password=PASSWORD)
        deadline = time.monotonic() + 20
        while True:
            try:
                client.ping()
                break
            except RedisError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        try:
            yield client
        finally:
            client.close()
            process.terminate()


@contextmanager
def places(kind: str, redis: Redis) -> Iterator[str]:
    if kind == "redis":
        redis.flushall()
        port = redis.connection_pool.connection_kwargs["port"]
        yield f"redis://:{PASSWORD.replace('@', '%40').replace(' ', '%20')}@127.0.0.1:{port}/0"
    else:
        with ObjectServer().serving() as server:
            yield f"{server.url}/ccache"


def compiled(
    engine: Engine, toolchain: ImageInfo, folder: Path, place: str, *, write: bool, told: list[Event] | None = None
) -> tuple[list[bytes], dict[str, int]]:
    """Compiles in a fresh checkout with an empty ccache; returns the objects and ccache's statistics."""
    for name in ("src", "ccache"):
        (folder / name).mkdir(parents=True)
    for number in range(MANY):
        (folder / "src" / f"{number}.c").write_text(SOURCE.replace("twice", f"twice_{number}"))
    settings = Settings.of({"ARMLET_COMPILE_CACHE": place, "ARMLET_SHARE": str(int(write))})
    mounts = [Mount(source=folder / "src", target="/w"), Mount(source=folder / "ccache", target="/ccache")]
    emit = (told if told is not None else []).append
    with (
        proxy.serving(settings, toolchain.packages["ccache"], emit) as shared,
        engine.container(image=toolchain.tag, mounts=(*mounts, *shared.mounts), name="armlet-test-ci") as runner,
    ):
        env = {"CCACHE_DIR": "/ccache", "CCACHE_COMPILERCHECK": "content", **shared.environment}
        one = "for n in *.c; do ccache aarch64-linux-gnu-gcc -c $n -o $n.o || exit 1; done"
        assert runner.run(Command(argv=("sh", "-c", f"cd /w && {one}"), env=env)).code == 0
        assert runner.run(Command(argv=("ls", "/sys/class/net"))).tail == ("lo",)
        stats = runner.run(Command(argv=("ccache", "--print-stats"), env=env))
    objects = [path.read_bytes() for path in sorted((folder / "src").glob("*.o"))]
    assert len(objects) == MANY
    return objects, {name: int(value) for name, value in (line.split("\t") for line in stats.tail)}


@pytest.mark.parametrize("kind", ["redis", "http"])
def test_a_second_checkout_compiles_nothing(
    kind: str, engine: Engine, toolchain: ImageInfo, redis: Redis, tmp_path: Path
) -> None:
    told: list[Event] = []
    with places(kind, redis) as place:
        first, stats = compiled(engine, toolchain, tmp_path / "one", place, write=True)
        assert stats["cache_miss"] == MANY
        second, stats = compiled(engine, toolchain, tmp_path / "two", place, write=False, told=told)
    assert (stats["cache_miss"], stats["direct_cache_hit"]) == (0, MANY)
    assert second == first
    (note,) = [event.text for event in told if isinstance(event, Note)]
    assert "p%40ss" not in note
    assert PASSWORD not in note


def test_one_that_lies_or_is_down_costs_only_time(
    engine: Engine, toolchain: ImageInfo, redis: Redis, tmp_path: Path
) -> None:
    with places("redis", redis) as place:
        first, _ = compiled(engine, toolchain, tmp_path / "one", place, write=True)
        for key in list(redis.scan_iter()):
            value = redis.get(key)
            assert isinstance(value, bytes)
            # In the middle of what is packed, cut short, or something else altogether.
            spoilt = (value[:-9] + bytes([value[-9] ^ 1]) + value[-8:], value[: len(value) // 2], b"lie")
            redis.set(key, spoilt[len(value) % 3])
        second, stats = compiled(engine, toolchain, tmp_path / "two", place, write=False)
        assert second == first
        assert stats["cache_miss"] == MANY
    told: list[Event] = []
    third, stats = compiled(engine, toolchain, tmp_path / "three", "redis://127.0.0.1:9/0", write=True, told=told)
    assert third == first
    assert stats["cache_miss"] == MANY
    assert len([event for event in told if isinstance(event, Note) and event.text.startswith("warning")]) == 1


@contextmanager
def forwarded(socket_path: str) -> Iterator[str]:
    """The engine of a Unix socket, on TCP."""

    def pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve(server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(socket_path)
            held.extend((client, there))
            for pair in ((client, there), (there, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    held: list[socket.socket] = []
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(server,), daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for one in held:
            one.close()


def test_an_engine_on_tcp_that_runs_here(toolchain: ImageInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    with forwarded(local) as place:
        monkeypatch.setenv("DOCKER_HOST", place)
        engine = Engine.connect()
        with engine.container(
            image=toolchain.tag, mounts=[Mount(source=tmp_path, target="/out")], name="armlet-test-tcp"
        ) as runner:
            done = runner.run(Command(argv=("sh", "-c", "seq 1000; echo hello >/out/file")))
        assert done.tail[-1] == "1000"
        del engine
    assert (tmp_path / "file").read_text() == "hello\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
