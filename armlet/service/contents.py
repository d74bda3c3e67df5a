"""What of the service goes where on a device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from armlet.debian_texts import compressed
from armlet.nfpm import Entry, PackageFormat

PRIVATE = "/usr/lib/armlet/python"
"""Where no folder of modules has the same name in every Python: distributions for devices put the version in it."""
_INSERT = f'sys.path.insert(0, "{PRIVATE}")\n'
_COMMAND = """#!/usr/bin/python3
import sys

{insert}from armlet_runtime.serve.__main__ import main

sys.exit(main())
"""
_DOCUMENT = "/usr/share/doc/armlet-serve"
_SCRIPTS = ("S90armlet-serve", "armlet-serve")
"""For Buildroot and sysvinit; for OpenWrt's procd. Neither's init runs the other one."""
_PAGES = ("service.md", "service-api.md", "payloads.md", "contract.md")
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#]*)(?:#[^)]*)?\)")
_COPYRIGHT = "Armlet's inference service for devices\nCopyright 2025 the authors of Armlet\nLicence: Apache-2.0\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a distribution wants it."""

    modules: str
    """The folder with the package ``armlet_runtime``."""
    init: str
    """The folder of the init scripts."""


DEBIAN = Layout(modules="/usr/lib/python3/dist-packages", init=f"{_DOCUMENT}/examples")
DEVICE = Layout(modules=PRIVATE, init="/etc/init.d")
"""Yocto, Buildroot, OpenWrt."""
OTHERS = Layout(modules=PRIVATE, init=f"{_DOCUMENT}/examples")
"""Distributions with systemd whose folders of modules have Python's version in their names."""
LAYOUTS: Mapping[PackageFormat, Layout] = {"deb": DEBIAN, "ipk": DEVICE, "rpm": OTHERS, "apk": OTHERS}


def contents(root: Path, layout: Layout, scratch: Path) -> dict[str, Entry]:
    """Absolute path on the device -> what is there; ``scratch`` takes files that are made.

    Args:
        root: the project.
    """
    command = scratch / "armlet-serve"
    own = layout.modules == PRIVATE
    terms, manual = scratch / "copyright", scratch / "armlet-serve.1.gz"
    terms.write_text(_COPYRIGHT + (root / "LICENSE").read_text(encoding="utf-8"), encoding="utf-8")
    manual.write_bytes(compressed((root / "docs/armlet-serve.1").read_text(encoding="utf-8")))
    command.write_text(_COMMAND.format(insert=_INSERT if own else ""), encoding="utf-8")
    device = root / "device"
    fixed = {
        "/usr/bin/armlet-serve": Entry(source=command, mode=0o755),
        "/usr/lib/systemd/system/armlet-serve.service": Entry(source=device / "systemd/armlet-serve.service"),
        f"{_DOCUMENT}/examples/network.conf": Entry(source=device / "systemd/armlet-serve.service.d/network.conf"),
        **{f"{layout.init}/{name}": Entry(source=device / "init" / name, mode=0o755) for name in _SCRIPTS},
        "/etc/armlet/device.conf": Entry(source=device / "etc/device.conf", keep=True),
        "/etc/armlet/keys": Entry(source=None, mode=0o755),
        "/usr/lib/armlet/models": Entry(source=None, mode=0o755),
        **{f"{_DOCUMENT}/{name}": Entry(source=_page(root / "docs" / name, scratch)) for name in _PAGES},
        f"{_DOCUMENT}/copyright": Entry(source=terms),
        "/usr/share/man/man1/armlet-serve.1.gz": Entry(source=manual),
    }
    places = {f"{layout.modules}/{path.relative_to(device).as_posix()}": path for path in modules(device)}
    return {**fixed, **{place: Entry(source=path) for place, path in places.items()}}


def _page(source: Path, scratch: Path) -> Path:
    """A page without its links to what does not come with it; their words stay."""
    page = scratch / source.name
    text = source.read_text(encoding="utf-8")
    page.write_text(_LINK.sub(lambda link: link[0] if link[2] in _PAGES else link[1], text), encoding="utf-8")
    return page


def modules(device: Path) -> list[Path]:
    """The files of the package ``armlet_runtime``, none that Python made of them."""
    package = device / "armlet_runtime"
    return sorted(path for path in package.rglob("*") if path.suffix == ".py" or path.name == "py.typed")
