"""Coverage-guided fuzzing of what clients send; atheris must be installed for it (fuzz/service_bodies.py says how)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

RUNS = 200_000
SEEDS = """
import pathlib, sys
from fuzz.service_bodies import seeds
for number, seed in enumerate(seeds()):
    pathlib.Path(sys.argv[1], str(number)).write_bytes(seed)
"""


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_no_input_is_a_finding(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'device'}"}
    subprocess.run([sys.executable, "-c", SEEDS, str(corpus)], env=environment, check=True)
    run = subprocess.run(
        [sys.executable, "-m", "fuzz.service_bodies", f"-runs={RUNS}", f"-artifact_prefix={tmp_path}/", str(corpus)],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert re.search(rf"Done {RUNS} runs", run.stderr)
