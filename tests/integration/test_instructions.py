"""The demonstration's libraries, disassembled: nothing for a newer core runs unasked.

A test, and no gate: it takes the library with its symbols, the link map and ten seconds, and a build that is wrong here
ends with SIGILL in the smoke wherever a model comes by.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from armlet import elf, pipeline
from armlet.config import resolve
from armlet.engine import Engine, Mount
from armlet.events import silent
from armlet.instructions import beyond, unasked
from armlet.linkmap import code
from armlet.paths import Paths
from armlet.process import Command
from armlet.spec.cpu import CPUS
from armlet.steps import image
from armlet.store import Store

pytestmark = [pytest.mark.build, pytest.mark.docker, pytest.mark.timeout(5400)]

LIBRARY = "libonnxruntime.so.1.21.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disassembled:
    cpu: str
    library: Path
    listing: list[str]
    owners: list[tuple[int, int, str]]

    def unasked_on(self, cpu: str) -> dict[str, Counter[str]]:
        return unasked(beyond(self.listing, CPUS[cpu]), self.owners)


@pytest.fixture(scope="module", params=["demo-a53", "demo-a7"])
def disassembled(root: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Disassembled:
    paths, out = Paths.of(root), tmp_path_factory.mktemp("listing")
    out.chmod(0o777)
    built = pipeline.build(paths, request.param, silent)
    (compiled,) = [Store(paths.artifacts)[step.id] for step in built.steps if step.name == "compile"]
    resolved = resolve(paths, request.param)
    engine = Engine.connect()
    info = image.ensure(toolchain=resolved.toolchain, paths=paths, engine=engine, emit=silent)
    mounts = (Mount(source=compiled, target="/in", read_only=True), Mount(source=out, target="/out"))
    objdump = f"{resolved.toolchain.triple}-objdump --disassemble --no-show-raw-insn /in/{LIBRARY} >/out/listing"
    with engine.container(image=info.tag, mounts=mounts, name="armlet-disassemble") as runner:
        done = runner.run(Command(argv=("sh", "-c", objdump)))
    assert done.code == 0, done.output
    return Disassembled(
        cpu=resolved.cpu.name,
        library=compiled / LIBRARY,
        listing=(out / "listing").read_text().splitlines(),
        owners=code((compiled / "onnxruntime.map").read_text(errors="replace")),
    )


def test_what_the_core_lacks_is_only_in_sources_that_are_chosen_at_run_time(disassembled: Disassembled) -> None:
    assert disassembled.unasked_on(disassembled.cpu) == {}


def test_there_is_something_to_ask_about(disassembled: Disassembled) -> None:
    """Else the test above finds nothing because it sees nothing."""
    found = Counter(extension for _, _, extension in beyond(disassembled.listing, CPUS[disassembled.cpu]))
    expected = {"cortex-a53": {"dotprod", "i8mm", "bf16", "lse", "sve"}, "cortex-a7": {"v8"}}
    assert set(found) == expected[disassembled.cpu]


def test_a_library_for_a_core_with_more_is_found_out(disassembled: Disassembled) -> None:
    """The A7's fused multiply-adds are beyond an A9, and half precision is nowhere."""
    if disassembled.cpu == "cortex-a7":
        found = disassembled.unasked_on("cortex-a9")
        assert found
        assert {extension for counts in found.values() for extension in counts} == {"vfpv4"}
    halves = [mnemonic for _, mnemonic, kind in beyond(disassembled.listing, CPUS[disassembled.cpu]) if kind == "fp16"]
    assert halves == []


def test_no_atomic_operation_is_left_to_a_library(disassembled: Disassembled) -> None:
    """Armv7-A has 8-byte atomics (LDREXD); only for older architectures GCC calls libatomic for them."""
    facts = elf.read(disassembled.library.read_bytes(), name=LIBRARY)
    assert not [name for name in facts.needed if "atomic" in name]
    assert not [name for name in facts.undefined if name.startswith(("__atomic", "__sync"))]
