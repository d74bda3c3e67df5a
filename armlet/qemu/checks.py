"""What must hold of a smoke's trials: pure judgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armlet.providers import PROVIDERS
from armlet.qemu.trial import Trial

NEAR_FLOAT_DB = 10.0
"""An int8 model's outputs must stand above their difference from the model of floats by so much: the power of the error
is a tenth of the signal's. Outputs that have nothing to do with each other have 0 or less."""
CONVOLUTIONS = frozenset(
    {"Conv", "ConvInteger", "ConvTranspose", "FusedConv", "NhwcConv", "NhwcFusedConv", "QLinearConv"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A demand, whether it was met, what was found, and what mends it."""

    name: str
    passed: bool
    found: str
    hint: str = ""


def check_trial(trial: Trial, providers: Sequence[str], *, kernels_alone: bool = False) -> tuple[Check, ...]:
    """All that is asked of a model that was converted for the SKU; ``providers`` as the SKU names them.

    With ``kernels_alone``, who ran what is not asked: a probe has layers for several providers.
    """
    about = f"{trial.model}{' through the wheel' if trial.wheel else '' if trial.with_numpy else ' without NumPy'}"
    if trial.refused:
        hint = "rebuild with the operators it names, or convert the model for this SKU's providers"
        return (Check(name=f"{about}: loads and runs", passed=False, found=trial.refused, hint=hint),)
    return (
        _agrees(trial, about),
        *_classes(trial, about),
        *_near_float(trial, about),
        *_providers(trial, about, providers),
        *(() if kernels_alone else _convolutions(trial, about, providers)),
    )


def fallback(trial: Trial, providers: Sequence[str]) -> str | None:
    """A sentence on convolutions that the preferred provider was left out of; None where it has its share."""
    row = PROVIDERS[providers[0]]
    preferred, share = row.ort_name, row.convolution_share or 0.0
    found = [node for node in trial.nodes if node.op_type in CONVOLUTIONS]
    elsewhere = [node for node in found if node.provider != preferred]
    if len(elsewhere) <= (1 - share) * len(found):
        return None
    kinds = sorted({f"{node.op_type} on {node.provider}" for node in elsewhere})
    return f"{len(elsewhere)} of {len(found)} convolutions fell back from {preferred}: {', '.join(kinds)}"


def check_wrong_conversion(trial: Trial, providers: Sequence[str]) -> Check:
    """What is asked of a model converted for the CPU provider alone.

    It must be noticed: it falls back and is told, or is refused. Where the preferred provider runs fused convolutions,
    it must be right.
    """
    if PROVIDERS[providers[0]].takes_fused and not trial.refused:
        return _agrees(trial, trial.model)
    told = f"refused: {trial.refused}" if trial.refused else fallback(trial, providers)
    return Check(
        name=f"{trial.model}: a wrong conversion is noticed",
        passed=told is not None,
        found=told or "the wrong conversion ran like the right one",
        hint="armlet.qemu.checks.fallback no longer sees what it is for",
    )


def _agrees(trial: Trial, about: str) -> Check:
    worst = trial.worst_difference
    return Check(
        name=f"{about}: agrees with x86",
        passed=worst <= trial.tolerance,
        found=f"largest difference {worst:.2g}, allowed {trial.tolerance:g}",
        hint="a kernel computes something else than x86's: run with providers: [cpu] to tell whose",
    )


def _classes(trial: Trial, about: str) -> tuple[Check, ...]:
    known = [answer for answer in trial.answers if answer.expected is not None]
    if not known:
        return ()
    wrong = [answer for answer in known if answer.chosen != answer.expected]
    # No model is right about everything, and that is no fault of the runtime.
    own = [answer.sample for answer in wrong if answer.reference == answer.expected]
    found = f"{len(known) - len(wrong)} of {len(known)} samples"
    found += f"; wrong, and right on x86: {', '.join(own)}" if own else "; x86 is wrong about the rest" if wrong else ""
    hint = "a kernel computes something else than x86's"
    return (Check(name=f"{about}: classifies as x86 does", passed=not own, found=found, hint=hint),)


def _near_float(trial: Trial, about: str) -> tuple[Check, ...]:
    if trial.near_float_db is None:
        return ()
    return (
        Check(
            name=f"{about}: is near the model of floats",
            passed=trial.near_float_db >= NEAR_FLOAT_DB,
            found=f"{trial.near_float_db:.1f} dB above the difference, at least {NEAR_FLOAT_DB:g} asked",
            hint="where x86 agrees, this model does not bear int8 or its samples do not cover what it is used for",
        ),
    )


def _providers(trial: Trial, about: str, providers: Sequence[str]) -> tuple[Check, ...]:
    wanted = [PROVIDERS[name].ort_name for name in providers]
    missing = [name for name in wanted if name not in trial.available_providers]
    return (
        Check(
            name=f"{about}: the library has the SKU's providers",
            passed=not missing,
            found=", ".join(trial.available_providers) + (f"; missing: {', '.join(missing)}" if missing else ""),
            hint="rebuild: ./inv build",
        ),
    )


def _convolutions(trial: Trial, about: str, providers: Sequence[str]) -> tuple[Check, ...]:
    count = sum(node.op_type in CONVOLUTIONS for node in trial.nodes)
    share = PROVIDERS[providers[0]].convolution_share
    if share is None or not count:
        return ()
    told = fallback(trial, providers)
    return (
        Check(
            name=f"{about}: convolutions run on {providers[0]}",
            passed=told is None,
            found=told or f"{count} convolutions, at least {share:.0%} on {PROVIDERS[providers[0]].ort_name}",
            hint="fix the model's input shapes (inputs: in the SKU), and convert it for this SKU's providers",
        ),
    )
