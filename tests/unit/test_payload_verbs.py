"""key.new, model.pack and model.verify as they are typed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from armlet.errors import Kind
from armlet.files import whole_file
from armlet.verbs import key_new, model_pack, model_verify
from tests.fakes import models, payloads

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)

    def running(task: Any, *words: str, **flags: Any) -> Any:
        task(Context(), *words, **flags, json=True)
        return json.loads(capsys.readouterr().out)

    return running


def code(run: Run, *words: Any, **flags: Any) -> int | None:
    with pytest.raises(Exit) as caught:
        run(*words, **flags)
    assert "hint: " in str(caught.value.message)
    return caught.value.code


@pytest.fixture
def flags(tmp_path: Path, run: Run) -> dict[str, str]:
    """Those that pack always needs."""
    run(key_new.new, name="release", out=str(tmp_path / "keys"))
    model = models.dense(tmp_path / "dense.onnx")
    models.record(model)
    return {
        "model": str(model),
        "name": "dense",
        "version": "1.0",
        "generation": "3",
        "licence": "MIT",
        "description": "Dense",
        "samples": str(models.samples(tmp_path / "samples")),
        "key": str(tmp_path / "keys" / "release.key"),
        "out": str(tmp_path / "out"),
    }


def test_from_a_key_to_an_unpacked_payload(run: Run, flags: dict[str, str], tmp_path: Path) -> None:
    made = run(model_pack.pack, **flags, budget="p95_ms=50 rss_mb=64", providers="xnnpack, cpu", format="payload,deb")
    assert made["files"].keys() == {"payload", "deb"}
    keys = str(tmp_path / "keys")
    found = run(model_verify.verify, made["files"]["payload"], key=keys, to=str(tmp_path / "to"))
    assert (found["model"], found["generation"], found["key"]) == ("dense", 3, "release")
    assert (found["sha256"], found["fingerprint"]) == (made["sha256"], made["key"])
    assert run(model_verify.verify, str(tmp_path / "to"), key=keys) == found
    manifest = json.loads((tmp_path / "to" / "payload.json").read_text())
    assert manifest["budget"] == {"p95_ms": 50, "rss_mb": 64}
    assert [one["name"] for one in manifest["providers"]] == ["xnnpack", "cpu"]


def test_text_for_people(flags: dict[str, str], run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model_pack.pack(Context(), **flags)
    path = tmp_path / "out" / "dense-1.0-g3.payload"
    assert str(path) in capsys.readouterr().out
    model_verify.verify(Context(), str(path), key=str(tmp_path / "keys" / "release.pub"))
    assert "release" in capsys.readouterr().out


WRONG: dict[str, dict[str, Any]] = {
    "no name": {"name": ""},
    "no samples": {"samples": ""},
    "nobody signs": {"key": ""},
    "somebody signs what nobody does": {"unsigned": True},
    "generation": {"generation": "seven"},
    "providers": {"providers": "xnpack"},
    "format": {"format": "msi"},
    "budget of what is unknown": {"budget": "p50_ms=3"},
    "budget without a number": {"budget": "p95_ms"},
    "budget of nothing": {"budget": "p95_ms=0"},
    "atol": {"atol": "-1"},
    "rtol": {"rtol": "nan"},
    "budget without an end": {"budget": "p95_ms=inf"},
    "budget that is larger than numbers": {"budget": "rss_mb=1e400"},
    "budget of no number": {"budget": "p95_ms=nan"},
    "budget twice": {"budget": "p95_ms=5 p95_ms=6"},
    "threads": {"threads": "0"},
    "too many threads": {"threads": "1025"},
    "limit": {"limit_mib": "lots"},
    "golden": {"golden": "0"},
    "a SKU that is not built": {"sku": "no-such-sku"},
    "a passphrase's variable that is not needed": {"key": "missing.key", "passphrase_env": "NOWHERE"},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_flags_that_make_no_sense(wrong: dict[str, Any], run: Run, flags: dict[str, str], tmp_path: Path) -> None:
    assert code(run, model_pack.pack, **{**flags, **wrong}) == Kind.INPUT
    assert not (tmp_path / "out").exists()


def test_a_passphrase_from_the_environment(
    run: Run, flags: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORDS", "correct horse")
    run(key_new.new, name="safe", out=str(tmp_path), passphrase_env="WORDS")
    flags["key"] = str(tmp_path / "safe.key")
    run(model_pack.pack, **flags, passphrase_env="WORDS")
    monkeypatch.setenv("WORDS", "battery staple")
    assert code(run, model_pack.pack, **flags, passphrase_env="WORDS") == Kind.INPUT
    assert code(run, model_pack.pack, **flags, passphrase_env="UNSET") == Kind.INPUT
    # Nobody is there to be asked.
    assert code(run, model_pack.pack, **flags) == Kind.INPUT
    assert code(run, key_new.new, name="other", out=str(tmp_path), passphrase=True) == Kind.INPUT
    assert code(run, key_new.new, name="other", out=str(tmp_path), passphrase_env="UNSET") == Kind.INPUT
    assert not (tmp_path / "other.key").exists()


def test_what_must_not_be_installed_is_5_and_what_was_typed_wrongly_is_2(
    run: Run, flags: dict[str, str], tmp_path: Path
) -> None:
    path = Path(run(model_pack.pack, **flags)["files"]["payload"])
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "other.pub"
    other.write_bytes(payloads.public_pem())
    own, to = str(tmp_path / "keys"), tmp_path / "to"
    whole = path.read_bytes()
    assert code(run, model_verify.verify, str(path), key=str(other), to=str(to)) == Kind.GATE
    path.write_bytes(whole[:-600])
    assert code(run, model_verify.verify, str(path), key=own, to=str(to)) == Kind.GATE
    path.write_bytes(whole)
    assert not to.exists()
    assert not [*tmp_path.glob(".to*")]
    run(model_verify.verify, str(path), unsigned=True)
    for bad in ({}, {"key": own, "unsigned": True}, {"key": str(path)}, {"key": str(tmp_path / "cache")}):
        assert code(run, model_verify.verify, str(path), **bad) == Kind.INPUT
    assert code(run, model_verify.verify, str(tmp_path / "nowhere"), key=own) == Kind.INPUT
    assert code(run, model_verify.verify, str(path), key=own, to=own) == Kind.INPUT


def test_a_signed_manifest_that_is_none_of_ours_is_5(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.payload").write_bytes(payloads.archive())
    (tmp_path / "k.pub").write_bytes(payloads.public_pem())
    before = {*tmp_path.iterdir()}
    for flags in ({}, {"to": str(tmp_path / "to")}):
        path, key = str(tmp_path / "other.payload"), str(tmp_path / "k.pub")
        assert code(run, model_verify.verify, path, key=key, **flags) == Kind.GATE
        assert {*tmp_path.iterdir()} == before


def test_pipes_are_not_waited_for(run: Run, flags: dict[str, str], tmp_path: Path) -> None:
    path = run(model_pack.pack, **flags)["files"]["payload"]
    pipe, keys = tmp_path / "pipe", tmp_path / "keys"
    os.mkfifo(pipe)
    for to in ({}, {"to": str(tmp_path / "to")}):
        assert code(run, model_verify.verify, str(pipe), key=str(keys), **to) == Kind.INPUT
    assert not (tmp_path / "to").exists()
    for flag in ("key", "model", "source"):
        assert code(run, model_pack.pack, **{**flags, flag: str(pipe)}) == Kind.INPUT
    pipe.rename(keys / "other.pub")
    assert code(run, model_verify.verify, path, key=str(keys)) == Kind.INPUT


def test_a_link_to_nowhere_is_in_the_way(run: Run, flags: dict[str, str], tmp_path: Path) -> None:
    path = run(model_pack.pack, **flags)["files"]["payload"]
    (tmp_path / "to").symlink_to("nowhere")
    assert code(run, model_verify.verify, path, key=str(tmp_path / "keys"), to=str(tmp_path / "to")) == Kind.INPUT
    assert (tmp_path / "to").is_symlink()


def test_a_file_that_fails_half_way_is_not_there(tmp_path: Path) -> None:
    target = tmp_path / "a.payload"
    target.write_bytes(b"old")

    def half() -> None:
        with whole_file(target) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.payload": b"old"}
