"""Names that builders of root file systems read a meaning into."""

from __future__ import annotations

from collections.abc import Mapping

from armlet.errors import ArmletError, Kind

_MEANT = (
    *("-native", "-cross", "-crosssdk", "-nativesdk", "-cross-canadian", "-initial", "-intermediate"),
    *("-dev", "-dbg", "-doc", "-src", "-staticdev", "-locale", "-ptest", "-lic", "-source", "-bin"),
)
"""Ends of names that stand for a kind of recipe, or for a part of another package."""


def package_safe(name: str, what: str = "model") -> str:
    """A package's name that no builder takes for something else; most stay as they are."""
    plain = name.replace("_", "-").rstrip(".-+")
    return f"{plain}-{what}" if plain.endswith(_MEANT) else plain


def make_safe(name: str) -> str:
    """A name as variables of make and of Kconfig have it: ``ARMLET_MODEL_TEXT_DIRECTION``."""
    return "".join(sign if sign.isalnum() else "_" for sign in name).upper()


def demand_apart(what: str, names: Mapping[str, str]) -> None:
    """Raises:
    ArmletError: (INPUT) two of them have the same name in a layer.
    """
    owners: dict[str, str] = {}
    for own, name in names.items():
        if (other := owners.setdefault(make_safe(name), own)) != own:
            raise ArmletError(
                f"{what} {other} and {own} would both be {name} in a layer",
                hint="rename one of them: dashes, dots and underscores make no difference there",
                kind=Kind.INPUT,
            )
