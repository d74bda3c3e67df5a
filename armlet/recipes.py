"""The recipe files: where they are, which there are, and one read on its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from armlet.errors import ArmletError, Kind
from armlet.paths import Paths
from armlet.registrations import kernel_types
from armlet.spec.base import NAME
from armlet.spec.patterns import MEANINGS
from armlet.spec.sku import ModelRecipe, Sku
from armlet.spec.source_set import SourceSet
from armlet.spec.toolchain import Toolchain
from armlet.validation import did_you_mean, validate
from armlet.yamlfile import Document, Problem, read, refuse

M = TypeVar("M", bound=BaseModel)

Table = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Domain -> operator -> opsets at which its kernels start."""


_ENDING = ".yaml"


class Shelf(Generic[M]):
    """One kind of recipe: a folder of YAML files, each named after what it holds."""

    def __init__(self, model: type[M], folder: str, noun: str) -> None:
        self.model = model
        self.folder = folder
        """Relative to the project's root."""
        self.noun = noun

    def path(self, paths: Paths, name: str) -> Path:
        return paths.root / self.folder / f"{name}.yaml"

    def names(self, paths: Paths) -> tuple[str, ...]:
        """Of all there are, sorted.

        Raises:
            ArmletError: two differ only in case.
        """
        files = self.files(paths)
        refuse(self._alike(files))
        return tuple(name.removesuffix(_ENDING) for name in files if name.endswith(_ENDING))

    def files(self, paths: Paths) -> list[str]:
        """Their file names, those included that only a file system that ignores case takes for recipes."""
        found = (path.name for path in (paths.root / self.folder).glob("*"))
        return sorted(name for name in found if name.casefold().endswith(_ENDING) and not name.startswith("."))

    def _alike(self, files: Sequence[str]) -> Iterator[Problem]:
        for file in files:
            others = [other for other in files if other != file and other.casefold() == file.casefold()]
            # Told once, at the one with capital letters.
            if others and file == min((file, *others)):
                yield Problem(
                    where=f"{self.folder}/{file}",
                    what=f"differs only in case from {', '.join(others)}",
                    hint="rename or remove one: a file system that ignores case would keep only one of them",
                )

    def require(self, paths: Paths, name: str) -> None:
        """Raises:
        ArmletError: there is none of that name; the hint has the nearest.
        """
        known = self.names(paths)
        if name not in known:
            raise ArmletError(f'unknown {self.noun} "{name}"', hint=did_you_mean(name, known), kind=Kind.INPUT)

    def load(self, paths: Paths, name: str) -> M:
        """Raises:
        ArmletError: there is none of that name, or all that is wrong with its file.
        """
        self.require(paths, name)
        made, _, problems = self.inspect(paths, name)
        refuse(problems)
        assert made is not None
        return made

    def inspect(self, paths: Paths, name: str) -> tuple[M | None, Document | None, list[Problem]]:
        """What can be had of a file, and what is wrong with it: nothing where the model is there."""
        try:
            document = read(self.path(paths, name), root=paths.root)
        except ArmletError as error:
            return None, None, [Problem(where=error.where, what=error.what, hint=error.hint)]
        made, problems = validate(self.model, document)
        problems += misnamed(document, name)
        return (None if problems else made), document, problems


MODELS = Shelf(ModelRecipe, "recipes/models", "model")
SKUS = Shelf(Sku, "recipes/skus", "SKU")
SOURCE_SETS = Shelf(SourceSet, "recipes/sources", "source set")
TOOLCHAINS = Shelf(Toolchain, "toolchains", "toolchain")


def misnamed(document: Document, name: str) -> list[Problem]:
    """A file must hold what its name promises."""
    if re.fullmatch(NAME, name) is None:
        hint = f"rename the file; a recipe's name is {MEANINGS[NAME]}"
        return [Problem(where=document.file, what="is no name for a recipe", hint=hint)]
    given = document.get("name")
    if not isinstance(given, str) or given == name:
        return []
    what = f'"{given}" is not the name of the file'
    return [document.problem(("name",), what, f"write name: {name}, or rename the file")]


def operators_file(paths: Paths, source_set: str) -> Path:
    return paths.root / "recipes" / "operators" / f"{source_set}.json"


def load_kernel_types(paths: Paths, source_set: str) -> str | None:
    """What ``registrations.kernel_types`` reads of a source set; null where that table is not there.

    Raises:
        ArmletError: the table is damaged.
    """
    path = operators_file(paths, source_set).with_name(f"{source_set}.types.json")
    try:
        text = path.read_text(encoding="utf-8")
        kernel_types(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise _damaged_table(paths, path, "types", error) from error
    return text


def load_operators(paths: Paths, source_set: str) -> Table | None:
    """The operators that a source set has kernels for; null where their table is not there.

    Raises:
        ArmletError: the table is damaged.
    """
    path = operators_file(paths, source_set)
    try:
        table = json.loads(path.read_bytes())
        return {
            domain: {name: tuple(map(int, since)) for name, since in operators.items()}
            for domain, operators in table.items()
        }
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise _damaged_table(paths, path, "operators", error) from error


def _damaged_table(paths: Paths, path: Path, of: str, error: Exception) -> ArmletError:
    return ArmletError(
        f"the table of {of} cannot be read: {error}",
        hint="write it again (docs/adding-a-sku.md, Operators)",
        kind=Kind.INPUT,
        where=path.relative_to(paths.root).as_posix(),
    )
