"""What tests share that build a SKU for real and run it in QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet import pipeline
from armlet.events import silent
from armlet.paths import Paths
from armlet.qemu.report import SmokeReport
from armlet.qemu.smoke import smoke

REAL = [pytest.mark.qemu, pytest.mark.build, pytest.mark.docker, pytest.mark.timeout(5400)]
HEAVY = [pytest.mark.heavy, *REAL]
"""Marks of SKUs beside the demonstrations."""


def smoked(root: Path, sku: str) -> SmokeReport:
    """The smoke of the built SKU: it raises where a check fails."""
    paths = Paths.of(root)
    pipeline.build(paths, sku, silent)
    return smoke(paths, sku)
