"""Which of OpenEmbedded's packages have the modules of Python's library that a program imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from armlet.errors import ArmletError, Kind

# python3-manifest.json of OpenEmbedded-Core, kirkstone to the current release: what is in core there is not listed.
_PACKAGES = {
    "base64": "netclient",
    "calendar": "datetime",
    "ctypes": "ctypes",
    # In kirkstone, dataclasses are in profile, in the releases since in core.
    "dataclasses": "profile",
    "datetime": "datetime",
    "difflib": "difflib",
    "fcntl": "fcntl",
    "hashlib": "crypt",
    "http": "netclient",
    "json": "json",
    "logging": "logging",
    "queue": "threading",
    "random": "math",
    "resource": "resource",
    "socket": "io",
    "ssl": "io",
    "tarfile": "compression",
    "tempfile": "io",
    "urllib": "netclient",
}
_CORE = frozenset(
    {
        *("__future__", "argparse", "array", "binascii", "bisect", "collections", "contextlib", "enum", "errno"),
        *("importlib", "io", "itertools", "math", "os", "pathlib", "platform", "re", "select", "selectors", "shutil"),
        *("signal", "stat", "struct", "subprocess", "sys", "threading", "time", "types", "typing", "unicodedata"),
        *("weakref", "zlib"),
    }
)


def packages(files: Iterable[Path]) -> list[str]:
    """The packages that these modules need, sorted.

    Raises:
        ArmletError: (BUILD) of a module nobody knows the package.
    """
    modules = {name for file in files if file.suffix == ".py" for name in _imported(file)} & sys.stdlib_module_names
    if unknown := sorted(modules - _CORE - _PACKAGES.keys()):
        raise ArmletError(
            f"no package of OpenEmbedded is known that has {', '.join(unknown)}",
            hint="add a row to armlet/layers/python_packages.py, from python3-manifest.json",
            kind=Kind.BUILD,
        )
    return sorted({"python3-core", *(f"python3-{_PACKAGES[name]}" for name in modules & _PACKAGES.keys())})


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
