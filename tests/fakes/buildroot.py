"""What of Buildroot a tree's files refer to, as little as they need: symbols of Kconfig, an infrastructure of make."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from unittest.mock import patch

import kconfiglib

_SYMBOLS = (
    *("BR2_aarch64", "BR2_arm", "BR2_xgene1", "BR2_ARM_EABIHF", "BR2_ARM_CPU_HAS_NEON", "BR2_ARM_CPU_HAS_VFPV4"),
    *("BR2_ARM_CPU_HAS_FP_ARMV8", "BR2_ARM_CPU_ARMV9A", "BR2_TOOLCHAIN_USES_GLIBC", "BR2_TOOLCHAIN_HAS_THREADS"),
    *("BR2_cortex_a55", "BR2_cortex_a75", "BR2_cortex_a75_a55", "BR2_cortex_a76", "BR2_cortex_a76_a55"),
    *("BR2_cortex_a78", "BR2_neoverse_n1", "BR2_neoverse_v1"),
    *("BR2_INSTALL_LIBSTDCPP", "BR2_STATIC_LIBS", "BR2_USE_WCHAR", "BR2_USE_MMU"),
    *("BR2_PACKAGE_PYTHON3", "BR2_PACKAGE_PYTHON3_SSL", "BR2_PACKAGE_PYTHON3_UNICODEDATA", "BR2_PACKAGE_PYTHON3_ZLIB"),
    *("BR2_PACKAGE_PYTHON_PAHO_MQTT", "BR2_PACKAGE_PYTHON_PYNACL"),
)
GLIBC = (
    *("BR2_TOOLCHAIN_USES_GLIBC", "BR2_TOOLCHAIN_HAS_THREADS", "BR2_INSTALL_LIBSTDCPP", "BR2_USE_WCHAR"),
    "BR2_USE_MMU",
)
"""What a usual toolchain has."""
A53 = ("BR2_aarch64", *GLIBC)
A7 = ("BR2_arm", "BR2_ARM_EABIHF", "BR2_ARM_CPU_HAS_NEON", "BR2_ARM_CPU_HAS_VFPV4", *GLIBC)

# The names are Buildroot's (docs/manual, package/pkg-generic.mk); what a real one does with them, the marker
# "buildroot" tries.
_INFRASTRUCTURE = """\
qstrip = $(strip $(subst ",,$(1)))
define sep


endef
pkgdir = $(dir $(lastword $(filter %.mk,$(MAKEFILE_LIST))))
UPPER = $(shell echo $(1) | tr 'a-z.-' 'A-Z__')
pkgname = $(notdir $(patsubst %/,%,$(pkgdir)))
define inner
$(2)_PKGDIR := $(3)
$(2)_DL_DIR := $(BR2_EXTERNAL_ARMLET_PATH)/sources
.PHONY: $(1)-install $(1)-told
$(1)-install: PKG = $(2)
$(1)-install:
	$$($(2)_EXTRACT_CMDS)
	$$($(2)_CONFIGURE_CMDS)
	$$($(2)_INSTALL_STAGING_CMDS)
	$$($(2)_INSTALL_TARGET_CMDS)
	$$($(2)_INSTALL_INIT_SYSV)
	$$($(2)_INSTALL_INIT_SYSTEMD)
$(1)-told:
	@echo 'VERSION $$($(2)_VERSION)'
	@echo 'SOURCE $$($(2)_SOURCE)'
	@echo 'SITE $$($(2)_SITE_METHOD) $$($(2)_SITE)'
	@echo 'LICENSE $$($(2)_LICENSE)'
	@echo 'FILES $$($(2)_LICENSE_FILES)'
	@echo 'DEPENDENCIES $$($(2)_DEPENDENCIES)'
endef
generic-package = $(call inner,$(pkgname),$(call UPPER,$(pkgname)),$(patsubst %/,%,$(pkgdir)))
INSTALL = install
TAR = tar
SED = sed -i -e
PYTHON3_VERSION_MAJOR = 3.12
"""


def kconfig(tree: Path, chosen: Iterable[str], folder: Path) -> kconfiglib.Kconfig:
    """The tree's symbols in a configuration where ``chosen`` are set."""
    top = folder / "Config.in"
    symbols = "".join(f'config {name}\n\tbool "{name}"\n\n' for name in _SYMBOLS)
    top.write_text(f'{symbols}source "$BR2_EXTERNAL_ARMLET_PATH/Config.in"\n')
    # What Buildroot's own makefiles set: its symbols have no prefix.
    with patch.dict(os.environ, {"BR2_EXTERNAL_ARMLET_PATH": str(tree), "CONFIG_": ""}):
        found = kconfiglib.Kconfig(str(top), warn_to_stderr=False)
    assert found.warnings == []
    for name in chosen:
        assert found.syms[name].set_value("y"), name
    return found


def make(tree: Path, target: str, folder: Path, symbols: Mapping[str, str], *, dry: bool = False) -> list[str]:
    """What make prints for a target of the stand-in."""
    settings = "".join(f"{name} = {value}\n" for name, value in symbols.items())
    places = f"BR2_EXTERNAL_ARMLET_PATH = {tree}\nTARGET_DIR = {folder}/target\nSTAGING_DIR = {folder}/staging\n"
    (folder / "Makefile").write_text(f"{places}{settings}{_INFRASTRUCTURE}include {tree}/external.mk\n")
    argv = ("make", "--no-print-directory", "-C", str(folder), *(("-n",) if dry else ()), target)
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()
