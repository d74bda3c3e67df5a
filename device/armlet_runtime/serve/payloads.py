"""Where the models to serve come from, and whether they may be served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Protocol, Sequence

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
    payload_sha256: str
    """Of ``payload.json``, and so of everything."""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    rejected: tuple[str, ...] = ()
    """Why other versions were not taken."""

    @property
    def created(self) -> str:
        """When its maker packed it, in ISO 8601; empty: unknown."""
        return str(self.manifest.get("created", ""))

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


class Verified(NamedTuple):
    """A payload whose signature and hashes hold."""

    manifest: Mapping[str, Any]
    """``payload.json`` as parsed."""
    sha256: str
    """Of its bytes."""


Verify = Callable[[Path], Verified]
"""Takes a payload's folder. Raises :class:`BadPayload`, OSError."""
Check = Callable[[Mapping[str, Any]], Sequence[str]]
"""payload.json -> in words, what of it this runtime cannot do."""


class FactorySet:
    """Payloads that came with the rootfs: ``<folder>/<model>/<version>/payload.json``.

    Of several versions the one of the highest generation that may be served is taken, of several of one generation
    the one that was made first.
    """

    def __init__(self, folder: Path, verify: Verify, check: Check) -> None:
        self._folder = folder
        self._verify = verify
        self._check = check

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
        # No order is between them: who made the generation first has it, so that a restart changes nothing.
        same = sorted((c for c in found if c.generation == newest), key=lambda c: (c.created, c.version))
        best, others = same[0], same[1:]
        reasons += [
            f"{c.folder}: generation {newest} is version {best.version}'s; pack it with a higher" for c in others
        ]
        return best if not reasons else Candidate(**{**vars(best), "rejected": tuple(reasons)})

    def _candidate(self, place: Path) -> Candidate:
        candidate = candidate_of(place, *self._verify(place))
        if candidate.model != place.parent.name:
            what = f'it is a payload of the model "{candidate.model}", in the folder of "{place.parent.name}"'
            raise BadPayload([what])
        if candidate.version != place.name:
            raise BadPayload([f'it is version "{candidate.version}", in the folder of "{place.name}"'])
        problems = self._check(candidate.manifest)
        if problems:
            raise BadPayload([f"not for this runtime: {problem}" for problem in problems])
        return candidate


def folder_problem(folder: Path) -> str:
    """Why there is no model at all in a factory set; empty: there is one."""
    try:
        inside = list(folder.iterdir())
    except OSError as error:
        return f"the payloads' folder {folder}: {error.strerror}"
    return "" if any(map(_is_folder, inside)) else f"{folder} holds no payload"


def candidate_of(folder: Path, manifest: Mapping[str, Any], sha256: str) -> Candidate:
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
            payload_sha256=sha256,
            inputs=_tensors(manifest["inputs"]),
            outputs=_tensors(manifest["outputs"]),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadPayload([f"its {MANIFEST} is not complete: {error}"]) from error


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
    try:
        return place.is_dir() and not place.name.startswith(".")
    except OSError:
        # A link to where this user may not look, say: it hides no other, and what is wrong is told where it is used.
        return True
