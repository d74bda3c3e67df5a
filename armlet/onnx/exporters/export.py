"""Exports a model and runs it: ``python export.py REQUEST.json``, answered in the file that the request names.

The request: ``framework`` (torch, tf, sklearn), ``kind``, ``source`` (a path, or what a factory is named by),
``folder`` (the caller's), ``inputs`` ([{name, shape, dtype}], may be empty), ``samples`` ([{name, file}], .npz files),
``opset``, ``trust``, ``seed``, ``out`` (folder for ``model.onnx`` and ``run-<n>.npz``), ``reply`` (file).
The reply: ``inputs``, ``outputs`` (names; null: those in the model), ``runs`` ([{name, file}]; arrays ``i0`` and on,
``o0`` and on, in their order), ``notes``, ``tools`` (package -> version), ``files`` (of the user's code); or ``error``
{what, hint, at, trace}.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

_RANDOM_SAMPLES = 3
_OTHER_BATCH = 3
_OLDEST_PYTHON = (3, 10)
_WORDS = ("alpha", "beta", "gamma", "delta")
_TOOLS = ("onnx", "onnxscript", "torch", "tensorflow", "tensorflow-cpu", "keras", "tf2onnx", "scikit-learn", "skl2onnx")


class Refused(Exception):
    """What the user can mend: a sentence and a remedy."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def refuse(what: str, hint: str) -> NoReturn:
    raise Refused(what, hint)


def main(request_file: str) -> None:
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    stage = ["loading"]
    try:
        reply = export(request, stage)
    except Refused as refused:
        reply = {"error": {"what": refused.what, "hint": refused.hint, "at": "", "trace": ""}}
    except (Exception, SystemExit, RecursionError) as error:
        reply = {"error": _told(error, stage[0], request)}
    part = Path(request["reply"] + ".part")
    part.write_text(json.dumps(reply), encoding="utf-8")
    part.replace(request["reply"])


def export(request: dict[str, Any], stage: list[str]) -> dict[str, Any]:
    if sys.version_info < _OLDEST_PYTHON:
        refuse(f"{sys.executable} is Python {platform.python_version()}", "use Python 3.10 or newer")
    here = str(Path(__file__).parent)
    sys.path.insert(0, here)
    numpy = importlib.import_module("numpy")
    framework = importlib.import_module(request["framework"] + "_models")
    sys.path.remove(here)
    loaded = framework.load(request, refuse)
    stage[0] = "running"
    samples = [*_random(numpy, loaded["inputs"], request["seed"]), *_given(numpy, loaded["inputs"], request["samples"])]
    notes = [*loaded["notes"]]
    runs = []
    for number, (name, arrays, must) in enumerate(samples):
        try:
            outputs = loaded["run"](arrays)
        except Exception:
            if must:
                raise
            loaded["fixed_batch"] = True
            continue
        file = f"run-{number}.npz"
        runs.append({"name": name, "file": file})
        # Copies: what a framework hands out may be memory that its next run writes to.
        kept = {f"i{place}": array for place, array in enumerate(arrays)}
        kept.update({f"o{place}": numpy.array(array) for place, array in enumerate(outputs)})
        numpy.savez(str(Path(request["out"], file)), **kept)
    stage[0] = "exporting"
    notes += loaded["export"](str(Path(request["out"], "model.onnx")), bool(loaded.get("fixed_batch")))
    return {
        "inputs": [spec["name"] for spec in loaded["inputs"]],
        "outputs": loaded.get("outputs"),
        "runs": runs,
        "notes": notes,
        "tools": _tools(),
        "files": _files_of(here),
    }


def _random(numpy: Any, specs: list[dict[str, Any]], seed: int) -> list[tuple[str, list[Any], bool]]:
    """(name, arrays, whether the model must take them): some as asked for, and one of another batch size."""
    made = []
    for number in range(_RANDOM_SAMPLES):
        generator = numpy.random.default_rng([seed, number])
        arrays = [_numbers(numpy, generator, spec["shape"], spec["dtype"]) for spec in specs]
        made.append((f"random numbers {number + 1}", arrays, True))
    if specs and all(spec["shape"] for spec in specs):
        generator = numpy.random.default_rng([seed, _RANDOM_SAMPLES])
        size = _OTHER_BATCH + (specs[0]["shape"][0] == _OTHER_BATCH)
        arrays = [_numbers(numpy, generator, [size, *spec["shape"][1:]], spec["dtype"]) for spec in specs]
        made.append((f"random numbers, batch of {size}", arrays, False))
    return made


def _numbers(numpy: Any, generator: Any, shape: list[int], dtype: str) -> Any:
    if dtype == "string":
        return numpy.asarray(_WORDS)[generator.integers(0, len(_WORDS), shape)]
    kind = numpy.dtype(dtype)
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(kind)
    if kind.kind in "iu" and kind.itemsize == 1:
        bounds = numpy.iinfo(kind)
        return generator.integers(bounds.min, bounds.max, shape, dtype=kind, endpoint=True)
    # Wider whole numbers are an index, as a rule, and few are safe.
    return generator.integers(0, 2, shape).astype(kind)


def _given(numpy: Any, specs: list[dict[str, Any]], samples: list[dict[str, str]]) -> list[tuple[str, list[Any], bool]]:
    names = [spec["name"] for spec in specs]
    given = []
    for sample in samples:
        with numpy.load(sample["file"], allow_pickle=False) as archive:
            # "expected" is the user's label, and no input.
            arrays = {name: archive[name] for name in archive.files if name != "expected"}
        if sorted(arrays) != sorted(names):
            refuse(
                "the sample {} has the inputs {}, and the model asks for {}".format(
                    sample["name"], ", ".join(sorted(arrays)) or "none", ", ".join(sorted(names))
                ),
                "write it with numpy.savez(path, <input name>=<array>, ...)",
            )
        for spec in specs:
            array = arrays[spec["name"]]
            fits = array.dtype.kind == "U" if spec["dtype"] == "string" else array.dtype == numpy.dtype(spec["dtype"])
            if not fits or array.ndim != len(spec["shape"]):
                refuse(
                    'the sample {}: its "{}" is {} {}, and the model takes {} of {} dimensions'.format(
                        sample["name"],
                        spec["name"],
                        array.dtype,
                        "x".join(map(str, array.shape)),
                        spec["dtype"],
                        len(spec["shape"]),
                    ),
                    "write it in the model's own type and shape",
                )
        given.append((sample["name"], [arrays[name] for name in names], True))
    return given


def _tools() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _TOOLS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _files_of(here: str) -> list[str]:
    """Source files that were imported and belong to nobody's package: the user's own code."""
    files = {Path(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    not_theirs = [Path(here), Path(sys.prefix), Path(sys.base_prefix)]
    return sorted(
        str(file)
        for file in files
        if file.suffix == ".py"
        and file.is_absolute()
        and "site-packages" not in file.parts
        and not any(place in file.parents for place in not_theirs)
    )


def _told(error: BaseException, stage: str, request: dict[str, Any]) -> dict[str, str]:
    """An error that somebody else's code raised: what it says, and where in the user's own code that was."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    theirs = [
        f"{frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(request["folder"] + os.sep) and not frame.filename.startswith(sys.prefix)
    ]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    name = type(error).__name__
    told = {"at": theirs[-1] if theirs else "", "trace": trace}
    if isinstance(error, ImportError):
        missing = error.name or ""
        hint = "name the Python that has what the model needs: --python /path/to/venv/bin/python"
        if missing and "No module named" in str(error):
            return {**told, "what": f"{sys.executable} has no module {missing}", "hint": hint}
        return {**told, "what": f"a library does not load: {lines[0]}", "hint": hint}
    hints = {
        "loading": "mend the source, or name the Python with the packages it was made with: --python",
        "running": "the model must run on its own inputs: is --input right in names, shapes and types?",
        "exporting": "the exporter cannot express this model: change that part of it, or export it yourself as .onnx",
    }
    return {**told, "what": f"{stage} it failed: {name}: {lines[0]}", "hint": hints[stage]}


if __name__ == "__main__":
    main(sys.argv[1])
