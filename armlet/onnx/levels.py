"""How far a model may be optimised before it ships, given who will run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from armlet.spec.sku import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One of ONNX Runtime's optimisation levels, and why it is the highest that a provider bears."""

    name: Literal["basic", "extended", "all"]
    reason: str
    without: tuple[str, ...] = ()
    """Optimisers that are left out of the level."""


LEVELS: dict[Provider, Level] = {
    "xnnpack": Level(
        name="basic",
        reason="XNNPACK takes ONNX's own operators and fuses activations itself; beyond this level a convolution "
        "becomes com.microsoft:FusedConv, which only the CPU provider runs",
    ),
    "acl": Level(
        name="basic",
        reason="ACL takes ONNX's own operators; beyond this level a convolution that was fused with a Clip, and a Gemm "
        "with its activation, are left to the CPU provider",
    ),
    "vsinpu": Level(name="basic", reason="the NPU's compiler takes ONNX's own operators"),
    "rknpu": Level(name="basic", reason="the NPU's compiler takes ONNX's own operators"),
    "cpu": Level(
        name="all",
        reason="the CPU provider has kernels for all that is fused; only the NCHWc layout stays out: "
        "its block size is that of the machine that converts",
        without=("NchwcTransformer",),
    ),
}
INT8 = Level(
    name="extended",
    reason="a convolution between QuantizeLinear and DequantizeLinear becomes QLinearConv only here, and XNNPACK takes "
    "no other one out of an ORT-format model; what is left to the CPU provider gets its int8 operators as well",
    without=("ConvActivationFusion", "ConvAddActivationFusion"),
)
"""For a quantised model, in place of a lower one: convolutions that stayed in float keep their form all the same."""
_ORDER = ("basic", "extended", "all")


def level_for(providers: Sequence[Provider], *, quantised: bool = False) -> Level:
    """The level that every provider of a chain bears."""
    levels = (LEVELS[provider] for provider in providers)
    if quantised:
        levels = (INT8 if level.name == "basic" else level for level in levels)
    return min(levels, key=lambda level: _ORDER.index(level.name))


def level_of(model: Any, providers: Sequence[Provider]) -> Level:
    """The level for one ``onnx.ModelProto``."""
    quantised = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    return level_for(providers, quantised=quantised)
