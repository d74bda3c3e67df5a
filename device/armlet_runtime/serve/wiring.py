"""The service, put together from what the device's file says."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Mapping, Sequence

from armlet_runtime import contract as fit
from armlet_runtime import payload, signature
from armlet_runtime.refusal import LIBRARY, PayloadError
from armlet_runtime.serve.config import ConfigError, Service
from armlet_runtime.serve.drift import references
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.serve.payloads import BadPayload, Candidate, Check, FactorySet, Verify

log = logging.getLogger("armlet.serve")


class HostError(Exception):
    """This machine lacks something that the service cannot do without; the text says what mends it."""


def catalogue(service: Service) -> FactorySet:
    """The payloads that came with the rootfs, checked as the file asks for.

    Raises :class:`~armlet_runtime.serve.config.ConfigError` where keys or the runtime's contract cannot be used,
    :class:`HostError`.
    """
    problems: list[str] = []
    checks: list[Any] = []
    for make in (verification, contract):
        try:
            checks.append(make(service))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return FactorySet(service.payloads, *checks)


def verification(service: Service) -> Verify:
    """What checks signature and hashes. Raises as :func:`catalogue`."""
    trusted = trusted_keys(service)
    if trusted is None:
        log.warning("keys is empty: whoever can write to %s decides what is served", service.payloads)

    def verify(folder: Path) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = payload.verify_folder(folder, trusted, limit=service.payload_mb << 20).manifest
        except PayloadError as error:
            raise BadPayload([str(error)]) from error
        return found

    return verify


def trusted_keys(service: Service) -> Sequence[signature.Key] | None:
    """Whose payloads are taken; None: anybody's. Raises as :func:`catalogue`."""
    if service.keys is None:
        return None
    try:
        found = signature.trusted_keys(service.keys)
        signature.verifier()
    except PayloadError as error:
        if error.reason == LIBRARY:
            raise HostError(str(error)) from error
        raise ConfigError([str(error)]) from error
    return found


def contract(service: Service) -> Check:
    """What compares a payload with the runtime. Raises :class:`~armlet_runtime.serve.config.ConfigError`."""
    if service.runtime is None:
        return lambda _: ()
    # Opening a pipe would wait for somebody to write into it.
    if service.runtime.exists() and not service.runtime.is_file():
        raise ConfigError([f"{service.runtime} is no file (runtime= names the runtime's runtime.json)"])
    try:
        runtime = json.loads(service.runtime.read_bytes())
    except OSError as error:
        raise ConfigError(
            [f"{service.runtime}: {error.strerror} (runtime= names the runtime's runtime.json)"]
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError([f"{service.runtime} is no JSON: {error}"]) from error
    if not isinstance(runtime, dict):
        raise ConfigError([f"{service.runtime} is no runtime.json"])

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
