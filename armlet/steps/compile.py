"""Configure, compile and link ONNX Runtime in one container without network."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from armlet import digest, linkmap, prune, registrations
from armlet.config import Resolved
from armlet.emit import cmake
from armlet.engine import Mount
from armlet.errors import ArmletError, Kind
from armlet.files import copy_tree
from armlet.mounts import View
from armlet.process import Command
from armlet.remote import proxy
from armlet.reproducible import EPOCH
from armlet.spec.cpu import runs_on
from armlet.steps import foreign, image, operators, python_headers
from armlet.steps.base import Step, Work
from armlet.steps.commands import compile_commands, target_of, targets_of
from armlet.steps.inside import NINJA_STATUS, run

REVISION = 3

Do = Callable[..., None]
"""Runs one command, given as its words, and raises ``ArmletError`` where it fails."""

HELPERS = Path(__file__).parent / "cmake"
_HELPERS_INSIDE = "/armlet"
MEASURED = ("python3", f"{_HELPERS_INSIDE}/measured.py")
"""Put before the name of a report and a command: runs the command and writes what it cost."""

_CCACHE_SIZE = "8G"
_CCACHE_STATS = "ccache.tsv"

REGISTERED = "reduced"
"""Folder of the output: the sources that register kernels, less what the reduction left out."""
COST = "compile.json"
"""What compiling took: ``cpu_seconds``, ``peak_rss_kib``, and how many objects were ``compiled`` or ``cached``."""
PYTHON_TREE = "onnxruntime"
"""Folder of the output, where a wheel is asked for: upstream's Python package, module included."""

_ORT = f"{cmake.SOURCES}/onnxruntime"
_CODE = f"{_ORT}/onnxruntime"
_REDUCED = f"{cmake.BUILD}/op_reduction.generated"
_INCLUDE_ROOTS = (_CODE, f"{_ORT}/include/onnxruntime", f"{_ORT}/include/onnxruntime/core/session")

# CPU seconds of demo-a53's cold compile, by target (benchmarks/compile_cost.py). They only steer the progress bar.
_SECONDS_PER_SOURCE = {
    "onnxruntime_providers": 11.0,
    "onnxruntime_util": 13.0,
    "onnxruntime_session": 5.0,
    "onnxruntime_providers_xnnpack": 3.4,
    "onnxruntime_graph": 1.8,
    "onnxruntime_optimizer": 1.6,
    "libprotobuf-lite": 1.5,
    "onnxruntime_framework": 1.1,
    "onnxruntime_mlas": 0.9,
    "onnxruntime_common": 0.5,
}

_MARCH = re.compile(r"-march=(\S+)")

_HELPER_DEFINITIONS = {
    "CMAKE_TOOLCHAIN_FILE": f"{cmake.BUILD}/toolchain.cmake",
    "CMAKE_PROJECT_onnxruntime_INCLUDE": f"{_HELPERS_INSIDE}/accelerate.cmake",
    "FETCHCONTENT_SOURCE_DIR_UTF8_RANGE": f"{_HELPERS_INSIDE}/stubs/utf8_range",
    "FETCHCONTENT_SOURCE_DIR_PYBIND11_PROJECT": f"{_HELPERS_INSIDE}/stubs/pybind11",
    "ARMLET_PRUNE": f"{cmake.BUILD}/prune.txt",
    "ARMLET_APART": f"{cmake.BUILD}/apart.txt",
}


def _facts(resolved: Resolved) -> Mapping[str, Any]:
    return {
        "revision": REVISION,
        "definitions": cmake.definitions(resolved),
        "toolchain_file": cmake.toolchain_file(resolved),
        "acceleration": resolved.acceleration.model_dump(mode="json"),
        "helpers": digest.of_files(
            (path for path in HELPERS.rglob("*") if path.is_file() and path.suffix != ".pyc"), root=HELPERS
        ),
        "epoch": EPOCH,
        **foreign.facts(resolved),
    }


def _run(work: Work) -> None:
    build = work.scratch / "build"
    with container(work, build) as do:
        compile_all(work, build, do)
    maps = [build / name for name in (cmake.LIBRARY_MAP, cmake.MODULE_MAP) if (build / name).exists()]
    _refuse_shared_newer_code(work, build, maps)
    library = f"libonnxruntime.so.{work.resolved.source_set.version}"
    for path in (build / library, *maps):
        shutil.copy(path, work.out / path.name)
    if (build / PYTHON_TREE).exists():
        copy_tree(build / PYTHON_TREE, work.out / PYTHON_TREE)
    for file in registrations.SOURCES:
        target = work.out / REGISTERED / PurePosixPath(file).name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(_on_host(f"{_registered_in(work.resolved)}/{file}", build, work), target)
    (work.out / COST).write_bytes(digest.canonical_json(_cost(build)))


@contextmanager
def container(work: Work, build: Path, **environment: str) -> Iterator[Do]:
    """The build's container, with ``build`` prepared and mounted; yields what runs a command in it."""
    build.mkdir(parents=True, exist_ok=True)
    work.paths.ccache.mkdir(parents=True, exist_ok=True)
    shutil.copy(work.inputs["operators"] / operators.CONFIG, build / operators.CONFIG)
    (build / "toolchain.cmake").write_text(cmake.toolchain_file(work.resolved))
    foreign.link_libraries(work.resolved, build, work.view)
    info = image.ensure(toolchain=work.resolved.toolchain, paths=work.paths, engine=work.engine, emit=work.emit)
    mounts = [
        Mount(source=work.inputs["sources"], target=cmake.SOURCES, read_only=True),
        Mount(source=HELPERS, target=_HELPERS_INSIDE, read_only=True),
        Mount(source=build, target=cmake.BUILD),
        Mount(source=work.paths.ccache, target="/ccache"),
        *foreign.mounts_of(work.resolved),
    ]
    if work.resolved.sku.runtime.python == "wheel":
        headers = python_headers.ensure(work.resolved.toolchain, work.paths, emit=work.emit)
        mounts.append(Mount(source=headers, target=cmake.HEADERS, read_only=True))
    log = work.scratch / "compile.log"
    name = f"armlet-compile-{work.id[:12]}"
    with (
        proxy.serving(work.sharing, info.packages.get("ccache", "0"), work.emit) as shared,
        work.engine.container(
            image=info.tag, mounts=(*mounts, *shared.mounts), name=name, workdir=cmake.BUILD
        ) as runner,
    ):

        def do(*argv: str, costs: Mapping[str, float] | None = None) -> None:
            env = {**_environment(work), **shared.environment, **environment}
            command = Command(argv=argv, env=env, cwd=PurePosixPath(cmake.BUILD))
            run(runner, command, log=log, emit=work.emit, shell_on_fail=work.shell_on_fail, costs=costs)

        yield do


def compile_all(work: Work, build: Path, do: Do) -> None:
    """Configures, leaves out what is not needed, compiles and links; what it cost is in ``cost.json``."""
    targets = configure_plainly(work, build, do)
    hints = work.resolved.acceleration
    dropped = _dropped(work, build, targets)
    apart = [source for sources in targets.values() for source in sources if prune.matches(source, hints.apart)]
    _write_lists(build, work.view, pruned=dropped, apart=apart)
    do(*_configure(work.resolved, batches=hints.batches))
    do("ccache", "--zero-stats", f"--max-size={_CCACHE_SIZE}")
    ninja = ("ninja", "-j", str(work.jobs), *_goals(work.resolved))
    do(*MEASURED, f"{cmake.BUILD}/cost.json", *ninja, costs=_costs(work, build))
    do("sh", "-c", f"ccache --print-stats >{cmake.BUILD}/{_CCACHE_STATS}")


def _cost(build: Path) -> dict[str, Any]:
    stats = dict(line.split("\t") for line in (build / _CCACHE_STATS).read_text().splitlines())
    cached = int(stats["direct_cache_hit"]) + int(stats["preprocessed_cache_hit"])
    return {**json.loads((build / "cost.json").read_text()), "compiled": int(stats["cache_miss"]), "cached": cached}


def _goals(resolved: Resolved) -> tuple[str, ...]:
    return ("onnxruntime", *(("onnxruntime_pybind11_state",) if resolved.sku.runtime.python == "wheel" else ()))


def _registered_in(resolved: Resolved) -> str:
    """Where the sources are that register the kernels of this build."""
    return _REDUCED if cmake.is_reduced(resolved) else _ORT


def _costs(work: Work, build: Path) -> dict[str, float]:
    """Object file that is not there yet -> CPU seconds it may take."""
    batches = work.resolved.acceleration.batches
    costs: dict[str, float] = {}
    for entry in compile_commands(build):
        target, output = target_of(entry), entry["output"]
        if not (build / output).exists():
            sources = batches.get(target, 1) if "/Unity/" in output else 1
            costs[output] = sources * _SECONDS_PER_SOURCE.get(target, 0.0)
    return costs


def configure_plainly(work: Work, build: Path, do: Do) -> dict[str, list[str]]:
    """Reduces the kernels and configures with every source in and no batches; returns CMake target -> its sources."""
    if cmake.is_reduced(work.resolved):
        do(
            "python3",
            f"{_ORT}/tools/ci_build/reduce_op_kernels.py",
            f"{cmake.BUILD}/{operators.CONFIG}",
            "--cmake_build_dir",
            cmake.BUILD,
            "--is_extended_minimal_build_or_higher",
            "--enable_type_reduction",
        )
    _write_lists(build, work.view, pruned=(), apart=())
    do(*_configure(work.resolved, batches={}))
    found = targets_of(build)
    return {target: list(map(work.view.outside, sources)) for target, sources in found.items()}


def _environment(work: Work) -> dict[str, str]:
    return {
        "CCACHE_DIR": "/ccache",
        # The compiler is known by its content: images come and go, it stays the same.
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_NAMESPACE": work.resolved.toolchain.name,
        "NINJA_STATUS": NINJA_STATUS,
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": str(EPOCH),
        **foreign.environment(work.resolved),
    }


def _configure(resolved: Resolved, *, batches: Mapping[str, int]) -> tuple[str, ...]:
    unity = ";".join(f"{target}={size}" for target, size in sorted(batches.items()))
    variables = {**cmake.definitions(resolved), **_HELPER_DEFINITIONS, "ARMLET_UNITY": unity}
    return (
        *("cmake", "-G", "Ninja", "-S", f"{_ORT}/cmake", "-B", cmake.BUILD),
        *(f"-D{name}={value}" for name, value in sorted(variables.items())),
    )


def _write_lists(build: Path, view: View, *, pruned: Sequence[str], apart: Sequence[str]) -> None:
    for name, sources in (("prune.txt", pruned), ("apart.txt", apart)):
        (build / name).write_text("".join(f"{view.inside(source)}\n" for source in sources))


def _refuse_shared_newer_code(work: Work, build: Path, maps: Iterable[Path]) -> None:
    """Raises where the library took a function that every core runs from a source compiled for a newer one."""
    baseline = work.resolved.cpu.march
    newer = {
        PurePosixPath(entry["output"]).name
        for entry in compile_commands(build)
        if any(not runs_on(march, baseline) for march in _MARCH.findall(entry["command"]))
    }
    found = [one for path in maps for one in linkmap.shared(path.read_text(errors="replace"), newer)]
    if found:
        raise ArmletError(
            f"code for a newer core than {work.resolved.cpu.name} would run unasked: {'; '.join(found)}",
            hint="leave that source out (acceleration.skip in the source set), or compile it for the baseline",
            kind=Kind.GATE,
            log=work.scratch / "compile.log",
        )


def _dropped(work: Work, build: Path, targets: Mapping[str, list[str]]) -> list[str]:
    hints = work.resolved.acceleration
    texts: dict[str, str | None] = {}

    def read(path: str) -> str | None:
        if path not in texts:
            try:
                texts[path] = _on_host(path, build, work).read_text(errors="replace")
            except (OSError, ValueError):
                texts[path] = None
        return texts[path]

    def registered(folder: str) -> frozenset[str]:
        return frozenset(
            registration.op
            for file in registrations.SOURCES
            for registration in registrations.parse(read(f"{folder}/{file}") or "")
        )

    alive = registered(_registered_in(work.resolved))
    needed = prune.provider_sources_needed(
        targets,
        known=registered(_ORT),
        alive=alive,
        read=read,
        include_roots=_INCLUDE_ROOTS,
        always=hints.keep,
    )
    unused = frozenset(targets[prune.PROVIDER_TARGET]) - needed
    return sorted(unused | prune.skipped(targets, hints.skip, alive=alive, features=work.resolved.cpu.features))


def _on_host(path: str, build: Path, work: Work) -> Path:
    """Where the host has a file that the container knows as ``path``.

    Raises:
        ValueError: it is in neither of the shared folders.
    """
    for prefix, folder in ((cmake.BUILD, build), (cmake.SOURCES, work.inputs["sources"])):
        if path.startswith(prefix + "/"):
            return Path(os.path.normpath(folder / path[len(prefix) + 1 :]))
    raise ValueError(path)


STEP = Step(name="compile", needs=("sources", "image", "operators"), facts=_facts, run=_run, shared=True)
