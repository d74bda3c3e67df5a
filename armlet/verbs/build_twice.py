"""``inv build --twice``."""

from __future__ import annotations

from armlet import cli
from armlet.pipeline import Options


def run(sku: str, options: Options, *, verbose: bool, json: bool) -> None:
    """Builds, compares, and shows what came of it.

    Raises:
        ArmletError: (GATE) the two builds differ.
    """
    from armlet import twice
    from armlet.packages import runtime as packages
    from armlet.sinks.tables import table

    with cli.run(f"build-twice-{sku}", verbose=verbose) as (paths, emit):
        report = twice.build(
            paths, sku, emit, options, also=lambda placed, out: packages.package(placed, sku, out, emit=emit)
        )
    if json:
        cli.show_json(report)
    else:
        first, second = report.passes
        rows = [(key, first[key], second[key]) for key in first]
        rows.append(("seconds", f"{report.seconds[0]:.0f}", f"{report.seconds[1]:.0f}"))
        cli.show(table(("", "first build", "second build"), rows))
        for difference in report.differences:
            cli.show(str(difference))
        equal = "differ" if report.differences else "agree in every byte"
        cli.show(f"{report.files} files, {report.bytes} bytes: both builds {equal}")
    twice.demand_equal(report)
