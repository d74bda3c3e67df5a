"""Topics of templates, and templates of topics."""

from __future__ import annotations

import pytest
from armlet_runtime.update import topics
from armlet_runtime.update.topics import DEVICE, MODEL, PREFIX, TEMPLATES, Kind, Match, Topics, clashes, template
from hypothesis import given
from hypothesis import strategies as st

SHA = "0123456789abcdef" * 4
models = st.from_regex(MODEL, fullmatch=True)
devices = st.from_regex(DEVICE, fullmatch=True)
seed_style: dict[Kind, str] = {"desired": "devices/{device}/model/update"}


def test_as_the_documentation_has_them() -> None:
    made = Topics("d")
    assert made.filters == ("armlet/v1/d/models/+/desired", "armlet/v1/d/models/+/blocks/+/+")
    assert made.of("state", "m") == "armlet/v1/d/models/m/state"
    assert made.of("block", "m", SHA, 7) == f"armlet/v1/d/models/m/blocks/{SHA}/7"
    assert made.of("availability") == "armlet/v1/d/availability"


@given(devices, models, st.text("0123456789abcdef", min_size=64, max_size=64), st.integers(0, 999_999_999))
def test_what_is_made_is_read_back(device: str, model: str, archive: str, block: int) -> None:
    made = Topics(device)
    assert made.match(made.of("desired", model)) == Match("desired", model)
    assert made.match(made.of("block", model, archive, block)) == Match("block", model, archive, block)
    for kind in TEMPLATES:
        assert kind in topics.RECEIVED or made.match(made.of(kind, model)) is None
    assert Topics("other-device").match(made.of("desired", model)) is None or device == "other-device"


@given(st.text())
def test_any_topic_can_come(topic: str) -> None:
    assert Topics("d").match(topic) is None


@pytest.mark.parametrize(
    "end",
    [
        "models/M/desired",
        "models/../desired",
        "models//desired",
        f"models/{'m' * 65}/desired",
        "models/m/desired\n",
        "models/m/desired/x",
        f"models/m/blocks/{SHA}/07",
        f"models/m/blocks/{SHA}/-1",
        f"models/m/blocks/{SHA}/9999999999",
        f"models/m/blocks/{SHA}/\N{ARABIC-INDIC DIGIT SEVEN}",
        f"models/m/blocks/{SHA[:-1]}/1",
        f"models/m/blocks/{SHA.upper()}/1",
    ],
)
def test_foreign_topics(end: str) -> None:
    assert Topics("d").match(f"armlet/v1/d/{end}") is None


def test_a_model_that_only_the_message_names() -> None:
    made = Topics("d", templates=seed_style)
    assert made.filters[0] == "devices/d/model/update"
    assert made.match("devices/d/model/update") == Match("desired")
    assert made.match("devices/dd/model/update") is None
    assert list(clashes("d", PREFIX, seed_style)) == []


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("desired", "a/{modle}/b", "did you mean {model}"),
        ("telemetry", "a/{model}", "known: device, prefix"),
        ("desired", "", "levels"),
        ("desired", "a//b", "levels"),
        ("desired", "/a", "levels"),
        ("desired", "a/", "levels"),
        ("desired", "$SYS/a", "levels"),
        ("desired", "a/+/b", r"without \+"),
        ("desired", "a/#", r"without \+"),
        ("desired", "a/{model", r"without \+"),
        ("desired", "a/b\tc", r"without \+"),
        ("desired", "a/x{model}/b", "level of its own"),
        ("desired", "{model}/{model}", "once"),
        ("block", "{prefix}/{archive}", "{block} in it"),
        ("block", "{prefix}/{block}", "{archive} in it"),
    ],
)
def test_templates_that_are_none(kind: Kind, text: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        template(kind, text)


@pytest.mark.parametrize("text", ["{model}", "a/{device}/b/", "a/#", ""])
def test_prefixes_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        topics.prefix(text)


@pytest.mark.parametrize(
    ("templates", "found"),
    [
        ({"state": "{prefix}/models/{model}/desired"}, ["state"]),
        ({"telemetry": "{prefix}/alerts"}, ["alerts"]),
        # A model may be called "wanted".
        ({"desired": "{prefix}/{model}", "availability": "{prefix}/a"}, ["availability", "telemetry", "alerts"]),
        ({"telemetry": "x/" * 130 + "x"}, ["telemetry"]),
        ({"telemetry": "{device}/t", "alerts": "d/t"}, ["alerts"]),
    ],
)
def test_templates_that_do_not_go_together(templates: dict[Kind, str], found: list[str]) -> None:
    assert [kind for kind, _ in clashes("d", PREFIX, templates)] == found


@given(st.sampled_from(sorted(TEMPLATES)), st.text("{}abdeiklmo/+#$ \n", max_size=20))
def test_a_template_is_right_or_says_why(kind: Kind, text: str) -> None:
    try:
        template(kind, text)
    except ValueError:
        return
    list(clashes("d", PREFIX, {kind: text}))
    assert Topics("d", templates={kind: text}).of(kind, "m", SHA, 1).count("{") == 0
