"""What the service is put together of, where that is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from armlet_runtime.serve.asking import Told, ask
from armlet_runtime.serve.config import ConfigError, parse
from armlet_runtime.serve.wiring import contract


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_neither_runtime_nor_library(tmp_path: Path, make: object) -> None:
    place = tmp_path / "runtime.json"
    assert callable(make)
    make(place)
    with pytest.raises(ConfigError, match=rf"device.conf:2: \[service\] {place}: it is no file"):
        contract(parse(f"[service]\nruntime = {place}"))
    assert ask(str(place)) == Told(problem=f"{place} is no file")
    with pytest.raises(ConfigError, match="No such file"):
        contract(parse(f"[service]\nruntime = {tmp_path}/none"))
