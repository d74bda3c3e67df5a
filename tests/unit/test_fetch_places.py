"""Which places are tried, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from armlet.errors import ArmletError, Kind
from armlet.events import Sink, silent
from armlet.fetch import Places, Wanted, from_component, from_wheel
from armlet.fetch.places import shown
from armlet.process import Command, Done, HostRunner
from armlet.spec.source_set import Component
from armlet.spec.toolchain import Wheel

SHA = "ab" + "0" * 62
WHEEL = Wheel(project="cmake", version="3.31.6", filename="cmake-3.31.6-py3-none-any.whl", sha256=SHA)


class FakeApt:
    """An apt that is configured with these sites."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines

    def run(self, command: Command, emit: Sink = silent) -> Done:
        assert command.argv[:2] == ("apt-get", "indextargets")
        return Done(code=0, tail=self.lines)


class FakeMissing:
    def run(self, command: Command, emit: Sink = silent) -> Done:
        raise ArmletError("cannot run apt-get", hint="", kind=Kind.HOST)


def test_the_order_is_own_mirrors_debian_snapshot_index_upstream() -> None:
    wanted = Wanted(
        filename="x.tar",
        sha256=SHA,
        size=1,
        debian="pool/main/x/x.tar",
        snapshot="f" * 40,
        urls=("https://upstream.example/x.tar",),
        wheel=WHEEL,
    )
    places = Places(own=("file:///own", "https://own.example/m"), debian=("http://debian.example/debian",))
    assert places.of_file(wanted) == (
        "file:///own/x.tar",
        f"file:///own/{SHA}",
        f"file:///own/ab/{SHA}/x.tar",
        "https://own.example/m/x.tar",
        f"https://own.example/m/{SHA}",
        f"https://own.example/m/ab/{SHA}/x.tar",
        "http://debian.example/debian/pool/main/x/x.tar",
        f"https://snapshot.debian.org/file/{'f' * 40}",
        WHEEL,
        "https://upstream.example/x.tar",
    )


def test_odd_characters_of_pool_paths_are_quoted() -> None:
    wanted = Wanted(filename="x", sha256=SHA, size=1, debian="pool/x_1.0~git+dfsg.orig.tar.xz")
    assert Places(debian=("http://d.example",)).of_file(wanted) == (
        "http://d.example/pool/x_1.0~git%2Bdfsg.orig.tar.xz",
    )


def test_a_component_and_a_wheel_say_what_they_want() -> None:
    component = Component(name="x", version="1", licence="MIT", sha256=SHA, size=7, debian="pool/x_1.tar.xz")
    assert from_component(component) == Wanted(filename="x_1.tar.xz", sha256=SHA, size=7, debian="pool/x_1.tar.xz")
    assert from_wheel(WHEEL) == Wanted(filename=WHEEL.filename, sha256=SHA, size=None, wheel=WHEEL)


def test_the_variables_come_before_apt() -> None:
    environment = {
        "ARMLET_MIRRORS": " file:///a/ , https://b.example/c,",
        "ARMLET_DEBIAN_MIRROR": "http://d.example/debian/",
    }
    places = Places.of(environment, FakeApt("http://apt.example/debian/ Debian"))
    assert places == Places(own=("file:///a", "https://b.example/c"), debian=("http://d.example/debian",))


@pytest.mark.parametrize(
    "value",
    [
        *("/a/folder", "ftp://x.example", "file://host/x", "https:///x", "file:relative"),
        *("http://[::1", "http://host:port/x", "http://host:99999", "http://:80"),
    ],
)
@pytest.mark.parametrize("variable", ["ARMLET_MIRRORS", "ARMLET_DEBIAN_MIRROR"])
def test_what_is_no_mirror_is_refused(variable: str, value: str) -> None:
    with pytest.raises(ArmletError, match=variable) as caught:
        Places.of({variable: value}, FakeApt())
    assert caught.value.kind is Kind.INPUT


def test_apt_names_the_debian_mirror_once_and_no_other_archive() -> None:
    apt = FakeApt(
        "W: a warning",
        "http://d.example/debian/ Debian",
        "http://d.example/debian/ Debian",
        "http://d.example/debian-security/ Debian-Security",
        "https://vendor.example/apt/ Vendor Inc",
        "cdrom:[x]/ Debian",
    )
    assert Places.of({}, apt).debian == ("http://d.example/debian",)


def test_on_ubuntu_apt_knows_no_debian_mirror() -> None:
    assert Places.of({}, FakeApt("http://u.example/ubuntu/ Ubuntu")).debian == ()


def test_before_apts_lists_are_there_every_site_may_be_one() -> None:
    apt = FakeApt("http://d.example/debian/ ", "https://v.example/x/ ")
    assert Places.of({}, apt).debian == ("http://d.example/debian", "https://v.example/x")


def test_a_list_of_mirrors_is_followed(tmp_path: Path) -> None:
    (tmp_path / "debian.list").write_text("# ours\nhttps://m1.example/debian/ priority:1\n\nhttp://m2.example/debian\n")
    apt = FakeApt(f"mirror+file:{tmp_path}/debian.list/ Debian", "mirror+file:/no/such/file/ Debian")
    assert Places.of({}, apt).debian == ("https://m1.example/debian", "http://m2.example/debian")


def test_a_machine_without_apt_has_no_debian_mirror() -> None:
    assert Places.of({}, FakeMissing()).debian == ()


def test_this_machines_apt_can_be_asked() -> None:
    assert all(root.partition(":")[0] in ("http", "https", "file") for root in Places.of({}, HostRunner()).debian)


def test_passwords_are_not_shown() -> None:
    assert shown("https://me:secret@m.example:8443/x") == "https://m.example:8443/x"
    assert "cmake 3.31.6" in shown(WHEEL)
