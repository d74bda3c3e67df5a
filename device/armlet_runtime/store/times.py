"""Files of a time that cannot be told.

Where the C library counts seconds in 32 bits, as on Debian 12's armhf, whatever was written while the clock was past
January 2038 cannot be looked at any more, also once the clock is right again.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from armlet_runtime.store.disk import Disk


def mend(disk: Disk, path: Path) -> None:
    """Gives such files and folders another time. Raises OSError."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.EOVERFLOW:
            raise
        disk.age(path)
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            mend(disk, inner)
