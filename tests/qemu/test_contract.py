"""The contract on the target: its own Python gives the host's answer, and its library bears that out."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from armlet_runtime.contract import check
from onnx import TensorProto

from armlet import manifest, pipeline
from armlet.errors import ArmletError
from armlet.events import silent
from armlet.onnx import ortfile
from armlet.onnx.convert import save_optimised
from armlet.onnx.fleet import payload_document
from armlet.onnx.levels import LEVELS
from armlet.onnx.reading import read
from armlet.paths import Paths
from armlet.qemu.rootfs import make
from armlet.qemu.run import Target, run_python
from armlet.qemu.runtime import find_runtime
from armlet.spec.cpu import CPUS
from tests.conftest import ROOT
from tests.fakes.contracts import answered, every_misfit
from tests.smoked import HEAVY

pytestmark = pytest.mark.qemu
PATHS = Paths.of(ROOT)

_CODE = """
import json, sys
from armlet_runtime.contract import check
print(json.dumps([[list(one) for one in check(*pair)] for pair in json.loads(sys.argv[1])]))
"""


def test_host_and_device_give_the_same_answer() -> None:
    target = Target(rootfs=make(PATHS, suite="bookworm"), cpu=CPUS["cortex-a53"])
    pairs = every_misfit()
    done = run_python(target, ("-c", _CODE, json.dumps(pairs)), path=[ROOT / "device"], site_packages=False)
    assert done.code == 0, done.output
    assert json.loads(done.tail[-1]) == answered(pairs)


_LOADS = """
import json, os, sys
from pathlib import Path
from armlet_runtime import ort
ort.load_library(sys.argv[1])
loaded = {}
for model in sorted(Path(sys.argv[2]).glob("*.ort")):
    # A library without exceptions may end the process.
    child = os.fork()
    if child == 0:
        try:
            ort.InferenceSession(str(model))
        except ort.OrtError as error:
            os._exit(2 if "NOT_IMPLEMENTED" in str(error) else 3)
        os._exit(0)
    loaded[model.stem] = os.waitpid(child, 0)[1] >> 8
Path(sys.argv[2], "loaded.json").write_text(json.dumps(loaded))
"""
FITS, NO_KERNEL = 0, 2


def node_tests(folder: Path) -> list[Path]:
    """ONNX's own examples of every operator, those that ONNX Runtime loads, in ORT format."""
    written = []
    for model in sorted(Path(onnx.__file__).parent.glob("backend/test/data/*/*/model.onnx")):
        target = folder / f"{model.parent.name}.ort"
        try:
            target.write_bytes(save_optimised(read(model), LEVELS["xnnpack"], save_as="ORT", where=model))
            payload_document(target)
        except ArmletError:
            target.unlink(missing_ok=True)
            continue
        written.append(target)
    return written


def retyped(model: Path, kind: int) -> bytes | None:
    """The model with every tensor of floats said to be of another type, as no converter would write it."""
    data = bytearray(model.read_bytes())
    graph = ortfile.session_of(bytes(data)).Model().Graph()
    places = []
    for index in range(graph.NodeArgsLength()):
        value = graph.NodeArgs(index).Type().Value()
        place = value.Pos + value.Offset(_ELEMENT_FIELD)
        if data[place : place + 4] == TensorProto.FLOAT.to_bytes(4, "little"):
            places.append(place)
    for place in places:
        data[place : place + 4] = kind.to_bytes(4, "little")
    return bytes(data) if places and not graph.InitializersLength() else None


_ELEMENT_FIELD = 4
"""Position in the vtable of ``TensorTypeAndShape`` (``core/flatbuffers/schema/ort.fbs``)."""
_OTHERS = (TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.UINT8, TensorProto.STRING)


@pytest.mark.parametrize("sku", [pytest.param(sku, marks=HEAVY) for sku in ("demo-a53", "demo-a7")])
def test_a_model_loads_exactly_if_it_fits(tmp_path: Path, sku: str) -> None:
    pipeline.build(PATHS, sku, silent)
    runtime = find_runtime(PATHS, sku)
    document = json.loads(manifest.render(runtime.manifest))
    models = node_tests(tmp_path)
    for model in [model for model in models if not check(document, payload_document(model))]:
        for kind in _OTHERS:
            if (data := retyped(model, kind)) is not None:
                models.append(model.with_name(f"{model.stem}-{TensorProto.DataType.Name(kind)}.ort"))
                models[-1].write_bytes(data)
    judged = {model.stem: check(document, payload_document(model)) for model in models}
    assert {one.kind for problems in judged.values() for one in problems} >= {"operator", "operator_version", "type"}
    architecture = {"aarch64": "arm64", "armhf": "armhf"}[runtime.manifest.target.arch]
    rootfs = make(PATHS, suite="bookworm", architecture=architecture)
    target = Target(rootfs=rootfs, cpu=CPUS[runtime.manifest.target.cpu])
    done = run_python(target, ("-c", _LOADS, str(runtime.library), str(tmp_path)), path=[ROOT / "device"])
    assert done.code == 0, done.output
    loaded = json.loads((tmp_path / "loaded.json").read_text())
    assert loaded == {name: NO_KERNEL if problems else FITS for name, problems in judged.items()}
    assert sum(code == FITS for code in loaded.values()) > 50
