"""What a model comes from: a file, a folder or a factory, told by how it is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from armlet import digest
from armlet.errors import ArmletError, Kind
from armlet.onnx.frameworks import Framework
from armlet.spec.model_record import SourceKind

FRAMEWORKS: dict[SourceKind, Framework] = {
    "torch": "torch",
    "torchscript": "torch",
    "pt2": "torch",
    "keras": "tf",
    "savedmodel": "tf",
    "sklearn": "sklearn",
}
_ENDINGS: dict[str, SourceKind] = {
    ".onnx": "onnx",
    ".pt": "torchscript",
    ".pth": "torchscript",
    ".pt2": "pt2",
    ".keras": "keras",
    ".h5": "keras",
    ".hdf5": "keras",
    ".pkl": "sklearn",
    ".pickle": "sklearn",
    ".joblib": "sklearn",
}
_KNOWN = "a file *.onnx, *.pt, *.pt2, *.keras, *.h5, *.pkl or *.joblib, the folder of a SavedModel, or module:factory"
_DTYPES = (
    *("float32", "float64", "float16", "uint8", "int8", "uint16", "int16"),
    *("uint32", "int32", "uint64", "int64", "bool", "string"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    kind: SourceKind
    text: str
    """As the user wrote it."""
    folder: Path
    """What a relative path or a module's name starts from."""

    @property
    def path(self) -> Path:
        """Of the file or folder; a factory's has none (its ``text`` names a module)."""
        return self.folder / self.text

    @property
    def name(self) -> str:
        """Without any folder of the machine."""
        if self.kind != "torch":
            return self.path.resolve().name
        place, _, factory = self.text.rpartition(":")
        return f"{Path(place).name}:{factory}"

    @property
    def stem(self) -> str:
        """What a model made from it is named by default."""
        return self.text.rpartition(":")[2] if self.kind == "torch" else self.path.resolve().stem

    def sha256(self, code: tuple[Path, ...]) -> str:
        """Of the file; over the folder's files; of a factory, over the ``code`` that was imported for it."""
        if self.kind == "torch":
            return digest.of_value(sorted((file.name, digest.of_file(file)) for file in code))
        if self.path.is_dir():
            return digest.of_files((file for file in self.path.rglob("*") if file.is_file()), root=self.path)
        return digest.of_file(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input as the user describes it: ``name=1,3,224,224:uint8``."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


def source_of(text: str, folder: Path, kind: str = "") -> Source:
    """What ``text`` names, seen from ``folder``.

    Raises:
        ArmletError: (INPUT) there is no such file, or nobody knows what it is.
    """
    if kind and kind not in get_args(SourceKind):
        raise _input(f'--kind: "{kind}" is unknown', f"known: {', '.join(get_args(SourceKind))}", "")
    path = folder / text
    place, colon, factory = text.rpartition(":")
    if colon and not path.exists() and factory.isidentifier():
        if place.endswith(".py") and not (folder / place).is_file():
            raise _input("there is no such file", "check the path", place)
        return Source(kind="torch", text=text, folder=folder)
    if not path.exists():
        raise _input("there is no such file", f"give {_KNOWN}", text)
    told = kind or ("savedmodel" if (path / "saved_model.pb").is_file() else _ENDINGS.get(path.suffix.lower()))
    if told is None or (path.is_dir() and told != "savedmodel"):
        raise _input("what this is cannot be told from its name", f"give {_KNOWN}, or say it with --kind", text)
    return Source(kind=told, text=text, folder=folder)  # type: ignore[arg-type]


def input_of(text: str) -> Input:
    """``name=1,3,224,224`` or ``name=1,3:uint8``; a name may hold colons.

    Raises:
        ArmletError: (INPUT) it is something else.
    """
    name, _, rest = text.rpartition("=")
    sizes, _, dtype = rest.partition(":")
    parts = [size.strip() for size in sizes.split(",")] if sizes.strip() else []
    bad = not name or not all(part.isdecimal() and 0 < int(part) < 2**31 for part in parts)
    if bad or (dtype or "float32") not in _DTYPES:
        hint = f"write name=1,3,224,224 or name=1,3:uint8; types: {', '.join(_DTYPES)}"
        raise _input(f'--input: "{text}" is not understood', hint, "")
    return Input(name=name, shape=tuple(map(int, parts)), dtype=dtype or "float32")


def _input(what: str, hint: str, where: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT, where=where)
