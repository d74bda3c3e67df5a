"""A program for a Python of its own: parses a layer's recipes with BitBake, runs functions of theirs, and tells of it.

``bitbake_program.py <build folder> <settings as JSON>``: ``run`` has functions by recipe, ``ask`` names of variables.
"""

from __future__ import annotations

import json
import logging
import sys
import types
from pathlib import Path
from typing import Any


def _without_servers() -> None:
    """The package has BitBake's library without the servers beside it; a parser asks for none of them."""
    for name in ("hashserv", "hashserv.client"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["hashserv"].client = sys.modules["hashserv.client"]  # type: ignore[attr-defined]


def main(build: Path, settings: dict[str, Any]) -> dict[str, Any]:
    _without_servers()
    import bb.build
    import bb.cookerdata
    import bb.fetch2

    logging.getLogger("BitBake").setLevel(logging.CRITICAL)
    config = bb.cookerdata.CookerConfiguration()
    config.env = {"PATH": "/usr/bin:/bin"}
    builder = bb.cookerdata.CookerDataBuilder(config)
    builder.parseBaseConfiguration()
    found: dict[str, Any] = {}
    for file in settings["recipes"]:
        parsed = builder.parseRecipeVariants(file, [], layername="meta-onnx")[""]
        name = parsed.getVar("PN")
        values = {variable: parsed.getVar(variable) for variable in settings["ask"]}
        found[name] = {**values, "skipped": parsed.getVar("__SKIPPED", False) or ""}
        for function in settings["run"].get(name, ()):
            try:
                bb.build.exec_func(function, parsed)
            except bb.BBHandledException:
                found[name]["failed"] = function
                break
            except Exception as error:
                found[name]["failed"] = f"{function}: {error}"
                break
    return found


if __name__ == "__main__":
    told = main(Path(sys.argv[1]), json.loads(sys.argv[2]))
    Path(sys.argv[1], "told.json").write_text(json.dumps(told))
