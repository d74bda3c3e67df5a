"""What a SKU may not ask for in a model's ``quantise:``, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from armlet.case import Case
from armlet.spec.sku import INT8_SUFFIX
from armlet.yamlfile import Document, Problem

_ONE_TYPE = "XNNPACK multiplies {0} with {0} alone: every convolution would run on the CPU provider"


def int8(case: Case) -> Iterator[Problem]:
    """Every problem with the int8 versions that a SKU asks for; what has the wrong type is told elsewhere."""
    sku = case.sku
    models = sku.get("runtime", "operators", "models")
    found = [model if isinstance(model, dict) else {} for model in (models if isinstance(models, list) else ())]
    names = [model.get("name") for model in found]
    for index, model in enumerate(found):
        wanted = model.get("quantise")
        if not isinstance(wanted, dict):
            continue
        key = ("runtime", "operators", "models", index, "quantise")
        yield from _types(sku, key, wanted)
        twin = f"{model.get('name')}{INT8_SUFFIX}"
        if twin in names:
            place = ("runtime", "operators", "models", names.index(twin), "name")
            yield sku.problem(place, f'"{twin}" is what the int8 version of {model["name"]} is named', "rename it")


def _types(sku: Document, key: tuple[str | int, ...], wanted: Mapping[str, object]) -> Iterator[Problem]:
    activation, weight = (wanted.get(name, "int8") for name in ("activation", "weight"))
    providers = sku.get("runtime", "providers")
    if weight == "uint8" and wanted.get("per_channel", True) is True:
        what = "uint8 weights have one scale for all channels"
        yield sku.problem((*key, "weight"), what, "add per_channel: false, or write weight: int8")
    if (activation, weight) == ("int8", "uint8"):
        what = "no kernel multiplies int8 activations with uint8 weights"
        yield sku.problem((*key, "weight"), what, "write weight: int8")
    elif (activation, weight) == ("uint8", "int8") and isinstance(providers, list) and "xnnpack" in providers:
        hint = "write activation: int8, or weight: uint8 with per_channel: false"
        yield sku.problem((*key, "activation"), _ONE_TYPE.format(activation), hint)
