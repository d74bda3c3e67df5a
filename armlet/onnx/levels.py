"""How far a model may be optimised before it ships, given who will run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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
_ORDER = ("basic", "extended", "all")


def level_for(providers: Sequence[Provider]) -> Level:
    """The level that every provider of a chain bears."""
    return min((LEVELS[provider] for provider in providers), key=lambda level: _ORDER.index(level.name))
