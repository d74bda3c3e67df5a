"""The device package stays within Python 3.8 and its standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import armlet_runtime
import pytest

PACKAGE = Path(armlet_runtime.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
# Of device/pyproject.toml, used when present.
EXTRAS = {"numpy", "nacl", "cryptography", "paho"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_source(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            imported.add(node.module.partition(".")[0])
    assert imported <= {*sys.stdlib_module_names, *EXTRAS, "armlet_runtime"}
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    assert futures, "annotations would be evaluated, and X | Y among them fails before Python 3.10"
