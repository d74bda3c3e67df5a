"""Which operators the build keeps: what the SKU's models need after conversion, and what it allows beyond."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from armlet import digest
from armlet.config import Resolved
from armlet.errors import ArmletError, Kind
from armlet.onnx import operators
from armlet.onnx.levels import level_for
from armlet.onnx.quantise import INT8_OPERATORS
from armlet.onnx.reading import Limits
from armlet.onnx.versions import versions
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.sku import Allow, ElementType
from armlet.steps.base import Step, Work

REVISION = 2

CONFIG = "operators.config"
"""What the build reads: ONNX Runtime's reduced-operator file."""

_CPP_TYPES: Mapping[str, str] = {
    "bool": "bool",
    "float": "float",
    "double": "double",
    "float16": "MLFloat16",
    "bfloat16": "BFloat16",
    "string": "std::string",
}
"""Where C++ has another name than ONNX's with ``_t`` behind it."""

Needed = dict[str, dict[int, set[str]]]
"""Domain (``ai.onnx`` for ONNX's own) -> opset -> operators."""


def _facts(resolved: Resolved) -> Mapping[str, Any]:
    runtime = resolved.sku.runtime
    calibration = {
        model.name: resolved.samples[model.name]
        for model in runtime.operators.models
        if model.quantise and model.name in resolved.samples
    }
    return {
        "revision": REVISION,
        # Where samples are is no matter, and what they are only to an int8 version.
        "operators": runtime.operators.model_dump(mode="json", exclude={"models": {"__all__": {"samples"}}}),
        **({"calibration": calibration} if calibration else {}),
        "providers": runtime.providers,
        "flavor": runtime.flavor,
        "level": asdict(level_for(runtime.providers)),
        "optimiser": version("onnxruntime"),
        "int8": [version("onnx"), INT8_OPERATORS, asdict(level_for(runtime.providers, quantised=True))],
    }


def _run(work: Work) -> None:
    runtime = work.resolved.sku.runtime
    source_set = work.resolved.source_set
    limits = Limits(opsets=source_set.opsets, onnx_ir_max=source_set.onnx_ir_max)
    needed: Needed = {}
    for index, model in enumerate(runtime.operators.models):
        with _at(work.resolved.origins.get(f"runtime.operators.models[{index}].name", "")):
            for found in versions(model, work.paths, work.scratch / "int8", limits=limits, emit=work.emit):
                if runtime.operators.types is not None:
                    kept = runtime.operators.types
                    _demand_types(found.path, kept, operators.element_types(found.path, shapes=found.shapes))
                if runtime.flavor != "full":
                    more = operators.required(
                        found.path,
                        providers=runtime.providers,
                        flavor=runtime.flavor,
                        shapes=found.shapes,
                        limits=limits,
                    )
                    add(needed, more)
    add(needed, allowed(runtime.operators.allow))
    (work.out / CONFIG).write_text(reduced_config(needed, runtime.operators.types))
    listing = {
        domain: {str(opset): sorted(names) for opset, names in sorted(by_opset.items())}
        for domain, by_opset in sorted(needed.items())
    }
    (work.out / "operators.json").write_bytes(digest.canonical_json(listing))


@contextmanager
def _at(place: str) -> Iterator[None]:
    """What is wrong with a model is told with its place in the SKU, where it is mended more often than in its file."""
    try:
        yield
    except ArmletError as error:
        if error.kind is not Kind.INPUT or not place:
            raise
        what = f"{error.where}: {error.what}" if error.where else error.what
        raise ArmletError(what, hint=error.hint, kind=error.kind, where=place, log=error.log) from error


def _demand_types(model: Path, kept: Collection[str], found: Collection[str]) -> None:
    if missing := sorted(set(found) - set(kept)):
        raise ArmletError(
            f"has tensors of {', '.join(missing)}, and the SKU keeps kernels for {', '.join(kept)}",
            hint=f"add {', '.join(missing)} to runtime.operators.types, or leave that key out",
            kind=Kind.INPUT,
            where=str(model),
        )


def add(to: Needed, more: Mapping[str, Mapping[int, Iterable[str]]]) -> None:
    for domain, by_opset in more.items():
        for opset, names in by_opset.items():
            to.setdefault(domain, {}).setdefault(opset, set()).update(names)


def allowed(rules: Iterable[Allow]) -> Needed:
    """The operators of an allow-list, at every opset of each range."""
    needed: Needed = {}
    for rule in rules:
        first, last = rule.opsets
        for entry in rule.operators:
            domain, _, name = entry.rpartition(":")
            add(needed, {domain or ONNX_DOMAIN: {opset: [name] for opset in range(first, last + 1)}})
    return needed


def reduced_config(
    needed: Mapping[str, Mapping[int, Iterable[str]]], types: Iterable[ElementType] | None = None
) -> str:
    """ONNX Runtime's reduced-operator file: ``domain;opset;operator,operator``, sorted; no operator means all."""
    lines = [] if needed else ["!no_ops_specified_means_all_ops_are_required\n"]
    if types is not None:
        lines.append(f"!globally_allowed_types;{','.join(sorted(_CPP_TYPES.get(one, one + '_t') for one in types))}\n")
    lines += [
        f"{domain};{opset};{','.join(sorted(names))}\n"
        for domain, by_opset in sorted(needed.items())
        for opset, names in sorted(by_opset.items())
    ]
    return "".join(lines)


STEP = Step(name="operators", needs=(), facts=_facts, run=_run, shared=True)
