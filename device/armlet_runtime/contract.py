"""Whether a payload fits a runtime: one pure function, the same on the host and on the device.

``check`` takes the parsed ``runtime.json`` and ``payload.json``. It ignores fields that it does not know, and whatever
the others hold is answered and never raised. Every rule is a row of ``RULES``, every field that it reads one of
``FIELDS``.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Tuple

from ._contract_fields import FIELDS, SCHEMA, Field, is_count, shown, version_key
from ._contract_operators import missing_operators, missing_types, missing_versions, untold_types

PROBLEM, WARNING = "problem", "warning"

Finding = Tuple[str, str, str]
"""About, what, remedy."""


class Problem(NamedTuple):
    """Why a payload does not fit, or, as a warning, may not do as hoped."""

    severity: str
    """``problem`` or ``warning``."""
    kind: str
    """The rule: ``schema``, ``malformed`` or one of ``RULES``."""
    about: str
    """The operator, provider, domain, type or field that it is about."""
    what: str
    remedy: str


def fits(problems: Iterable[Problem]) -> bool:
    """Whether nothing but warnings was found."""
    return all(one.severity == WARNING for one in problems)


def check(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> list[Problem]:
    """What keeps a payload from running on a runtime; the order is that of the rules."""
    documents = {"runtime": runtime, "payload": payload}
    strangers = [name for name, content in documents.items() if not _is_readable(content)]
    if strangers:
        return [_another_schema(name, documents[name]) for name in strangers]
    found: list[Problem] = []
    broken = set()
    read: dict[str, dict[str, Any]] = {"runtime": {}, "payload": {}}
    for field in FIELDS:
        value = documents[field.document].get(field.name)
        read[field.document][field.name] = value
        if not field.is_sound(value):
            broken.add(f"{field.document}.{field.name}")
            found.append(_malformed(field))
    for rule in RULES:
        if broken.isdisjoint(rule.reads):
            found += [Problem(rule.severity, rule.kind, *one) for one in rule.find(**read)]
    # Nodes whose types differ in what no kernel cares for are one problem.
    return list(dict.fromkeys(found))


def _is_readable(content: Any) -> bool:
    return isinstance(content, Mapping) and is_count(content.get("schema")) and content["schema"] == SCHEMA


_MADE_AGAIN = {
    "runtime": "take the runtime.json of the package, or build the SKU again",
    "payload": "pack the model again with ./inv model.pack",
}


def _another_schema(document: str, content: Any) -> Problem:
    schema = content.get("schema") if isinstance(content, Mapping) else None
    what = f"{document}.json has the schema {shown(schema)}, and this program reads {SCHEMA}"
    return Problem(PROBLEM, "schema", document, what, "update Armlet, or " + _MADE_AGAIN[document])


def _malformed(field: Field) -> Problem:
    what = f"{field.document}.json: {field.name} is not {field.wanted}"
    return Problem(PROBLEM, "malformed", f"{field.document}.{field.name}", what, _MADE_AGAIN[field.document])


READS: dict[str, tuple[str, ...]] = {"minimal": ("ort",), "reduced": ("onnx", "ort"), "full": ("onnx", "ort")}
"""Flavor -> the models' formats that its runtimes read."""


def _format(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    sku, flavor, model = shown(runtime["sku"]), runtime["flavor"], payload["format"]
    if model not in READS.get(flavor, ()):
        what = f"{sku} is {shown(flavor)}, which does not read models in the format {shown(model)}"
        remedy = f"convert the model with ./inv model.convert --sku {sku}, or build {sku} with flavor: reduced"
        yield shown(model), what, remedy


def _format_version(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    (oldest, newest), version = runtime["ort_format_version"], payload["ort_format_version"]
    if payload["format"] == "ort" and (version is None or not oldest <= version <= newest):
        what = "the model is in ORT format {}, and {} reads {} to {}".format(
            shown(version), shown(runtime["sku"]), oldest, newest
        )
        yield shown(version), what, "convert it with onnxruntime {}".format(shown(runtime["ort_version"]))


def _ir_version(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    version, newest = payload["ir_version"], runtime["onnx_ir_max"]
    if version > newest:
        what = "the model has IR version {}, and {} reads up to {}".format(version, shown(runtime["sku"]), newest)
        yield (
            str(version),
            what,
            f"export it again with an older onnx package, or set model.ir_version = {newest}",
        )


def _opsets(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    sku, known = shown(runtime["sku"]), runtime["opsets"]
    for domain, opset in sorted(payload["opset_imports"].items()):
        name = shown(domain)
        if domain not in known:
            what = f"{sku} has no operators of the domain {name}"
            yield name, what, f"build {sku} with another flavor, or leave these operators out of the model"
        elif opset > known[domain]:
            what = f"the model is of opset {opset} of {name}, and {sku} implements up to {known[domain]}"
            yield name, what, f"export it again with opset {known[domain]}, or build {sku} of newer sources"


def _element_types(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    known = runtime["element_types"]
    for name in () if known is None else sorted({*payload["element_types"]} - {*known}):
        sku, kind = shown(runtime["sku"]), shown(name)
        what = f"the model has tensors of {kind}, which the kernels of {sku} were not compiled for"
        yield kind, what, f"build {sku} with runtime.operators.types + {kind}, or cast them in the model"


def _no_provider(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    wanted = [shown(one["name"]) for one in payload["providers"]]
    if {one["name"] for one in payload["providers"]}.isdisjoint(runtime["providers"]):
        sku, has = shown(runtime["sku"]), ", ".join(map(shown, runtime["providers"]))
        what = "none of the payload's providers ({}) is in {}, which has {}".format(", ".join(wanted), sku, has)
        yield wanted[0], what, f"build {sku} with providers + {wanted[0]}, or pack the model for {has}"


def _some_provider(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    names = [one["name"] for one in payload["providers"]]
    if not {*names}.isdisjoint(runtime["providers"]):
        for name in sorted({*names} - {*runtime["providers"]}):
            sku, provider = shown(runtime["sku"]), shown(name)
            what = f"{sku} lacks the provider {provider}: the payload's next one runs the model"
            yield provider, what, f"build {sku} with providers + {provider}, or be content with its speed"


def _too_old(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    has, needs = runtime["ort_version"], payload["min_runtime"]
    if version_key(has) < version_key(needs):
        what = "{} has ONNX Runtime {}, and the payload needs {} or newer".format(shown(runtime["sku"]), has, needs)
        yield needs, what, "build {} of newer sources and update the devices first".format(shown(runtime["sku"]))


def _untested(runtime: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Finding]:
    has, tested = runtime["ort_version"], payload["max_runtime_tested"]
    if version_key(has) > version_key(tested):
        what = "{} has ONNX Runtime {}, and the payload was tried up to {}".format(shown(runtime["sku"]), has, tested)
        yield has, what, "try it on {}, and pack it with that as max_runtime_tested".format(shown(runtime["sku"]))


class Rule(NamedTuple):
    kind: str
    severity: str
    reads: tuple[str, ...]
    """Fields without which it has nothing to say."""
    find: Callable[..., Iterable[Finding]]
    """Given both documents: ``runtime`` and ``payload``."""


_OPERATORS = ("runtime.sku", "runtime.operators", "runtime.opsets", "payload.operators", "payload.opset_imports")
_FORMATS = ("runtime.sku", "runtime.ort_version", "runtime.ort_format_version", "payload.format")
_VERSIONS = ("runtime.sku", "runtime.ort_version")
_PROVIDERS = ("runtime.sku", "runtime.providers", "payload.providers")

RULES: tuple[Rule, ...] = (
    Rule("format", PROBLEM, ("runtime.sku", "runtime.flavor", "payload.format"), _format),
    Rule("ort_format_version", PROBLEM, (*_FORMATS, "payload.ort_format_version"), _format_version),
    Rule("ir_version", PROBLEM, ("runtime.sku", "runtime.onnx_ir_max", "payload.ir_version"), _ir_version),
    Rule("opset", PROBLEM, ("runtime.sku", "runtime.opsets", "payload.opset_imports"), _opsets),
    Rule("operator", PROBLEM, _OPERATORS, missing_operators),
    Rule("operator_version", PROBLEM, _OPERATORS, missing_versions),
    Rule("type", PROBLEM, _OPERATORS, missing_types),
    Rule("types_unknown", WARNING, _OPERATORS, untold_types),
    Rule("element_type", PROBLEM, ("runtime.sku", "runtime.element_types", "payload.element_types"), _element_types),
    Rule("provider", PROBLEM, _PROVIDERS, _no_provider),
    Rule("provider_missing", WARNING, _PROVIDERS, _some_provider),
    Rule("min_runtime", PROBLEM, (*_VERSIONS, "payload.min_runtime"), _too_old),
    Rule("untested", WARNING, (*_VERSIONS, "payload.max_runtime_tested"), _untested),
)
"""All rules but two that come before them: the schema, and that the fields are what they have to be."""
