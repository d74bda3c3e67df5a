"""``inv model.pack``."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from invoke.tasks import task

from armlet import cli
from armlet.cli import edge
from armlet.errors import ArmletError, Kind
from armlet.verbs.passphrase import passphrase_of

if TYPE_CHECKING:
    from armlet.payload.wish import Made
    from armlet.spec.payload import Budget


@task(
    name="pack",
    positional=["model"],
    auto_shortflags=False,
    help={
        "model": "a converted .ort or .onnx file",
        "name": "of the model: small letters, digits, dots, dashes",
        "version": "the author's, such as 1.2.0",
        "generation": "a number that grows with every payload of this name, rollbacks included",
        "licence": "of the model, as an SPDX expression",
        "description": "one line",
        "samples": "a folder of .npz files with real inputs",
        "key": "the private key to sign with (./inv key.new)",
        "passphrase-env": "the environment variable that holds the key's passphrase",
        "unsigned": "do not sign; no device takes such a payload",
        "source": "the ONNX model of floats that it was made from (default: found beside it by its record)",
        "sku": "refuse what does not fit this SKU's runtime, as it was built last",
        "providers": "in order of preference, such as xnnpack,cpu (default: those it was converted for)",
        "threads": "for the first provider that takes a number of them (default: the device decides)",
        "budget": 'what it may take on a device: "p95_ms=50 rss_mb=64"',
        "atol": "how far results may be off: absolute (default: 1e-4, quantised 0.2)",
        "rtol": "and relative to the right one (default: 1e-3, quantised 0.2)",
        "golden": "how many samples become golden vectors",
        "created": "when it was made, in UTC: 2026-01-31T12:00:00Z (default: SOURCE_DATE_EPOCH, else its import)",
        "limit-mib": "refuse more than this in all",
        "format": "what to make: payload, deb, ipk, rpm, apk, folder; several with commas",
        "beside": "packages have the version in their names, so that several can be installed",
        "licence-file": "the licence's text, for packages",
        "maintainer": "Name <mail>, for packages",
        "out": "folder (default: dist/models/<name>)",
        "json": "print the result as JSON",
    },
)
@edge
def pack(
    _context: Any,
    model: str,
    name: str = "",
    version: str = "",
    generation: str = "",
    licence: str = "",
    description: str = "",
    samples: str = "",
    key: str = "",
    passphrase_env: str = "",
    unsigned: bool = False,
    source: str = "",
    sku: str = "",
    providers: str = "",
    threads: str = "",
    budget: str = "",
    atol: str = "",
    rtol: str = "",
    golden: str = "5",
    created: str = "",
    limit_mib: str = "512",
    format: str = "payload",
    beside: bool = False,
    licence_file: str = "",
    maintainer: str = "",
    out: str = "",
    json: bool = False,
) -> None:
    """Makes a signed payload of a model: manifest, golden vectors, drift reference; also as packages."""
    from armlet import manifest
    from armlet.nfpm import MAINTAINER
    from armlet.payload.keys import load_signer
    from armlet.payload.pack import pack as pack_model
    from armlet.payload.wish import FORMATS, Delivery, Wish
    from armlet.spec.sku import Provider

    needed = {
        "--name": name,
        "--version": version,
        "--generation": generation,
        "--licence": licence,
        "--description": description,
        "--samples": samples,
    }
    if missing := [flag for flag, value in needed.items() if not value]:
        raise _input(f"{' '.join(missing)} not given", "./inv --help model.pack says what each is")
    if bool(key) == unsigned:
        hint = "--key release.key signs it, --unsigned is for trying things out"
        raise _input("it must be said who signs the payload, or that nobody does", hint)
    wish = Wish(
        name=name,
        version=version,
        generation=cli.number("--generation", generation) or 0,
        description=description,
        licence=licence,
        samples=Path(samples),
        source=_path(source),
        providers=_some_of("--providers", providers, get_args(Provider)),
        threads=_threads(threads),
        budget=_budget(budget),
        atol=_tolerance("--atol", atol),
        rtol=_tolerance("--rtol", rtol),
        golden=cli.number("--golden", golden) or 1,
        created=created,
        limit=(cli.number("--limit-mib", limit_mib) or 1) << 20,
    )
    with cli.run("model-pack") as (paths, emit):
        delivery = Delivery(
            out=_path(out) or paths.dist("models") / name,
            formats=_some_of("--format", format, FORMATS),
            licence_file=_path(licence_file),
            maintainer=maintainer or MAINTAINER,
            beside=beside,
        )
        signer = load_signer(Path(key), passphrase_of(Path(key), passphrase_env, os.environ), emit) if key else None
        runtime = manifest.read_manifest(paths.dist(sku) / manifest.FILE) if sku else None
        made = pack_model(Path(model), wish, signer=signer, delivery=delivery, runtime=runtime, emit=emit)
    cli.show_json(_plain(made)) if json else cli.show(_table(made))


def _plain(made: Made) -> dict[str, Any]:
    facts = made.manifest
    return {
        "model": facts.model,
        "version": facts.version,
        "generation": facts.generation,
        "sha256": made.sha256,
        "key": made.key,
        "golden": len(facts.golden),
        "golden_share_of_tolerance": made.golden_share,
        "drift_reference": facts.drift_reference is not None,
        "files": made.files,
    }


def _table(made: Made) -> str:
    from armlet.sinks.tables import table

    facts = made.manifest
    rows = [
        ("version", f"{facts.version}, generation {facts.generation}"),
        ("payload.json", f"sha256 {made.sha256}"),
        ("signed by", made.key or "nobody: no device takes it"),
        ("golden vectors", f"{len(facts.golden)}, up to {made.golden_share:.2g} of the tolerance here"),
        ("drift reference", f"{len(facts.drift_reference)} histograms" if facts.drift_reference else "none"),
        *((kind, str(path)) for kind, path in made.files.items()),
    ]
    return table(("what", facts.model), rows)


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _some_of(flag: str, text: str, known: Sequence[Any]) -> tuple[Any, ...]:
    """The names in a list with commas, each once."""
    names = tuple(part.strip() for part in text.split(",")) if text else ()
    for name in names:
        if name not in known:
            raise _input(f'{flag}: unknown "{name}"', f"known: {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def _tolerance(flag: str, text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value < 1e9:
        raise _input(f'{flag}: "{text}" is no positive number', f"write for example {flag} 1e-4")
    return value


def _threads(text: str) -> int | None:
    from armlet_runtime.payload_manifest import MOST_THREADS

    count = cli.number("--threads", text)
    if count is not None and count > MOST_THREADS:
        raise _input(f"--threads: {count} is too many", f"a device takes up to {MOST_THREADS}")
    return count


def _budget(text: str) -> Budget | None:
    from pydantic import ValidationError

    from armlet.spec.payload import Budget

    if not text:
        return None
    try:
        pairs = [part.split("=") for part in text.split()]
        values = {name: float(value) for name, value in pairs}
        if len(values) != len(pairs) or not all(map(math.isfinite, values.values())):
            raise ValueError(text)
        return Budget.model_validate(values)
    except (ValueError, ValidationError) as error:
        hint = f'write --budget "p95_ms=50 rss_mb=64"; each once; known: {", ".join(Budget.model_fields)}'
        raise _input(f'--budget: "{text}" is none', hint) from error


def _input(what: str, hint: str) -> ArmletError:
    return ArmletError(what, hint=hint, kind=Kind.INPUT)
