"""The base that a toolchain image stands on: pulled, or a Debian root file system made on this machine."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from armlet import digest
from armlet.engine import Engine
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink
from armlet.fetch import Places
from armlet.process import Command, HostRunner, Runner, checked
from armlet.reproducible import EPOCH
from armlet.spec.toolchain import BaseImage

MIRROR_VARIABLE = "ARMLET_DEBIAN_MIRROR"

VARIANT = "minbase"

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_OTHERS = re.compile(r"ubuntu|security|ports")
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def debian_mirror(environment: Mapping[str, str] | None = None, runner: Runner | None = None) -> str | None:
    """The mirror to install Debian packages from: ``ARMLET_DEBIAN_MIRROR``, else the one this machine's apt uses.

    None on a machine that is not Debian's: the tools' own default holds then.

    Raises:
        ArmletError: the variable names no mirror that can be reached from within a container.
    """
    known = os.environ if environment is None else environment
    mirrors = Places.of(known, runner or HostRunner()).debian
    if known.get(MIRROR_VARIABLE):
        found = next((mirror for mirror in mirrors if mirror.startswith("http")), None)
        if found is None:
            raise ArmletError(
                f"{MIRROR_VARIABLE} names no http:// or https:// mirror, which a container could reach",
                hint="add one, e.g. http://mirror.example/debian, or serve the folder: python3 -m http.server",
                kind=Kind.INPUT,
            )
        return found
    # Before its lists are there, apt does not tell whose archive a site is.
    return next((mirror for mirror in mirrors if mirror.startswith("http") and not _OTHERS.search(mirror)), None)


def ca_bundle(environment: Mapping[str, str] | None = None) -> Path | None:
    """The file of certificates that this machine's programs are told to trust, where one is named and there."""
    known = os.environ if environment is None else environment
    named = (Path(known[name]) for name in _CA_VARIABLES if known.get(name))
    return next((path for path in named if path.is_file()), None)


def base_image(base: BaseImage, engine: Engine, folder: Path, emit: Sink) -> str:
    """The reference of a base image that the engine has: pulled by digest, else bootstrapped (by way of ``folder``).

    Raises:
        ArmletError: (HOST) there is neither a registry nor a way to bootstrap.
    """
    if base.image is not None:
        if engine.pull(base.image, emit) is not None:
            return base.image
        emit(Note(text=f"no registry gives {base.image}: bootstrapping Debian {base.suite} instead"))
    made_of = digest.of_value({"suite": base.suite, "variant": VARIANT, "epoch": EPOCH})
    tag = f"armlet-base-{base.suite}:{made_of[:12]}"
    if not engine.image_exists(tag):
        with tempfile.TemporaryDirectory(dir=folder, prefix=".base-") as temporary:
            tar = Path(temporary) / "rootfs.tar"
            bootstrap(suite=base.suite, out=tar, emit=emit)
            engine.import_rootfs(tar, tag, emit)
    return tag


def bootstrap(*, suite: str, out: Path, emit: Sink, runner: Runner | None = None) -> None:
    """Writes the root file system of a Debian suite (this machine's architecture) as a tar to ``out``.

    Raises:
        ArmletError: (HOST) mmdebstrap is missing, may not make one, or the mirror does not answer.
    """
    # What is half-done after a power cut is thrown away anyway.
    options = (f"--variant={VARIANT}", "--dpkgopt=force-unsafe-io")
    checked(
        runner or HostRunner(),
        mmdebstrap(*options, suite=suite, out=out),
        what=f"cannot bootstrap Debian {suite}",
        kind=Kind.HOST,
        emit=emit,
    )


def mmdebstrap(*options: str, suite: str, out: Path) -> Command:
    """The command that writes a root file system as a tar to ``out``, from this machine's mirror and by its trust."""
    mirror, bundle = debian_mirror(), ca_bundle()
    argv = (
        *("mmdebstrap", "--format=tar", "--components=main", *options),
        *([f"--keyring={_KEYRING}"] if _KEYRING.is_file() else []),
        *([f'--aptopt=Acquire::https::CaInfo "{bundle}"'] if bundle else []),
        *(suite, str(out)),
        *([mirror] if mirror else []),
    )
    return Command(argv=argv, env={"SOURCE_DATE_EPOCH": str(EPOCH)}, explain=explain)


_SUBUID = "sudo apt install uidmap; sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER"
_REMEDIES = (
    ("NO_PUBKEY", "sudo apt install debian-archive-keyring"),
    ("newuidmap", _SUBUID),
    ("unable to pick chroot mode", _SUBUID),
    ("unshare", "let users make namespaces (sysctl kernel.unprivileged_userns_clone=1), or run as root"),
    ("Failed to fetch", f"does the mirror answer? Another one: {MIRROR_VARIABLE}=http://host/debian"),
    ("Could not resolve", f"is the network up? Another mirror: {MIRROR_VARIABLE}=http://host/debian"),
    ("No space left", "free some disk space, or point ARMLET_CACHE and TMPDIR (else /tmp) at a larger disk"),
)


def explain(_code: int, tail: tuple[str, ...]) -> str:
    """The remedy for what a tool that makes a root file system said."""
    text = "\n".join(tail)
    return next((remedy for sign, remedy in _REMEDIES if sign in text), "")
