"""Updates where /sys cannot be written, or holds nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.test_update_kills import Killed

AS_ROOT = () if os.geteuid() == 0 else ("--map-root-user",)


@pytest.mark.parametrize(
    "mounted",
    [
        "mount -o bind,ro /sys /sys && findmnt -nO ro /sys",
        'mount -t tmpfs -o ro none /sys && [ -z "$(ls /sys)" ]',
    ],
    ids=["read-only", "empty"],
)
def test_updates_go_on(tmp_path: Path, mounted: str) -> None:
    shell = f'{mounted} >&2 || exit 1; exec "$@"'
    device = Killed(tmp_path, 6, ("unshare", "--mount", *AS_ROOT, "sh", "-c", shell, "sh"))
    # It ends with an update that serves.
    device.run(0)
