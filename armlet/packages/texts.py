"""The terms of what is in a runtime, and what runs when its packages are installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from armlet.nfpm import PackageFormat
from armlet.spec.runtime import RuntimeManifest

LICENCES = "share/doc/armlet-runtime/licences"
"""Below the runtime's folder."""
NOTICE = "share/doc/armlet-runtime/NOTICE"
"""The same."""

_LDCONFIG = """\
#!/bin/sh
# Nothing to do while a root file system is put together on another machine, nor where there is no ldconfig.
[ -z "${IPKG_INSTROOT:-}${D:-}" ] || exit 0
command -v ldconfig >/dev/null || exit 0
ldconfig
"""


def runtime_scripts(kind: PackageFormat) -> dict[str, str]:
    """nfpm's name of a script -> its text; of a deb, dpkg's trigger does it."""
    return {} if kind == "deb" else {"postinstall": _LDCONFIG, "postremove": _LDCONFIG}


def runtime_triggers(kind: PackageFormat) -> Mapping[str, tuple[str, ...]]:
    """dpkg's triggers, by nfpm's names."""
    return {"activate_noawait": ("ldconfig",)} if kind == "deb" else {}


def copyright_of(tree: Path, manifest: RuntimeManifest) -> str:
    """The terms of every component, each in full.

    Args:
        tree: the folder that ships.
    """
    folder = tree / LICENCES
    head = (
        f"ONNX Runtime {manifest.ort_version} for {manifest.target.cpu}, built by Armlet from the sources that\n"
        f"the source set {manifest.source_set.name} names by hash. These are the terms of all that is in it.\n"
    )
    texts = [
        f"{'=' * 78}\n{file.relative_to(folder).as_posix()}\n{'=' * 78}\n\n{_plain(file)}"
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    return "\n".join([head, *texts])


def _plain(file: Path) -> str:
    text = file.read_text(encoding="utf-8", errors="replace")
    lines = [line.rstrip() for line in text.replace("\r", "\n" if "\n" not in text else "").split("\n")]
    return "\n".join(lines).rstrip("\n") + "\n"
