"""Runs a model on given inputs and tells what came of it: ``python3 -m armlet_runtime.smoke JOB.json``.

The job names the library, the model, the providers by preference and the samples; the report goes to
``--out``, or to standard output. Nothing but the standard library and :mod:`armlet_runtime.ort` is needed;
where NumPy is, inputs and results go through it.

Job: ``{"library": path, "model": path, "providers": [name], "runs": count, "samples": [{"name": text,
"inputs": [{"name": text, "dtype": NumPy's name, "shape": [int], "file": path of the raw elements}]}]}``; paths
are relative to the job's folder. ``"api"`` may name another module that has what is used of :mod:`armlet_runtime.ort`.

Exit code: 0 done, 2 a job that makes no sense, 6 ONNX Runtime refused the model or failed. The last two write
``{"error": {"kind", "code", "message"}}`` where the report would be.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from armlet_runtime import ort

SCHEMA = 1
_LEAST_FREE = 64 << 10
"""Bytes. With less, a profile that is cut short was so for want of room."""


def run(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The report on a job whose paths are relative to ``folder``.

    Every sample is run once with profiling, which names the provider of each node, then ``runs`` times
    without, which is what the latencies (milliseconds) are of. Raises :class:`armlet_runtime.ort.OrtError`,
    :class:`OSError` where a file cannot be read or the temporary folder is full, :class:`KeyError` where the job
    lacks a key.
    """
    api: Any = importlib.import_module(job.get("api", ort.__name__))
    library = api.load_library(folder / job["library"])
    samples = [(sample["name"], _feed(sample["inputs"], folder)) for sample in job["samples"]]
    with tempfile.TemporaryDirectory(prefix="armlet-profile-") as scratch:
        options = api.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(scratch, "profile"))
        started = time.perf_counter()
        with api.InferenceSession(folder / job["model"], options, job["providers"], library=library) as session:
            loaded = time.perf_counter() - started
            results = [{"sample": name, "outputs": _outputs(session, feed)} for name, feed in samples]
            rows = _profiled(api, session, scratch)
            latencies = _latencies(session, samples, job["runs"])
            providers = session.get_providers()
    return {
        "schema": SCHEMA,
        "ort_version": library.version,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "numpy": getattr(_numpy(), "__version__", None),
        "available_providers": api.get_available_providers(library),
        "session_providers": providers,
        "nodes": _nodes(rows),
        "results": results,
        "load_ms": round(loaded * 1e3, 3),
        "latency_ms": _statistics(latencies),
        "peak_rss_kib": _peak_rss_kib(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: returns its exit code."""
    parser = argparse.ArgumentParser(prog="armlet_runtime.smoke", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("job", type=Path, help="JSON file")
    parser.add_argument("--out", type=Path, help="where the report goes; standard output without it")
    chosen = parser.parse_args(arguments)
    try:
        report, code = run(json.loads(chosen.job.read_text(encoding="utf-8")), chosen.job.resolve().parent), 0
    except ort.OrtError as error:
        report, code = _failure(error, error.code.name, error.message), 6
    except (OSError, KeyError, ValueError) as error:
        report, code = _failure(error, "", str(error)), 2
    text = json.dumps(report, indent=1, sort_keys=True)
    if chosen.out is None:
        sys.stdout.write(text + "\n")
    else:
        part = chosen.out.with_name(chosen.out.name + ".part")
        part.write_text(text, encoding="utf-8")
        part.replace(chosen.out)
    return code


def _profiled(api: Any, session: Any, folder: str) -> Any:
    profile = session.end_profiling()
    try:
        return api.provider_of_each_node(profile)
    except ort.OrtError:
        # ONNX Runtime does not say that it could not write all of it, and later the room is there again.
        if shutil.disk_usage(folder).free < _LEAST_FREE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder) from None
        raise


def _failure(error: Exception, code: str, message: str) -> dict[str, Any]:
    return {"schema": SCHEMA, "error": {"kind": type(error).__name__, "code": code, "message": message}}


def _feed(inputs: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    feed: dict[str, Any] = {}
    numpy = _numpy()
    for entry in inputs:
        data = (folder / entry["file"]).read_bytes()
        if numpy is not None:
            feed[entry["name"]] = numpy.frombuffer(data, dtype=entry["dtype"]).reshape(entry["shape"])
        else:
            feed[entry["name"]] = ort.Tensor(data, entry["dtype"], entry["shape"])
    return feed


def _outputs(session: ort.InferenceSession, feed: dict[str, Any]) -> list[dict[str, Any]]:
    values = session.run(None, feed)
    return [
        {
            "name": output.name,
            "dtype": str(values[index].dtype),
            "shape": list(values[index].shape),
            "values": _flat(values[index].tolist()),
        }
        for index, output in enumerate(session.get_outputs())
    ]


def _flat(values: Any) -> list[Any]:
    return [leaf for item in values for leaf in _flat(item)] if isinstance(values, list) else [values]


def _nodes(rows: list[ort.NodeRun]) -> list[dict[str, Any]]:
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        node = found.setdefault(
            (row.index, row.node),
            {
                **{"name": row.node, "op_type": row.op_type, "provider": row.provider, "runs": 0, "us": 0},
                **{"output_bytes": row.output_bytes, "output_shapes": row.output_shapes},
            },
        )
        node["runs"] += 1
        node["us"] += row.duration_us
    return list(found.values())


def _latencies(session: ort.InferenceSession, samples: list[tuple[str, dict[str, Any]]], runs: int) -> list[float]:
    taken = []
    for _ in range(runs):
        for _, feed in samples:
            started = time.perf_counter()
            session.run(None, feed)
            taken.append((time.perf_counter() - started) * 1e3)
    return taken


def _statistics(taken: list[float]) -> dict[str, Any] | None:
    if not taken:
        return None
    ordered = sorted(taken)

    def quantile(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return {
        "runs": len(ordered),
        "min": round(ordered[0], 3),
        "p50": quantile(0.5),
        "p95": quantile(0.95),
        "max": round(ordered[-1], 3),
    }


def _peak_rss_kib() -> int | None:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return None


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


if __name__ == "__main__":
    sys.exit(main())
