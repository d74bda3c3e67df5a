"""Writing a source set's lock entries: hash, size and address, from the files themselves."""

from __future__ import annotations

import hashlib
import io
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.events import Note, Sink
from armlet.fetch.download import download
from armlet.fetch.places import Places, cache_path, shown
from armlet.fetch.transport import PATIENT, NotThere, Patience, PlaceFailed, new_session
from armlet.fetch.upstream import read_facts
from armlet.fetch.wanted import Wanted
from armlet.files import write_whole
from armlet.paths import Paths
from armlet.recipes import SOURCE_SETS
from armlet.spec.source_set import SourceSet
from armlet.validation import validate
from armlet.yamlfile import parse, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a new source set has that the one it is made from has not."""

    version: str
    """Of ONNX Runtime."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Component -> its new version."""
    debian: Mapping[str, str] = field(default_factory=dict)
    """Component -> its new pool path, where putting the new version into the old path is not enough."""

    @classmethod
    def of(cls, version: str, *, versions: Iterable[str] = (), debian: Iterable[str] = ()) -> Change:
        """From ``name=value`` texts, as a command line has them.

        Raises:
            ArmletError: a text has no name or no value, or the version cannot name a set.
        """
        if not re.fullmatch(r"[0-9]+(\.[0-9a-z]+)*", version):
            raise ArmletError(f'"{version}" is no version', hint="write for example 1.22.0", kind=Kind.INPUT)
        return cls(version=version, versions=_pairs(versions), debian=_pairs(debian))


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            raise ArmletError(
                f'"{text}" names no component and its value', hint="write for example onnx=1.18.0", kind=Kind.INPUT
            )
        pairs[name] = value
    return pairs


def lock(paths: Paths, name: str, emit: Sink, *, places: Places | None = None, patience: Patience = PATIENT) -> Path:
    """Rewrites ``sha256``, ``size`` and ``snapshot`` of every component, and what the sources say about formats.

    Each file is fetched from every place that has it, and all must agree. Comments and all other keys stay. Entries
    added by hand need name, version, licence and a place. Returns the path of the source set's file.

    Raises:
        ArmletError: the file is unsound, a component is nowhere to be had, or two places differ. Nothing is written.
    """
    SOURCE_SETS.require(paths, name)
    return _write_locked(paths, name, _load(SOURCE_SETS.path(paths, name), paths), emit, places, patience)


def lock_new(
    paths: Paths, like: str, change: Change, emit: Sink, *, places: Places | None = None, patience: Patience = PATIENT
) -> Path:
    """Makes ``onnxruntime-<version>`` from the set ``like``: other versions in the same places, locked anew.

    Raises:
        ArmletError: as ``lock``; also where the new set exists already, or a version is not part of its old path.
    """
    SOURCE_SETS.require(paths, like)
    name = f"onnxruntime-{change.version}"
    if SOURCE_SETS.path(paths, name).exists():
        raise ArmletError(
            "is there already",
            hint=f"lock it again with: ./inv sources.lock {name}",
            kind=Kind.INPUT,
            where=f"{SOURCE_SETS.folder}/{name}.yaml",
        )
    data = _load(SOURCE_SETS.path(paths, like), paths)
    _apply(change, data)
    data["name"], data["version"] = name, change.version
    path = _write_locked(paths, name, data, emit, places, patience)
    emit(Note(text=f"{name} has the patches, comments and acceleration of {like}: read each again before you build"))
    return path


def _apply(change: Change, data: Any) -> None:
    versions = {"onnxruntime": change.version, **change.versions}
    known = {component["name"]: component for component in data["components"]}
    for name in (*versions, *change.debian):
        if name not in known:
            raise ArmletError(
                f'there is no component "{name}" in the set', hint=f"known: {', '.join(known)}", kind=Kind.INPUT
            )
    for name, version in versions.items():
        component = known[name]
        old = component["version"]
        if name not in change.debian:
            if "urls" in component:
                component["urls"] = [url.replace(old, version) for url in component["urls"]]
            if "debian" in component:
                component["debian"] = _with_version(name, component["debian"], old, version)
        component["version"] = version
    for name, path in change.debian.items():
        known[name]["debian"] = path


def _with_version(name: str, path: str, old: str, new: str) -> str:
    if old not in path:
        raise ArmletError(
            f"cannot put version {new} into the pool path of {name}: {path} does not hold {old}",
            hint=f"give the new path: --debian {name}=pool/main/...",
            kind=Kind.INPUT,
        )
    return path.replace(old, new)


def _load(path: Path, paths: Paths) -> Any:
    where = path.relative_to(paths.root).as_posix()
    try:
        data = _yaml().load(path.read_text(encoding="utf-8"))
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        raise ArmletError(f"cannot be read: {error}", hint="mend the file", kind=Kind.INPUT, where=where) from error
    components = data.get("components") if isinstance(data, Mapping) else None
    if not isinstance(components, list):
        raise ArmletError(
            "has no list of components", hint="begin it with a line `components:`", kind=Kind.INPUT, where=where
        )
    if not all(_is_component(one) for one in components):
        raise ArmletError(
            "a component lacks its name, version or place",
            hint="give each name:, version:, licence:, and debian: or urls:",
            kind=Kind.INPUT,
            where=where,
        )
    return data


def _is_component(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return False
    urls = entry.get("urls", [])
    texts = [
        entry.get("name"),
        entry.get("version"),
        entry.get("debian", ""),
        *(urls if isinstance(urls, list) else [0]),
    ]
    return all(isinstance(text, str) for text in texts) and bool(entry.get("debian") or urls)


def _write_locked(paths: Paths, name: str, data: Any, emit: Sink, places: Places | None, patience: Patience) -> Path:
    known = places or Places.here()
    archives: dict[str, Path] = {}
    with new_session() as session:
        for component in data["components"]:
            archives[component["name"]] = _lock_one(component, paths, session, emit, known, patience)
    for key, value in read_facts(data["components"], archives, emit).items():
        _set(data, key, value)
    stream = io.StringIO()
    _yaml().dump(data, stream)
    target = SOURCE_SETS.path(paths, name)
    document = parse(stream.getvalue(), file=target.relative_to(paths.root).as_posix())
    _, problems = validate(SourceSet, document)
    refuse(problems)
    write_whole(target, stream.getvalue().encode())
    return target


def _lock_one(
    component: Any, paths: Paths, session: requests.Session, emit: Sink, places: Places, patience: Patience
) -> Path:
    path = component.get("debian") or component["urls"][0]
    wanted = Wanted(
        filename=path.rsplit("/", 1)[1],
        sha256="",
        size=None,
        debian=component.get("debian"),
        urls=tuple(component.get("urls", ())),
    )
    paths.downloads.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".lock-", dir=paths.downloads) as folder:
        found = _from_all_places(wanted, Path(folder), session, emit, places, patience)
        sha256 = digest.of_file(found)
        _tell_change(component, sha256, emit)
        _put(component, "sha256", sha256)
        _put(component, "size", found.stat().st_size)
        if "debian" in component:
            _put(component, "snapshot", hashlib.sha1(found.read_bytes(), usedforsecurity=False).hexdigest())
        target = paths.downloads / cache_path(sha256, wanted.filename)
        target.parent.mkdir(parents=True, exist_ok=True)
        found.replace(target)
    return target


def _from_all_places(
    wanted: Wanted, folder: Path, session: requests.Session, emit: Sink, places: Places, patience: Patience
) -> Path:
    """Fetches from each place that has the file; they must agree."""
    found: dict[str, Path] = {}
    failures: list[str] = []
    for number, place in enumerate(places.of_file(wanted)):
        assert isinstance(place, str)
        part = folder / str(number)
        try:
            download(wanted, place, part, session, emit, patience)
        except PlaceFailed as failed:
            part.unlink(missing_ok=True)
            failures.append(f"{shown(place)}: {failed.reason}")
            if not isinstance(failed, NotThere):
                emit(Note(text=failures[-1]))
            continue
        found[shown(place)] = part
    if not found:
        raise ArmletError(
            "".join([f"cannot lock {wanted.filename}: no place has it", *(f"\n  {line}" for line in failures)]),
            hint="a lock entry names a file that was fetched: correct its place, or name a mirror that has it",
            kind=Kind.HOST,
        )
    hashes = {place: digest.of_file(path) for place, path in found.items()}
    if len(set(hashes.values())) > 1:
        told = "".join(f"\n  {value} {place}" for place, value in hashes.items())
        raise ArmletError(
            f"the places differ about {wanted.filename}{told}",
            hint="find out which one is right, and take the other one out",
            kind=Kind.INPUT,
        )
    return next(iter(found.values()))


def _tell_change(component: Mapping[str, Any], sha256: str, emit: Sink) -> None:
    before = component.get("sha256")
    if before and before != sha256:
        emit(Note(text=f"{component['name']}: sha256 was {before}, is {sha256}"))


def _put(component: Any, key: str, value: str | int) -> None:
    """Sets a key; a new one goes beside the place, not to the end, where it would steal the next entry's comment."""
    if key in component:
        component[key] = value
    else:
        anchor = "debian" if "debian" in component else "urls"
        component.insert(list(component).index(anchor) + 1, key, value)


def _set(data: Any, key: str, value: Any) -> None:
    """Sets a value in place, so that the comments on it stay."""
    old = data.get(key)
    if isinstance(value, Mapping) and isinstance(old, Mapping):
        for name, inner in value.items():
            _set(old, name, inner)
    elif isinstance(value, list) and isinstance(old, list):
        old[:] = value
    else:
        data[key] = value


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    # Lines stay as they are, however long: a lock changes nothing but what it is for.
    yaml.width = 1 << 16
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml
