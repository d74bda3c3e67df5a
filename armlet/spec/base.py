"""What every model has in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from pydantic_core import PydanticCustomError


class Spec(BaseModel):
    """Strict, frozen, and closed: an unknown key is an error, a wrong type is not converted."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", use_attribute_docstrings=True)


WRONG = "wrong"


def wrong(what: str, hint: str, *at: str | int) -> PydanticCustomError:
    """What a validator raises, for messages as they are told: the problem, the remedy, and the place inside."""
    return PydanticCustomError(WRONG, "{what}", {"what": what, "hint": hint, "at": at})


NAME = r"^[a-z0-9][a-z0-9._-]*$"
Name = Annotated[str, StringConstraints(pattern=NAME, max_length=64)]
"""A name that is safe as a file name, an image tag and a package name."""

Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=200)]
"""One line of text: it ends up in package descriptions and pkg-config files."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
VERSION = r"^[0-9]+(\.[0-9]+)*$"
VERSION_LENGTH = 32
"""Characters: no version has more, and numbers of thousands of digits cannot be read."""
Version = Annotated[str, StringConstraints(pattern=VERSION, max_length=VERSION_LENGTH)]
"""A dotted version, e.g. ``2.36``: a string, since the number 2.30 would lose its zero."""


def spdx_expression(text: str) -> str | None:
    """A licence in the form that SPDX writes it in; None where it is no expression of SPDX."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        return None


def _licence(text: str) -> str:
    if (known := spdx_expression(text)) is None:
        hint = 'write one as "MIT" or "BSD-3-Clause AND Apache-2.0", from the list of SPDX; else LicenseRef-<name>'
        raise wrong(f'"{text}" is no SPDX expression', hint)
    return known


Licence = Annotated[str, AfterValidator(_licence)]
"""A licence as an SPDX expression."""

PART = r"(\.?[^\s/.][^\s/]*|\.\.[^\s/]+)"
RELATIVE_PATH = rf"^{PART}(/{PART})*$"
RelativePath = Annotated[str, StringConstraints(pattern=RELATIVE_PATH)]
"""Parts joined by slashes, none of them ``..``: it cannot leave the folder it is relative to."""


def each_once(names: Iterable[str], *inside: str) -> None:
    """Raises:
    PydanticCustomError: one of a list's names is there twice; ``inside`` leads from an item to its name.
    """
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            raise wrong(f'"{name}" is given twice', "keep one", index, *inside)
        seen.add(name)


def version_key(version: str) -> tuple[int, ...]:
    """Orders dotted versions as numbers: 2.4 < 2.36."""
    return tuple(int(part) for part in version.split("."))
