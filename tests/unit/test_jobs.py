from __future__ import annotations

import pytest

from armlet.jobs import BYTES_PER_JOB, jobs


@pytest.mark.parametrize(
    ("cores", "gib", "expected"), [(2, 24, 2), (16, 10, 4), (4, 1, 1), (1, 64, 1), (0, 64, 1)], ids=str
)
def test_jobs_come_from_cores_and_memory(cores: int, gib: int, expected: int) -> None:
    assert jobs(cores, gib << 30) == expected
    assert BYTES_PER_JOB * jobs(cores, gib << 30) <= max(gib << 30, BYTES_PER_JOB)
