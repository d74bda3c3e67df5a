"""Talks to a service with Triton's own client, and prints what it got: ``python triton_calls.py HOST:PORT``.

A program of its own: the client brings gevent along.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

DTYPES = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}


def tensor(name: str, values: Any, datatype: str, *, binary: bool = True) -> triton.InferInput:
    found = triton.InferInput(name, list(values.shape), datatype)
    found.set_data_from_numpy(values, binary_data=binary)
    return found


def refusal(call: Any) -> tuple[str | None, str]:
    try:
        call()
    except InferenceServerException as error:
        return error.status(), error.message()
    return None, ""


def main(where: str) -> dict[str, Any]:
    client = triton.InferenceServerClient(where, concurrency=4)
    scores = np.array([[1, 2, 3], [9, 8, 7]], np.float32)
    told: dict[str, Any] = {
        "live": client.is_server_live(),
        "ready": client.is_server_ready(),
        "model_ready": client.is_model_ready("animals"),
        "none_ready": client.is_model_ready("none"),
        "server": client.get_server_metadata(),
        "model": client.get_model_metadata("animals", "1.2.0"),
        "config": client.get_model_config("animals"),
        "index": client.get_model_repository_index(),
    }
    result = client.infer("animals", [tensor("scores", scores, "FP32")], request_id="7", timeout=5_000_000)
    told["binary"] = [result.get_response()["id"], result.as_numpy("label").tolist(), result.as_numpy("score").tolist()]
    told["binary"][1] = [text.decode() for text in told["binary"][1]]
    result = client.infer(
        "animals",
        [tensor("scores", scores, "FP32", binary=False)],
        outputs=[triton.InferRequestedOutput("label", binary_data=False), triton.InferRequestedOutput("score")],
    )
    told["mixed"] = [result.as_numpy("label").tolist(), result.as_numpy("score").tolist()]
    waiting = [client.async_infer("animals", [tensor("scores", scores + number, "FP32")]) for number in range(8)]
    told["async"] = [one.get_result().as_numpy("score").tolist() for one in waiting]
    told["dtypes"] = {}
    for datatype, dtype in DTYPES.items():
        values: Any = np.array([0, 1, 1], dtype)
        result = client.infer(datatype, [tensor("x", values, datatype)])
        told["dtypes"][datatype] = bool((result.as_numpy("y") == values).all() and result.as_numpy("y").dtype == dtype)
    texts: Any = np.array([b"\xff\x00", "ä".encode(), b""], np.object_)
    told["dtypes"]["BYTES"] = (
        client.infer("BYTES", [tensor("x", texts, "BYTES")]).as_numpy("y").tolist() == texts.tolist()
    )
    told["empty"] = list(client.infer("FP32", [tensor("x", np.empty(0, np.float32), "FP32")]).as_numpy("y").shape)
    told["refused"] = refusal(lambda: client.infer("animals", [tensor("scores", scores[:, :2].copy(), "FP32")]))
    told["unknown"] = refusal(lambda: client.infer("none", [tensor("scores", scores, "FP32")]))
    client.unload_model("animals")
    told["unloaded"] = client.is_model_ready("animals")
    client.load_model("animals")
    told["loaded"] = client.is_model_ready("animals")
    client.close()
    return told


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
