"""Settings that can be read and make no sense on this device."""

from __future__ import annotations

from typing import Iterator, Sequence

from armlet_runtime.serve.chain import CPU, Wanted, key_of
from armlet_runtime.serve.config import DeviceConfig, ModelSettings
from armlet_runtime.serve.confine import LEAST_MB
from armlet_runtime.serve.finding import MODEL, WARNING, Finding
from armlet_runtime.serve.payloads import Candidate
from armlet_runtime.serve.values import unknown_providers

_SHARE = "min_provider_share"
_MEMORY_HINT = " (raise it, or leave it empty)"
_MB = 1 << 20


def of_configuration(config: DeviceConfig, reported: Sequence[str], cores: int) -> list[Finding]:
    """What shows without a payload. ``reported``: the library's providers; empty: unknown. ``cores`` there are."""
    found: list[Finding] = []
    for section in config.lines:
        if section.startswith("provider:"):
            names = (section.partition(":")[2],)
            found += [Finding(config.place(section) + what) for what in unknown_providers(names, tuple(reported))]
    for section, settings in _sections(config):
        found += _providers(config, section, settings, reported)
        found += _shares(config, section, settings, reported)
        found += _numbers(config, section, settings, cores)
    return found


def of_model(
    config: DeviceConfig, candidate: Candidate, chain: Sequence[Wanted], reported: Sequence[str]
) -> list[Finding]:
    """What shows with a payload and the chain that it comes to."""
    settings, found = config.model(candidate.model), []
    there = set(map(key_of, reported))
    if settings.providers is None:
        found += [
            Finding(
                f"{candidate.model}: its payload names {choice.name}, which the library lacks: it is skipped", WARNING
            )
            for choice in chain
            if there and choice.name not in there
        ]
        names = [choice.name for choice in chain]
        place = config.place(*_place_of(config, candidate.model, _SHARE))
        found += [
            _short(place, name, f"is not in the payload's chain of {candidate.model}")
            for name in _asked(settings)
            if name not in names and (name in there or not there)
        ]
    size = candidate.model_file.stat().st_size
    limit = settings.memory_mb
    if limit is not None and LEAST_MB <= limit < LEAST_MB + size / _MB:
        place = config.place(*_place_of(config, candidate.model, "memory_mb"))
        what = f"memory_mb = {limit} is less than {candidate.model} and a worker take"
        found.append(Finding(f"{place}{what}: {LEAST_MB} MB and {size / _MB:.1f} MB at least{_MEMORY_HINT}", MODEL))
    return found


def _sections(config: DeviceConfig) -> Iterator[tuple[str, ModelSettings]]:
    yield "models", config.defaults
    for name, settings in config.models.items():
        yield f"model:{name}", settings


def _place_of(config: DeviceConfig, model: str, key: str) -> tuple[str, str]:
    own = f"model:{model}"
    return (own if (own, key) in config.key_lines else "models"), key


def _short(place: str, name: str, why: str) -> Finding:
    hint = "take it out, or name a provider that is there"
    return Finding(f"{place}{_SHARE} asks for {name}, which {why} ({hint})", MODEL)


def _asked(settings: ModelSettings) -> list[str]:
    return [name for name, share in settings.min_provider_share.items() if share > 0]


def _providers(
    config: DeviceConfig, section: str, settings: ModelSettings, reported: Sequence[str]
) -> Iterator[Finding]:
    if (section, "providers") not in config.key_lines:
        return
    place = config.place(section, "providers")
    for name in settings.providers or ():
        unknown = unknown_providers((name,), tuple(reported))
        yield from (Finding(place + what) for what in unknown)
        if reported and not unknown and name not in set(map(key_of, reported)):
            yield Finding(f"{place}the library lacks {name}: it is skipped", WARNING)


def _shares(config: DeviceConfig, section: str, settings: ModelSettings, reported: Sequence[str]) -> Iterator[Finding]:
    own, there = (section, _SHARE) in config.key_lines, set(map(key_of, reported))
    if not own and (section, "providers") not in config.key_lines:
        return
    place = config.place(section, _SHARE if own else "providers")
    for name in _asked(settings):
        unknown = unknown_providers((name,), tuple(reported))
        if unknown:
            yield from (Finding(place + what) for what in unknown if own)
        elif there and name not in there:
            if own:
                yield _short(place, name, f"the library lacks: it has {', '.join(sorted(there))}")
        elif settings.providers is not None and name not in (*settings.providers, CPU):
            chain = ", ".join(settings.providers)
            yield _short(place, name, f"is not in the chain: {chain}")


def _numbers(config: DeviceConfig, section: str, settings: ModelSettings, cores: int) -> Iterator[Finding]:
    if (section, "cores") in config.key_lines and settings.cores is not None and settings.cores > cores:
        what = f"cores = {settings.cores}, and the service may use {cores}: the model gets those"
        yield Finding(config.place(section, "cores") + what, WARNING)
    limit = settings.memory_mb
    if (section, "memory_mb") in config.key_lines and limit is not None and limit < LEAST_MB:
        what = f"memory_mb = {limit} is less than a worker takes without a model, {LEAST_MB} MB at least{_MEMORY_HINT}"
        yield Finding(config.place(section, "memory_mb") + what, MODEL)
