"""A runtime.json and a payload.json, as far as the contract reads them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from armlet_runtime.contract import check

from armlet import kernels
from armlet.registrations import Registration, kernel_types
from tests.conftest import ROOT

TYPES = kernel_types((ROOT / "recipes/operators/onnxruntime-1.21.0.types.json").read_text(encoding="utf-8"))
"""What each kernel of ONNX Runtime 1.21.0 takes."""


def operators_of(registered: Iterable[Registration]) -> dict[str, Any]:
    """``runtime.json``'s table for a library with these kernels."""
    chosen = sorted(registered)
    linked = kernels.linked(b"\0".join(map(_symbol, chosen)))
    table = kernels.contract(chosen, linked, TYPES)
    return {
        domain: {name: [one.model_dump(mode="json") for one in entries] for name, entries in operators.items()}
        for domain, operators in table.items()
    }


_DOMAINS = {"ai.onnx": "kOnnxDomain", "ai.onnx.ml": "kMLDomain", "com.microsoft": "kMSDomain"}


def _symbol(one: Registration) -> bytes:
    until = [] if one.until is None else [str(one.until)]
    domain = _DOMAINS.get(one.domain, "kMSNchwcDomain")
    kernel = "_".join(["kCpuExecutionProvider", one.op, domain, f"ver{one.since}", *until, *one.types])
    return f"_ZN11onnxruntime21BuildKernelCreateInfoINS_{len(kernel)}{kernel}EE".encode()


def fake_runtime(**changes: Any) -> dict[str, Any]:
    runtime: dict[str, Any] = {
        "schema": 1,
        "sku": "gateway-a72",
        "ort_version": "1.21.0",
        "ort_format_version": [5, 6],
        "onnx_ir_max": 10,
        "opsets": {"ai.onnx": 22, "com.microsoft": 1},
        "flavor": "minimal",
        "providers": ["xnnpack", "cpu"],
        "operators": {
            "ai.onnx": {
                "Conv": [{"since_versions": [11, 12], "takes": [{"T": ["float"]}]}],
                "QuantizeLinear": [{"since_versions": [13], "takes": [{"T1": ["float"], "T2": ["int8", "uint8"]}]}],
            },
            "com.microsoft": {"FusedConv": [{"since_versions": [1], "takes": [{"T": ["float"]}]}]},
        },
        "element_types": ["float", "int8", "int64"],
    }
    return {**runtime, **changes}


def fake_payload(**changes: Any) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "schema": 1,
        "format": "ort",
        "ort_format_version": 6,
        "ir_version": 8,
        "opset_imports": {"ai.onnx": 13, "com.microsoft": 1},
        "operators": {
            "ai.onnx": {
                "Conv": [{"since_versions": [11], "takes": [{"T": ["float"]}]}],
                "QuantizeLinear": [
                    {"since_versions": [13], "takes": [{"T1": ["float"], "T2": ["int8"], "y_scale": ["float"]}]}
                ],
            },
            "com.microsoft": {"FusedConv": [{"since_versions": [1], "takes": [{"T": ["float"]}]}]},
        },
        "element_types": ["float", "int8"],
        "providers": [{"name": "xnnpack", "options": {"intra_op_num_threads": "2"}}, {"name": "cpu"}],
        "min_runtime": "1.21",
        "max_runtime_tested": "1.21.0",
    }
    return {**payload, **changes}


Change = Callable[[dict[str, Any], dict[str, Any]], None]


def putting(document: int, *key: str | int, value: Any) -> Change:
    """A change of ``runtime`` (0) or ``payload`` (1): one value put at a key."""

    def change(*documents: dict[str, Any]) -> None:
        inner: Any = documents[document]
        for part in key[:-1]:
            inner = inner[part]
        inner[key[-1]] = value

    return change


def kernel(since: int, takes: list[dict[str, list[str]]] | None) -> list[dict[str, Any]]:
    return [{"since_versions": [since], "takes": takes}]


RUNTIME, PAYLOAD = 0, 1
CASES: tuple[tuple[str, str, Change, str], ...] = (
    ("format", "onnx", putting(PAYLOAD, "format", value="onnx"), "./inv model.convert --sku gateway-a72"),
    ("format", "ort", putting(RUNTIME, "flavor", value="gigantic"), "flavor: reduced"),
    ("ort_format_version", "7", putting(PAYLOAD, "ort_format_version", value=7), "convert it with onnxruntime 1.21.0"),
    ("ort_format_version", "4", putting(PAYLOAD, "ort_format_version", value=4), "onnxruntime 1.21.0"),
    ("ort_format_version", "none", putting(PAYLOAD, "ort_format_version", value=None), "onnxruntime 1.21.0"),
    ("ir_version", "11", putting(PAYLOAD, "ir_version", value=11), "model.ir_version = 10"),
    ("opset", "ai.onnx", putting(PAYLOAD, "opset_imports", "ai.onnx", value=23), "with opset 22"),
    ("opset", "ai.onnx.ml", putting(PAYLOAD, "opset_imports", "ai.onnx.ml", value=3), "another flavor"),
    (
        "operator",
        "com.microsoft:QLinearSoftmax",
        putting(PAYLOAD, "operators", "com.microsoft", "QLinearSoftmax", value=kernel(1, [{"T": ["int8"]}])),
        "rebuild gateway-a72 with operators + com.microsoft:QLinearSoftmax, or convert",
    ),
    (
        "operator",
        "org.example:Own",
        putting(PAYLOAD, "operators", "org.example", value={"Own": kernel(1, None)}),
        "rebuild gateway-a72 with operators + org.example:Own",
    ),
    (
        "operator_version",
        "Conv 22",
        putting(PAYLOAD, "operators", "ai.onnx", "Conv", 0, "since_versions", value=[22]),
        "Conv of opset 22",
    ),
    (
        "type",
        "Conv 11",
        putting(PAYLOAD, "operators", "ai.onnx", "Conv", 0, "takes", 0, "T", value=["float16"]),
        "cast around Conv",
    ),
    (
        "type",
        "QuantizeLinear 13",
        putting(PAYLOAD, "operators", "ai.onnx", "QuantizeLinear", 0, "takes", 0, "T2", value=["int16"]),
        "cast around QuantizeLinear",
    ),
    ("type", "Conv 11", putting(RUNTIME, "operators", "ai.onnx", "Conv", 0, "takes", value=[]), "cast around Conv"),
    (
        "element_type",
        "double",
        putting(PAYLOAD, "element_types", value=["double", "float"]),
        "runtime.operators.types + double",
    ),
    ("provider", "xnnpack", putting(RUNTIME, "providers", value=["acl"]), "providers + xnnpack"),
    ("provider", "xnnpack", putting(RUNTIME, "providers", value=[]), "providers + xnnpack"),
    ("min_runtime", "1.22", putting(PAYLOAD, "min_runtime", value="1.22"), "of newer sources"),
    ("min_runtime", "1.21.1", putting(PAYLOAD, "min_runtime", value="1.21.1"), "of newer sources"),
    ("schema", "runtime", putting(RUNTIME, "schema", value=2), "update Armlet"),
    ("schema", "payload", putting(PAYLOAD, "schema", value=True), "update Armlet"),
)
"""Kind, about, how the two documents come to it, and a part of its remedy."""

WARNED: tuple[tuple[str, str, Change], ...] = (
    ("provider_missing", "xnnpack", putting(RUNTIME, "providers", value=["cpu"])),
    ("untested", "1.22.0", putting(RUNTIME, "ort_version", value="1.22.0")),
    ("types_unknown", "runtime", putting(RUNTIME, "operators", "ai.onnx", "Conv", value=[{"since_versions": [11]}])),
    ("types_unknown", "payload", putting(PAYLOAD, "operators", "ai.onnx", "Conv", 0, "takes", value=None)),
)
"""As above, of warnings."""


def every_misfit() -> list[list[dict[str, Any]]]:
    """A runtime and a payload for each of them."""
    pairs = []
    for change in [*(case[2] for case in CASES), *(case[2] for case in WARNED)]:
        pair = [copy.deepcopy(fake_runtime()), copy.deepcopy(fake_payload())]
        change(*pair)
        pairs.append(pair)
    return pairs


def answered(pairs: list[list[dict[str, Any]]]) -> list[list[Any]]:
    """What this machine's Python says of them, in JSON's terms."""
    return [[list(one) for one in check(*pair)] for pair in pairs]
