"""What the kernel tells of memory, heat and clocks; nothing where it does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Mapping

from .exposition import Family, gauge

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Memory of a process that is in RAM; None when it is gone or hidden."""
    words = _read(proc / str(pid) / "statm").split()
    return int(words[1]) * _PAGE if len(words) > 1 else None


def temperatures(sys: Path = Path("/sys")) -> dict[str, float]:
    """Thermal zone (``thermal_zone0 cpu-thermal``) -> degrees Celsius."""
    found = {}
    for zone in sorted((sys / "class" / "thermal").glob("thermal_zone*")):
        value = _number(zone / "temp")
        if value is not None:
            found[f"{zone.name} {_read(zone / 'type')}".strip()] = value / 1e3
    return found


def frequencies(sys: Path = Path("/sys")) -> dict[str, float]:
    """Core (``cpu0``) -> hertz now."""
    found = {}
    for core in sorted((sys / "devices" / "system" / "cpu").glob("cpu[0-9]*")):
        value = _number(core / "cpufreq" / "scaling_cur_freq")
        if value is not None:
            found[core.name] = value * 1e3
    return found


def families(processes: Mapping[str, int], proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> list[Family]:
    """Metrics of the processes (name -> id) and of the machine."""
    resident = {name: resident_bytes(pid, proc) for name, pid in processes.items()}
    return [
        gauge(
            "armlet_process_resident_bytes",
            "Memory in RAM of the service and of each model's worker.",
            {(("process", name),): size for name, size in resident.items() if size is not None},
        ),
        gauge(
            "armlet_temperature_celsius",
            "Of each thermal zone.",
            {(("zone", zone),): value for zone, value in temperatures(sys).items()},
        ),
        gauge(
            "armlet_cpu_frequency_hertz",
            "Clock of each core now.",
            {(("cpu", core),): value for core, value in frequencies(sys).items()},
        ),
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> float | None:
    try:
        return float(_read(path))
    except ValueError:
        return None
