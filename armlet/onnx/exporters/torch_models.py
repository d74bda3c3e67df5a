"""PyTorch: a factory of a module, a TorchScript file, an exported program (.pt2)."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import os
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

_NEW_EXPORTER = 18
"""The oldest opset that the new exporter writes of itself."""
_TYPES = {
    **{name: name for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")},
}


def load(request: dict[str, Any], refuse: Any) -> dict[str, Any]:
    if not request["trust"]:
        # Archives may hold pickles in places where nobody looks for them.
        os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    warnings.simplefilter("ignore")
    torch = _torch()
    torch.manual_seed(request["seed"])
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    module, example = _LOADERS[request["kind"]](torch, request, refuse)
    specs, arguments = _inputs(torch, module, example, request, refuse)
    if hasattr(module, "eval") and not isinstance(module, torch.export.ExportedProgram):
        module.eval()
    return {
        "inputs": specs,
        "notes": [],
        "run": lambda arrays: _run(torch, module, [torch.from_numpy(array) for array in arrays], refuse),
        "export": lambda path, fixed: _export(torch, module, specs, arguments, path, fixed, request),
    }


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except OSError as error:  # A library that torch itself loads.
        raise ImportError(str(error)) from error


def _of_factory(torch: Any, request: dict[str, Any], refuse: Any) -> tuple[Any, Any]:
    place, _, name = request["source"].rpartition(":")
    if place.endswith(".py"):
        file = Path(request["folder"], place)
        sys.path.insert(0, str(file.parent))
        spec = importlib.util.spec_from_file_location(file.stem, str(file))
        assert spec is not None
        assert spec.loader is not None
        code = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = code
        spec.loader.exec_module(code)
    else:
        sys.path.insert(0, request["folder"])
        code = importlib.import_module(place)
    factory = getattr(code, name, None)
    if not callable(factory):
        known = [key for key, value in vars(code).items() if callable(value) and not key.startswith("_")]
        refuse(f'has no function "{name}"', "it has: {}".format(", ".join(sorted(known)) or "none"))
    assert factory is not None
    made = factory()
    module, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, torch.nn.Module):
        what = f"gives a {type(module).__name__} and no torch.nn.Module"
        refuse(what, "return the module, or (module, example inputs)")
    return module, example


def _of_torchscript(torch: Any, request: dict[str, Any], refuse: Any) -> tuple[Any, Any]:
    path = Path(request["folder"], request["source"])
    names = zipfile.ZipFile(path).namelist() if zipfile.is_zipfile(path) else []
    if any("/code/" in name for name in names):
        return torch.jit.load(str(path), map_location="cpu"), None
    if not request["trust"]:
        refuse(
            "is no TorchScript: it is a pickle, and unpickling runs whatever code is in it",
            "save it with torch.jit.save or torch.export.save, name its factory (module:factory), "
            "or say that you trust it: --trust",
        )
    sys.path.insert(0, request["folder"])
    module = torch.load(str(path), map_location="cpu", weights_only=False)
    if not isinstance(module, torch.nn.Module):
        what = f"holds a {type(module).__name__}: weights without the model"
        refuse(what, "write a function that makes the module and loads these into it, and name it: module:factory")
    return module, None


def _of_program(torch: Any, request: dict[str, Any], refuse: Any) -> tuple[Any, Any]:
    program = torch.export.load(str(Path(request["folder"], request["source"])))
    arguments, keywords = program.example_inputs or ((), {})
    if keywords:
        refuse("takes keyword arguments, which ONNX has not", "export it with positional arguments alone")
    return program, arguments


_LOADERS = {"torch": _of_factory, "torchscript": _of_torchscript, "pt2": _of_program}


def _inputs(torch: Any, module: Any, example: Any, request: dict[str, Any], refuse: Any) -> tuple[list[Any], list[Any]]:
    """What it takes ({name, shape, dtype}) and tensors to export it with."""
    if request["inputs"]:
        unknown = [spec["dtype"] for spec in request["inputs"] if spec["dtype"] not in _TYPES]
        if unknown:
            refuse(f"PyTorch has no tensors of {unknown[0]}", "it has: {}".format(", ".join(sorted(_TYPES))))
        specs = request["inputs"]
        tensors = [torch.ones(spec["shape"], dtype=getattr(torch, spec["dtype"])) for spec in specs]
        return specs, tensors
    if example is None:
        what = "does not say what it takes"
        refuse(what, "give --input <name>=1,3,224,224, or have the factory return (module, example inputs)")
    given = example if isinstance(example, (tuple, list)) else [example]
    names = [*example] if isinstance(example, dict) else _names(module, len(given))
    tensors = [*(example.values() if isinstance(example, dict) else given)]
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        refuse("its example inputs are no tensors", "give one tensor, a tuple of tensors, or a dict: name -> tensor")
    specs = [
        {"name": name, "shape": list(tensor.shape), "dtype": str(tensor.dtype).rpartition(".")[2]}
        for name, tensor in zip(names, tensors, strict=True)
    ]
    return specs, [tensor.detach().cpu() for tensor in tensors]


def _names(module: Any, count: int) -> list[str]:
    try:
        known = [*inspect.signature(getattr(module, "forward", module)).parameters.values()]
        names = [entry.name for entry in known if entry.kind is entry.POSITIONAL_OR_KEYWORD][:count]
    except (TypeError, ValueError):
        names = []
    named = len(names) == count and "args" not in names
    return names if named else (["input"] if count == 1 else [f"input_{n}" for n in range(count)])


def _run(torch: Any, module: Any, tensors: list[Any], refuse: Any) -> list[Any]:
    called = module.module() if isinstance(module, torch.export.ExportedProgram) else module
    with torch.no_grad():
        return [tensor.detach().cpu().numpy() for tensor in _flat(torch, called(*tensors), refuse)]


def _flat(torch: Any, value: Any, refuse: Any) -> list[Any]:
    """The tensors of an output, in the order in which the exporters list them."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _flat(torch, part, refuse)]
    refuse(f"gives a {type(value).__name__}, which is no tensor", "have forward return tensors alone")
    return []


def _export(
    torch: Any, module: Any, specs: Any, arguments: Any, path: str, fixed: bool, request: dict[str, Any]
) -> list[str]:
    names = [spec["name"] for spec in specs]
    common = {"input_names": names, "opset_version": request["opset"]}
    if isinstance(module, torch.export.ExportedProgram):
        torch.onnx.export(module, (), path, dynamo=True, external_data=False, **common)
        return []
    # A size of 1 would be taken for a constant.
    doubled = [torch.cat([tensor, tensor]) if tensor.dim() and not fixed else tensor for tensor in arguments]
    notes: list[str] = []
    if not isinstance(module, torch.jit.ScriptModule):
        for free in (True, False) if not fixed else (False,):
            try:
                _newly(torch, module, doubled if free else arguments, path, free, common)
                return notes
            except Exception as error:  # Whatever the exporter meets in a model.
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        notes.append(f"PyTorch's new exporter cannot take it, the old one did ({reason[:120]})")
    free = not fixed
    axes = {"dynamic_axes": {name: {0: "batch"} for name in names}} if free else {}
    # It would number them.
    count = len(_run(torch, module, arguments, None))
    common["output_names"] = ["output"] if count == 1 else [f"output_{number}" for number in range(count)]
    torch.onnx.export(
        module, tuple(doubled if free else arguments), path, dynamo=False, do_constant_folding=True, **common, **axes
    )
    return notes


def _newly(torch: Any, module: Any, tensors: list[Any], path: str, free: bool, common: dict[str, Any]) -> None:
    shapes = tuple({0: torch.export.Dim("batch")} if tensor.dim() else None for tensor in tensors)
    # The exporter leaves marks on what it traces.
    torch.onnx.export(
        copy.deepcopy(module),
        tuple(tensors),
        path,
        dynamo=True,
        external_data=False,
        verbose=False,
        dynamic_shapes=shapes if free else None,
        **common,
    )
