"""TensorFlow: a Keras file (.keras, .h5) or the folder of a SavedModel."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

_SIGNATURE = "serving_default"


def load(request: dict[str, Any], refuse: Any) -> dict[str, Any]:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    tf = importlib.import_module("tensorflow")
    tf.get_logger().setLevel("ERROR")
    tf.random.set_seed(request["seed"])
    source = str(Path(request["folder"], request["source"]))
    call, signature, outputs = (_keras if request["kind"] == "keras" else _saved)(tf, source, request, refuse)
    specs = request["inputs"] or [_spec(tensor, refuse) for tensor in signature]
    if len(specs) != len(signature):
        what = f"takes {len(signature)} inputs, and {len(specs)} were given"
        refuse(what, "give --input for each of: {}".format(", ".join(tensor.name for tensor in signature)))
    free = [
        tf.TensorSpec(
            [size if place else None for place, size in enumerate(spec["shape"])], spec["dtype"], spec["name"]
        )
        for spec in specs
    ]
    return {
        "inputs": specs,
        "outputs": outputs,
        "notes": [],
        "run": lambda arrays: [
            value.numpy()
            for value in call(
                *[tf.constant(array, tf.as_dtype(spec["dtype"])) for array, spec in zip(arrays, specs, strict=True)]
            )
        ],
        "export": lambda path, fixed: _export(tf, call, specs, free, path, fixed, request),
    }


def _keras(tf: Any, source: str, request: dict[str, Any], refuse: Any) -> tuple[Any, list[Any], list[str]]:
    try:
        model = tf.keras.models.load_model(source, compile=False, safe_mode=not request["trust"])
    except ValueError as error:
        if "safe_mode" not in str(error) and "unsafe" not in str(error).lower():
            raise
        refuse("has Python code inside (a Lambda layer)", "say that you trust it: --trust")
        raise
    signature = [tf.TensorSpec(tensor.shape, tensor.dtype, tensor.name) for tensor in model.inputs]

    def call(*tensors: Any) -> list[Any]:
        return [*tf.nest.flatten(model(tensors[0] if len(tensors) == 1 else [*tensors], training=False))]

    return call, signature, [tensor.name for tensor in model.outputs]


def _saved(tf: Any, source: str, _request: dict[str, Any], refuse: Any) -> tuple[Any, list[Any], list[str]]:
    model = tf.saved_model.load(source)
    known = [*getattr(model, "signatures", {})]
    if not known:
        refuse("has no signature, so nothing says what it takes", "save it with signatures=, or with model.export")
    called = model.signatures[_SIGNATURE if _SIGNATURE in known else known[0]]
    signature = [*called.structured_input_signature[1].values()]
    names = [tensor.name for tensor in signature]
    outputs = sorted(called.structured_outputs)

    def call(*tensors: Any) -> list[Any]:
        made = called(**dict(zip(names, tensors, strict=True)))
        return [made[name] for name in outputs]

    # The functions of a SavedModel live as long as it does.
    call.model = model  # type: ignore[attr-defined]
    return call, signature, outputs


def _spec(tensor: Any, refuse: Any) -> dict[str, Any]:
    shape = tensor.shape.as_list() if hasattr(tensor.shape, "as_list") else [*tensor.shape]
    if any(size is None for size in shape[1:]):
        shown = ",".join("?" if size is None else str(size) for size in shape)
        what = f'its input "{tensor.name}" has free dimensions: {shown}'
        refuse(what, f"say how large they are: --input {tensor.name}=1,...")
    dtype = tensor.dtype.name if hasattr(tensor.dtype, "name") else str(tensor.dtype)
    return {"name": tensor.name, "shape": [shape[0] or 1, *shape[1:]], "dtype": dtype}


def _export(tf: Any, call: Any, specs: Any, free: Any, path: str, fixed: bool, request: dict[str, Any]) -> list[str]:
    converter = importlib.import_module("tf2onnx").convert
    as_asked = [tf.TensorSpec(spec["shape"], spec["dtype"], spec["name"]) for spec in specs]
    signature = as_asked if fixed else free
    traced = tf.function(lambda *tensors: tuple(tf.identity(value) for value in call(*tensors)), signature)
    converter.from_function(traced, input_signature=signature, opset=request["opset"], output_path=path)
    return []
