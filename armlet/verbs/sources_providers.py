"""``inv sources.providers``."""

from __future__ import annotations

from typing import Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge


@task(name="providers", help={"sku": "a SKU of the source set, which was built at least once"})
@edge
def providers(_context: Any, sku: str = "demo-a53") -> None:
    """Writes the tables of what providers take, from ONNX Runtime's patched sources."""
    from armlet import pipeline
    from armlet.config import resolve
    from armlet.coverage import generate, tables
    from armlet.files import write_whole

    paths = cli.here()
    tree, source_set = pipeline.source_tree(paths, sku), resolve(paths, sku).source_set.name
    for provider in generate.RECIPES:
        place = tables.place(paths.root, source_set, provider)
        write_whole(place, tables.text(generate.generate(provider, tree)).encode())
        cli.show(str(place))
