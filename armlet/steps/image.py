"""The toolchain image: keyed by what is asked for, measured after it is made."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jinja2

from armlet import digest
from armlet.config import Resolved
from armlet.engine import Engine
from armlet.errors import ArmletError, Kind
from armlet.events import Event, Line, Sink
from armlet.fetch import Places, fetch, from_wheel, unpack
from armlet.files import write_whole
from armlet.paths import Paths
from armlet.process import Command, Runner, checked, interactive
from armlet.spec.toolchain import Toolchain
from armlet.steps import rootfs
from armlet.steps.base import Step, Work
from armlet.store import Store, remove_tree

_TEMPLATES = Path(__file__).resolve().parents[2] / "docker" / "toolchain"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_LOOPBACK = ("localhost", "127.", "::1")
_NEEDED = 3 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInfo:
    """A usable toolchain image, as measured in it."""

    tag: str
    id: str
    """The engine's own id; differs between two builds of the same image, by its timestamps."""
    digest: str
    """``sha256:…`` over all that is installed: the same wherever the same packages went in."""
    compiler: str
    """First line of the C compiler's ``--version``."""
    packages: Mapping[str, str]
    """Debian package -> version."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ImageInfo:
        """Raises ``ValueError`` or ``TypeError`` for anything that ``to_json`` did not write."""
        return cls(**json.loads(text))


def render(toolchain: Toolchain) -> str:
    """The Dockerfile."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template("Dockerfile.j2").render(
        suite=toolchain.base.suite, packages=sorted(set(toolchain.packages)), wheels=toolchain.wheels
    )


def key(toolchain: Toolchain) -> str:
    """sha256 (hex) of everything that decides what is in the image, as far as this machine's choices do not."""
    return digest.of_value(
        {
            "dockerfile": render(toolchain),
            "setup": digest.of_file(_TEMPLATES / "setup.sh"),
            "wheels": {wheel.project: wheel.sha256 for wheel in toolchain.wheels},
            # A pulled and a bootstrapped base of a suite give the same packages, so either may be behind the key.
            "base": toolchain.base.model_dump(),
        }
    )


def image_tag(toolchain: Toolchain) -> str:
    return f"armlet-toolchain-{toolchain.name}:{key(toolchain)[:12]}"


def ensure(*, toolchain: Toolchain, paths: Paths, engine: Engine, emit: Sink) -> ImageInfo:
    """An image that the engine has: found, or made (again, where somebody removed it).

    Raises:
        ArmletError: (HOST) no base, network or disk space; (BUILD) a package cannot be installed.
    """
    tag = image_tag(toolchain)
    record = paths.images / f"{toolchain.name}-{key(toolchain)[:12]}.json"
    with Store(paths.images).lock(f"image-{key(toolchain)[:12]}", emit):
        here = engine.image_id(tag)
        if here is not None and (known := _recorded(record)) is not None and known.id == here:
            return known
        if here is None:
            engine.require_space(_NEEDED, what="the toolchain image")
            here = _build(toolchain, tag, paths, engine, emit)
        info = _measure(toolchain, tag, here, engine)
        write_whole(record, info.to_json().encode())
        return info


def shell(*, toolchain: Toolchain, paths: Paths, engine: Engine, emit: Sink) -> int:
    """Opens a shell in the toolchain's image on the caller's terminal; returns its exit code.

    Raises:
        ArmletError: (INPUT) there is no terminal; and as ``ensure``.
    """
    if not sys.stdin.isatty():
        raise ArmletError(
            "a shell needs a terminal, and standard input is none",
            hint="run it in a terminal, without < and | in front of it (over ssh: ssh -t)",
            kind=Kind.INPUT,
        )
    info = ensure(toolchain=toolchain, paths=paths, engine=engine, emit=emit)
    return interactive(Command(argv=engine.shell_argv(image=info.tag)))


def _build(toolchain: Toolchain, tag: str, paths: Paths, engine: Engine, emit: Sink) -> str:
    wanted = [from_wheel(wheel) for wheel in toolchain.wheels]
    wheels = fetch(wanted, paths.downloads, emit, places=Places.here())
    base = rootfs.base_image(toolchain.base, engine, paths.images, emit)
    mirror = rootfs.debian_mirror()
    bundle = rootfs.ca_bundle()
    arguments = {
        "BASE": base,
        **({"MIRROR": mirror} if mirror else {}),
        **{name: os.environ[name] for name in _PROXIES if os.environ.get(name)},
    }
    # The caller holds this image's lock: what a killed run left of it is nobody's.
    mark = f".wheels-{key(toolchain)[:12]}-"
    for left in paths.images.glob(f"{mark}*"):
        remove_tree(left)
    with tempfile.TemporaryDirectory(dir=paths.images, prefix=mark) as unpacked:
        context: dict[str, bytes | Path] = {
            "Dockerfile": render(toolchain).encode(),
            "setup.sh": _TEMPLATES / "setup.sh",
            "host-ca.pem": bundle.read_bytes() if bundle else b"",
        }
        for wheel, archive in zip(toolchain.wheels, wheels, strict=True):
            folder = Path(unpacked) / wheel.project
            unpack(archive, folder)
            context |= {
                f"wheels/{wheel.project}/{path.relative_to(folder).as_posix()}": path
                for path in folder.rglob("*")
                if path.is_file()
            }
        return engine.build(
            tag=tag,
            context=context,
            build_args=arguments,
            emit=emit,
            host_network=any(_is_loopback(value) for name, value in arguments.items() if name.lower() != "no_proxy"),
        )


def _measure(toolchain: Toolchain, tag: str, image: str, engine: Engine) -> ImageInfo:
    with engine.container(image=tag, name="armlet-measure") as runner:
        compiler = _lines(runner, f"{toolchain.triple}-{toolchain.compiler}", "--version")[0]
        listed = _lines(runner, "dpkg-query", "--show", "--showformat=${Package} ${Version}\n")
    packages = dict(line.split(" ", 1) for line in listed)
    installed = {
        "compiler": compiler,
        "packages": packages,
        "wheels": {wheel.project: wheel.sha256 for wheel in toolchain.wheels},
    }
    return ImageInfo(
        tag=tag, id=image, digest=f"sha256:{digest.of_value(installed)}", compiler=compiler, packages=packages
    )


def _lines(runner: Runner, *argv: str) -> list[str]:
    # Through the sink: the tail that a command leaves is cut to its last lines.
    lines: list[str] = []

    def collect(event: Event, /) -> None:
        if isinstance(event, Line):
            lines.append(event.text)

    checked(runner, Command(argv=argv), what="the toolchain image is not usable", kind=Kind.BUILD, emit=collect)
    return lines


def _recorded(record: Path) -> ImageInfo | None:
    try:
        return ImageInfo.from_json(record.read_text())
    except (OSError, ValueError, TypeError):
        return None


def _is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return host.startswith(_LOOPBACK)


def _facts(resolved: Resolved) -> Mapping[str, Any]:
    return {"image": key(resolved.toolchain)}


def _run(work: Work) -> None:
    info = ensure(toolchain=work.resolved.toolchain, paths=work.paths, engine=work.engine, emit=work.emit)
    (work.out / "image.json").write_text(info.to_json())


STEP = Step(name="image", needs=(), facts=_facts, run=_run)
