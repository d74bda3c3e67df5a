"""The device's file: every mistake at once, each with its line."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest
from armlet_runtime.serve import ini
from armlet_runtime.serve.config import ConfigError, DeviceConfig, ModelSettings, load, parse
from armlet_runtime.serve.listening import TcpAddress, UnixAddress
from armlet_runtime.serve.values import unknown_providers
from hypothesis import given
from hypothesis import strategies as st

FULL = """\
# The gateway of line 4.
[service]
payloads = /opt/models
keys =
listen = unix:/run/armlet/serve.sock
stall_seconds = 5

[http]
body_bytes = 1048576
infer_seconds = 2.5

[models]
queue = 8
providers = VSINPU, xnnpack, cpu

[model:classify]
min_provider_share = vsinpu 0.9, XNNPACK 0.05
policy = drop-oldest
memory_mb = 256

[model:old]
enabled = no
providers =

[provider:CoreML]
ModelFormat = MLProgram
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return caught.value.problems


def test_nothing_is_needed() -> None:
    assert parse("") == DeviceConfig()
    assert parse("").model("any") == ModelSettings()


def test_all_of_it() -> None:
    config = parse(FULL)
    assert (config.service.payloads, config.service.keys) == (Path("/opt/models"), None)
    assert config.service.listen == UnixAddress("/run/armlet/serve.sock")
    assert (config.http.body_bytes, config.http.infer_seconds) == (1 << 20, 2.5)
    chain = ("vsinpu", "xnnpack", "cpu")
    assert config.model("other") == ModelSettings(queue=8, providers=chain)
    assert config.model("classify") == ModelSettings(
        queue=8,
        providers=chain,
        min_provider_share={"vsinpu": 0.9, "xnnpack": 0.05},
        policy="drop-oldest",
        memory_mb=256,
    )
    assert config.model("old") == ModelSettings(queue=8, enabled=False)
    assert config.provider_options == {"coreml": {"ModelFormat": "MLProgram"}}
    assert config.lines["model:old"] == 21


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", TcpAddress("127.0.0.1", 0)),
        ("[::1]:8080", TcpAddress("::1", 8080)),
        ("localhost:65535", TcpAddress("localhost", 65535)),
    ],
)
def test_addresses(text: str, address: TcpAddress) -> None:
    assert parse(f"[service]\nlisten = {text}").service.listen == address


@pytest.mark.parametrize(
    "text",
    ["8080", "127.0.0.1", "::1:8080", "127.0.0.1:65536", "127.0.0.1:²", ":80", "unix:serve.sock", "unix:/" + "x" * 107],
)
def test_addresses_that_are_none(text: str) -> None:
    (problem,) = problems(f"[service]\nlisten = {text}")
    assert problem.startswith("device.conf:2: listen is")


def test_every_mistake_at_once() -> None:
    found = problems(
        "stray = 1\n"
        "[servce]\n"
        "[service]\nlisen = 127.0.0.1:80\nstall_seconds = nan\nstall_seconds = 3\nQUEUE = 3\n"
        "[model:a]\nqueue = 0\nmin_provider_share = xnnpack 1.5\nproviders = cpu, xnnpack\npolicy = drop\n  more\n"
        "[model:A b]\n[model:a]\nnonsense\n"
    )
    assert [int(problem.split(":")[1]) for problem in found] == [1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16]
    for line, hint in ((2, "did you mean [service]?"), (4, "did you mean listen?"), (12, "drop-oldest, drop-newest")):
        assert any(f"device.conf:{line}:" in problem and hint in problem for problem in found), (line, found)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.conf: No such file"):
        load(tmp_path / "none.conf")
    (tmp_path / "bytes.conf").write_bytes(b"[service]\n\xff")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 10"):
        load(tmp_path / "bytes.conf")


def test_a_provider_that_no_runtime_has() -> None:
    assert unknown_providers(("xnnpack", "cuda", "mynpu"), ("MyNpuExecutionProvider",)) == []
    assert unknown_providers(("xnpack",), ()) == ['no runtime has a provider "xnpack"; did you mean xnnpack?']


keys = st.text("abcK_", min_size=1, max_size=3)
plain = st.text("abc =#;[]%:/1", max_size=6).map(str.strip)


@given(st.dictionaries(st.sampled_from(["a", "b:c", "D"]), st.dictionaries(keys, plain), max_size=3))
def test_it_means_what_configparser_means(content: dict[str, dict[str, str]]) -> None:
    content = {name: {key.lower(): value for key, value in found.items()} for name, found in content.items()}
    text = "".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in found.items()) for name, found in content.items()
    )
    theirs = configparser.ConfigParser(interpolation=None, delimiters=("=",), default_section="none of these")
    theirs.read_string(text)
    sections, found = ini.parse(text)
    assert found == []
    ours = {section.name: {key: entry.value for key, entry in section.entries.items()} for section in sections}
    assert ours == {name: dict(theirs[name]) for name in theirs.sections()} == content


@given(
    st.text(max_size=80) | st.lists(st.sampled_from([*FULL.splitlines(), "[", "=", " x"]), max_size=12).map("\n".join)
)
def test_any_text_is_a_configuration_or_a_list_of_problems(text: str) -> None:
    found: list[str] | None = None
    try:
        parse(text)
    except ConfigError as error:
        found = error.problems
    assert found is None or found
    assert all("\n" not in problem for problem in found or ())
