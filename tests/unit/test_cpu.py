from __future__ import annotations

import pytest

from armlet.spec.cpu import CPUS, runs_on

A53, A76, A7 = (CPUS[name].march for name in ("cortex-a53", "cortex-a76", "cortex-a7"))


@pytest.mark.parametrize(
    ("march", "baseline", "expected"),
    [
        (A53, A53, True),
        ("armv8-a", A53, True),
        ("armv8.2-a+fp16", A53, False),
        ("armv8-a+dotprod", A53, False),
        ("armv8.2-a+fp16", A76, True),
        (A53, A76, True),
        ("armv8.2-a+i8mm", A76, False),
        ("armv7-a", A7, True),
        ("armv8.2-a+dotprod+fp16", A7, False),
        ("native", A76, False),
    ],
)
def test_code_runs_where_version_and_extensions_are_no_more_than_the_baselines(
    march: str, baseline: str, expected: bool
) -> None:
    assert runs_on(march, baseline) is expected
