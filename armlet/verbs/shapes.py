"""Words of the command line that several verbs read alike."""

from __future__ import annotations

from collections.abc import Iterable

from armlet.errors import ArmletError, Kind


def demand(value: str, flag: str, hint: str) -> None:
    """Does nothing where the flag was given.

    Raises:
        ArmletError: (INPUT) it was not.
    """
    if not value:
        raise ArmletError(f"{flag} is missing", hint=hint, kind=Kind.INPUT)


def parsed(words: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Input -> shape, of words such as ``x=1,3,48,192``.

    Raises:
        ArmletError: (INPUT) a word is none such, or an input comes twice.
    """
    found: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, _, sizes = word.rpartition("=")
        numbers = sizes.split(",")
        if not name or not all(number.isdecimal() and int(number) > 0 for number in numbers):
            raise _input(f'--shape: "{word}" is no shape', "write an input's name and its sizes: --shape x=1,3,48,192")
        if name in found:
            raise _input(f'--shape: "{name}" is given twice', "give each input one shape")
        found[name] = tuple(map(int, numbers))
    return found


def _input(what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT)
