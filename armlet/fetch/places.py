"""Which places to try for a file, and in which order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from armlet.errors import ArmletError, Kind
from armlet.fetch.wanted import Wanted
from armlet.process import Command, HostRunner, Runner
from armlet.spec.toolchain import Wheel

Place = str | Wheel
"""A URL (``http``, ``https`` or ``file``), or the Python package index for this wheel."""

_SNAPSHOT = "https://snapshot.debian.org/file/"
_SCHEMES = ("http", "https", "file")
_APT = Command(argv=("apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages"))
"""Asks apt for what it is configured with: needs no root and no network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Roots (URLs without a trailing slash) of one's own mirrors and of Debian mirrors, in order of preference."""

    own: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str], runner: Runner) -> Places:
        """From ``ARMLET_MIRRORS`` and ``ARMLET_DEBIAN_MIRROR`` (lists with commas), the latter else from apt.

        Raises:
            ArmletError: a variable holds something that is no mirror.
        """
        return cls(
            own=_listed(environment, "ARMLET_MIRRORS"),
            debian=_listed(environment, "ARMLET_DEBIAN_MIRROR") or _configured_in_apt(runner),
        )

    @classmethod
    def here(cls) -> Places:
        """As ``of``, from this process's environment and this machine's apt."""
        return cls.of(os.environ, HostRunner())

    def of_file(self, wanted: Wanted) -> tuple[Place, ...]:
        """All places of one file, the first to be tried first."""
        return tuple(dict.fromkeys(self._each(wanted)))

    def _each(self, wanted: Wanted) -> Iterator[Place]:
        for root in self.own:
            yield from (f"{root}/{quote(path)}" for path in _own_names(wanted))
        if wanted.debian:
            yield from (f"{root}/{quote(wanted.debian)}" for root in self.debian)
        if wanted.snapshot:
            yield _SNAPSHOT + wanted.snapshot
        if wanted.wheel:
            yield wanted.wheel
        yield from wanted.urls


def cache_path(sha256: str, filename: str) -> str:
    """Where a file is inside the download cache."""
    return f"{sha256[:2]}/{sha256}/{filename}"


def _own_names(wanted: Wanted) -> tuple[str, ...]:
    if not wanted.sha256:
        return (wanted.filename,)
    # The last one is the download cache's own layout: a copy of the cache is a mirror.
    return (wanted.filename, wanted.sha256, cache_path(wanted.sha256, wanted.filename))


def shown(place: Place) -> str:
    """A place as messages name it: without the password that its URL may carry."""
    if isinstance(place, Wheel):
        return f"Python package index ({place.project} {place.version})"
    parts = urlsplit(place)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def local_path(url: str) -> Path:
    """The path of a ``file`` URL."""
    return Path(unquote(url.removeprefix("file://")))


def _listed(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    roots = [entry.strip().rstrip("/") for entry in environment.get(variable, "").split(",")]
    for root in filter(None, roots):
        if not _is_mirror(root):
            raise ArmletError(
                f'{variable}: "{root}" is no mirror',
                hint="write file:///absolute/folder or https://host/path, several with commas between them",
                kind=Kind.INPUT,
            )
    return tuple(dict.fromkeys(filter(None, roots)))


def _is_mirror(root: str) -> bool:
    try:
        parts = urlsplit(root)
        if parts.scheme == "file":
            return root.startswith("file:///")
        # Reading the port checks it.
        return parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _configured_in_apt(runner: Runner) -> tuple[str, ...]:
    try:
        done = runner.run(_APT)
    except ArmletError:
        return ()  # No apt on this machine: the other places have to do.
    found = [line.partition(" ")[::2] for line in done.tail if ":/" in line.partition(" ")[0]]
    # Labels are known once the indexes were fetched; without any, every site of apt's may be a Debian mirror.
    debian = [site for site, label in found if label == "Debian"] or [site for site, label in found if not label]
    return tuple(dict.fromkeys(root for site in debian for root in _roots(site.rstrip("/"))))


def _roots(site: str) -> tuple[str, ...]:
    scheme, _, path = site.partition(":")
    if scheme in _SCHEMES:
        return (site,)
    if scheme == "mirror+file":  # apt's list of mirrors, one a line: how Debian's cloud images are configured.
        try:
            lines = Path("/" + path.lstrip("/")).read_text(encoding="utf-8").splitlines()
        except OSError:
            return ()
        entries = [line.split()[0].rstrip("/") for line in lines if line.strip() and not line.startswith("#")]
        return tuple(entry for entry in entries if entry.partition(":")[0] in _SCHEMES)
    return ()
