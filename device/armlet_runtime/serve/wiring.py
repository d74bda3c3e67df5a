"""The service, put together from what the device's file says."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Collection, Mapping, Sequence

from armlet_runtime import contract as fit
from armlet_runtime import payload, signature
from armlet_runtime.payload_folder import regular
from armlet_runtime.refusal import LIBRARY, PayloadError
from armlet_runtime.serve.config import ConfigError, DeviceConfig
from armlet_runtime.serve.drift import references
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.payloads import BadPayload, Candidate, Check, FactorySet, Verified, Verify

log = logging.getLogger("armlet.serve")


class HostError(Exception):
    """This machine lacks something that the service cannot do without; the text says what mends it."""


def catalogue(config: DeviceConfig, in_doubt: Collection[str] = ()) -> FactorySet | None:
    """The payloads that came with the rootfs, checked as the file asks for; None where that is ``in_doubt``.

    Raises :class:`~armlet_runtime.serve.config.ConfigError` where keys or the runtime's contract cannot be used,
    :class:`HostError` where nothing else is wrong.
    """
    problems: list[str] = []
    lacks: HostError | None = None
    checks: list[Any] = []
    for key, make in (("keys", verification), ("runtime", contract)):
        try:
            if key not in in_doubt:
                checks.append(make(config))
        except ConfigError as error:
            problems += error.problems
        except HostError as error:
            lacks = error
    if problems:
        raise ConfigError([*problems, *([str(lacks)] if lacks else [])])
    if lacks:
        raise lacks
    return FactorySet(config.service.payloads, *checks) if len(checks) == 2 else None


def verification(config: DeviceConfig) -> Verify:
    """What checks signature and hashes. Raises as :func:`catalogue`."""
    service = config.service
    trusted: Sequence[signature.Key] | None = None
    if service.keys is not None:
        try:
            trusted = signature.trusted_keys(service.keys)
            signature.verifier()
        except PayloadError as error:
            if error.reason == LIBRARY:
                raise HostError(str(error)) from error
            raise ConfigError([f"{config.place('service', 'keys')}{error}"]) from error
    else:
        log.warning("keys is empty: whoever can write to %s decides what is served", service.payloads)

    def verify(folder: Path) -> Verified:
        try:
            found = payload.verify_folder(folder, trusted, limit=service.payload_mb << 20)
        except PayloadError as error:
            raise BadPayload([str(error)]) from error
        return Verified(found.manifest, found.sha256)

    return verify


def contract(config: DeviceConfig) -> Check:
    """What compares a payload with the runtime. Raises :class:`~armlet_runtime.serve.config.ConfigError`."""
    file, place = config.service.runtime, config.place("service", "runtime")
    if file is None:
        return lambda _: ()
    try:
        # Opening a pipe would wait for somebody to write into it.
        with regular(file) as stream:
            runtime = json.loads(stream.read())
    except OSError as error:
        hint = "runtime= names the runtime's runtime.json"
        raise ConfigError([f"{place}{file}: {error.strerror} ({hint})"]) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError([f"{place}{file} is no JSON: {error}"]) from error
    if not isinstance(runtime, dict):
        raise ConfigError([f"{place}{file} is no runtime.json"])

    def check(manifest: Mapping[str, Any]) -> Sequence[str]:
        found = fit.check(runtime, manifest)
        for one in found:
            if fit.fits([one]):
                log.warning("%s: %s (%s)", manifest.get("model"), one.what, one.remedy)
        return [f"{one.what} ({one.remedy})" for one in found if not fit.fits([one])]

    return check


def watch_drift(metrics: Metrics, served: Candidate) -> None:
    """Compare a model's inputs with those that it was made with, from now on."""
    try:
        metrics.watch_drift(served.model, references(served.manifest.get("drift_reference")))
    except (ValueError, TypeError, KeyError) as error:
        log.error("%s: its drift_reference makes no sense: %s", served.model, error)
