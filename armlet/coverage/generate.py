"""Making a provider's table from ONNX Runtime's sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armlet import digest
from armlet.coverage import core, cpp, restated
from armlet.coverage.cpp import Unlowerable
from armlet.coverage.kernels import kernels
from armlet.coverage.lower import lower
from armlet.coverage.tables import SCHEMA
from armlet.errors import ArmletError, Kind

_PROVIDERS = "onnxruntime/core/providers"
_OPTIMISER = "onnxruntime/core/optimizer"
_LAYOUTS = (
    (f"{_OPTIMISER}/transpose_optimization/onnx_transpose_optimization.cc", "GetLayoutSensitiveOps"),
    (f"{_OPTIMISER}/layout_transformation/layout_transformation.cc", "GetORTLayoutSensitiveOps"),
)
"""Functions whose texts are names of operators."""
_HANDLERS = (
    (f"{_OPTIMISER}/transpose_optimization/onnx_transpose_optimization.cc", "handler_map{", "};"),
    (f"{_OPTIMISER}/transpose_optimization/ort_transpose_optimization.cc", "HandlerMap map = {", "};"),
)
"""Where the operators are listed that transposes are pushed through: file, start, end."""
_DEFINITIONS = "onnxruntime/core/graph/contrib_ops/internal_nhwc_onnx_schemas.cc"
_DEFINITION = re.compile(r"REGISTER_N\w+_SCHEMA\w*\(fn, (\w+), (\d+)\);")
_OPSETS = f"{_OPTIMISER}/transpose_optimization/optimizer_api.h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Where a provider's rules are in ONNX Runtime's sources."""

    files: tuple[str, ...]
    """Patterns of files; those that only make and run kernels are left out."""
    symbols: tuple[str, ...]
    """The preprocessor's symbols that are defined in a build for ARM."""
    layout: str
    rules: Mapping[str, str]
    """As ``ProviderTable.rules``."""
    restated: tuple[core.Restated, ...]


RECIPES: dict[str, Recipe] = {
    "xnnpack": Recipe(
        files=(
            *(f"{_PROVIDERS}/xnnpack/{place}" for place in ("xnnpack_execution_provider.cc", "*/*.cc", "*/*.h")),
            f"{_PROVIDERS}/utils.cc",
        ),
        # xnnpack_init.h defines it wherever XNN_ARCH_ARM or XNN_ARCH_ARM64 is.
        symbols=("XNNPACK_FP16_SUPPORTED",),
        layout="NHWC",
        rules={
            "*": "NodeSupportChecker::IsNodeSupported",
            "+": "NodeSupportChecker::IsNodeSupportedWithFusion",
        },
        restated=restated.XNNPACK,
    ),
    "acl": Recipe(
        files=tuple(f"{_PROVIDERS}/acl/{place}" for place in ("*.cc", "*.h", "*/*.cc", "*/*.h")),
        symbols=("CONV_ACL",),
        layout="NCHW",
        # As ACLExecutionProvider::GetCapability asks them.
        rules={
            **dict.fromkeys(("Conv", "FusedConv", "NhwcConv", "QLinearConv"), "ValidateConv"),
            **dict.fromkeys(("MatMul", "FusedMatMul", "MatMulIntegerToFloat"), "ValidateMatMul"),
        },
        restated=restated.ACL,
    ),
}
"""Provider -> how its table is made. Providers without one take nothing that could be predicted."""


def generate(provider: str, tree: Path) -> dict[str, Any]:
    """The table of a provider from ONNX Runtime's patched sources in ``tree``.

    Raises:
        ArmletError: (INPUT) the sources hold what nobody taught Armlet to read; the message names file and line.
    """
    recipe = RECIPES[provider]
    try:
        return _generated(provider, recipe, tree)
    except (Unlowerable, OSError) as error:
        raise ArmletError(
            f"the sources of {provider} cannot be made a table of: {error}",
            hint="teach armlet/coverage what is new there: docs/inspecting.md says where",
            kind=Kind.INPUT,
            where=str(tree),
        ) from error


def _generated(provider: str, recipe: Recipe, tree: Path) -> dict[str, Any]:
    texts = _read(tree, {path for pattern in recipe.files for path in tree.glob(pattern)})
    if not texts:
        raise Unlowerable(f"no sources like {recipe.files[0]}")
    rows = (*restated.CORE, *recipe.restated)
    layouts = _read(tree, [tree / file for file in layout_files()] if recipe.layout == "NHWC" else [])
    bound = _read(tree, {tree / row.file for row in rows})
    sources = cpp.parse(texts, defined=recipe.symbols)
    functions = lower(sorted(set(recipe.rules.values())), sources)
    every = {**layouts, **texts}
    return {
        "schema": SCHEMA,
        "provider": provider,
        "symbols": list(recipe.symbols),
        "sources": {file: digest.of_bytes(text.encode()) for file, text in every.items()},
        "restated": core.check(bound, rows),
        "layout": recipe.layout,
        **_layout(layouts),
        "kernels": [kernel.plain() for kernel in kernels(texts, defined=recipe.symbols)],
        "rules": dict(recipe.rules),
        "functions": functions,
    }


def _layout(texts: Mapping[str, str]) -> dict[str, Any]:
    """What ONNX Runtime's core does to the layout of nodes; nothing for a provider that leaves it alone."""
    if not texts:
        return {"layout_sensitive": [], "layout_transparent": [], "nhwc_definitions": {}, "opsets": [0, 0]}
    return {
        "layout_sensitive": _layout_sensitive(texts),
        "layout_transparent": _layout_transparent(texts),
        "nhwc_definitions": _definitions(texts[_DEFINITIONS]),
        "opsets": [_number(texts[_OPSETS], name) for name in ("kMinSupportedOpset", "kMaxSupportedOpset")],
    }


def _read(tree: Path, files: Iterable[Path]) -> dict[str, str]:
    return {path.relative_to(tree).as_posix(): path.read_text(encoding="utf-8") for path in sorted(files)}


def _layout_sensitive(texts: Mapping[str, str]) -> list[str]:
    names: set[str] = set()
    for file, function in _LAYOUTS:
        found = re.findall(r'"(\w+)"', core.body(texts[file], core.Restated(file, function, "predict", "")))
        if not found:
            raise Unlowerable(f"{file}: {function} names no operators")
        names.update(found)
    return sorted(names)


def layout_files() -> list[str]:
    """Files of the core that say what happens to layouts."""
    return sorted({*(row[0] for row in (*_LAYOUTS, *_HANDLERS)), _OPSETS, _DEFINITIONS})


def _layout_transparent(texts: Mapping[str, str]) -> list[str]:
    names: set[str] = set()
    for file, start, end in _HANDLERS:
        inside = texts[file].partition(start)[2].partition(end)[0]
        found = re.findall(r'^\s*\{"([\w.]+)", \w+\},?', inside, re.MULTILINE)
        if not found:
            raise Unlowerable(f"{file}: {start} lists no operators")
        names.update(found)
    return sorted(names)


def _definitions(text: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for op, version in _DEFINITION.findall(text):
        found.setdefault(op, []).append(int(version))
    if not found:
        raise Unlowerable(f"{_DEFINITIONS}: no definitions")
    return {op: sorted(versions) for op, versions in sorted(found.items())}


def _number(text: str, name: str) -> int:
    found = re.search(rf"\b{name} = (\d+);", text)
    if found is None:
        raise Unlowerable(f"{_OPSETS}: no constant {name}")
    return int(found[1])
