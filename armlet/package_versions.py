"""Versions of packages: how each format writes them, and that a package manager orders them as meant."""

from __future__ import annotations

import re

from packaging.version import InvalidVersion, Version

from armlet.errors import ArmletError, Kind
from armlet.nfpm import PackageFormat

_RELATIONS: dict[PackageFormat, str] = {
    "deb": "{0} (= {1})",
    "ipk": "{0} (= {1})",
    "rpm": "{0} = {1}",
    "apk": "{0}={1}",
}
_FLOORS: dict[PackageFormat, str] = {
    "deb": "{0} (>= {1})",
    "ipk": "{0} (>= {1})",
    "rpm": "{0} >= {1}",
    "apk": "{0}>={1}",
}
_PART = re.compile(r"([^0-9]*)([0-9]*)")


def upstream_and_release(kind: PackageFormat, version: str, revision: int) -> tuple[str, str]:
    """A version and a release as nfpm takes them; the revision counts builds of one version of ONNX Runtime.

    apk and rpm have a field for it. In a deb and an ipk, what is behind a dash is the distribution's own.
    """
    if kind in ("deb", "ipk"):
        return f"{version}+armlet{revision}", ""
    return version, str(revision)


def whole(kind: PackageFormat, version: str, release: str) -> str:
    """The version as a dependency names it."""
    if not release:
        return version
    return f"{version}-r{release}" if kind == "apk" else f"{version}-{release}"


def exactly(kind: PackageFormat, name: str, version: str) -> str:
    """A dependency on that very version."""
    return _RELATIONS[kind].format(name, version)


def at_least(kind: PackageFormat, name: str, version: str) -> str:
    """A dependency on that version or a later one."""
    return _FLOORS[kind].format(name, version)


def dpkg_order(one: str, other: str) -> int:
    """Negative, zero or positive, as dpkg and opkg order two versions (Debian policy 5.6.12)."""
    (epoch, text), (other_epoch, other_text) = _split(one), _split(other)
    if epoch != other_epoch:
        return epoch - other_epoch
    (upstream, _, revision), (other_upstream, _, other_revision) = _rpartition(text), _rpartition(other_text)
    return _order(upstream, other_upstream) or _order(revision, other_revision)


def demand_ordered(version: str) -> str:
    """Returns the version.

    Raises:
        ArmletError: (INPUT) it comes before its release, as Python orders versions, and dpkg would put it behind.
    """
    try:
        parsed = Version(version.replace("~", ""))
    except InvalidVersion:
        return version
    release = parsed.base_version
    if parsed < Version(release) and dpkg_order(version, release) >= 0:
        early = re.sub(r"[-_.]?([a-z].*)", r"~\1", version, count=1)
        raise ArmletError(
            f"package managers would take {version} for newer than {release}, which it comes before",
            hint=f"write it as {early}: what follows a tilde comes before the end",
            kind=Kind.INPUT,
        )
    return version


def _split(version: str) -> tuple[int, str]:
    epoch, colon, text = version.partition(":")
    return (int(epoch), text) if colon else (0, version)


def _rpartition(text: str) -> tuple[str, str, str]:
    upstream, dash, revision = text.rpartition("-")
    return (upstream, dash, revision) if dash else (text, "", "")


def _order(one: str, other: str) -> int:
    parts, other_parts = _PART.findall(one), _PART.findall(other)
    for index in range(max(len(parts), len(other_parts))):
        letters, digits = parts[index] if index < len(parts) else ("", "")
        other_letters, other_digits = other_parts[index] if index < len(other_parts) else ("", "")
        found = _letters(letters, other_letters) or int(digits or 0) - int(other_digits or 0)
        if found:
            return found
    return 0


def _letters(one: str, other: str) -> int:
    for index in range(max(len(one), len(other))):
        found = _weight(one[index : index + 1]) - _weight(other[index : index + 1])
        if found:
            return found
    return 0


def _weight(character: str) -> int:
    """A tilde comes before the end, letters before all else."""
    if character == "~":
        return -1
    if not character:
        return 0
    return ord(character) if character.isalpha() else ord(character) + 256
