"""Fixtures for every test."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

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


@pytest.fixture(scope="session")
def generator() -> ModuleType:
    """The program that makes the device package's table of the C API from its header."""
    spec = importlib.util.spec_from_file_location("generate_api", ROOT / "device" / "tools" / "generate_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
