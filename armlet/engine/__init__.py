"""The container engine: images, and one long-lived container per job. Podman's Docker-compatible socket works too."""

from __future__ import annotations

from armlet.engine.container import ContainerRunner, Mount
from armlet.engine.core import LABEL, Engine
from armlet.engine.surroundings import BASE_ENVIRONMENT, Surroundings

__all__ = ["BASE_ENVIRONMENT", "LABEL", "ContainerRunner", "Engine", "Mount", "Surroundings"]
