"""Write ``armlet_runtime/ort/_api_table.py`` from ONNX Runtime's C header.

    python device/tools/generate_api.py path/to/onnxruntime_c_api.h

The table holds, for every function of ``struct OrtApi``, its position in the struct and its signature.
One letter stands for one C type, the result comes first, then a colon, then the arguments:

    s status   v void   p any pointer   z size_t   i int or enum   I uint32_t   q int64_t   f float   ? bool
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "armlet_runtime" / "ort" / "_api_table.py"

# Enums worth having in Python, and the C prefix that the Python members go without.
ENUMS = {
    "OrtErrorCode": "ORT_",
    "ONNXType": "ONNX_TYPE_",
    "ONNXTensorElementDataType": "ONNX_TENSOR_ELEMENT_DATA_TYPE_",
    "OrtLoggingLevel": "ORT_LOGGING_LEVEL_",
    "OrtAllocatorType": "Ort",
    "OrtMemType": "OrtMemType",
    # These two keep their prefix: the official Python package spells them so.
    "GraphOptimizationLevel": "",
    "ExecutionMode": "",
}
FUNCTION_TYPEDEF = r"\btypedef [^;{]*?\(\s*(?:ORT_API_CALL\s*)?\*\s*(\w+)\)"
FUNCTION_MEMBER = r"(.+?)\(ORT_API_CALL\s*\* (\w+)\)\((.*?)\)\s*(?:NO_EXCEPTION)?\s*(?:ORT_ALL_ARGS_NONNULL)?"
SCALARS = {"size_t": "z", "int": "i", "uint32_t": "I", "int64_t": "q", "float": "f", "bool": "?"}


class HeaderError(Exception):
    """The header holds something that this generator was not written for."""


def render(header: bytes) -> str:
    """The text of ``_api_table.py`` for the bytes of one ``onnxruntime_c_api.h``."""
    code = strip_comments(header.decode("utf-8"))
    version = re.search(r"^#define ORT_API_VERSION (\d+)$", code, re.MULTILINE)
    if version is None:
        raise HeaderError("no ORT_API_VERSION in the header")
    lines = [
        '"""Positions, signatures and enums of ONNX Runtime\'s C API.',
        "",
        "Generated from onnxruntime_c_api.h by device/tools/generate_api.py; edit that instead.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "import enum",
        "",
        f'HEADER_SHA256 = "{hashlib.sha256(header).hexdigest()}"',
        f"API_VERSION = {version[1]}",
        "",
        "FUNCTIONS: dict[str, tuple[int, str]] = {",
        *(f'    "{name}": ({index}, "{sign}"),' for index, (name, sign) in enumerate(functions(code))),
        "}",
    ]
    for name, prefix in ENUMS.items():
        lines += ["", "", f"class {name}(enum.IntEnum):", f'    """``enum {name}`` of the C API."""', ""]
        lines += [f"    {key} = {value}" for key, value in enum_members(code, name, prefix)]
    return "\n".join(lines) + "\n"


def strip_comments(code: str) -> str:
    """``code`` with every C comment replaced by a space."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", code, flags=re.DOTALL)


def functions(code: str) -> list[tuple[str, str]]:
    """Name and signature of each member of ``struct OrtApi``, in the order of the struct."""
    body = struct_body(code, "OrtApi")
    if "#" in body:
        raise HeaderError("struct OrtApi has preprocessor lines: positions would depend on the platform")
    types = {
        **SCALARS,
        **dict.fromkeys(re.findall(r"\benum (\w+)\s*\{", code), "i"),
        **dict.fromkeys(re.findall(FUNCTION_TYPEDEF, code), "p"),
    }
    return [member(" ".join(text.split()), types) for text in body.split(";") if text.strip()]


def struct_body(code: str, name: str) -> str:
    """What stands between the braces of ``struct name``."""
    found = re.search(rf"\bstruct {name}\s*\{{(.*?)\n\}}", code, re.DOTALL)
    if found is None:
        raise HeaderError(f"no struct {name} in the header")
    return found[1]


def member(text: str, types: dict[str, str]) -> tuple[str, str]:
    """Name and signature of one declaration of ``struct OrtApi``."""
    if found := re.fullmatch(r"ORT_CLASS_RELEASE\((\w+)\)", text):
        return f"Release{found[1]}", "v:p"
    if found := re.fullmatch(r"ORT_API2_STATUS\((\w+),(.*)\)", text):
        return found[1], "s:" + signature(found[2], types)
    plain = re.fullmatch(FUNCTION_MEMBER, text)
    if plain is None:
        raise HeaderError(f"cannot read this member of struct OrtApi: {text}")
    result = "v" if plain[1].strip() == "void" else letter(plain[1], types)
    return plain[2], f"{result}:" + signature(plain[3], types)


def signature(arguments: str, types: dict[str, str]) -> str:
    """One letter for each of the comma-separated C parameters."""
    if arguments.strip() in ("", "void"):
        return ""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(arguments):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(arguments[start:position])
            start = position + 1
    return "".join(letter(part, types) for part in [*parts, arguments[start:]])


def letter(declaration: str, types: dict[str, str]) -> str:
    """The letter of one C type or parameter, with or without a parameter name."""
    bare = re.sub(r"\b_\w+_\b(\(\w+\))?|\b(const|struct|enum)\b", " ", declaration)
    if re.search(r"[*\[]", bare):
        return "p"
    name = bare.split()[0]
    if name not in types:
        raise HeaderError(f"unknown C type {name} in: {declaration.strip()}")
    return types[name]


def enum_members(code: str, name: str, prefix: str) -> list[tuple[str, int]]:
    """Members of one C enum, without their common prefix, and their values."""
    found = re.search(rf"\benum {name}\s*\{{(.*?)\}}", code, re.DOTALL)
    if found is None:
        raise HeaderError(f"no enum {name} in the header")
    values: dict[str, int] = {}
    following = 0
    for text in filter(None, map(str.strip, found[1].split(","))):
        key, _, value = (part.strip() for part in text.partition("="))
        if not key.startswith(prefix):
            raise HeaderError(f"{key} of enum {name} does not begin with {prefix}")
        if value:
            following = values[value] if value in values else int(value, 0)
        values[key] = following
        following += 1
    return [(key[len(prefix) :], value) for key, value in values.items()]


def main(argv: list[str]) -> int:
    """Write the table; return the exit code (2 when the header cannot be read)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("header", type=Path, help="onnxruntime_c_api.h")
    parser.add_argument("--output", type=Path, default=TARGET, help="default: %(default)s")
    options = parser.parse_args(argv)
    try:
        text = render(options.header.read_bytes())
    except (OSError, HeaderError) as error:
        print(f"error: {options.header}: {error}", file=sys.stderr)
        return 2
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output}: {text.count(': (')} functions")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
