"""Whether a runtime has a kernel for each of a model's nodes, as ONNX Runtime's kernel registry looks for one."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ._contract_fields import shown

Takes = Mapping[str, Sequence[str]]
Finding = Tuple[str, str, str]
Documents = Mapping[str, Any]

_OPTIMISED = "com.microsoft"
"""The domain of what ONNX Runtime's optimisers make of ONNX's own operators."""
_ONNX = "ai.onnx"


class _Asked(NamedTuple):
    """One operator of a model, of a domain that the runtime has."""

    name: str
    """As a SKU's allow-list has it, fit to be shown."""
    domain: str
    versions: dict[int, list[Takes | None]]
    """Version of the operator -> types of the nodes; None: not told."""
    offered: dict[int, list[Takes | None]] | None
    """Version of the operator -> what the runtime's kernels take; None: it has none at all."""


def missing_operators(runtime: Documents, payload: Documents) -> Iterator[Finding]:
    for one in _asked(runtime, payload):
        if one.offered is None:
            sku = shown(runtime["sku"])
            remedy = f"rebuild {sku} with operators + {one.name}"
            if one.domain == _OPTIMISED:
                remedy += f", or convert the model for it: ./inv model.convert --sku {sku}"
            yield one.name, f"{sku} has no kernel of {one.name}", remedy


def missing_versions(runtime: Documents, payload: Documents) -> Iterator[Finding]:
    for one in _asked(runtime, payload):
        for since in sorted(one.versions):
            if one.offered is not None and since not in one.offered:
                sku, has = shown(runtime["sku"]), shown(", ".join(map(str, sorted(one.offered))) or "none")
                what = f"{sku} has no kernel of {one.name} as opset {since} defines it, but for: {has}"
                remedy = f"rebuild {sku} with operators + {one.name} of opset {since}, or export with an opset of those"
                yield f"{one.name} {since}", what, remedy


def missing_types(runtime: Documents, payload: Documents) -> Iterator[Finding]:
    for one in _asked(runtime, payload):
        for since, nodes in sorted(one.versions.items()):
            kernels = (one.offered or {}).get(since)
            if kernels is None or None in kernels:
                continue
            told = [kernel for kernel in kernels if kernel is not None]
            for node in nodes:
                if node is not None and not any(_serves(kernel, node) for kernel in told):
                    sku, names = shown(runtime["sku"]), {name for kernel in told for name in kernel}
                    asked = _as_text({name: types for name, types in node.items() if name in names})
                    has = " or ".join(map(_as_text, told[:_EXAMPLES])) or "no types at all"
                    what = f"{sku} has no kernel of {one.name} {since} for {asked}, but for {has}"
                    yield f"{one.name} {since}", what, _OTHER_TYPES.format(sku=sku, operator=one.name)


_EXAMPLES = 4
_OTHER_TYPES = (
    "cast around {operator} in the model; or, where ONNX Runtime has such a kernel, rebuild {sku} with operators + "
    "{operator} and without runtime.operators.types"
)


def untold_types(runtime: Documents, payload: Documents) -> Iterator[Finding]:
    told_by = {"runtime": "offered", "payload": "versions"}
    remedy = {
        "runtime": f"build {shown(runtime['sku'])} again, so that its runtime.json has them",
        "payload": "pack the model again",
    }
    for document, part in told_by.items():
        silent = [one.name for one in _asked(runtime, payload) if _is_silent(one, part)]
        if silent:
            names = f"{len(silent)} operators ({silent[0]}, ...)"
            what = f"{document}.json does not tell the types of {names}: they were not compared"
            yield document, what, remedy[document]


def _is_silent(one: _Asked, part: str) -> bool:
    told_by = getattr(one, part)
    return any(None in told_by[since] for since in one.versions if since in (one.offered or ()))


def _asked(runtime: Documents, payload: Documents) -> Iterator[_Asked]:
    """Nothing where the runtime has every operator; what is of a domain that it lacks is told by another rule."""
    table = runtime["operators"]
    if table is None:
        return
    for domain, operators in sorted(payload["operators"].items()):
        if domain in payload["opset_imports"] and domain not in runtime["opsets"]:
            continue
        for operator, nodes in sorted(operators.items()):
            kernels = table.get(domain, {}).get(operator)
            yield _Asked(
                shown(operator if domain == _ONNX else f"{domain}:{operator}"),
                domain,
                _by_version(nodes),
                None if kernels is None else _by_version(kernels),
            )


def _by_version(kernels: Sequence[Mapping[str, Any]]) -> dict[int, list[Takes | None]]:
    found: dict[int, list[Takes | None]] = {}
    for kernel in kernels:
        takes = kernel.get("takes")
        for since in kernel["since_versions"]:
            found.setdefault(since, []).extend([None] if takes is None else takes)
    return found


def _serves(kernel: Takes, node: Takes) -> bool:
    """Whether a kernel takes a node: constraints that the node has nothing for do not count."""
    return all(name not in node or {*node[name]} <= {*types} for name, types in kernel.items())


def _as_text(takes: Takes) -> str:
    return (
        ", ".join("{} = {}".format(shown(name), shown("|".join(types))) for name, types in sorted(takes.items()))
        or "anything"
    )
