"""Runs a command and writes what it cost: ``measured.py <report.json> <command...>``. Runs inside the container."""

import json
import os
import sys

pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
with open(sys.argv[1], "w") as stream:
    json.dump({"cpu_seconds": round(used.ru_utime + used.ru_stime, 1), "peak_rss_kib": used.ru_maxrss}, stream)
sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
