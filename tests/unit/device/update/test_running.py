"""Updates as the device's file wants them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from armlet_runtime.serve import checking, payloads
from armlet_runtime.serve.config import ConfigError, DeviceConfig, parse
from armlet_runtime.serve.exposition import Family
from armlet_runtime.serve.finding import INPUT
from armlet_runtime.serve.metrics import Metrics
from armlet_runtime.update.running import Updates, problems, unusable
from armlet_runtime.update.settings import Updates as Settings

from tests.fakes import handmade
from tests.fakes.updating import Updated, release

pytestmark = pytest.mark.usefixtures("default_library")


def test_the_section() -> None:
    text = "[updates]\nstore = /var/lib/armlet\nswap = serial\nprobation_seconds = 10\nmax_slowdown = 0\n"
    found = parse(text).updates
    assert found == Settings(Path("/var/lib/armlet"), swap="serial", probation_seconds=10, max_slowdown=0)
    assert parse("").updates == Settings()
    with pytest.raises(ConfigError) as caught:
        parse("[updates]\nstore = here\nswap = hot\nmax_error_rate = 2\nstores = /x\n")
    assert [problem.partition(" ")[0] for problem in caught.value.problems] == [
        f"device.conf:{line}:" for line in (2, 3, 4, 5)
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[service]\nkeys =\n[updates]\nstore = {root}/store\n", "needs [service] keys"),
        ("[service]\nkeys = {root}\n[updates]\nstore = {root}/none/store\n", "there is no folder {root}/none"),
        ("[service]\nkeys = {root}\n[updates]\nstore = {root}/store\nca = {root}/none\n", "ca, cert, key: "),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, text: str, told: str) -> None:
    config = parse(text.format(root=tmp_path))
    (found,) = problems(config)
    assert told.format(root=tmp_path) in found
    assert found.startswith("device.conf:")
    (finding,) = checking._of_updates(config)
    # It costs updates, and nothing else.
    assert (finding.what, finding.kind, finding.stops) == (found, INPUT, False)


def test_unsigned_payloads_do_not_come_over_the_network(tmp_path: Path) -> None:
    config = parse(f"[service]\nkeys =\n[updates]\nstore = {tmp_path}/store\n")
    assert Updates(config, factory(tmp_path)).store.readonly == unusable(config)[0]
    assert not (tmp_path / "store").exists()


def factory(root: Path) -> payloads.FactorySet:
    return payloads.FactorySet(root / "factory", handmade.verify_hashes, lambda _: ())


def test_without_updates_nothing_is_kept(tmp_path: Path) -> None:
    updates = Updates(DeviceConfig(), factory(tmp_path))
    assert updates.store.readonly == "this device has no [updates] store"
    updates.stop(0.0)
    updates.close()


def samples(metrics: Metrics, name: str) -> dict[Any, float]:
    (found,) = (family for family in metrics.families() if family.name == name)
    return {tuple(value for _, value in labels): value for _, labels, value in found.samples}


def test_metrics(tmp_path: Path) -> None:
    with Updated(tmp_path).running() as device:
        device.update(release(2))
        device.update(release(3, right=False))
    assert samples(device.metrics, "armlet_update_state") == {("add", "FAILED"): 1.0}
    assert samples(device.metrics, "armlet_updates_total") == {("add", "UPDATED", ""): 1, ("add", "FAILED", "trial"): 1}
    device.metrics.more = lambda: [Family("others", "gauge", "", [("", (), 7.0)])]
    assert samples(device.metrics, "others") == {(): 7.0}
