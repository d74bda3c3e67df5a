"""The container engine: images, and one long-lived container per job. Podman's Docker-compatible socket works too."""

from __future__ import annotations

from armlet.engine.container import ContainerRunner, Mount
from armlet.engine.core import LABEL, Engine

__all__ = ["LABEL", "ContainerRunner", "Engine", "Mount"]
