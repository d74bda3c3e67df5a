"""``inv sku.operators``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind
from armlet.verbs import shapes

if TYPE_CHECKING:
    from armlet.onnx.proposal import Proposal


@task(
    name="operators",
    iterable=["from_models", "shape", "allow"],
    auto_shortflags=False,
    help={
        "sku": "name of a file in recipes/skus, without .yaml",
        "from-models": "ONNX files",
        "shape": "an input's shape, fixed for good: x=1,3,48,192 for every model that has such an input, or "
        "<model>:x=1,3,48,192 for one",
        "allow": "more operators, with commas between: Erf,com.microsoft:FusedConv",
        "opsets": "room for models to come: ONNX's own opsets at least from this to that, such as 11-18",
        "write": "put what is missing into recipes/skus/<sku>.yaml",
        "json": "print the result as JSON",
    },
)
@edge
def operators(
    _context: Any,
    sku: str = "",
    from_models: Any = None,
    shape: Any = None,
    allow: Any = None,
    opsets: str = "",
    write: bool = False,
    json: bool = False,
) -> None:
    """Names the operators that models need of a SKU, those of the optimisers too, with the reason for each."""
    from armlet.onnx import proposal

    shapes.demand(sku, "--sku", "name the SKU; ./inv sku.list names them")
    models = [Path(word) for word in from_models or ()]
    allowed = _words(allow)
    if not models and not allowed:
        raise ArmletError("--from-models is missing", hint="name ONNX files: --from-models a.onnx", kind=Kind.INPUT)
    with cli.run("sku-operators") as (paths, emit):
        found = proposal.propose(
            paths,
            sku,
            models,
            shapes=shapes.by_model(shape or (), models),
            allow=allowed,
            opsets=_range(opsets),
            write=write,
            emit=emit,
        )
    if json:
        cli.show_json(_plain(found))
    else:
        cli.show(_told(found) if write else found.render().rstrip())


def _words(values: Iterable[str] | None) -> list[str]:
    return [word for value in values or () for word in value.split(",") if word]


def _range(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()) or not 1 <= int(first) <= int(last):
        raise ArmletError(f'--opsets: "{text}" is no range', hint="write for example 11-18", kind=Kind.INPUT)
    return int(first), int(last)


def _plain(found: Proposal) -> dict[str, Any]:
    fresh = {(entry.domain, item.name) for entry in found.new for item in entry.items}
    ranges = {entry.domain: entry.opsets for entry in found.entries}
    return {
        "sku": found.sku,
        "operators": [
            {
                "domain": one.domain,
                "name": one.name,
                "opsets": ranges[one.domain],
                "types": one.types,
                "models": one.models,
                "created": one.created,
                "new": (one.domain, one.name) in fresh,
            }
            for one in found.needs.operators
        ],
        "types": found.needs.types,
        "new_types": found.new_types,
        "left_out": found.needs.left_out,
        "yaml": found.render(),
        "written": None if found.written is None else str(found.written),
    }


def _told(found: Proposal) -> str:
    from armlet.sinks.tables import table

    if found.written is None:
        return f"{found.sku} allows all of it already"
    rows: list[Sequence[str]] = [
        (
            item.name if entry.domain == "ai.onnx" else f"{entry.domain}:{item.name}",
            "{}-{}".format(*entry.opsets),
            item.why,
        )
        for entry in found.new
        for item in entry.items
    ]
    rows += [(one, "", "element type") for one in found.new_types]
    return f"{table(('new', 'opsets', 'why'), rows)}\n{found.written}"
