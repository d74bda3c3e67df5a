"""Real frameworks, each in its own environment: what they export means the same in ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest

from armlet.errors import ArmletError, Kind
from armlet.onnx.frameworks import Framework, interpreter
from armlet.onnx.importing import Imported, Options, import_model
from armlet.onnx.model_sources import input_of, source_of
from armlet.onnx.normalise import wish_of
from armlet.paths import Paths
from armlet.process import Command, HostRunner, checked
from tests.conftest import ROOT

TORCH = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 5)

    def forward(self, image):
        return torch.softmax(self.last(torch.relu(self.norm(self.conv(image))).mean((2, 3))), 1)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 8, batch_first=True)

    def forward(self, signal):
        return self.lstm(signal)[0]


class OneAtATime(torch.nn.Module):
    def forward(self, x):
        return x.reshape(1, 12) * 2


class Random(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(x.shape)


def net():
    return Net(), torch.zeros(1, 3, 8, 8)


def recurrent():
    return Recurrent(), torch.zeros(1, 16, 4)


def one():
    return OneAtATime(), torch.zeros(1, 3, 4)


def random():
    return Random(), torch.zeros(1, 3)


def broken():
    raise ValueError("no such weights")


def files():
    torch.manual_seed(0)
    made, image = Net().eval(), torch.zeros(2, 3, 8, 8)
    torch.jit.trace(made, image).save("scripted.pt")
    batch = torch.export.Dim("n")
    torch.export.save(torch.export.export(made, (image,), dynamic_shapes=({0: batch},)), "program.pt2")
    torch.save(made.state_dict(), "weights.pt")
"""
SKLEARN = """
import joblib, numpy
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

x = numpy.random.default_rng(0).normal(size=(200, 5))
y = (x[:, 0] + x[:, 1] > 0).astype(int)
made = {
    "forest": make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
    "line": LinearRegression(),
    "clusters": KMeans(3, random_state=0, n_init=1),
}
for name, model in made.items():
    joblib.dump(model.fit(x, y), name + ".pkl")
"""
KERAS = """
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
layers = tf.keras.layers
made = tf.keras.Sequential(
    [tf.keras.Input((16, 16, 3), name="image"), layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(5)]
)
made.save("net.keras")
made.save("net.h5")
made.export("net")
"""


def cached() -> Paths:
    """The machine's cache: an environment is made there once, and used by every run after."""
    return Paths.of(ROOT)


def prepared(framework: Framework, folder: Path, code: str) -> Path:
    """A folder with what ``code`` writes when the framework's Python runs it there."""
    python = interpreter(framework, cached(), HostRunner())
    (folder / "code_.py").write_text(code)
    run = "import sys; sys.path.insert(0, ''); import code_; getattr(code_, 'files', bool)()"
    command = Command(argv=(str(python), "-I", "-B", "-c", run), cwd=folder)
    checked(HostRunner(), command, what="cannot make models", kind=Kind.HOST)
    return folder


def imported(folder: Path, source: str, **options: Any) -> Imported:
    return import_model(source_of(source, folder), folder / "out.onnx", Options(**options), cached(), HostRunner())


def demand_proved(done: Imported, *, samples: int = 4) -> None:
    parity = done.record.parity
    assert parity is not None
    assert parity.samples == samples
    # Arithmetic in another order is never free of differences, unless there is hardly any.
    assert parity.worst < 1e-5
    onnx.checker.check_model(onnx.load(str(done.path)), full_check=True)


@pytest.fixture(scope="module")
def torch_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared("torch", tmp_path_factory.mktemp("torch"), TORCH)


@pytest.fixture(scope="module")
def sklearn_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared("sklearn", tmp_path_factory.mktemp("sklearn"), SKLEARN)


@pytest.fixture(scope="module")
def tf_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared("tf", tmp_path_factory.mktemp("tf"), KERAS)


# PyPI has no build of PyTorch for x86 without CUDA: not every machine can make its environment.
@pytest.mark.heavy
@pytest.mark.frameworks
class TestTorch:
    @pytest.mark.parametrize(
        ("source", "inputs", "name", "opset"),
        [
            pytest.param("code_.py:net", (), "image", 18),
            ("code_:recurrent", (), "signal", 17),
            ("scripted.pt", ("x=1,3,8,8",), "x", 17),
            pytest.param("program.pt2", (), "input", 18),
        ],
    )
    def test_sources(self, torch_folder: Path, source: str, inputs: tuple[str, ...], name: str, opset: int) -> None:
        done = imported(torch_folder, source, inputs=[*map(input_of, inputs)])
        demand_proved(done)
        assert done.inputs[name].startswith("float batch x ")
        assert done.opset == opset
        assert done.record.source.tools["torch"].startswith("2.")
        assert str(torch_folder) not in done.record_path.read_text()
        assert not (torch_folder / "__pycache__").exists()

    def test_the_users_samples_and_preprocessing(self, torch_folder: Path, tmp_path: Path) -> None:
        generator = numpy.random.default_rng(0)
        for number in range(2):
            numpy.savez(tmp_path / f"{number}.npz", image=generator.random((1, 3, 8, 8), numpy.float32), expected=1)
        wish = wish_of("mean=0.485,0.456,0.406 std=0.229,0.224,0.225 layout=nhwc input=uint8")
        done = imported(torch_folder, "code_.py:net", samples=tmp_path, normalise=wish)
        demand_proved(done, samples=6)
        assert done.inputs == {"image": "uint8 batch x 8 x 8 x 3"}

    def test_a_model_that_takes_one_at_a_time(self, torch_folder: Path) -> None:
        done = imported(torch_folder, "code_.py:one")
        demand_proved(done, samples=3)
        assert done.inputs == {"x": "float 1 x 3 x 4"}
        assert any("hard-coded" in warning for warning in done.record.warnings)

    @pytest.mark.parametrize(
        ("source", "part", "hint"),
        [
            pytest.param("code_.py:random", "differs by", "deterministic"),
            ("code_.py:broken", "ValueError: no such weights", "mend the source"),
            ("code_.py:none", 'no function "none"', "recurrent"),
            ("weights.pt", "it is a pickle", "--trust"),
            ("scripted.pt", "does not say what it takes", "--input"),
        ],
    )
    def test_what_is_refused(self, torch_folder: Path, source: str, part: str, hint: str) -> None:
        (torch_folder / "out.onnx").unlink(missing_ok=True)
        with pytest.raises(ArmletError) as caught:
            imported(torch_folder, source)
        assert part in caught.value.what
        assert hint in caught.value.hint
        assert not (torch_folder / "out.onnx").exists()


@pytest.mark.frameworks
class TestSklearn:
    @pytest.mark.parametrize(
        ("name", "outputs"),
        [
            ("forest", {"label": "int64 batch", "probabilities": "float batch x 2"}),
            ("line", {"variable": "float batch x 1"}),
            ("clusters", {"label": "int64 batch", "scores": "float batch x 3"}),
        ],
    )
    def test_sources(self, sklearn_folder: Path, name: str, outputs: dict[str, str]) -> None:
        done = imported(sklearn_folder, f"{name}.pkl", trust=True)
        demand_proved(done)
        assert done.inputs == {"input": "float batch x 5"}
        assert done.outputs == outputs

    def test_a_pickle_of_something_else(self, sklearn_folder: Path) -> None:
        import pickle

        (sklearn_folder / "list.pkl").write_bytes(pickle.dumps([1, 2]))
        with pytest.raises(ArmletError, match="holds a list and no estimator"):
            imported(sklearn_folder, "list.pkl", trust=True)


@pytest.mark.heavy
class TestTensorFlow:
    @pytest.mark.parametrize("source", ["net.keras", "net.h5", "net"])
    def test_sources(self, tf_folder: Path, source: str) -> None:
        done = imported(tf_folder, source)
        demand_proved(done)
        assert done.inputs == {"image": "float batch x 16 x 16 x 3"}
        assert list(done.outputs.values()) == ["float batch x 5"]
        assert json.loads(done.record_path.read_text())["source"]["tools"]["tensorflow-cpu"]
