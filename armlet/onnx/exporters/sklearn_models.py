"""scikit-learn: a pickle or joblib file of an estimator or a pipeline."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

_TYPES = {
    "float32": "FloatTensorType",
    "float64": "DoubleTensorType",
    "int64": "Int64TensorType",
    "int32": "Int32TensorType",
    "bool": "BooleanTensorType",
    "string": "StringTensorType",
}
_ML_OPSET = 3
_SCORES = ("predict_proba", "decision_function", "transform")


def load(request: dict[str, Any], refuse: Any) -> dict[str, Any]:
    if not request["trust"]:
        refuse("is a pickle, and unpickling runs whatever code is in it", "say that you trust it: --trust")
    numpy = importlib.import_module("numpy")
    base = importlib.import_module("sklearn.base")
    version = importlib.import_module("sklearn.exceptions").InconsistentVersionWarning
    # Classes of the caller's own code.
    sys.path.insert(0, request["folder"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", version)
        model = importlib.import_module("joblib").load(str(Path(request["folder"], request["source"])))
    if not isinstance(model, base.BaseEstimator):
        refuse(f"holds a {type(model).__name__} and no estimator of scikit-learn", "dump the fitted estimator")
    specs = request["inputs"] or [_input(model, refuse)]
    unknown = [spec["dtype"] for spec in specs if spec["dtype"] not in _TYPES]
    if unknown:
        refuse(f"skl2onnx has no input of {unknown[0]}", "it has: {}".format(", ".join(sorted(_TYPES))))
    old = sorted(
        {str(getattr(entry.message, "original_sklearn_version", "?")) for entry in caught if entry.category is version}
    )
    notes = ["was made with scikit-learn {}, and is read by another version".format(", ".join(old))] if old else []
    return {
        "inputs": specs,
        "notes": notes,
        "run": lambda arrays: _run(numpy, base, model, specs, arrays),
        "export": lambda path, _fixed: _export(base, model, specs, path, request, refuse),
    }


def _input(model: Any, refuse: Any) -> dict[str, Any]:
    count = getattr(model, "n_features_in_", None)
    if count is None:
        refuse("does not say how many features it takes", "is it fitted? else give --input <name>=1,<features>")
    return {"name": "input", "shape": [1, int(count or 0)], "dtype": "float32"}


def _table(numpy: Any, specs: list[dict[str, Any]], arrays: list[Any]) -> Any:
    """What the estimator is called with: the one array, or a frame of columns named as the inputs are."""
    if len(specs) == 1:
        return arrays[0]
    pandas = importlib.import_module("pandas")
    return pandas.DataFrame(
        {spec["name"]: numpy.asarray(array)[:, 0] for spec, array in zip(specs, arrays, strict=True)}
    )


def _run(numpy: Any, base: Any, model: Any, specs: list[dict[str, Any]], arrays: list[Any]) -> list[Any]:
    """The outputs in skl2onnx's order: what is predicted first, then how sure the estimator is."""
    # Estimators are fitted in double precision, and some take nothing else.
    table = _table(numpy, specs, [array.astype("float64") if array.dtype.kind == "f" else array for array in arrays])
    with warnings.catch_warnings():
        # A model fitted on a frame tells that it gets an array.
        warnings.simplefilter("ignore")
        if not hasattr(model, "predict"):
            found = [model.transform(table)]
        elif base.is_regressor(model):
            found = [model.predict(table)]
        else:
            scores = next((name for name in _SCORES if hasattr(model, name)), None)
            found = [model.predict(table), *([getattr(model, scores)(table)] if scores else [])]
    return [numpy.asarray(array.todense() if hasattr(array, "todense") else array) for array in found]


def _export(base: Any, model: Any, specs: Any, path: str, request: dict[str, Any], refuse: Any) -> list[str]:
    types = importlib.import_module("skl2onnx.common.data_types")
    converter = importlib.import_module("skl2onnx")
    exceptions = importlib.import_module("skl2onnx.common.exceptions")
    initial = [(spec["name"], getattr(types, _TYPES[spec["dtype"]])([None, *spec["shape"][1:]])) for spec in specs]
    # Without zipmap: a table of probabilities, and no list of dictionaries.
    options = {id(model): {"zipmap": False}} if base.is_classifier(model) and hasattr(model, "predict_proba") else None
    opsets = {"": request["opset"], "ai.onnx.ml": _ML_OPSET}
    try:
        made = converter.convert_sklearn(model, initial_types=initial, options=options, target_opset=opsets)
    except (exceptions.MissingShapeCalculator, exceptions.MissingConverter) as error:
        first = str(error).strip().splitlines()[0]
        refuse(f"skl2onnx cannot convert it: {first}", "replace that step, or register a converter for it")
    Path(path).write_bytes(made.SerializeToString())
    return []
