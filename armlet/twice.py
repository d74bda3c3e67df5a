"""Building a SKU from nothing, twice, in two places that have little in common, and comparing every byte."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from armlet import compare, pipeline
from armlet.compare import Difference
from armlet.config import Resolved, resolve
from armlet.engine import BASE_ENVIRONMENT, Surroundings
from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Note, Sink
from armlet.host import available_memory
from armlet.jobs import jobs as jobs_for
from armlet.mounts import View
from armlet.paths import Paths
from armlet.pipeline import Options
from armlet.plan import Planned
from armlet.remote.settings import Settings
from armlet.store import Store, remove_tree, replace_tree

SHARED_UNTIL = "operators"
"""The last step whose output both builds take from the store: no compiler has run by then."""
_CACHES = {"one": "first", "two": "second/one/of_another-length"}
_DIST, _ALSO = "dist", "packages"
_SHOWN = 10
_STRANGER = 12345
_UMASK = 0o002
_ALONE = Settings()
"""What other machines made is nothing that this one has built."""
_COLD: Mapping[str, str] = {"CCACHE_DISABLE": "1"}
_ELSEWHERE: Mapping[str, str] = {
    "HOME": "/var/tmp",
    "LANG": "C",
    "LC_ALL": "POSIX",
    "LANGUAGE": "tr",
    # Needs no table of zones in the image.
    "TZ": "ELSEWHERE-13:45",
    "USER": "stranger",
    "LOGNAME": "stranger",
    "EMAIL": "stranger@elsewhere.example",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed(Paths):
    """The paths of one of the two builds' outputs."""

    place: Path

    def dist(self, sku: str) -> Path:
        del sku  # There is but one.
        return self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One of the two builds."""

    jobs: int
    surroundings: Surroundings
    umask: int | None
    """Of this process while it builds; None: as it is."""

    def described(self) -> dict[str, str]:
        around = self.surroundings
        return {
            "mounts": around.view.prefix or "/",
            "host": around.hostname,
            "user": str(os.getuid() if around.uid is None else around.uid),
            "umask": around.umask or "the engine's",
            "jobs": str(self.jobs),
            **{name: around.environment.get(name, "-") for name in ("HOME", "LC_ALL", "TZ", "USER")},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TwiceReport:
    sku: str
    build_id: str
    files: int
    bytes: int
    sha256: str
    """Over the names and contents of all files of the first build."""
    seconds: tuple[float, float]
    outputs: tuple[Path, Path]
    passes: tuple[dict[str, str], dict[str, str]]
    differences: tuple[Difference, ...]


def passes(cores: int, memory: int, jobs: int | None, *, root: bool) -> tuple[Pass, Pass]:
    """An ordinary build without a compiler cache, and one that finds everything elsewhere.

    Args:
        memory: bytes that compilers may take.
        root: files can be given to another user.
    """
    first = jobs or jobs_for(cores, memory)
    other = first + 1 if jobs_for(first + 1, memory) > first or first == 1 else first - 1
    elsewhere = Surroundings(
        hostname="elsewhere-2",
        environment={**_ELSEWHERE, **_COLD},
        uid=_STRANGER if root else None,
        umask=f"{_UMASK:03o}",
        view=View(prefix="/mnt/another-place/far_from.it"),
    )
    return (
        Pass(jobs=first, surroundings=Surroundings(environment={**BASE_ENVIRONMENT, **_COLD}), umask=None),
        Pass(jobs=other, surroundings=elsewhere, umask=_UMASK),
    )


Also = Callable[[Paths, Path], object]
"""Makes more of what was built, into a folder: packages, for instance. Its paths' ``dist`` is that build's."""


def build(
    paths: Paths, sku: str, emit: Sink, options: Options | None = None, *, also: Also | None = None
) -> TwiceReport:
    """Builds a SKU twice from what its compile needs; where both agree, the first is put at ``dist/<sku>/``.

    Raises:
        ArmletError: as ``pipeline.build``.
    """
    options = options or Options()
    resolved = resolve(paths, sku)
    planned, shared, _ = pipeline.make(paths, resolved, emit, replace(options, sharing=_ALONE), until=SHARED_UNTIL)
    root = os.geteuid() == 0
    chosen = passes(len(os.sched_getaffinity(0)), available_memory(), options.jobs, root=root)
    place = paths.cache / "twice" / sku
    outputs: list[Path] = []
    seconds: list[float] = []
    with Store(paths.artifacts).lock(f"twice-{sku}", emit):
        remove_tree(place)
        for name, one in zip(("one", "two"), chosen, strict=True):
            emit(Note(text=f"build {name} of two: {', '.join(f'{k} {v}' for k, v in one.described().items())}"))
            started = time.monotonic()
            made = _build(_prepared(paths, place / _CACHES[name], planned, shared), resolved, emit, options, one)
            seconds.append(time.monotonic() - started)
            outputs.append(place / name)
            replace_tree(made, outputs[-1] / _DIST)
            if also is not None:
                with _umask(one.umask):
                    also(_Placed(root=paths.root, cache=paths.cache, place=outputs[-1] / _DIST), outputs[-1] / _ALSO)
            remove_tree(place / Path(_CACHES[name]).parts[0])
        differences = compare.folders(*outputs)
        if not differences:
            pipeline.publish(paths, sku, outputs[0] / _DIST, emit)
    files = [path for path in outputs[0].rglob("*") if path.is_file() and not path.is_symlink()]
    return TwiceReport(
        sku=sku,
        build_id=planned[-1].id,
        files=len(files),
        bytes=sum(path.stat().st_size for path in files),
        sha256=compare.content(outputs[0]),
        seconds=(seconds[0], seconds[1]),
        outputs=(outputs[0], outputs[1]),
        passes=(chosen[0].described(), chosen[1].described()),
        differences=differences,
    )


def demand_equal(report: TwiceReport) -> None:
    """Raises:
    ArmletError: (GATE) the two builds differ: names the first differences.
    """
    if not report.differences:
        return
    more = len(report.differences) - _SHOWN
    shown = [str(one) for one in report.differences[:_SHOWN]] + ([f"and {more} more"] if more > 0 else [])
    one, two = report.outputs
    raise ArmletError(
        f"two builds of {report.sku} differ: {'; '.join(shown)}",
        hint=f"docs/reproducible.md has the usual causes; all of it shows: diffoscope {one} {two}",
        kind=Kind.GATE,
        where=str(two),
    )


def _prepared(paths: Paths, cache: Path, planned: tuple[Planned, ...], shared: Mapping[str, Path]) -> Paths:
    """A cache of its own with nothing in it but downloads, images, and the outputs that both builds start from."""
    made = Paths(root=paths.root, cache=cache)
    try:
        made.artifacts.mkdir(parents=True)
        for mine, other in ((made.downloads, paths.downloads), (made.images, paths.images)):
            other.mkdir(parents=True, exist_ok=True)
            mine.symlink_to(other)
        for step in planned:
            if (output := shared.get(step.name)) is not None:
                for name in (output.name, f".{output.name}.seal"):
                    (made.artifacts / name).symlink_to(output.with_name(name))
    except OSError as error:
        raise host_error(error, cache) from error
    return made


def _build(paths: Paths, resolved: Resolved, emit: Sink, options: Options, one: Pass) -> Path:
    with _umask(one.umask):
        own = replace(options, jobs=one.jobs, surroundings=one.surroundings, sharing=_ALONE)
        planned, outputs, _ = pipeline.make(paths, resolved, emit, own)
        return outputs[planned[-1].name]


@contextmanager
def _umask(value: int | None) -> Iterator[None]:
    if value is None:
        yield
        return
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)
