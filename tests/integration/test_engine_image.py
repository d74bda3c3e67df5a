"""The toolchain image from a real engine: the two ways to a base come to the same packages."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import APIClient
from docker import from_env as docker_from_env

from armlet.engine import Engine
from armlet.events import silent
from armlet.paths import Paths
from armlet.process import Command
from armlet.spec.toolchain import BaseImage, Floors, Toolchain
from armlet.steps import image
from armlet.steps.rootfs import base_image
from tests.fakes.fake_registry import fake_registry

pytestmark = [pytest.mark.docker, pytest.mark.slow]

BOOKWORM = BaseImage(distribution="debian", suite="bookworm")


@pytest.fixture
def sdk() -> Iterator[APIClient]:
    client = docker_from_env()
    yield client.api
    client.close()


def small_toolchain(name: str, base: BaseImage) -> Toolchain:
    return Toolchain.model_validate(
        {
            "schema": 1,
            "name": name,
            "description": "for tests",
            "arch": "aarch64",
            "triple": "aarch64-linux-gnu",
            "debian_arch": "arm64",
            "base": base,
            "compiler": "gcc",
            "packages": ("gcc-aarch64-linux-gnu", "patch"),
            "wheels": (),
            "floors": Floors(glibc="2.36", kernel="3.7"),
        }
    )


def test_a_pulled_and_a_bootstrapped_base_give_the_same_packages(tmp_path: Path, sdk: APIClient) -> None:
    engine = Engine.connect()
    paths = Paths(root=tmp_path, cache=tmp_path / "cache")
    suffix = secrets.token_hex(4)
    richer = f"armlet-test-richer:{suffix}"
    made = [richer]
    try:
        base = base_image(BOOKWORM, engine, tmp_path, silent)
        # As a published base would be: with a package more, one fewer, and the marker of a merged /usr.
        run = b"RUN apt-get update && apt-get install -y nano usr-is-merged && dpkg --purge --force-all tzdata"
        engine.build(tag=richer, context={"Dockerfile": b"ARG B\nFROM ${B}\n" + run}, build_args={"B": base})
        with fake_registry(flattened(sdk, richer)) as reference:
            pulled = BaseImage(distribution="debian", suite="bookworm", image=reference)
            made.append(reference)
            infos = []
            for name, chosen in (("test-pulled", pulled), ("test-bootstrapped", BOOKWORM)):
                toolchain = small_toolchain(f"{name}-{suffix}", chosen)
                made.append(image.image_tag(toolchain))
                infos.append(image.ensure(toolchain=toolchain, paths=paths, engine=engine, emit=silent))
        assert engine.image_exists(reference)
        assert infos[0].packages == infos[1].packages
        assert infos[0].digest == infos[1].digest
        assert {"patch", "gcc-aarch64-linux-gnu", "tzdata"} <= set(infos[0].packages)
        assert "nano" not in infos[0].packages
        assert infos[0].compiler.startswith("aarch64-linux-gnu-gcc")
        with engine.container(image=infos[0].tag, name="armlet-test") as runner:
            left = runner.run(Command(argv=("sh", "-c", "ls /tmp /etc/apt/sources.list.d; cat /etc/apt/sources.list")))
            assert [line for line in left.tail if "No such file" not in line and not line.endswith(":") and line] == []
    finally:
        for reference in made:
            if engine.image_exists(reference):
                sdk.remove_image(reference, force=True)


def flattened(sdk: APIClient, tag: str) -> bytes:
    container = sdk.create_container(tag, command=["true"])
    try:
        return b"".join(sdk.export(container["Id"]))
    finally:
        sdk.remove_container(container["Id"])
