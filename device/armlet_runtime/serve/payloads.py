"""Where the models to serve come from, and whether they may be served."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Literal, Mapping, NamedTuple, Protocol, Sequence

from armlet_runtime.serve.interface import TensorInfo

MANIFEST = "payload.json"


class BadPayload(Exception):
    """There is nothing to serve; ``reasons`` has one line each."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


@dataclass(frozen=True)
class Candidate:
    """A payload that was found to be what its maker signed, and fit for this runtime."""

    model: str
    version: str
    generation: int
    folder: Path
    manifest: Mapping[str, Any]
    model_file: Path
    sha256: str
    """Of the model file."""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    rejected: tuple[str, ...] = ()
    """Why other versions were not taken."""
    payload: str = ""
    """sha256 of payload.json: which payload this is."""
    source: Literal["factory", "store"] = "factory"

    @property
    def refusals(self) -> str:
        """``rejected`` in one line; empty where nothing was."""
        return f"a payload was refused: {'; '.join(self.rejected)}" if self.rejected else ""


class Catalogue(Protocol):
    """The models to serve. What a model's payload is may change from call to call."""

    def names(self) -> Sequence[str]:
        """Of all models, sorted."""

    def current(self, model: str) -> Candidate:
        """The payload to serve, checked anew. Raises :class:`BadPayload`."""

    def refuse(self, candidate: Candidate, reason: str) -> bool:
        """It failed when it was tried: not to be served in this run. Whether ``current`` may have another one now."""


Verify = Callable[[Path], Mapping[str, Any]]
"""A payload's folder -> payload.json as parsed, once signature and hashes hold. Raises :class:`BadPayload`, OSError."""
Check = Callable[[Mapping[str, Any]], Sequence[str]]
"""payload.json -> in words, what of it this runtime cannot do."""


class FactorySet:
    """Payloads that came with the rootfs: ``<folder>/<model>/<version>/payload.json``.

    Of several versions the one of the highest generation that may be served is taken.
    """

    def __init__(self, folder: Path, verify: Verify, check: Check) -> None:
        self._folder = folder
        self._verify = verify
        self.check = check

    def names(self) -> Sequence[str]:
        """The names of the folders; none where the folder cannot be read."""
        try:
            return sorted(place.name for place in self._folder.iterdir() if _is_folder(place))
        except OSError:
            return []

    def current(self, model: str) -> Candidate:
        """The payload to serve, checked anew. Raises :class:`BadPayload`."""
        folder = self._folder / model
        try:
            places = sorted(place for place in folder.iterdir() if _is_folder(place))
        except OSError as error:
            raise BadPayload([f"{folder}: {error.strerror}"]) from error
        found: list[Candidate] = []
        reasons: list[str] = []
        for place in places:
            try:
                found.append(self._candidate(place))
            except BadPayload as error:
                reasons += [f"{place}: {reason}" for reason in error.reasons]
            except OSError as error:
                reasons.append(f"{place}: {error.strerror}")
        if not found:
            raise BadPayload(reasons or [f"{folder} holds no payload"])
        newest = max(candidate.generation for candidate in found)
        best = [candidate for candidate in found if candidate.generation == newest]
        if len(best) > 1:
            both = " and ".join(str(candidate.folder) for candidate in best)
            raise BadPayload([*reasons, f"{both} are both generation {newest}: one of them has to go"])
        return best[0] if not reasons else dataclasses.replace(best[0], rejected=tuple(reasons))

    def refuse(self, candidate: Candidate, reason: str) -> bool:  # noqa: ARG002
        """There is no other: what came with the rootfs is tried again and again."""
        return False

    def _candidate(self, place: Path) -> Candidate:
        candidate = candidate_of(place, self._verify(place))
        if candidate.model != place.parent.name:
            what = f'it is a payload of the model "{candidate.model}", in the folder of "{place.parent.name}"'
            raise BadPayload([what])
        if candidate.version != place.name:
            raise BadPayload([f'it is version "{candidate.version}", in the folder of "{place.name}"'])
        problems = self.check(candidate.manifest)
        if problems:
            raise BadPayload([f"not for this runtime: {problem}" for problem in problems])
        return dataclasses.replace(candidate, payload=hashlib.sha256((place / MANIFEST).read_bytes()).hexdigest())


def candidate_of(folder: Path, manifest: Mapping[str, Any]) -> Candidate:
    """What a verified ``payload.json`` says. Raises :class:`BadPayload` where it lacks what serving needs."""
    try:
        first = manifest["files"][0]
        for choice in manifest["providers"]:
            _demand(choice["name"], str)
            _demand(choice.get("options", {}), dict)
        _demand(manifest["threads"], (int, type(None)))
        _demand(manifest["golden"], list)
        return Candidate(
            model=_demand(manifest["model"], str),
            version=_demand(manifest["version"], str),
            generation=_demand(manifest["generation"], int),
            folder=folder,
            manifest=manifest,
            model_file=folder / _demand(first["path"], str),
            sha256=_demand(first["sha256"], str),
            inputs=_tensors(manifest["inputs"]),
            outputs=_tensors(manifest["outputs"]),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadPayload([f"its {MANIFEST} is not complete: {error}"]) from error


class Problem(NamedTuple):
    """A payload that is not served as it should be."""

    model: str
    what: str


def problems_of(catalogue: Catalogue) -> list[Problem]:
    """Everything that is wrong with the payloads, checked one after the other."""
    found: list[Problem] = []
    for model in catalogue.names():
        try:
            found += [Problem(model, reason) for reason in catalogue.current(model).rejected]
        except BadPayload as error:
            found += [Problem(model, reason) for reason in error.reasons]
    return found


def _tensors(entries: Any) -> tuple[TensorInfo, ...]:
    return tuple(
        TensorInfo(
            _demand(entry["name"], str),
            _demand(entry["dtype"], str),
            tuple(_demand(size, (int, str)) for size in entry["shape"]),
        )
        for entry in entries
    )


def _demand(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not what belongs there")
    return value


def _is_folder(place: Path) -> bool:
    # What a packer or an unfinished copy left behind begins with a dot.
    return place.is_dir() and not place.name.startswith(".")
