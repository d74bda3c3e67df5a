"""The allow-list that models ask of a SKU, explained, and put into its recipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from armlet import allow_list
from armlet.allow_list import Entry, Item
from armlet.config import resolve_document
from armlet.errors import ArmletError, Kind, host_error
from armlet.events import Sink, silent
from armlet.files import alone, write_whole
from armlet.onnx.asked import Asked, Needs, needs
from armlet.onnx.reading import Limits, Shapes
from armlet.paths import Paths
from armlet.recipes import SKUS, SOURCE_SETS, Table, load_operators, operators_file
from armlet.registrations import ONNX_DOMAIN
from armlet.spec.sku import DOMAINS_LEFT_OUT, Sku
from armlet.validation import did_you_mean
from armlet.yamlfile import parse, read


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a SKU should allow."""

    sku: str
    needs: Needs
    entries: tuple[Entry, ...]
    new: tuple[Entry, ...]
    """What of it the SKU's allow-list has not."""
    new_types: tuple[str, ...]
    """Element types that the SKU's ``types`` have not."""
    written: Path | None
    """The recipe, where it was changed."""

    def render(self) -> str:
        """YAML to paste below ``runtime.operators``, each line with its reason."""
        fresh = {(entry.domain, item.name) for entry in self.new for item in entry.items}
        text = "allow:\n" + allow_list.rendered((_marked(entry, fresh) for entry in self.entries), indent=2)
        if self.new_types:
            text += f"# add to types: {', '.join(self.new_types)}\n"
        reasons: dict[str, list[str]] = {}
        for name, why in self.needs.left_out.items():
            reasons.setdefault(why, []).append(name)
        return text + "".join(f"# not kept: {', '.join(names)}: {why}\n" for why, names in reasons.items())


def propose(
    paths: Paths,
    sku: str,
    models: Sequence[Path],
    *,
    shapes: Mapping[Path, Shapes] | None = None,
    allow: Iterable[str] = (),
    opsets: tuple[int, int] | None = None,
    write: bool = False,
    emit: Sink = silent,
) -> Proposal:
    """What ``models`` ask of the SKU, whose recipe may be without any operators yet.

    Args:
        allow: more operators (``Conv``, ``com.microsoft:FusedConv``), for the opsets of the models or of ``opsets``.
        opsets: the range of ONNX's own opsets at least; the models may widen it.
        write: put what is missing into ``recipes/skus/<sku>.yaml``. Twice is as good as once.

    Raises:
        ArmletError: (INPUT) the SKU, a model or a name is wrong, or a model needs what the flavor is built without.
            Nothing is written then.
    """
    chosen = SKUS.load(paths, sku)
    source_set = SOURCE_SETS.load(paths, chosen.runtime.source_set)
    table = load_operators(paths, source_set.name)
    if table is None:
        missing = operators_file(paths, source_set.name).relative_to(paths.root).as_posix()
        hint = "docs/adding-a-sku.md says how to write it"
        raise ArmletError(f"{missing} is not there", hint=hint, kind=Kind.INPUT)
    found = needs(
        models,
        providers=chosen.runtime.providers,
        flavor=chosen.runtime.flavor,
        table=table,
        shapes=shapes,
        limits=Limits(opsets=source_set.opsets, onnx_ir_max=source_set.onnx_ir_max),
        emit=emit,
    )
    _demand_domains(chosen, found)
    entries = _entries(found.operators, [_split(name, table) for name in allow], opsets, source_set.opsets)
    new, new_types = _lacking(chosen, entries, found)
    written = None
    if write:
        with _alone(paths, sku, emit):
            # As it is by now: another one may have written to it while the models were looked at.
            new, new_types = _lacking(SKUS.load(paths, sku), entries, found)
            written = _write(paths, sku, new, new_types) if new or new_types else None
    return Proposal(sku=sku, needs=found, entries=entries, new=new, new_types=new_types, written=written)


def _lacking(sku: Sku, entries: Iterable[Entry], found: Needs) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """The entries and element types that the SKU has not."""
    kept = sku.runtime.operators.types
    new_types = () if kept is None else tuple(sorted(set(found.types) - set(kept)))
    return allow_list.missing(entries, sku.runtime.operators.allow), new_types


@contextmanager
def _alone(paths: Paths, sku: str, emit: Sink) -> Iterator[None]:
    folder = paths.cache / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise host_error(error, folder) from error
    with alone(folder / f"{sku}.sku.lock", emit, waiting=f"another command writes to {sku}.yaml"):
        yield


def _write(paths: Paths, sku: str, new: Sequence[Entry], types: Sequence[str]) -> Path:
    place = SKUS.path(paths, sku)
    document = read(place, root=paths.root)
    text = allow_list.merged(document, new, types)
    resolve_document(paths, sku, parse(text, file=document.file))
    # A link stays one: what it leads to is written.
    file = place.resolve()
    write_whole(file, allow_list.as_written(file.read_bytes(), text))
    return place


def _demand_domains(sku: Sku, found: Needs) -> None:
    without = DOMAINS_LEFT_OUT.get(sku.runtime.flavor, frozenset())
    for one in found.operators:
        if one.domain in without:
            raise ArmletError(
                f"asks for {one.name} of {one.domain}, which the flavor {sku.runtime.flavor} of {sku.name} is built "
                "without",
                hint="export it with operators of ai.onnx alone, or take a SKU of the flavor reduced or full",
                kind=Kind.INPUT,
                where=one.why,
            )


def _split(name: str, table: Table) -> tuple[str, str]:
    domain, _, operator = name.rpartition(":")
    domain = domain or ONNX_DOMAIN
    known = table.get(domain, {})
    if operator not in known:
        hint = did_you_mean(operator, known, more="recipes/operators has all that have kernels")
        raise ArmletError(f'--allow: unknown operator "{name}"', hint=hint, kind=Kind.INPUT)
    return domain, operator


def _entries(
    asked: Sequence[Asked],
    allow: Sequence[tuple[str, str]],
    opsets: tuple[int, int] | None,
    newest: Mapping[str, int],
) -> tuple[Entry, ...]:
    """One entry for each domain: the range from the oldest to the newest opset that any operator of it asks for."""
    items: dict[str, dict[str, str]] = {}
    for one in asked:
        types = f" ({', '.join(one.types)})" if one.types else ""
        items.setdefault(one.domain, {})[one.name] = f"{one.why}{types}"
    for domain, operator in allow:
        items.setdefault(domain, {}).setdefault(operator, "asked for")
    found = []
    for domain, names in sorted(items.items()):
        bounds = [bound for one in asked if one.domain == domain for bound in one.opsets]
        if domain == ONNX_DOMAIN:
            bounds += opsets or ()
        elif not bounds:
            bounds = [1, newest.get(domain, 1)]
        if not bounds:
            raise ArmletError(
                "--allow: for which opsets is not known without models",
                hint="give the range as well: --opsets 11-18",
                kind=Kind.INPUT,
            )
        reasons = tuple(Item(name=name, why=why) for name, why in sorted(names.items()))
        found.append(Entry(domain=domain, opsets=(min(bounds), max(bounds)), items=reasons))
    return tuple(found)


def _marked(entry: Entry, fresh: set[tuple[str, str]]) -> Entry:
    """With a word on what the SKU has already."""
    items = tuple(
        item if (entry.domain, item.name) in fresh else Item(name=item.name, why=f"{item.why}; allowed already")
        for item in entry.items
    )
    return Entry(domain=entry.domain, opsets=entry.opsets, items=items)
