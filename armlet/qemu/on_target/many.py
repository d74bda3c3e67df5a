"""Runs many models one after the other, as :mod:`armlet_runtime.smoke` runs one: ``python3 many.py JOBS.json OUT``.

``JOBS.json`` is a list of jobs, paths relative to its folder. ``OUT`` gets one JSON line per job that came to an end: a
job that ends the whole program shows as the first one that is missing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from armlet_runtime import ort, smoke


def main(jobs: Path, out: Path) -> None:
    with out.open("a", encoding="utf-8") as lines:
        for job in json.loads(jobs.read_text(encoding="utf-8")):
            try:
                report = smoke.run(job, jobs.parent)
            except ort.OrtError as error:
                report = {"error": error.message}
            report.pop("results", None)
            lines.write(json.dumps({"job": job["model"], **report}) + "\n")
            lines.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
