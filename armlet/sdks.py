"""Vendors' files that providers are built against: where they are, and whether upstream's build would take them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from armlet import digest
from armlet.errors import host_error
from armlet.providers import PROVIDERS, Sdk, sdks
from armlet.validation import did_you_mean
from armlet.yamlfile import Document, Problem

KEY = ("runtime", "sdks")


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
        if given is not None and not isinstance(given, str):
            continue  # The model says so.
        text = given or environment.get(sdk.environment, "")
        if not text:
            what = f"{sdk.name} is missing: there is no {sdk.name} in runtime.sdks, and {sdk.environment} is not set"
            problems.append(sku.problem(("runtime", "providers"), what, _hint(sdk)))
            continue
        place = root / Path(text).expanduser()
        if missing := _missing(place, sdk):
            by = "" if given else f" ({sdk.environment})"
            what = f"{place}{by} is no {sdk.name}: it lacks {', '.join(missing)}"
            problems.append(sku.problem(key if given else ("runtime", "providers"), what, _hint(sdk)))
        places[sdk.name] = place
    return places, problems


def content(folder: Path) -> str:
    """Hash of all that is in an SDK, whatever the folder is called.

    Raises:
        ArmletError: (HOST) a file cannot be read.
    """
    try:
        entries = [
            (
                path.relative_to(folder).as_posix(),
                f"-> {path.readlink()}" if path.is_symlink() else digest.of_file(path),
            )
            for path in folder.rglob("*")
            if path.is_symlink() or path.is_file()
        ]
    except OSError as error:
        raise host_error(error, folder) from error
    return digest.of_value(sorted(entries))


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
    return [" or ".join(group) for group in sdk.needs if not any((place / path).exists() for path in group)]


def _hint(sdk: Sdk) -> str:
    wanted = ", ".join(" or ".join(group) for group in sdk.needs)
    return (
        f"{sdk.source}; then write runtime.sdks: {{{sdk.name}: /its/folder}} or set {sdk.environment} to the folder "
        f"that has {wanted}"
    )
