"""Strip, lay out, measure, judge, and write what a build hands over."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

import armlet
from armlet import digest, elf, kernels, manifest, registrations
from armlet.config import Resolved
from armlet.emit.cmake import SOURCES
from armlet.engine import Mount
from armlet.errors import ArmletError, Kind
from armlet.gates import GATES, SUMS, demand, expected_of, judge_wheel, record, run_gates, runtime_name
from armlet.gates.reading import forbidden_prefixes, read_artefact, tree
from armlet.process import Command, Runner
from armlet.reproducible import EPOCH
from armlet.sbom.bill import NOTICE
from armlet.sbom.linked import GCC, GLIBC
from armlet.sbom.notice import notice
from armlet.sbom.runtime import Made
from armlet.spec.runtime import Kernels
from armlet.spec.sku import TYPES_LEFT_OUT
from armlet.steps import compile as compile_step
from armlet.steps import image, materials, wheel
from armlet.steps.archive import write_tarball
from armlet.steps.base import Step, Work
from armlet.steps.inside import cause
from armlet.steps.runtime_tree import DOCUMENTS, lay_out

REVISION = 7

_IN, _SCRATCH = "/in", "/scratch"
_LIBC = "libc.so.6"
_COPYRIGHT = "copyright"
# Debug data is large and seldom fetched: xz's fastest setting packs it to within a tenth of the best.
_DEBUG_PRESET = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stripped:
    library: Path
    debug: Path
    libc: Path
    licences: Mapping[str, Path]
    """Of what the toolchain itself links in, by its name."""
    compiler: str


def _facts(resolved: Resolved) -> Mapping[str, Any]:
    sku = resolved.sku
    return {
        "revision": REVISION,
        "epoch": EPOCH,
        # Both are in the bills of materials, whose form is the library's.
        "writers": [armlet.__version__, version("cyclonedx-python-lib")],
        "sku": {
            "name": sku.name,
            "description": sku.description,
            "flavor": sku.runtime.flavor,
            "providers": sku.runtime.providers,
            "python": sku.runtime.python,
        },
        "floors": sku.floors.model_dump(mode="json"),
        "needed": sorted(expected_of(resolved).needed),
        "budgets": sku.budgets.model_dump(mode="json"),
        "cpu": {"name": resolved.cpu.name, "march": resolved.cpu.march},
        "toolchain": resolved.toolchain.model_dump(mode="json", by_alias=True),
        "source_set": resolved.source_set.model_dump(mode="json", by_alias=True),
        "kernel_types": None if resolved.kernel_types is None else digest.of_bytes(resolved.kernel_types.encode()),
        # A gate that is added, or whose meaning changes, judges what an older one let pass.
        "gates": {gate.name: gate.reason for gate in GATES},
    }


def _run(work: Work) -> None:
    resolved = work.resolved
    info = image.ensure(toolchain=resolved.toolchain, paths=work.paths, engine=work.engine, emit=work.emit)
    compiled = work.inputs["compile"] / Path(expected_of(resolved).library).name
    if work.scratch.exists():
        shutil.rmtree(work.scratch)
    work.scratch.mkdir(parents=True)
    mounts = (
        Mount(source=compiled.parent, target=_IN, read_only=True),
        Mount(source=work.inputs["sources"], target=SOURCES, read_only=True),
        Mount(source=work.scratch, target=_SCRATCH),
    )
    packed: tuple[Path, Path] | None = None
    with work.engine.container(image=info.tag, mounts=mounts, name=f"armlet-package-{work.id[:12]}") as runner:
        stripped = strip(runner, resolved, compiled.name, scratch=work.scratch)
        if resolved.sku.runtime.python == "wheel":
            packed = _wheel(runner, resolved, compiled.parent, work.scratch)
    name = runtime_name(resolved)
    folder = work.out / name
    lay_out(
        resolved,
        library=stripped.library,
        sources=work.inputs["sources"],
        toolchain_licences=stripped.licences,
        tree=folder,
    )
    debug = work.scratch / f"{name}-dbg"
    (debug / "lib").mkdir(parents=True)
    for file in (stripped.debug, *([packed[1]] if packed else [])):
        # objcopy gives it the library's mode, and nobody runs it.
        file.chmod(0o644)
        file.rename(debug / "lib" / file.name)
    packed_name = packed[0].name if packed else None
    bill = materials.gather(
        resolved,
        compiled=compiled.parent,
        sources=work.inputs["sources"],
        tree=folder,
        made=Made(build_id=work.id, compiler=stripped.compiler, image=info.digest),
        packages=info.packages,
        wheel=packed_name,
    )
    for place in (folder / DOCUMENTS, work.out):
        (place / NOTICE).write_text(notice(bill), encoding="utf-8")
    forbidden = forbidden_prefixes(*work.paths.private)
    artefact = read_artefact(expected_of(resolved), tree(folder), tree(debug), forbidden=forbidden)
    results = run_gates(artefact)
    if packed is not None:
        results += judge_wheel(resolved, packed[0], tree(debug), forbidden=forbidden)
        shutil.copyfile(packed[0], work.out / packed[0].name)
    demand(results)
    facts = manifest.assemble(
        resolved,
        artefact,
        build_id=work.id,
        kernel=_kernel(stripped.libc, resolved),
        operators=_operators(resolved, compiled),
        image=info.digest,
        compiler=stripped.compiler,
        wheel=packed[0] if packed else None,
    )
    text = manifest.render(facts)
    (folder / manifest.FILE).write_text(text, encoding="utf-8")
    (work.out / manifest.FILE).write_text(text, encoding="utf-8")
    (work.out / "gates.json").write_text(record(results), encoding="utf-8")
    materials.write(bill, tree=folder, out=work.out, wheel=packed_name)
    write_tarball(folder, work.out / f"{name}.tar.xz")
    write_tarball(debug, work.out / f"{name}-dbg.tar.xz", preset=_DEBUG_PRESET)
    _write_sums(work.out)


def strip(runner: Runner, resolved: Resolved, name: str, *, scratch: Path) -> _Stripped:
    """Splits ``/in/<name>`` into library and debug file, and takes what else is measured in the toolchain.

    ``runner`` sees ``scratch`` as ``/scratch``.

    Raises:
        ArmletError: (BUILD) a tool of the toolchain failed.
    """
    triple = resolved.toolchain.triple
    do = _doing(runner, _SCRATCH)
    do("cp", f"{_IN}/{name}", name)
    debug = _split(do, triple, name)
    (libc,) = do(f"{triple}-gcc", f"-print-file-name={_LIBC}")[-1:]
    do("cp", libc, _LIBC)
    release = do(f"{triple}-gcc", "-dumpversion")[-1].split(".")[0]
    terms = {GCC: f"gcc-{release}-cross-base", GLIBC: f"libc6-dev-{resolved.toolchain.debian_arch}-cross"}
    for owner, packaged in terms.items():
        do("cp", f"/usr/share/doc/{packaged}/{_COPYRIGHT}", f"{owner}-{_COPYRIGHT}")
    compiler = do(f"{triple}-g++", "--version")[0]
    return _Stripped(
        library=scratch / name,
        debug=scratch / debug,
        libc=scratch / _LIBC,
        licences={owner: scratch / f"{owner}-{_COPYRIGHT}" for owner in terms},
        compiler=compiler,
    )


def _doing(runner: Runner, folder: str) -> Callable[..., tuple[str, ...]]:
    """What runs a command in a folder of the container and returns the last lines it printed."""

    def do(*argv: str) -> tuple[str, ...]:
        env = {"SOURCE_DATE_EPOCH": str(EPOCH), "PYTHONDONTWRITEBYTECODE": "1"}
        done = runner.run(Command(argv=argv, env=env, cwd=PurePosixPath(folder)))
        if done.code == 0:
            return done.tail
        last = next((line.strip() for line in reversed(done.tail) if line.strip()), "nothing")
        kind, hint = cause("\n".join(done.tail), otherwise="build again; --verbose shows all that the tools say")
        what = f"cannot pack the library: {argv[0]} ended with {done.code}, and said: {last}"
        raise ArmletError(what, hint=hint, kind=kind)

    return do


def _split(do: Callable[..., object], triple: str, path: str) -> str:
    """Strips a file in its place; returns the name of its debug file, which lies in the working directory."""
    objcopy = f"{triple}-objcopy"
    debug = f"{PurePosixPath(path).name}.debug"
    do(objcopy, "--only-keep-debug", path, debug)
    # The compilers' .comment and the linker's plug-in notes say nothing that runtime.json does not.
    do(objcopy, "--strip-unneeded", "--remove-section=.comment", path)
    do(objcopy, f"--add-gnu-debuglink={debug}", path)
    return debug


def _wheel(runner: Runner, resolved: Resolved, compiled: Path, scratch: Path) -> tuple[Path, Path]:
    folder = scratch / "wheel"
    folder.mkdir()
    do = _doing(runner, f"{_SCRATCH}/{folder.name}")
    triple = resolved.toolchain.triple
    return wheel.pack(do, lambda path: folder / _split(do, triple, path), resolved, compiled=compiled, scratch=folder)


def _kernel(libc: Path, resolved: Resolved) -> str:
    """The toolchain file's floor stands in for a C library that carries no ABI note."""
    return elf.read(libc.read_bytes(), name=_LIBC).kernel or resolved.toolchain.floors.kernel


def _operators(resolved: Resolved, compiled: Path) -> dict[str, dict[str, tuple[Kernels, ...]]] | None:
    if resolved.sku.runtime.flavor == "full":
        return None
    names = elf.section(compiled.read_bytes(), ".strtab", name=compiled.name)
    linked = kernels.linked(names or b"")
    registered = [
        one
        for file in sorted((compiled.parent / compile_step.REGISTERED).glob("*.cc"))
        for one in registrations.parse(file.read_text(encoding="utf-8"))
    ]
    types: kernels.KernelTypes | None = None
    if resolved.kernel_types is not None:
        left_out = TYPES_LEFT_OUT.get(resolved.sku.runtime.flavor, ())
        types = kernels.without(registrations.kernel_types(resolved.kernel_types), left_out)
    found = kernels.contract(registered, linked, types)
    if not found:
        raise ArmletError(
            f"no operator can be named: {len(registered)} kernels registered, {len(linked)} found in the library",
            where=str(compiled),
            hint="the library must come unstripped from the compile step (link without -s)",
            kind=Kind.BUILD,
        )
    return found


def _write_sums(out: Path) -> None:
    files = sorted(path for path in out.iterdir() if path.is_file())
    lines = "".join(f"{digest.of_file(path)}  {path.name}\n" for path in files)
    (out / SUMS).write_text(lines, encoding="utf-8")


STEP = Step(name="package", needs=("sources", "image", "compile"), facts=_facts, run=_run, shared=True)
