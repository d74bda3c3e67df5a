"""A prediction of providers, compared with what runs on the target."""

from __future__ import annotations

from collections.abc import Sequence

from armlet.coverage.compare import Comparison, Row, compare
from armlet.onnx.placing import Placed
from armlet.providers import PROVIDERS
from armlet.qemu.observe import Observed


def rows_of(observed: Observed) -> list[Row]:
    """What ran, with providers by the names that SKUs use."""
    names = {row.ort_name: name for name, row in PROVIDERS.items()}
    return [
        Row(
            name=node.name,
            op=node.op,
            provider=names.get(node.provider, node.provider),
            shape=node.output_shapes[0] if node.output_shapes else None,
            us=node.us,
            bytes=node.output_bytes,
        )
        for node in observed.nodes
    ]


def compared(placed: Placed, observed: Observed, *, flavor: str) -> Comparison:
    """Where prediction and reality differ."""
    rows: Sequence[Row] = rows_of(observed)
    return compare(
        placed.graph, placed.placements, rows, refused=observed.refused, optimised_at_load=flavor != "minimal"
    )
