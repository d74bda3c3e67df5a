"""Passphrases of keys: from an environment variable, or asked for on the terminal; never from the command line."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from armlet.errors import ArmletError, Kind


def passphrase_of(key: Path, variable: str, environment: Mapping[str, str]) -> Callable[[], str]:
    """What gives the passphrase of an encrypted key when it is called.

    Raises:
        ArmletError: (INPUT, from the call) the variable is not set, or none is named and nobody is there to be asked.
    """
    return lambda: from_variable(variable, environment) if variable else _ask(f"passphrase of {key}: ", key)


def new_passphrase(name: str) -> str:
    """Asks twice.

    Raises:
        ArmletError: (INPUT) the answers differ or are empty, or nobody is there to be asked.
    """
    first, second = (_ask(f"{what} of the key {name}: ", name) for what in ("passphrase", "again, passphrase"))
    if not first or first != second:
        raise ArmletError("the two differ, or are empty", hint="type the same words twice", kind=Kind.INPUT)
    return first


def from_variable(variable: str, environment: Mapping[str, str]) -> str:
    """Raises:
    ArmletError: (INPUT) it is not set, or empty.
    """
    found = environment.get(variable, "")
    if not found:
        raise ArmletError(f"the environment variable {variable} is not set", hint=f"export {variable}", kind=Kind.INPUT)
    return found


def _ask(question: str, key: object) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ArmletError(
            f"the key {key} needs a passphrase, and there is no terminal to ask for it",
            hint="name the environment variable that holds it: --passphrase-env NAME",
            kind=Kind.INPUT,
        )
    return getpass.getpass(question, sys.stderr)
