"""What ./inv can do. Every task parses, calls and shows; what is called imports its own heavy needs."""

from __future__ import annotations

from typing import Any

from invoke.collection import Collection
from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.verbs import (
    ci,
    key_new,
    layer_buildroot,
    layer_yocto,
    model_check,
    model_convert,
    model_import,
    model_inspect,
    model_pack,
    model_quantise,
    model_verify,
    package,
    sbom,
    service_package,
    sku_operators,
    sources_providers,
    update_publish,
    update_send,
    update_watch,
    update_withdraw,
)

_SKU = "name of a file in recipes/skus, without .yaml"
_YES = "change this machine where it lacks something, without asking"
_VERBOSE = "show the tools' output"
_JSON = "print the result as JSON"
_TOOLCHAIN = "name of a file in toolchains, without .yaml"


@task(help={"yes": _YES})
@edge
def demo(_context: Any, yes: bool = False) -> None:
    """Builds SKU demo-a53, runs a real model on it in QEMU, prints a report."""
    from armlet import demo, doctor, process

    with cli.run("demo") as (paths, emit):
        doctor.prepare(process.HostRunner(), paths, emit, cli.consent(yes=yes))
        cli.show(demo.demo(paths, emit))


@task(name="test", help={"yes": _YES})
@edge
def whole_test(_context: Any, yes: bool = False) -> None:
    """Runs every check and the whole test suite, real builds and QEMU runs included."""
    from armlet import doctor, process, suite

    with cli.run("test-prepare") as (paths, emit):
        doctor.prepare(process.HostRunner(), paths, emit, cli.consent(yes=yes), tests=True)
    with cli.run("test", echo=True) as (paths, emit):
        suite.test(paths, process.HostRunner(), emit)


@task
@edge
def check(_context: Any) -> None:
    """Runs what needs neither Docker nor QEMU: formatting, lint, types, unit and contract tests."""
    from armlet import process, suite

    with cli.run("check", echo=True) as (paths, emit):
        suite.check(paths, process.HostRunner(), emit)


@task(help={"fix": "install and start what is lacking", "yes": "the same as --fix"})
@edge
def doctor(_context: Any, fix: bool = False, yes: bool = False) -> None:
    """Says what this machine lacks, and how to get it."""
    from armlet import doctor, process
    from armlet.sinks.tables import findings_table

    with cli.run("doctor") as (paths, emit):
        patient = doctor.Doctor(runner=process.HostRunner(), paths=paths, emit=emit)
        found = patient.fix() if fix or yes else doctor.diagnose(patient.runner, paths)
    cli.show(findings_table(found.findings))
    found.refuse()


@task(
    positional=["sku"],
    # -h would become short for --shell-on-fail.
    auto_shortflags=False,
    help={
        "sku": _SKU,
        "shell-on-fail": "open a shell in the container of a step that fails",
        "verbose": _VERBOSE,
        "json": _JSON,
        "jobs": "compilers at once (default: from cores and memory)",
        "twice": "build from nothing in two places, and compare every byte",
    },
)
@edge
def build(
    _context: Any,
    sku: str,
    shell_on_fail: bool = False,
    verbose: bool = False,
    json: bool = False,
    jobs: str = "",
    twice: bool = False,
) -> None:
    """Builds a SKU's runtime into dist/<sku>, and checks it."""
    from armlet import gates, pipeline
    from armlet.sinks.tables import summary
    from armlet.verbs import build_twice

    options = pipeline.Options(jobs=cli.number("--jobs", jobs), shell_on_fail=shell_on_fail)
    if twice:
        return build_twice.run(sku, options, verbose=verbose, json=json)
    with cli.run(f"build-{sku}", verbose=verbose) as (paths, emit):
        report = pipeline.build(paths, sku, emit, options)
    cli.show_json(report) if json else cli.show(summary(report))
    return gates.demand(report.gates)


@task(name="gates", positional=["sku"], help={"sku": _SKU, "json": _JSON})
@edge
def show_gates(_context: Any, sku: str, json: bool = False) -> None:
    """Checks again what dist/<sku> holds."""
    from armlet import gates, pipeline
    from armlet.sinks.tables import gates_table

    results = pipeline.gates(cli.here(), sku)
    cli.show_json(results) if json else cli.show(gates_table(results))
    gates.demand(results)


@task(name="list")
@edge
def sku_list(_context: Any) -> None:
    """Names the SKUs there are."""
    from armlet import recipes

    cli.show("\n".join(recipes.SKUS.names(cli.here())))


@task(name="show", positional=["sku"], help={"sku": _SKU, "all": "the source set's values too", "json": _JSON})
@edge
def sku_show(_context: Any, sku: str, all: bool = False, json: bool = False) -> None:
    """Shows what a SKU comes to, each value with the place it comes from."""
    from armlet import config
    from armlet.sinks.tables import table

    described = config.describe(config.resolve(cli.here(), sku))
    rows = [row for row in described if all or not row[0].startswith("source_set.")]
    cli.show_json({key: {"value": value, "from": origin} for key, value, origin in rows}) if json else cli.show(
        table(("key", "value", "from"), rows)
    )


@task(name="overview", help={"json": _JSON})
@edge
def sku_overview(_context: Any, json: bool = False) -> None:
    """Shows what was built of every SKU: sizes, floors, gates, smoke, and what compiling took."""
    from armlet import overview
    from armlet.sinks.tables import table

    rows = overview.overview(cli.here())
    cli.show_json(rows) if json else cli.show(table(overview.HEAD, map(overview.cells, rows)))


@task(
    name="new",
    positional=["name"],
    help={
        "name": "of the new SKU",
        "like": "the SKU to copy",
        "toolchain": f"{_TOOLCHAIN} (default: as the copied SKU's)",
        "cpu": "a core of armlet/spec/cpu.py (default: as the copied SKU's)",
        "glibc": "of the rootfs; without --toolchain, the new SKU's toolchain is chosen by it",
    },
)
@edge
def sku_new(
    _context: Any, name: str, like: str = "demo-a53", toolchain: str = "", cpu: str = "", glibc: str = ""
) -> None:
    """Writes recipes/skus/<name>.yaml after another SKU's file."""
    from armlet import new_sku

    path = new_sku.new_sku(
        cli.here(), name, like=like, toolchain=toolchain or None, cpu=cpu or None, glibc=glibc or None
    )
    cli.show(str(path))


@task(name="fetch", help={"set": "name of a file in recipes/sources, without .yaml (default: all)"})
@edge
def sources_fetch(_context: Any, set: str = "") -> None:
    """Fetches and verifies every source into the download cache."""
    from armlet import sources

    with cli.run("sources-fetch") as (paths, emit):
        files = sources.fetch_all(paths, set or None, emit)
    cli.show("\n".join(str(path) for path in files))


@task(
    name="lock",
    positional=["set"],
    iterable=["version", "debian"],
    help={
        "set": "name of a file in recipes/sources, without .yaml",
        "new": "write a new set for this version of ONNX Runtime, after the one named",
        "version": "with --new: <component>=<version>, once for each component that changes",
        "debian": "with --new: <component>=<pool path>, where the path is not the old one with the new version",
    },
)
@edge
def sources_lock(_context: Any, set: str, new: str = "", version: Any = None, debian: Any = None) -> None:
    """Writes hashes and sizes of a source set's components into its file, or makes a new set after it."""
    from armlet.fetch import lock

    with cli.run("sources-lock") as (paths, emit):
        if new:
            written = lock.lock_new(paths, set, lock.Change.of(new, versions=version, debian=debian), emit)
        else:
            written = lock.lock(paths, set, emit)
    cli.show(str(written))


@task(name="image", help={"toolchain": _TOOLCHAIN, "verbose": _VERBOSE})
@edge
def toolchain_image(_context: Any, toolchain: str = "aarch64-bookworm", verbose: bool = False) -> None:
    """Makes a toolchain's image, and prints its tag."""
    from armlet import engine, recipes
    from armlet.steps import image

    with cli.run("toolchain-image", verbose=verbose) as (paths, emit):
        chosen = recipes.TOOLCHAINS.load(paths, toolchain)
        made = image.ensure(toolchain=chosen, paths=paths, engine=engine.Engine.connect(), emit=emit)
    cli.show(made.tag)


@task(name="shell", help={"toolchain": _TOOLCHAIN})
@edge
def toolchain_shell(_context: Any, toolchain: str = "aarch64-bookworm") -> None:
    """Opens a shell in a toolchain's image."""
    from armlet import engine, recipes
    from armlet.steps import image

    with cli.run("toolchain-shell") as (paths, emit):
        chosen = recipes.TOOLCHAINS.load(paths, toolchain)
        code = image.shell(toolchain=chosen, paths=paths, engine=engine.Engine.connect(), emit=emit)
    cli.end(code)


@task(name="smoke", positional=["sku"], help={"sku": _SKU, "json": _JSON, "verbose": _VERBOSE})
@edge
def qemu_smoke(_context: Any, sku: str, json: bool = False, verbose: bool = False) -> None:
    """Runs the SKU's model on its runtime under QEMU, and reports."""
    from armlet import pipeline
    from armlet.qemu import smoke

    with cli.run(f"smoke-{sku}", verbose=verbose) as (paths, emit):
        report = smoke.smoke(paths, sku, emit, planned=pipeline.planned_id(paths, sku))
    cli.show_json(report.to_json()) if json else cli.show(report.render())


@task(help={"cache": "remove the cache too: downloads, compiler cache, finished steps", "yes": "do not ask"})
@edge
def clean(_context: Any, cache: bool = False, yes: bool = False) -> None:
    """Removes dist, payloads in dist/models included (and the cache)."""
    from armlet import suite

    cli.show("\n".join(suite.clean(cli.here(), cache=cache, consent=cli.confirmed(yes=yes))))


namespace = Collection(
    demo,
    whole_test,
    check,
    doctor,
    build,
    show_gates,
    clean,
    sbom.sbom,
    package.package,
    Collection("sku", sku_list, sku_show, sku_new, sku_overview, sku_operators.operators),
    Collection("sources", sources_fetch, sources_lock, sources_providers.providers),
    Collection("toolchain", toolchain_image, toolchain_shell),
    Collection("qemu", qemu_smoke),
    Collection(
        "model",
        model_check.check,
        model_convert.convert,
        model_import.import_,
        model_inspect.inspect,
        model_pack.pack,
        model_quantise.quantise,
        model_verify.verify,
    ),
    Collection("key", key_new.new),
    Collection("service", service_package.package),
    Collection("update", update_publish.publish, update_send.send, update_watch.watch, update_withdraw.withdraw),
    Collection("layer", layer_buildroot.buildroot, layer_yocto.yocto),
    Collection("ci", ci.matrix_, ci.workflow, ci.publish),
)
