"""The Open Inference Protocol, from request to answer, before a fake engine."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from armlet_runtime.serve.interface import REFUSAL_KINDS, RefusalKind, Refused, TensorInfo
from armlet_runtime.serve.routes import STATUS

from tests.fakes.fake_engine import FakeEngine, info
from tests.fakes.service import Answer, Client, serving

SCORES = {"name": "scores", "datatype": "FP32", "shape": [2, 3], "data": [1, 2, 3, 9, 8, 7]}


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def client(engine: FakeEngine) -> Iterator[Client]:
    with serving(engine) as (server, _), Client(server) as one:
        yield one


def infer(client: Client, model: str = "animals", **content: Any) -> Answer:
    return client.ask("POST", f"/v2/models/{model}/infer", content)


def binary(client: Client, content: dict[str, Any], *tensors: bytes, model: str = "echo") -> Answer:
    header = json.dumps(content).encode()
    return client.ask(
        "POST",
        f"/v2/models/{model}/infer",
        header + b"".join(tensors),
        Inference_Header_Content_Length=str(len(header)),
    )


def test_the_server_and_its_models(client: Client) -> None:
    assert client.ask("GET", "/v2").body["extensions"] == [
        "binary_tensor_data",
        "model_configuration",
        "model_repository",
        "parameters",
    ]
    for path in ("/v2/models/animals", "/v2/models/animals/versions/1.2.0"):
        model = client.ask("GET", path).body
        assert (model["name"], model["versions"], model["platform"]) == ("animals", ["1.2.0"], "onnxruntime_onnx")
        assert model["inputs"] == [{"name": "scores", "datatype": "FP32", "shape": [-1, 3]}]
        assert model["armlet"]["provider_share"]["XnnpackExecutionProvider"] == 0.75
        assert model["armlet"]["nodes"][0] == {
            "node": "conv1",
            "operator": "Conv",
            "provider": "XnnpackExecutionProvider",
        }
        assert model["armlet"]["skipped"] == {"ACL": "the library was built without it"}
    config = client.ask("GET", "/v2/models/animals/config").body
    assert config["output"][0] == {"name": "label", "data_type": "TYPE_STRING", "dims": [-1]}


def test_health(client: Client, engine: FakeEngine) -> None:
    assert [client.ask("GET", f"/v2/health/{kind}").status for kind in ("live", "ready")] == [200, 200]
    assert client.ask("GET", "/v2/models/animals/ready").body == {"name": "animals", "ready": True}
    engine.alive = False
    engine.unload("echo")
    assert [client.ask("GET", f"/v2/health/{kind}").status for kind in ("live", "ready")] == [503, 503]
    assert client.ask("GET", "/v2/models/echo/ready").status == 503


def test_an_inference_in_json(client: Client, engine: FakeEngine) -> None:
    answer = infer(client, id="42", inputs=[SCORES])
    assert answer.body == {
        "model_name": "animals",
        "model_version": "1.2.0",
        "id": "42",
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [2], "data": ["owl", "cat"]},
            {"name": "score", "datatype": "FP32", "shape": [2], "data": [3.0, 9.0]},
        ],
    }
    assert engine.seen[0].id == "42"
    only = infer(client, inputs=[SCORES], outputs=[{"name": "score"}]).body
    assert [output["name"] for output in only["outputs"]] == ["score"]
    assert "id" not in only


def test_an_inference_in_binary_both_ways(client: Client) -> None:
    scores = {**SCORES, "parameters": {"binary_data_size": 24}}
    del scores["data"]
    answer = binary(
        client,
        {
            "inputs": [scores],
            "outputs": [{"name": "score", "parameters": {"binary_data": False}}, {"name": "label"}],
            "parameters": {"binary_data_output": True},
        },
        struct.pack("<6f", 1, 2, 3, 9, 8, 7),
        model="animals",
    )
    assert answer.headers["content-type"] == "application/octet-stream"
    size = int(answer.headers["inference-header-content-length"])
    header = json.loads(answer.raw[:size])
    assert header["outputs"][0]["data"] == [3.0, 9.0]
    assert header["outputs"][1]["parameters"] == {"binary_data_size": 14}
    assert answer.raw[size:] == b"\3\0\0\0owl\3\0\0\0cat"


def test_what_the_binary_extension_asks_for_by_output(client: Client) -> None:
    answer = infer(client, inputs=[SCORES], outputs=[{"name": "score", "parameters": {"binary_data": True}}])
    size = int(answer.headers["inference-header-content-length"])
    assert struct.unpack("<2f", answer.raw[size:]) == (3.0, 9.0)
    assert "inference-header-content-length" not in infer(client, inputs=[SCORES]).headers


@pytest.mark.parametrize(
    ("dtype", "datatype", "raw"),
    [
        ("float16", "FP16", struct.pack("<2e", 1.5, float("nan"))),
        ("bfloat16", "BF16", b"\x80\x3f\xc0\x7f"),
        ("bool", "BOOL", b"\1\0"),
        ("uint64", "UINT64", b"\xff" * 16),
        ("string", "BYTES", b"\2\0\0\0\xff\xfe\0\0\0\0"),
    ],
)
def test_raw_elements_go_through_unchanged(
    client: Client, engine: FakeEngine, dtype: str, datatype: str, raw: bytes
) -> None:
    engine.add_echo(dtype, "raw")
    content = {
        "inputs": [{"name": "x", "datatype": datatype, "shape": [2], "parameters": {"binary_data_size": len(raw)}}],
        "parameters": {"binary_data_output": True},
    }
    # Not aligned to any element.
    content["id"] = "odd" if len(json.dumps(content)) % 2 else "even"
    answer = binary(client, content, raw, model="raw")
    assert answer.status == 200
    assert answer.raw.endswith(raw)


def test_nan_is_no_json_in_either_direction(client: Client, engine: FakeEngine) -> None:
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": ["?"]}]}).replace(
            '"?"', word
        )
        assert client.ask("POST", "/v2/models/echo/infer", body).status == 400
    content = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}]}
    answer = binary(client, content, struct.pack("<f", float("inf")))
    assert answer.status == 406
    assert "binary_data" in answer.body["error"]


@pytest.mark.parametrize("kind", REFUSAL_KINDS)
def test_every_refusal_has_a_status(client: Client, engine: FakeEngine, kind: RefusalKind) -> None:
    def refuse(_: object) -> Any:
        raise Refused(kind, "why", 2.5 if kind == "overloaded" else None)

    engine.functions["animals"] = (engine.functions["animals"][0], refuse)
    answer = infer(client, inputs=[SCORES])
    assert (answer.status, answer.body) == (STATUS[kind], {"error": "why"})
    waits = {"overloaded": "3", "not_ready": "1"}
    assert answer.headers.get("retry-after") == waits.get(kind)


@pytest.mark.parametrize(
    "path",
    ["/v2/models/none/infer", "/v2/models/animals/versions/9/infer", "/v2/models/none", "/v2/models/a%2Fb/infer"],
)
def test_what_is_not_there_is_404(client: Client, path: str) -> None:
    answer = client.ask(
        "POST" if path.endswith("infer") else "GET", path, {"inputs": [SCORES]} if "infer" in path else b""
    )
    assert answer.status == 404
    assert answer.body["error"]


def test_names_may_have_anything_in_them(client: Client, engine: FakeEngine) -> None:
    engine.add_echo("float", "a/b ä")
    answer = client.ask(
        "POST",
        "/v2/models/a%2Fb%20%C3%A4/infer",
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [5]}]},
    )
    assert answer.body["outputs"][0]["data"] == [5.0]


def test_all_that_is_wrong_with_the_tensors_is_told_at_once(client: Client, engine: FakeEngine) -> None:
    answer = infer(client, inputs=[{**SCORES, "shape": [3, 2]}, {**SCORES, "name": "more"}], outputs=[{"name": "none"}])
    assert answer.status == 400
    for words in ('no input "more"', "FP32 [batch, 3], not FP32 [3, 2]", 'no output "none"'):
        assert words in answer.body["error"]
    assert "INT64" in infer(client, inputs=[{**SCORES, "datatype": "INT64"}]).body["error"]
    assert "is missing" in infer(client, inputs=[]).body["error"]
    assert engine.seen == []


def test_a_model_that_says_nothing_of_its_tensors_decides_itself(client: Client, engine: FakeEngine) -> None:
    engine.functions["quiet"] = (info("quiet", [], []), engine.functions["echo"][1])
    content = [{"name": "x", "datatype": "FP32", "shape": [1], "data": [5]}]
    assert infer(client, "quiet", inputs=content).body["outputs"][0]["data"] == [5.0]


def test_a_scalar(client: Client, engine: FakeEngine) -> None:
    scalar = info("scalar", [TensorInfo("x", "int64", ())], [TensorInfo("y", "int64", ())])
    engine.functions["scalar"] = (scalar, engine.functions["echo"][1])
    answer = infer(client, "scalar", inputs=[{"name": "x", "datatype": "INT64", "shape": [], "data": [-7]}])
    assert answer.body["outputs"][0] == {"name": "y", "datatype": "INT64", "shape": [], "data": [-7]}


def test_a_client_may_set_its_own_deadline(engine: FakeEngine) -> None:
    engine.gate = threading.Event()
    with serving(engine) as (server, _), Client(server) as client:
        assert infer(client, inputs=[SCORES], parameters={"timeout": 50_000}).status == 504
        assert infer(client, inputs=[SCORES], parameters={"timeout": "soon"}).status == 400


def test_the_repository(client: Client, engine: FakeEngine) -> None:
    assert client.ask("POST", "/v2/repository/models/echo/unload", b"{}").status == 200
    index = client.ask("POST", "/v2/repository/index").body
    assert [(model["name"], model["state"]) for model in index] == [("animals", "READY"), ("echo", "UNAVAILABLE")]
    ready = client.ask("POST", "/v2/repository/index", {"ready": True}).body
    assert [model["name"] for model in ready] == ["animals"]
    assert infer(client, "echo", inputs=[{"name": "x", "datatype": "FP32", "shape": [1], "data": [5]}]).status == 503
    assert client.ask("POST", "/v2/repository/models/echo/load").status == 200
    assert engine.calls == [("unloaded", "echo"), ("ready", "echo")]
    assert client.ask("POST", "/v2/repository/models/none/load").status == 404
    assert client.ask("POST", "/v2/repository/models/echo/load", {"parameters": {"config": "{}"}}).status == 400
    for body in (b"[]", b'{"ready": "no"}', b'{"ready": 1}', b'{"ready": null}'):
        assert client.ask("POST", "/v2/repository/index", body).status == 400


@pytest.mark.parametrize(
    "content",
    [
        {"inputs": [SCORES], "parameters": {"sequence_id": 7}},
        {"inputs": [SCORES], "outputs": [{"name": "score", "parameters": {"classification": 3}}]},
        {"inputs": [{**SCORES, "parameters": {"shared_memory_region": "r"}}]},
    ],
)
def test_what_would_be_answered_wrongly_is_refused(client: Client, content: dict[str, Any]) -> None:
    answer = client.ask("POST", "/v2/models/animals/infer", content)
    assert answer.status == 400
    assert "not supported" in answer.body["error"]


@pytest.mark.parametrize("identifier", ['"\\ud800"', '"a\\udfffb"', "7"])
def test_an_id_is_text(client: Client, identifier: str) -> None:
    answer = client.ask("POST", "/v2/models/animals/infer", f'{{"id": {identifier}, "inputs": []}}')
    assert (answer.status, answer.body) == (400, {"error": "id is no text"})
    assert infer(client, inputs=[SCORES], id="\U0001f600").body["id"] == "\U0001f600"


@pytest.mark.parametrize("digits", [65, 4299, 5000, 100_000])
def test_a_number_with_many_digits_is_told_in_words_for_clients(client: Client, digits: int) -> None:
    content = (
        f'{{"inputs": [{{"name": "scores", "datatype": "FP32", "shape": [1, 3], "data": [{"1" * digits}, 1, 1]}}]}}'
    )
    answer = client.ask("POST", "/v2/models/animals/infer", content)
    assert answer.status == 400
    assert "sys." not in answer.body["error"]
    assert len(answer.raw) < 200


def test_compressed_bodies_are_refused(client: Client) -> None:
    assert client.ask("POST", "/v2/models/animals/infer", b"\x1f\x8b", Content_Encoding="gzip").status == 415


def test_a_web_page_cannot_unload_models(client: Client, engine: FakeEngine) -> None:
    answer = client.ask("POST", "/v2/repository/models/echo/unload", b"{}", Origin="http://elsewhere")
    assert answer.status == 403
    assert engine.calls == []
