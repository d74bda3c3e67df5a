"""Vendors' files that providers are built against: where they are, and whether upstream's build would take them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.providers import PROVIDERS, Sdk, sdks
from armlet.validation import did_you_mean
from armlet.yamlfile import Document, Problem

KEY = ("runtime", "sdks")

_SYSTEM = re.compile(
    r"/|/(bin|boot|dev|etc|home|lib|lib64|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)"
    r"|/usr/(bin|include|lib|lib64|libexec|local|sbin|share|src)"
)
"""Folders that hold all sorts of things: hashing them takes hours, and what they hold changes from day to day."""
_FILES = (".h", ".so")
"""How the paths end that upstream's CMake takes for files; all others are folders."""


def found(sku: Document, root: Path, environment: Mapping[str, str]) -> tuple[dict[str, Path], list[Problem]]:
    """Name -> folder of every SDK that a SKU's providers need, and what is wrong with them.

    Args:
        root: the project's folder, which relative paths of the SKU begin at.
        environment: upstream's variables, for SDKs that the SKU does not name.
    """
    wanted = list(sdks(_providers(sku)))
    problems = _unknown(sku, wanted)
    places: dict[str, Path] = {}
    for sdk in wanted:
        key, given = (*KEY, sdk.name), sku.get(*KEY, sdk.name)
        if given is not None and (not isinstance(given, str) or not given):
            continue  # The model says so.
        text = given or environment.get(sdk.environment, "")
        if not text:
            what = f"{sdk.name} is missing: there is no {sdk.name} in runtime.sdks, and {sdk.environment} is not set"
            problems.append(sku.problem(("runtime", "providers"), what, _hint(sdk)))
            continue
        try:
            place = root / Path(text).expanduser()
            wrong = _wrong(place, sdk, root)
        except (OSError, RuntimeError, ValueError) as error:
            place, wrong = Path(text), (f"cannot be read: {_reason(error)}", _READABLE)
        if wrong:
            by = "" if given else f" ({sdk.environment})"
            what = f"{_shown(place)}{by} {wrong[0]}"
            problems.append(sku.problem(key if given else ("runtime", "providers"), what, wrong[1]))
        places[sdk.name] = place
    return places, problems


def content(folder: Path) -> str:
    """Hash of all that is in an SDK, whatever the folder is called.

    Raises:
        ArmletError: (INPUT) something in it cannot be read.
    """
    try:
        entries = [
            (
                # Names need not be UTF-8.
                os.fsencode(path.relative_to(folder)).hex(),
                f"-> {os.fsencode(path.readlink()).hex()}" if path.is_symlink() else digest.of_file(path),
            )
            for path in _below(folder)
            if path.is_symlink() or path.is_file()
        ]
    except OSError as error:
        raise ArmletError(
            f"a vendor's file cannot be read: {_reason(error)}",
            hint=_READABLE,
            kind=Kind.INPUT,
            where=_shown(folder),
        ) from error
    return digest.of_value(sorted(entries))


def _wrong(place: Path, sdk: Sdk, root: Path) -> tuple[str, str] | None:
    """What is wrong with a folder, and what mends it; null where it is sound.

    Raises:
        OSError, RuntimeError: it, or something in it, cannot be read.
    """
    if place.exists() and not place.is_dir():
        return f"is no {sdk.name}: it is no folder", _hint(sdk)
    if missing := _missing(place, sdk):
        return f"is no {sdk.name}: it lacks {', '.join(missing)}", _hint(sdk)
    real = place.resolve()
    if _SYSTEM.fullmatch(str(real)) or real == Path.home().resolve() or root.resolve().is_relative_to(real):
        return (
            f"is no {sdk.name}: it is a folder of the system, of a user or around this project",
            f"copy what belongs to {sdk.name} into a folder of its own",
        )
    for path in _below(place):
        if path.is_symlink():
            if path.readlink().is_absolute() or not path.resolve().is_relative_to(real):
                name, target = (_shown(one) for one in (path.relative_to(place), path.readlink()))
                what = f"has a link that leaves the folder, which the build does not see: {name} -> {target}"
                return what, "put a copy of what it leads to in its place, or a relative link"
        elif path.is_file() and not os.access(path, os.R_OK):
            return f"cannot be read: permission denied: {_shown(path.relative_to(place))}", _READABLE
    return None


def _below(folder: Path) -> Iterator[Path]:
    """All that a folder holds; links are not followed.

    Raises:
        OSError: a folder cannot be read.
    """

    def stop(error: OSError) -> None:
        raise error

    for inside, folders, files in os.walk(folder, onerror=stop):
        yield from (Path(inside, name) for name in (*folders, *files))


def _reason(error: Exception) -> str:
    """``permission denied: /its/place``."""
    if not isinstance(error, OSError):
        return str(error).rstrip(".").lower()
    place = f": {_shown(error.filename)}" if error.filename else ""
    return f"{(error.strerror or str(error)).lower()}{place}"


def _shown(path: object) -> str:
    """A path that a terminal can show, cut where it is very long."""
    text = os.fsencode(str(path)).decode("utf-8", "backslashreplace")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


_LONGEST = 200
_READABLE = "name a folder that is there, and make all in it readable for this user"


def _providers(sku: Document) -> list[str]:
    given = sku.get("runtime", "providers")
    return [name for name in given if isinstance(name, str) and name in PROVIDERS] if isinstance(given, list) else []


def _unknown(sku: Document, wanted: list[Sdk]) -> list[Problem]:
    given = sku.get(*KEY)
    known = [sdk.name for sdk in wanted]
    return [
        sku.problem(
            (*KEY, name),
            f'none of the providers needs an SDK "{name}"',
            did_you_mean(name, known) if known else "take it out, or add its provider (docs/providers.md)",
        )
        for name in (given if isinstance(given, dict) else {})
        if name not in known
    ]


def _missing(place: Path, sdk: Sdk) -> list[str]:
    return [" or ".join(group) for group in sdk.needs if not any(_is_there(place / path) for path in group)]


def _is_there(path: Path) -> bool:
    return path.is_file() if path.name.endswith(_FILES) else path.is_dir()


def _hint(sdk: Sdk) -> str:
    wanted = ", ".join(" or ".join(group) for group in sdk.needs)
    return (
        f"{sdk.source}; then write runtime.sdks: {{{sdk.name}: /its/folder}} or set {sdk.environment} to the folder "
        f"that has {wanted}"
    )
