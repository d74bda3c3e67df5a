"""Every provider of the table, wherever else it must have a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from armlet_runtime.ort import _providers

from armlet.onnx.levels import LEVELS
from armlet.providers import PROVIDERS, ProviderRow
from armlet.spec.cpu import CPUS, Arch
from armlet.spec.sku import BUILDABLE_PROVIDERS, Provider

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
ROWS = [pytest.param(name, PROVIDERS[name], id=name) for name in get_args(Provider)]


def test_the_table_has_all_and_nothing_else() -> None:
    assert set(PROVIDERS) == set(get_args(Provider)) == set(BUILDABLE_PROVIDERS) == set(LEVELS)


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_every_architecture_is_built_for_or_has_a_reason(name: Provider, row: ProviderRow) -> None:
    assert set(get_args(Arch)) == BUILDABLE_PROVIDERS[name] ^ set(row.not_on)
    assert all(reason and not reason.endswith(".") for reason in (*row.not_on.values(), *row.not_in.values()))


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_the_device_knows_it_by_the_same_name(name: Provider, row: ProviderRow) -> None:
    assert _providers.PROVIDERS[name].name == row.ort_name


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_it_is_documented(name: Provider, row: ProviderRow) -> None:
    assert f"\n| `{name}` | " in DOCS
    for sdk in row.sdks:
        (line,) = re.findall(rf"^\| `{name}` \| `{sdk.name}` \| .*$", DOCS, re.MULTILINE)
        assert f"`{sdk.environment}`" in line
        assert all(f"`{path}`" in line for group in sdk.needs for path in group)


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_what_it_exports_has_a_place_to_be_defined(name: Provider, row: ProviderRow) -> None:
    assert bool(row.exports) == bool(row.exporting)
    for cpu in CPUS.values():
        assert all(isinstance(value, str) and value for value in row.definitions(cpu).values())


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_what_shares_the_cxx_runtime_asks_the_rootfs_for_it(name: Provider, row: ProviderRow) -> None:
    assert row.shared_cxx == ({"libstdc++.so.6", "libgcc_s.so.1"} <= row.rootfs)
    definitions = row.definitions(CPUS["cortex-a72"])
    assert row.shared_cxx == (definitions.get("onnxruntime_DISABLE_EXCEPTIONS") == "OFF")
