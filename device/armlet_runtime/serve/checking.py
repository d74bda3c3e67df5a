"""``armlet-serve --check``: everything that would be in the way of serving, found without serving."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from armlet_runtime import ort
from armlet_runtime.serve import machine, payloads, wiring
from armlet_runtime.serve.config import DeviceConfig, ModelSettings
from armlet_runtime.serve.process import signal_name
from armlet_runtime.serve.values import unknown_providers


def problems(config: DeviceConfig, name: str, *, payloads_too: bool = True) -> list[str]:
    """One line each; ``name`` is what the file is called in them. Without ``payloads_too`` no payload is looked at.

    Raises :class:`~armlet_runtime.serve.config.ConfigError`, :class:`~armlet_runtime.serve.wiring.HostError`.
    """
    service = config.service
    reported, problem = _ask(str(service.library) if service.library else None)
    found = [problem] if problem else []
    for section, names in _providers(config).items():
        line = config.lines.get(section, 0)
        found += [f"{name}:{line}: [{section}] {what}" for what in unknown_providers(names, reported)]
    found += _of_updates(config, name)
    catalogue = wiring.catalogue(service)
    if not payloads_too:
        return found
    there = catalogue.names()
    if not there:
        found.append(f"{service.payloads} holds no payload, or cannot be read")
    for model in config.models:
        if there and model not in there:
            line = config.lines.get(f"model:{model}", 0)
            found.append(f"{name}:{line}: [model:{model}] there is no payload of this model in {service.payloads}")
    return [*found, *(f"{problem.model}: {problem.what}" for problem in payloads.problems_of(catalogue))]


def _of_updates(config: DeviceConfig, name: str) -> list[str]:
    # Not above: a service without updates is to be spared the memory that TLS takes.
    from armlet_runtime.update import connect, running

    return [*running.problems(config, name), *connect.problems(config, name)]


def _ask(library: str | None) -> tuple[tuple[str, ...], str]:
    """The library's providers, or what is wrong with it.

    A process of its own asks: a library without exceptions ends the one that it cannot work in.
    """
    # The loader would wait for somebody to write into a pipe.
    if library and Path(library).exists() and not Path(library).is_file():
        return (), f"{library} is no file"
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        answer: list[Any] = [[], ""]
        try:
            answer[0] = ort.get_available_providers(library)
        except ort.LibraryError as error:
            answer[1] = machine.foreign(library or "") or " ".join(map(str.strip, error.message.splitlines()))
        finally:
            os.write(theirs, json.dumps(answer).encode())
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if text:
        names, problem = json.loads(text)
        return tuple(names), problem
    told = f"ended its process with {signal_name(status)}, see above"
    return (), f"ONNX Runtime's library {told}: it needs /proc/cpuinfo and /sys/devices/system/cpu"


def _providers(config: DeviceConfig) -> dict[str, tuple[str, ...]]:
    """Section -> the providers that it names."""

    def names(settings: ModelSettings) -> list[str]:
        return list(dict.fromkeys([*(settings.providers or ()), *settings.min_provider_share]))

    shared = names(config.defaults)
    named = {"models": tuple(shared)}
    for model, settings in config.models.items():
        # What a model has from [models] is told there.
        named[f"model:{model}"] = tuple(name for name in names(settings) if name not in shared)
    options = {s: (s.partition(":")[2].strip(),) for s in config.lines if s.startswith("provider:")}
    return {**named, **options}
