"""A runtime.json and a payload.json, as far as the contract reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
