"""Everything over MQTT once more with paho-mqtt 1.6, which Debian 12 has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

OLD = "1.6.1"


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_the_same_with_paho_1_6(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, f"paho-mqtt=={OLD}"], check=True)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'device'}"}
    ask = "import paho.mqtt; print(paho.mqtt.__version__)"
    found = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == OLD
    names = ("test_mqtt.py", "test_mqtt_access.py", "test_mqtt_hostile.py")
    files = [str(ROOT / "tests" / "integration" / name) for name in names]
    # Its own warnings are no affair of ours.
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", *files]
    subprocess.run(tests, env=environment, cwd=ROOT, check=True)
