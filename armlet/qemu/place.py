"""Where a SKU's models are tried: its library, its core, its rootfs."""

from __future__ import annotations

from armlet.config import Resolved
from armlet.events import Sink
from armlet.paths import Paths
from armlet.process import Runner
from armlet.qemu.rootfs import make
from armlet.qemu.run import Target, demand_model
from armlet.qemu.runtime import Runtime
from armlet.qemu.trial import Place


def place_of(paths: Paths, resolved: Resolved, runtime: Runtime, emit: Sink, runner: Runner | None = None) -> Place:
    """The place of a SKU's built runtime; its root file system is made where there is none.

    Raises:
        ArmletError: (HOST) no emulator, one that does not know the core, or no root file system.
    """
    demand_model(resolved.cpu, runner)
    suite = resolved.toolchain.base.suite
    rootfs = make(paths, suite=suite, architecture=resolved.toolchain.debian_arch, emit=emit, runner=runner)
    return Place(
        target=Target(rootfs=rootfs, cpu=resolved.cpu),
        library=runtime.library,
        device=paths.root / "device",
        providers=runtime.manifest.providers,
    )
