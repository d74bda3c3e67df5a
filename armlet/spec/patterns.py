"""What the models' constraints mean, in the words that messages use."""

from __future__ import annotations

from collections.abc import Mapping

from armlet.spec.base import NAME, RELATIVE_PATH, VERSION
from armlet.spec.payload import MODEL_VERSION
from armlet.spec.sku import GLIBC
from armlet.spec.source_set import CMAKE_TARGET, CPE, POOL_PATH, PURL, URL
from armlet.spec.toolchain import TRIPLE

MEANINGS: Mapping[str, str] = {
    NAME: "a name: small letters, digits, dot, dash, underscore; begins with a letter or digit",
    r"^[0-9a-f]{64}$": "a sha256: 64 digits from 0-9a-f, as sha256sum prints it",
    r"^[0-9a-f]{40}$": "a sha1: 40 digits from 0-9a-f, as sha1sum prints it",
    MODEL_VERSION: 'a version that packages can have, such as "1.2.0" or "2026.02+b1"; begins with a digit',
    VERSION: 'a version of numbers and dots, such as "2.36"',
    RELATIVE_PATH: "a path relative to its folder, without .. and without spaces",
    r"^[^\x00-\x1f\x7f]+$": "one line of text",
    GLIBC: 'a version of glibc such as "2.36", from "2.17" to "2.99": what ldd --version says on the target',
    POOL_PATH: "a path in a Debian mirror, such as pool/main/o/onnx/onnx_1.17.0.orig.tar.gz",
    URL: "an address of a file: https://host/path/file",
    CMAKE_TARGET: "the name of a CMake target: letters, digits, dash, underscore, dot, plus",
    PURL: "a package URL, such as pkg:github/abseil/abseil-cpp@{version}",
    CPE: "a CPE 2.3 name with its 11 parts, such as cpe:2.3:a:google:protobuf:{version}:*:*:*:*:*:*:*",
    TRIPLE: "aarch64-linux-gnu, or arm-linux-gnueabihf; a vendor may stand in the middle",
    r"^[a-z0-9][a-z0-9+.-]+$": "the name of a Debian package",
    r"^[^/]+\.whl$": "the file name of a wheel, ending in .whl",
    r"^[a-z0-9./:-]+@sha256:[0-9a-f]{64}$": "an image reference with its digest: name@sha256:...",
    r"^([a-z][a-z0-9._-]*:)?[A-Z][A-Za-z0-9_]*$": "an operator, such as Conv, or com.microsoft:FusedConv",
}
"""Pattern of a constrained string -> what it asks for."""

KINDS: Mapping[str, str] = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "keys and values",
    "model_type": "keys and values",
}
"""pydantic's type of error -> what was wanted."""

NOUNS: Mapping[str, str] = {"providers": "provider", "python": "Python API", "schema": "schema version"}
"""Key -> what one of its values is called, where that is not the key itself."""

RETIRED: Mapping[tuple[str, str], str] = {
    (
        key,
        name,
    ): "ONNX Runtime 1.21's Arm NN provider calls functions that Arm NN has dropped, and upstream has "
    "removed it since; use acl, the library that Arm NN itself computes with, or xnnpack"
    for key in ("providers", "provider")
    for name in ("arm_nn", "armnn", "ArmNN")
}
"""(key, value) that existed once -> what to write instead."""

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "HardSwish": ("HardSigmoid", "Mul"),
    "Mish": ("Softplus", "Tanh", "Mul"),
}
"""ONNX's functions without a kernel of their own in the CPU provider -> the operators that they consist of."""
