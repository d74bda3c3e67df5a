"""Fixtures for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.paths import Paths

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A project and a cache, both empty, in a place whose name has a space and an umlaut."""
    root, cache = tmp_path / "prö ject", tmp_path / "ca che"
    root.mkdir()
    cache.mkdir()
    return Paths(root=root, cache=cache)
