"""Everything that would be in the way of serving, found without serving."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from armlet_runtime.serve import asking, chain, listening, settings_check, wiring
from armlet_runtime.serve.chain import Wanted
from armlet_runtime.serve.config import ConfigError, DeviceConfig, Reading
from armlet_runtime.serve.cores import budget
from armlet_runtime.serve.finding import HOST, INPUT, MODEL, WARNING, Finding
from armlet_runtime.serve.payloads import BadPayload, Candidate, FactorySet, folder_problem


class Report(NamedTuple):
    """What was found."""

    findings: list[Finding]
    catalogue: FactorySet | None
    """None: keys or the runtime's contract cannot be used."""
    models: list[str]
    """One line for each model that can be served."""


def report(reading: Reading, cores: set[int], *, payloads_too: bool = True) -> Report:
    """``cores``: those that the service may use. Without ``payloads_too`` no payload is looked at."""
    config, doubt = reading.config, reading.in_doubt
    findings = [Finding(problem, INPUT, True) for problem in reading.problems]
    if "listen" not in doubt:
        findings += _listen(config)
    catalogue = _catalogue(reading, findings)
    good: dict[str, Candidate] = {}
    if payloads_too and "payloads" not in doubt:
        problem = folder_problem(config.service.payloads)
        findings += [Finding(f"{config.place('service', 'payloads')}{problem}")] if problem else []
    if payloads_too and catalogue is not None and "payloads" not in doubt:
        good = _payloads(config, catalogue, findings)
    chains = {name: _chain(config, candidate) for name, candidate in good.items()}
    wanted = _wanted(config, chains)
    told = None if "library" in doubt else asking.ask(str(config.service.library or "") or None, wanted)
    refused: dict[str, set[str]] = {}
    if told is not None and told.problem:
        findings.append(
            Finding(f"{config.place('service', 'library')}{told.problem} (library= names libonnxruntime.so)")
        )
    elif told is not None:
        refused = _refused(config, chains, wanted, told, findings)
    findings += settings_check.of_configuration(config, told.providers if told else (), len(cores))
    bad: set[str] = set()
    for name, candidate in good.items():
        found = settings_check.of_model(config, candidate, chains[name], told.providers if told else ())
        findings += found
        bad |= {name} if any(one.kind != WARNING for one in found) else set()
    if told is None or told.problem or any(one.stops for one in findings):
        return Report(findings, catalogue, [])
    there = set(map(chain.key_of, told.providers))
    usable = {
        name: [c.name for c in chains[name] if c.name in there and c.name not in refused.get(name, ())] for name in good
    }
    return Report(findings, catalogue, _lines(config, good, bad, usable, cores))


def _listen(config: DeviceConfig) -> list[Finding]:
    error = listening.obstacle(config.service.listen)
    if error is None:
        return []
    what = f"{config.place('service', 'listen')}{error.message} ({error.hint})"
    # It may be this very service that has it.
    return [Finding(what, WARNING) if error.in_use or error.made_at_start else Finding(what, HOST, True)]


def _catalogue(reading: Reading, findings: list[Finding]) -> FactorySet | None:
    try:
        return wiring.catalogue(reading.config, reading.in_doubt)
    except ConfigError as error:
        findings += [Finding(problem, INPUT, True) for problem in error.problems]
    except wiring.HostError as error:
        findings.append(Finding(str(error), HOST, True))
    return None


def _payloads(config: DeviceConfig, catalogue: FactorySet, findings: list[Finding]) -> dict[str, Candidate]:
    """The payloads that would be tried."""
    there = catalogue.names()
    for model in config.models:
        if there and model not in there:
            what = f"there is no payload of this model in {config.service.payloads}"
            findings.append(Finding(f"{config.place(f'model:{model}')}{what}"))
    good: dict[str, Candidate] = {}
    for model in there:
        try:
            good[model] = catalogue.current(model)
            reasons = good[model].rejected
        except BadPayload as error:
            reasons = error.reasons
        findings += [Finding(f"{model}: {reason}") for reason in reasons]
    return good


def _chain(config: DeviceConfig, candidate: Candidate) -> list[Wanted]:
    providers = config.model(candidate.model).providers
    return chain.wanted(candidate.manifest["providers"], providers, config.provider_options)


def _wanted(config: DeviceConfig, chains: Mapping[str, list[Wanted]]) -> list[Wanted]:
    """Everything that has options, each once: the configuration's alone first."""
    own = [Wanted(name, options) for name, options in config.provider_options.items() if options]
    found = list(own)
    for choice in (choice for choices in chains.values() for choice in choices if choice.options):
        if choice not in found:
            found.append(choice)
    return found


def _refused(
    config: DeviceConfig,
    chains: Mapping[str, list[Wanted]],
    wanted: list[Wanted],
    told: asking.Told,
    findings: list[Finding],
) -> dict[str, set[str]]:
    """Model -> providers that it cannot have, told once where the configuration itself is at fault."""
    why = [(choice, reason) for choice, reason in zip(wanted, told.refusals) if reason]
    own: set[str] = set()
    for choice, reason in why:
        if choice.options == config.provider_options.get(choice.name) and choice.name not in own:
            own.add(choice.name)
            place = config.place(config.provider_section(choice.name))
            findings.append(Finding(place + _outcome(choice, reason), INPUT if choice.name == chain.CPU else MODEL))
    refused: dict[str, set[str]] = {}
    for model, choices in chains.items():
        for choice, reason in why:
            if choice in choices:
                refused.setdefault(model, set()).add(choice.name)
                if choice.name not in own:
                    findings.append(Finding(f"{model}: {_outcome(choice, reason)}"))
    return refused


def _outcome(choice: Wanted, reason: str) -> str:
    then = "no model can be served with them" if choice.name == chain.CPU else "it is left out"
    return f"the library refuses these options, so {then}: {reason} (take out what it does not know)"


def _lines(
    config: DeviceConfig,
    good: Mapping[str, Candidate],
    bad: set[str],
    usable: Mapping[str, list[str]],
    cores: set[int],
) -> list[str]:
    enabled = [name for name in sorted({*good, *config.models}) if config.model(name).enabled]
    dealt = budget(cores, {name: config.model(name).cores for name in enabled}) if enabled else {}
    return [
        f"{name} version={good[name].version} generation={good[name].generation} "
        f"providers={','.join(usable[name])} cores={','.join(map(str, dealt[name]))}"
        for name in enabled
        if name in good and name not in bad and chain.CPU in usable[name]
    ]
