"""What every kernel of the CPU provider takes, as ONNX Runtime itself says it.

A registration names at most the types that its class is made for, and not which of the operator's tensors these are of.
The kernels' definitions do; the package ``onnxruntime`` of the same version can be asked for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from armlet.errors import ArmletError, Kind
from armlet.kernels import KernelTypes, Takes
from armlet.onnx.libraries import library
from armlet.registrations import ONNX_DOMAIN, SOURCES, Registration, kernel_types_text, parse

__all__ = ["SOURCES", "kernel_types", "plain", "text"]

HALF = "MLAS_F16VEC_INTRINSICS_SUPPORTED"
"""What is defined where kernels of half precision are compiled, which no x86 has."""
_OPEN = 2**31 - 1
_CPU = "CPUExecutionProvider"
_Key = tuple[str, str, int, int | None]


def text(sources: Sequence[str]) -> str:
    """The text of ``recipes/operators/<source set>.types.json`` from the texts of ``SOURCES``.

    Raises:
        ArmletError: this machine's ``onnxruntime`` is of another version.
        ValueError: as :func:`armlet.registrations.parse`.
    """
    registered, halves = ([one for source in sources for one in parse(source, defined=also)] for also in ((), {HALF}))
    return kernel_types_text(kernel_types(registered, halves))


def kernel_types(registered: Iterable[Registration], halves: Iterable[Registration]) -> KernelTypes:
    """What each kernel takes.

    Args:
        registered: of the sources, in their order and without half precision: the same that this machine's
            ``onnxruntime`` was made from.
        halves: those of half precision. All of them constrain ``T`` alone.

    Raises:
        ArmletError: this machine's ``onnxruntime`` has other kernels.
    """
    ours: dict[_Key, list[Registration]] = defaultdict(list)
    for one in registered:
        ours[(one.domain, one.op, one.since, one.until)].append(one)
    theirs = defined()
    for key in sorted({*ours, *theirs}, key=repr):
        if len(ours[key]) != len(theirs[key]):
            raise _other_kernels(key, len(ours[key]), len(theirs[key]))
    found = {one: takes for key, ones in ours.items() for one, takes in zip(ones, theirs[key], strict=True)}
    return {**{one: {"T": ("float16",)} for one in halves}, **found}


def defined() -> dict[_Key, list[Takes]]:
    """The kernels' definitions; those of one key are in the order of their registration."""
    found: dict[_Key, list[Takes]] = defaultdict(list)
    for one in library("onnxruntime.capi.onnxruntime_pybind11_state").get_all_opkernel_def():
        if one.provider == _CPU:
            since, until = one.version_range
            key = (one.domain or ONNX_DOMAIN, one.op_name, since, None if until >= _OPEN else until)
            takes = {name: tuple(sorted(map(plain, types))) for name, types in one.type_constraints.items()}
            found[key].append(takes)
    return found


def plain(name: str) -> str:
    """``tensor(float)`` -> ``float``; other types keep their names."""
    inner = name.removeprefix("tensor(")
    return name if inner == name or not inner.endswith(")") else inner[:-1]


def _other_kernels(key: _Key, ours: int, theirs: int) -> ArmletError:
    return ArmletError(
        f"the sources register {ours} kernels of {key[1]} ({key[0]}) from opset {key[2]}, and this machine's "
        f"onnxruntime has {theirs}",
        hint="install the onnxruntime of the sources' version, for x86",
        kind=Kind.HOST,
    )
