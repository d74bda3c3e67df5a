"""A scikit-learn pipeline for a table of measurements: is this tumour malignant?

The data come with scikit-learn (``load_breast_cancer``: UCI's "Breast Cancer Wisconsin (Diagnostic)", 569 rows of 30
figures, measured on microscope images); a quarter is held out. Two pipelines:

- ``make``: standardised columns, their principal components, a small neural network;
- ``make_trees``: gradient-boosted trees.

skl2onnx likes to write operators of the domain ai.onnx.ml: Scaler for the first step, ArrayFeatureExtractor where the
label is looked up, TreeEnsembleClassifier for trees. Runtimes of the flavors ``reduced`` and ``full`` can have them;
``minimal`` ones are built without that domain. ``write_plain`` shows the way out, which is open to ``make`` alone:
Scaler is said with Sub and Div, and the label is left out, since whoever reads the probabilities sees which is the
largest. For trees skl2onnx knows nothing but ai.onnx.ml.

    python sklearn_pipeline.py --out folder       # trains, writes models and held-out rows, prints the accuracies

Runs in an environment with scikit-learn and skl2onnx. To import it: ``folder/pipeline.pickle`` or
``folder/trees.pickle`` for runtimes with ai.onnx.ml, ``folder/plain.onnx`` for all.
"""

from __future__ import annotations

import argparse
import json
import pickle
from pathlib import Path

import numpy
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

SEED = 2
INPUT = "input"
"""float32, 1x30: the columns in scikit-learn's order and units."""
OPSET = 17


def data() -> tuple[tuple[numpy.ndarray, numpy.ndarray], tuple[numpy.ndarray, numpy.ndarray]]:
    """(rows, classes) to train on, and (rows, classes) held out; class 0 is malignant, 1 benign."""
    rows, classes = load_breast_cancer(return_X_y=True)
    split = train_test_split(rows.astype(numpy.float32), classes, test_size=0.25, random_state=SEED, stratify=classes)
    train_rows, held_rows, train_classes, held_classes = split
    return (train_rows, train_classes), (held_rows, held_classes)


def make() -> Pipeline:
    """The trained pipeline that needs nothing but ai.onnx, the same at every call."""
    network = MLPClassifier(hidden_layer_sizes=(16,), alpha=1e-2, max_iter=600, random_state=SEED)
    return make_pipeline(StandardScaler(), PCA(n_components=10, random_state=SEED), network).fit(*data()[0])


def make_trees() -> Pipeline:
    """The trained pipeline that needs ai.onnx.ml, the same at every call."""
    trees = GradientBoostingClassifier(n_estimators=60, max_depth=3, random_state=SEED)
    return make_pipeline(StandardScaler(), trees).fit(*data()[0])


PIPELINES = {"pipeline": make, "trees": make_trees}
"""Name of the pickle -> what trains its pipeline."""


def write_plain(model: Pipeline, path: Path) -> None:
    """Writes ``make``'s pipeline in operators of ai.onnx alone: rows (Nx30) to the classes' probabilities (Nx2)."""
    types = [(INPUT, FloatTensorType([None, model.n_features_in_]))]
    options = {id(model): {"zipmap": False}}
    made = to_onnx(model, initial_types=types, target_opset=OPSET, options=options, black_op={"Scaler"})
    graph = made.graph
    del graph.output[0]  # The label.
    needed = {output.name for output in graph.output}
    for node in reversed(list(graph.node)):
        if needed.isdisjoint(node.output):
            graph.node.remove(node)
        else:
            needed.update(node.input)
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in needed]:
        graph.initializer.remove(tensor)
    for entry in [entry for entry in made.opset_import if entry.domain == "ai.onnx.ml"]:
        made.opset_import.remove(entry)
    path.write_bytes(made.SerializeToString())


def samples(folder: Path, count: int) -> None:
    """Writes the first ``count`` held-out rows, one file each: the input by name, and the class as ``expected``."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, classes = data()[1]
    for number, (row, wanted) in enumerate(zip(rows[:count], classes[:count], strict=True)):
        numpy.savez(folder / f"row-{number:03}.npz", **{INPUT: row[None], "expected": wanted})


def accuracy(model: Pipeline) -> float:
    """Share of the held-out rows whose class is found."""
    rows, classes = data()[1]
    return float((model.predict(rows) == classes).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the models, and for samples/ in it")
    parser.add_argument("--count", type=int, default=40, help="how many rows to write (%(default)s)")
    given = parser.parse_args()
    out = given.out
    samples(out / "samples", given.count)
    told = {}
    for name, train in PIPELINES.items():
        model = train()
        (out / f"{name}.pickle").write_bytes(pickle.dumps(model))
        told[name] = {"accuracy": round(accuracy(model), 4)}
        if train is make:
            write_plain(model, out / "plain.onnx")
    print(json.dumps({**told, "held_out": len(data()[1][1])}))


if __name__ == "__main__":
    main()
