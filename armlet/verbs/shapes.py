"""Words of the command line that several verbs read alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from armlet.errors import ArmletError, Kind

_LARGEST = 2**31 - 1
"""Of one dimension."""


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
        if not name or not all(number.isdecimal() and 0 < int(number) <= _LARGEST for number in numbers):
            raise _input(f'--shape: "{word}" is no shape', "write an input's name and its sizes: --shape x=1,3,48,192")
        if name in found:
            raise _input(f'--shape: "{name}" is given twice', "give each input one shape")
        found[name] = tuple(map(int, numbers))
    return found


def _input(what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT)


def by_model(words: Iterable[str], models: Sequence[Path]) -> dict[Path, dict[str, tuple[int, ...]]]:
    """Model -> its inputs' shapes, of words such as ``x=1,3,48,192`` (for all that have such an input) and
    ``model:x=1,3,48,192``, where the model goes by its file's name, with its ending or without.

    Raises:
        ArmletError: (INPUT) a word is none such, or no model is named so or has such an input.
    """
    from armlet.onnx.reading import input_shapes, read

    found: dict[Path, dict[str, tuple[int, ...]]] = {model: {} for model in models}
    inputs = {model: input_shapes(read(model)) for model in models} if words else {}
    for word in words:
        name, _, rest = word.partition(":")
        # The name of an input may have a colon too.
        own = [model for model in models if rest and name in (model.name, model.stem)]
        shapes = parsed([rest if own else word])
        for input_name, shape in shapes.items():
            fitting = [model for model in own or models if input_name in inputs[model]]
            if not fitting:
                raise _input(
                    f'--shape: no model has an input "{input_name}"',
                    "write <input>=<sizes>, or <model>:<input>=<sizes>",
                )
            for model in fitting:
                found[model][input_name] = shape
    return found
