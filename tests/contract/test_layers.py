"""Who may import whom, and other rules that every module keeps (docs/architecture.md)."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {"armlet", "armlet.errors", "armlet.events", "armlet.digest", "armlet.files", "armlet.paths", "armlet.jobs"}
    ),
    frozenset({"armlet.spec"}),
    frozenset(
        {
            "armlet.allow_list",
            "armlet.case",
            "armlet.choosing",
            "armlet.config",
            "armlet.compare",
            "armlet.coverage",
            "armlet.debian_texts",
            "armlet.elf",
            "armlet.emit",
            "armlet.gates",
            "armlet.instructions",
            "armlet.int8_rules",
            "armlet.kernels",
            "armlet.lines",
            "armlet.linkmap",
            "armlet.manifest",
            "armlet.mounts",
            "armlet.new_sku",
            "armlet.operator_rules",
            "armlet.plan",
            "armlet.process",
            "armlet.provider_rules",
            "armlet.providers",
            "armlet.python_rules",
            "armlet.prune",
            "armlet.recipes",
            "armlet.registrations",
            "armlet.reproducible",
            "armlet.rules",
            "armlet.sbom",
            "armlet.schemas",
            "armlet.sdks",
            "armlet.validation",
            "armlet.yamlfile",
        }
    ),
    frozenset({"armlet.engine", "armlet.fetch", "armlet.remote", "armlet.scratch", "armlet.store"}),
    frozenset(
        {
            "armlet.doctor",
            "armlet.host",
            "armlet.layers",
            "armlet.lacks",
            "armlet.nfpm",
            "armlet.onnx",
            "armlet.package_versions",
            "armlet.packages",
            "armlet.payload",
            "armlet.qemu",
            "armlet.service",
            "armlet.sources",
            "armlet.steps",
            "armlet.suite",
            "armlet.updates",
        }
    ),
    frozenset({"armlet.pipeline", "armlet.twice"}),
    frozenset(
        {
            "armlet.cli",
            "armlet.demo",
            "armlet.matrix",
            "armlet.overview",
            "armlet.releases",
            "armlet.sinks",
            "armlet.verbs",
            "armlet.workflows",
            "tasks",
        }
    ),
)
"""Lowest first. A package stands for all its modules; a module imports from its own layer and from those below."""

HEAVY = frozenset({"docker", "onnx", "onnxruntime"})
"""Missing where only a part of Armlet is used: no module imports them when it is imported itself."""

PROGRAMS_OF_THEIR_OWN = frozenset(
    {
        "armlet.steps.cmake.measured",
        "armlet.qemu.on_target.many",
        "armlet.qemu.on_target.upstream",
        "armlet.onnx.exporters.export",
        "armlet.onnx.exporters.sklearn_models",
        "armlet.onnx.exporters.tf_models",
        "armlet.onnx.exporters.torch_models",
    }
)
"""Run by an interpreter inside the container, on the target or beside a framework; nobody imports them."""

FRAMEWORKS = ("torch", "tf", "sklearn")

MAX_LINES = {"armlet": 300, "device": 300, "tests": 400}
GENERATED = "device/armlet_runtime/ort/_api_table.py"


def modules() -> dict[str, Path]:
    """Dotted name -> file."""
    files = [ROOT / "tasks.py", *sorted((ROOT / "armlet").rglob("*.py"))]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


MODULES = modules()


def layer(module: str) -> int:
    """Raises ``LookupError`` for a module that no layer names: add it above."""
    place = module
    while place:
        found = [number for number, names in enumerate(LAYERS) if place in names]
        # The package itself is listed for its own few lines, not for whatever is in it.
        if found and (place != "armlet" or module == "armlet"):
            return found[0]
        place = place.rpartition(".")[0]
    raise LookupError(module)


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(module, line) of every import below a node, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            base = node.module or ""
            for name in node.names:
                full = f"{base}.{name.name}"
                yield (full if full in MODULES else base), node.lineno


@functools.cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def test_every_module_has_a_layer() -> None:
    for module in MODULES:
        layer(module)
    with pytest.raises(LookupError):
        layer("armlet.new")


def test_every_layer_names_what_there_is() -> None:
    names = {name for names in LAYERS for name in names}
    assert names - set(MODULES) == set()


@pytest.mark.parametrize("module", sorted(MODULES))
def test_lower_never_imports_higher(module: str) -> None:
    own = [(name, line) for name, line in imports(parsed(module)) if name.split(".")[0] in ("armlet", "tasks")]
    higher = [f"{module}:{line} imports {name}" for name, line in own if layer(name) > layer(module)]
    assert higher == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_process_runs_processes(module: str) -> None:
    forbidden = {"subprocess", "pty", "multiprocessing"}
    used = {name for name, _ in imports(parsed(module)) if name.split(".")[0] in forbidden}
    assert used <= ({"subprocess"} if module == "armlet.process" else set())


@pytest.mark.parametrize("module", sorted(MODULES.keys() - PROGRAMS_OF_THEIR_OWN))
def test_heavy_packages_are_imported_when_needed(module: str) -> None:
    tree = parsed(module)
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found = {name.split(".")[0] for name, _ in imports(node)} & HEAVY
            assert not found, f"{module}:{node.lineno} imports {found}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_nobody_prints_or_exits_in_the_depth(module: str) -> None:
    allowed = layer(module) == len(LAYERS) - 1 or module in PROGRAMS_OF_THEIR_OWN
    calls = [node for node in ast.walk(parsed(module)) if isinstance(node, ast.Call)]
    names = {ast.unparse(node.func) for node in calls} & {"print", "exit", "sys.exit", "os._exit", "os.system"}
    assert allowed or not names


@pytest.mark.parametrize("folder", MAX_LINES)
def test_files_stay_readable(folder: str) -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert {file: count for file, count in lines.items() if count > MAX_LINES[folder] and file != GENERATED} == {}


def project_table(text: str, key: str) -> list[str]:
    """The strings of a list in pyproject.toml (whose reader is not in Python 3.10's library)."""
    found = re.search(rf"^{key} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert found, key
    return re.findall(r'^\s*"([A-Za-z0-9._-]+)', found[1], re.MULTILINE)


def direct_dependencies() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text()
    return [*project_table(text, "dependencies"), *project_table(text, "dev")]


def framework_dependencies() -> list[tuple[str, str]]:
    """(framework, package): what models come from, each in an environment of its own."""
    text = (ROOT / "pyproject.toml").read_text()
    return [(framework, name) for framework in FRAMEWORKS for name in project_table(text, framework)]


@pytest.mark.parametrize("name", direct_dependencies())
def test_every_dependency_has_its_reason_and_its_lock(name: str) -> None:
    reasons = re.findall(r"^\| `([^`]+)` \| .{15,} \|$", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert name in reasons
    assert is_locked(name, "requirements.lock")


@pytest.mark.parametrize(("framework", "name"), framework_dependencies())
def test_every_framework_has_its_reasons_and_its_own_lock(framework: str, name: str) -> None:
    reasons = re.findall(r"^\| `([^`]+)` \| .{15,} \|$", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert name in reasons
    assert is_locked(name, f"requirements-{framework}.lock")


def is_locked(name: str, lock: str) -> bool:
    normal = re.sub(r"[-_.]+", "-", name).lower()
    return re.search(rf"^{re.escape(normal)}==\S+", (ROOT / lock).read_text(), re.MULTILINE) is not None


def test_no_reason_without_a_dependency() -> None:
    reasons = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert sorted(reasons) == sorted({*direct_dependencies(), *(name for _, name in framework_dependencies())})


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_the_lock_names_hashes_and_no_host(name: str) -> None:
    lock = (ROOT / name).read_text()
    pins = re.findall(r"^[a-z0-9-]+==\S+.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+", lock, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[a-z0-9-]+==", lock, re.MULTILINE))
    assert "://" not in lock
