"""From nothing to a report: build the demo SKU, run its model on the target."""

from __future__ import annotations

from armlet import gates, pipeline
from armlet.events import Sink
from armlet.paths import Paths
from armlet.qemu import smoke
from armlet.sinks.tables import summary

SKU = "demo-a53"


def demo(paths: Paths, emit: Sink) -> str:
    """Returns the report: what was built, the gates, and how the model ran.

    Raises:
        ArmletError: a step, a gate or the run on the target failed.
    """
    built = pipeline.build(paths, SKU, emit)
    gates.demand(built.gates)
    ran = smoke.smoke(paths, SKU, emit, planned=built.build_id)
    return "\n\n".join([summary(built), ran.render()])
